"""What a released set promises, read from its privacy.json and privacy.jsonl; this module computes no bound."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from dpanon.errors import UsageError
from dpanon.evaluate import EvaluationError

NO_CLAIM = "no privacy claim"
ASSUMED = {  # conditions that an attacker need not keep, and the noise that takes their place
    "content and prosody": "pitch and content as well (--mu-f0 or --epsilon-f0, --epsilon-bn)",
    "content": "content as well (--epsilon-bn)",
    "pitch": "pitch as well (--mu-f0 or --epsilon-f0)",
}
VOICE = ("sigma", "sigma_over_u", "mu", "eer_floor_mu", "mu_as_published", "eer_floor_as_published")
VACUOUS = 0.01  # a floor below it says nothing about an attack


@dataclass(frozen=True)
class Claim:
    """The promise of some utterances of one set. None: there is none.

    Attributes:
        system: name of the system that released the set.
        epsilon_frame: largest over the utterances.
        epsilon_utterance: median over the utterances.
        eer_floor: of the weakest utterance, since an attacker may look at that one.
        details: privacy.json as it is.
        rows: of privacy.jsonl, of these utterances.
    """

    system: str
    epsilon_frame: float | None
    epsilon_utterance: float | None
    eer_floor: float | None
    details: dict
    rows: tuple[dict, ...] = ()


def read_claim(path: Path, utts: Sequence[str], baseline: bool = False) -> Claim:
    """The claim of the set in ``path`` for ``utts``.

    Args:
        path: a data directory. Without a privacy.json it is clear speech, which has to be asked for.
        baseline: accept clear speech, as a set without a claim.
    """
    file = path / "privacy.json"
    if not file.is_file():
        if not baseline:
            raise UsageError(f"{file}: no such file; clear speech is scored only with --baseline true")
        return Claim("original", None, None, None, {})
    details = _json(file, file.read_text(encoding="utf-8"))
    rows = {}
    rows_file = path / "privacy.jsonl"
    if rows_file.is_file():
        for number, line in enumerate(rows_file.read_text(encoding="utf-8").splitlines(), 1):
            row = _json(f"{rows_file}:{number}", line)
            if "utt" not in row:
                raise EvaluationError(f"{rows_file}:{number}: no 'utt'")
            rows[row["utt"]] = row
    missing = [utt for utt in utts if utt not in rows]
    if missing:
        raise EvaluationError(
            f"{rows_file}: {len(missing)} of {len(utts)} utterances have no row (e.g. {missing[:3]}): "
            "what they promise is not known; release the set again"
        )
    used = [rows[utt] for utt in utts]
    frame, whole, floors = (_numbers(used, key) for key in ("epsilon_frame", "epsilon_utterance", "eer_floor"))
    return Claim(
        str(details.get("system") or path.name),
        max(frame) if frame else None,
        median(whole) if whole else None,
        min(floors) if floors else None,
        details,
        tuple(used),
    )


def floor_text(floor: float | None) -> str:
    """The floor for people, in per cent."""
    if floor is None:
        return NO_CLAIM
    return f"{100 * floor:.1f}" if floor >= VACUOUS else "vacuous"


def voice_facts(claim: Claim) -> dict[str, float]:
    """Both readings of the noise of a released voice or embedding (paper B); empty where there is none."""
    row = claim.rows[0] if claim.rows else {}
    return {key: row[key] for key in VOICE if row.get(key) is not None}


def broken_assumption(claim: Claim) -> str:
    """What a measured EER below the floor refutes, in words."""
    given = sorted({word for row in claim.rows for word in row.get("conditional_on", ())} & set(ASSUMED))
    if given:
        return (
            f"the floor holds given equal {' and '.join(given)}, and this attacker had more: what is given carries the "
            "speaker's identity around the noise (the disentanglement that paper B assumes fails), unless the noise is "
            f"not there at all; put noise into {' and '.join(ASSUMED[word] for word in given)}"
        )
    return "the guarantee is broken, or the set is not what its privacy.json says"


def _numbers(rows: Sequence[dict], key: str) -> list[float] | None:
    """The values of all rows, or None when one row has none: a set promises what its weakest row does."""
    values = [float(row[key]) for row in rows if row.get(key) is not None]
    return values if values and len(values) == len(rows) else None


def _json(where: object, text: str) -> dict:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise EvaluationError(f"{where}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise EvaluationError(f"{where}: expected an object, found {type(value).__name__}")
    return value
