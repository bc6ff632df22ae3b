"""What a release says about itself: a row of privacy.jsonl per utterance, and privacy.json for the set."""

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import dpanon
from dpanon.privacy import Guarantee
from dpanon.privacy.lengths import STEP

SCHEMA = 1
NO_NOISE = "no noise"
# Beyond what the mechanisms themselves say.
NEVER_COVERED = (
    "the number of frames, and with it tempo and pauses as a whole",
    "the fact that the utterance was released",
    "other releases of the utterance or of its speaker: their costs add up",
    "membership of training speakers",
)
FACTS = ("sigma", "sigma_over_u", "mu", "eer_floor_mu", "mu_as_published", "eer_floor_as_published")  # of voxlet
WITHOUT_NOISE = ("pitch", "what is said and how (bottleneck)", "voicing", "energy", "timing", *NEVER_COVERED)


def utterance_row(utt: str, anonymized: Any, keyed: bool) -> dict[str, Any]:
    """One line of privacy.jsonl. ``anonymized`` is what a system returns for one utterance."""
    whole: Guarantee = anonymized.guarantee
    frame: Guarantee | None = anonymized.guarantee_frame
    f0: Guarantee | None = anonymized.guarantee_f0
    tokens = frame if frame is not None and frame.unit == "segment" else None
    claims = whole.kind != "none"
    never = NEVER_COVERED[1:] if STEP in whole.public_side_info else NEVER_COVERED  # padded: the length is covered
    return {
        "utt": utt,
        "num_frames": int(anonymized.num_frames),
        "epsilon_f0": _epsilon(f0),
        "epsilon_bn": _epsilon(frame if tokens is None else None),
        "epsilon_frame": _epsilon(frame if tokens is None else None),
        **({} if tokens is None else {"epsilon_token": _epsilon(tokens), "num_tokens": tokens.num_units}),
        **({"mu_f0": f0.mu()} if f0 is not None and f0.kind == "gdp" else {}),
        "epsilon_utterance": _epsilon(whole),
        "unit": whole.unit,
        "adjacency": whole.adjacency if claims else None,
        "conditional_on": list(dict.fromkeys((*whole.conditional_on, *whole.public_side_info))),
        "not_covered": list(dict.fromkeys((*whole.not_covered, *never))) if claims else list(WITHOUT_NOISE),
        "eer_floor": whole.eer_floor() if claims else None,
        "target": anonymized.target,
        **getattr(anonymized, "facts", {}),
        "sampler": "keyed" if keyed else whole.sampler if claims else "none",
        "releasable": _releasable(whole, keyed),
    }


def details(anonymized: Any) -> dict[str, Any]:
    """The guarantees of one utterance as they are, for the statement about the set."""
    parts = {"whole": anonymized.guarantee, "frame": anonymized.guarantee_frame, "f0": anonymized.guarantee_f0}
    if (speaker := getattr(anonymized, "guarantee_speaker", None)) is not None:
        parts["speaker"] = speaker
    return {name: None if part is None else part.to_dict() for name, part in parts.items()}


def set_statement(
    system: str, options: Mapping[str, Any], finished: Sequence[tuple[dict, dict]], refused: int, speakers: Mapping
) -> dict[str, Any]:
    """privacy.json.

    Args:
        finished: (row, details) of every utterance.
        refused: number of recordings that were not released.
        speakers: utt -> speaker where it is known; a speaker's utterances add up.
    """
    rows = [row for row, _ in finished]
    worst_row, worst = max(finished, key=lambda pair: (pair[0]["epsilon_utterance"] or 0.0, pair[0]["num_frames"]))
    guarantee = Guarantee.from_dict(worst["whole"])
    claims = guarantee.kind != "none"
    releasable = [row["releasable"] for row in rows]
    return {
        "schema": SCHEMA,
        "dpanon": dpanon.__version__,
        "system": system,
        "options": dict(options),
        "guarantee": worst["whole"] if claims else Guarantee.none(NO_NOISE).to_dict(),
        "sentence": _sentence(guarantee, worst, len(rows), all(r is not False for r in releasable)),
        "mechanisms": [_mechanism(worst[name]) for name in ("speaker", "f0", "frame") if worst.get(name)],
        "unit": guarantee.unit,
        "adjacency": worst_row["adjacency"],
        "conditional_on": worst_row["conditional_on"],
        "not_covered": worst_row["not_covered"],
        "sampler": worst_row["sampler"],
        **{name: worst_row[name] for name in FACTS if name in worst_row},
        **_spread(rows, "epsilon_frame"),
        **_spread(rows, "epsilon_utterance"),
        "epsilon_speaker_worst": _speaker_sum(rows, speakers) if claims else None,
        "eer_floor": min((row["eer_floor"] for row in rows), default=0.0) if claims else None,
        "num_released": len(rows),
        "num_refused": refused,
        "releasable": False if False in releasable else None if None in releasable else True,
    }


def write_statement(record: Mapping[str, Any], rows: Iterable[Mapping], json_file: Path, rows_file: Path) -> None:
    """Both files, each written beside and renamed; rows in the order of their names."""
    lines = [json.dumps(row, allow_nan=False) for row in sorted(rows, key=lambda row: row["utt"])]
    write_text(rows_file, "".join(f"{line}\n" for line in lines))
    write_text(json_file, json.dumps(record, allow_nan=False, indent=1) + "\n")


def write_text(path: Path, text: str) -> None:
    tmp = path.with_name(f".{path.name}.tmp{os.getpid()}")
    tmp.write_text(text, encoding="utf-8", errors="surrogateescape")
    os.replace(tmp, path)


def _sentence(guarantee: Guarantee, worst: Mapping, num: int, releasable: bool) -> str:
    if guarantee.kind == "none":
        text = f"No privacy guarantee: {NO_NOISE}. Not covered: {'; '.join(WITHOUT_NOISE)}."
    else:
        text = f"{num} utterances, one release of each. The one that costs most: {guarantee.sentence()}"
        if worst["frame"] is not None:
            part = Guarantee.from_dict(worst["frame"])
            text += f" Of every {part.unit}: {part.sentence()}"
    return text if releasable else f"NOT RELEASABLE. {text}"


def _mechanism(record: Mapping[str, Any]) -> dict[str, Any]:
    """A part's guarantee, without what belongs to one utterance."""
    return {key: value for key, value in record.items() if key not in ("num_units", "reason", "schema")}


def _epsilon(guarantee: Guarantee | None) -> float | None:
    if guarantee is None or guarantee.kind == "none":
        return None
    epsilon = guarantee.epsilon()
    return epsilon if math.isfinite(epsilon) else None


def _releasable(guarantee: Guarantee, keyed: bool) -> bool | None:
    """None where nothing is claimed, so that nothing can be broken either."""
    if keyed:
        return False
    return None if guarantee.kind == "none" else guarantee.releasable


def _spread(rows: Sequence[Mapping], name: str) -> dict[str, float | None]:
    values = [row[name] for row in rows]
    known = bool(values) and None not in values
    return {f"{name}_worst": max(values) if known else None, f"{name}_median": median(values) if known else None}


def _speaker_sum(rows: Sequence[Mapping], speakers: Mapping[str, str]) -> float | None:
    """The largest sum over the utterances of one speaker; None where speakers are not known."""
    sums: dict[str, float] = {}
    for row in rows:
        if row["utt"] not in speakers or row["epsilon_utterance"] is None:
            return None
        sums[speakers[row["utt"]]] = sums.get(speakers[row["utt"]], 0.0) + row["epsilon_utterance"]
    return max(sums.values(), default=None)
