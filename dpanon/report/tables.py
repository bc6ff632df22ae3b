"""results/*.json -> RESULTS.md and the table on the terminal. Both are functions of the JSON alone."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from dpanon.attack.sanity import control_flags
from dpanon.evaluate import EvaluationError
from dpanon.evaluate.claims import NO_CLAIM, VACUOUS

HEADER = (
    "system",
    "eps/frame",
    "eps/utt (median)",
    "EER % oo [95 %]",
    "EER % oa [95 %]",
    "EER % aa [95 %]",
    "EER floor %",
    "linkability",
    "WER % [95 %]",
    "f0 corr",
    "DNSMOS",
)
NOTES = (
    "EER of the strongest attacker found; oo: original speech, oa: enrolled with original and tested on anonymized "
    "speech, aa: both anonymized and the back-end trained on anonymized speech. Intervals: bootstrap over speakers. "
    "The floor holds for every attacker, the measured EER is that of a few; a floor below 1 % is called vacuous. "
    "Linkability D_sys is of the last condition in the row; it is biased upwards for few trials."
)
SWEEP = (
    "released voices",
    "sigma / U",
    "mu",
    "its EER floor %",
    "mu as published",
    "its floor %",
    "best attacker, simulated %",
    "floor of all that is released %",
    "EER % aa [95 %]",
    "WER % [95 %]",
    "G_VD dB",
)
BROKEN = (
    "BROKEN: all of the interval lies below the floor, which holds given equal content and prosody, as far as these "
    "have no noise. They carry the speaker's identity around that of the voice: the disentanglement that the floor "
    "assumes fails. Such a release is not one to make."
)
BADLY_TRAINED = "The EER of such an attacker says little about a better one, and is no evidence of privacy."
SEXES = (
    "hidden sex",
    "eps of training",
    "eps of release",
    "AUC ceiling of any attacker",
    "EER floor that it forces %",
    "AUC ignorant",
    "ignorant probe",
    "informed",
    "informed probe",
    "EER % aa [95 %]",
    "EER % oa [95 %]",
)
_FLOORS = ("eer_floor_mu", "eer_floor_as_published", "eer_simulated")
_ABSENT = "-"


def read_results(folder: Path) -> list[dict]:
    """Every results/*.json, in the order of the tables: original, no claim, then the weaker claims first."""
    results = []
    for file in sorted(folder.glob("*.json")):
        try:
            result = json.loads(file.read_text(encoding="utf-8"))
            _order(result)
        except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
            raise EvaluationError(f"{file}: not a result of steps/report.sh ({error!r})") from error
        results.append(result)
    return sorted(results, key=_order)


def table_rows(results: Iterable[dict]) -> list[tuple[str, ...]]:
    """One row of text per system and set, as HEADER names them."""
    out = []
    for result in results:
        for row in result["rows"]:
            name = result["system"] + (f", {row['set']}" if len(result["rows"]) > 1 else "")
            claims = row.get("epsilon_utterance") is not None or row.get("eer_floor") is not None
            asv = row.get("asv", {})
            last: dict = next((asv[condition] for condition in ("aa", "oa", "oo") if condition in asv), {})
            out.append(
                (
                    name + ("" if claims else f" ({NO_CLAIM})"),
                    number(row.get("epsilon_frame"), "g"),
                    number(row.get("epsilon_utterance"), ".4g"),
                    *(_with_interval(asv.get(condition, {}), "eer") for condition in ("oo", "oa", "aa")),
                    _floor(row.get("eer_floor")),
                    number(last.get("linkability"), ".2f"),
                    _with_interval(row.get("asr", {}), "wer"),
                    number(row.get("f0", {}).get("f0_correlation"), ".2f"),
                    number(row.get("quality", {}).get("dnsmos_ovrl"), ".2f"),
                )
            )
    return out


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns for a terminal; columns that no row fills are left out."""
    used = [i for i in range(len(header)) if not rows or any(row[i] != _ABSENT for row in rows)]
    lines = [[line[i] for i in used] for line in (header, *rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(used))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines) + "\n"


def results_markdown(
    results: Sequence[dict], title: str, figures: Sequence[str] = (), sections: Sequence[str] = ()
) -> str:
    """All of RESULTS.md: a table, then what was run for each system and every attacker's figures, other sections."""
    parts = [
        f"# Results: {title}\n",
        "Generated from `results/*.json` by `steps/report.sh`; edits are overwritten.\n",
        markdown_table(HEADER, table_rows(results)),
        NOTES + "\n",
    ]
    parts += sweep_table(results) + gender_table(results)
    clear = [a for result in results for a in result.get("attackers", ()) if a["condition"] == "oo"]
    original = {a["attacker"]: a["eer"] for a in clear}
    for result in results:
        parts.append(f"## {result['system']} - {result.get('status', 'smoke')}\n")
        command = result.get("provenance", {}).get("command")
        if command:
            parts.append(f"    {command}\n")
        parts.append(provenance_line(result) + "\n")
        claim = result.get("claim") or {}
        lines = [f"{key.capitalize()}: {value.rstrip('.')}." for key, value in claim.items() if key != "sentence"]
        if claim.get("sentence"):
            lines.insert(0, claim["sentence"])
        parts.append("\n".join(lines) + "\n" if lines else f"This system makes {NO_CLAIM}.\n")
        if result.get("attackers"):
            parts += [attackers_table(result), *attacker_warnings(result, original)]
        parts += extra_tables(result)
    parts += [*filter(None, sections), *(f"![{name}](results/{name})\n" for name in figures)]
    return "\n".join(parts)


def attackers_table(result: dict) -> str:
    """Every attacker, not only the strongest."""
    header = ("set", "condition", "attacker", "EER % [95 %]", "linkability", "targets", "nontargets")
    rows = [
        (
            str(a["set"]),
            a["condition"] + (f", {a['knowledge']}" if a.get("knowledge", "none") != "none" else ""),
            a["attacker"],
            _with_interval(a, "eer"),
            number(a.get("linkability"), ".2f"),
            str(a.get("num_targets", _ABSENT)),
            str(a.get("num_nontargets", _ABSENT)),
        )
        for a in result["attackers"]
    ]
    return markdown_table(header, rows)


def attacker_warnings(result: dict, original: Mapping[str, float]) -> list[str]:
    """Which EER is that of a badly trained attacker; ``original``: attacker -> EER on original speech."""
    lines = []
    for a in result["attackers"]:
        of_control = control_flags(a["attacker"], original) if a["condition"] != "oo" else []
        for flag in (*a.get("flags", ()), *of_control):
            lines.append(f"- {a['attacker']}, {a['set']}, {a['condition']}: {flag}.")
    return ["\n".join([*lines, "", BADLY_TRAINED]) + "\n"] if lines else []


def sweep_table(results: Sequence[dict]) -> list[str]:
    """Released voices by their noise: both readings of it, the floors, and what was measured (paper B)."""
    lines = []
    for result in results:
        for row in result["rows"]:
            asv: dict = row.get("asv", {}).get("aa", {})
            if asv.get("mu") is None and asv.get("noise_level") is None:
                continue
            floors = ("-" if asv.get(key) is None else f"{100 * asv[key]:.1f}" for key in _FLOORS)
            voices = row.get("voices", {})
            cells = (
                result["system"],
                number(asv.get("sigma_over_u"), ".4g"),
                number(asv.get("mu"), ".4g"),
                next(floors),
                number(asv.get("mu_as_published"), ".4g"),
                *floors,
                _floor(row.get("eer_floor")),
                _with_interval(asv, "eer") + (" BROKEN" if asv.get("broken") else ""),
                _with_interval(row.get("asr", {}), "wer"),
                number(voices.get("g_vd"), ".1f"),
            )
            lines.append((sweep_of(result["system"]), float(asv.get("sigma_over_u") or 0.0), cells))
    if not lines:
        return []
    rows = [cells for *_, cells in sorted(lines)]
    broken = any(" BROKEN" in cell for cells in rows for cell in cells)
    return [markdown_table(SWEEP, rows), *([BROKEN + "\n"] if broken else [])]


def gender_table(results: Sequence[dict]) -> list[str]:
    """Embeddings that hide the sex, by the noise of training and of the release; AUC as max(AUC, 1 - AUC) (paper C)."""
    lines = []
    for result in results:
        for row in result["rows"]:
            told: dict = row.get("gender") or {}
            if "epsilon_train" not in told:
                continue
            auc = {(found["knowledge"], found["attacker"]): found["advantage"] for found in told["attackers"]}
            pairs = ((knowledge, name) for knowledge in ("ignorant", "informed") for name in ("external", "probe"))
            train, release = (told.get(f"epsilon_{name}") for name in ("train", "release"))  # None: without noise
            cells = (
                result["system"],
                *("inf" if value is None else f"{value:g}" for value in (train, release)),
                number(told.get("auc_ceiling"), ".3f"),
                _floor(row.get("eer_floor")),
                *(number(auc.get(pair), ".3f") for pair in pairs),
                *(_with_interval(row.get("asv", {}).get(condition, {}), "eer") for condition in ("aa", "oa")),
            )
            lines.append((math.inf if train is None else train, math.inf if release is None else release, cells))
    return [markdown_table(SEXES, [cells for *_, cells in sorted(lines)])] if lines else []


def sweep_of(system: str) -> str:
    """The name without its first number, the noise level: systems of one sweep.

    >>> sweep_of("speech0.5_dp_f0eps10")
    'speech_dp_f0eps10'
    """
    return re.sub(r"\d+(\.\d+)?", "", system, count=1)


def extra_tables(result: dict) -> list[str]:
    """Attacks on the sex (paper C), and both readings of the noise of a released voice (paper B)."""
    parts = []
    for row in result["rows"]:
        if others := row.get("asr_other"):
            found = [
                (str(row["set"]), one["recogniser"], _with_interval(one, "wer"), number(one["u_asr"], ".3f"))
                for one in others
            ]
            parts.append(markdown_table(("set", "words by", "WER % [95 %]", "U_ASR"), found))
        gender = row.get("gender")
        if gender:
            header = ("set", "sex told by", "trained on", "AUC [95 %]", "ceiling of any attacker", "speakers")
            lines = [
                (
                    str(row["set"]),
                    found["attacker"],
                    "clean embeddings" if found["knowledge"] == "ignorant" else "released embeddings",
                    f"{found['auc']:.3f} [{number(found['auc_low'], '.3f')}, {number(found['auc_high'], '.3f')}]",
                    number(gender.get("auc_ceiling"), ".3f"),
                    str(found["num_speakers"]),
                )
                for found in gender["attackers"]
            ]
            parts.append(markdown_table(header, lines))
        asv: dict = next((row["asv"][condition] for condition in ("aa", "oa") if condition in row.get("asv", {})), {})
        if asv.get("mu") is not None:
            columns = ("set", "sigma / U", "mu", "EER floor %", "mu as published", "its floor %", "best attacker %")
            values = [asv.get(key) for key in ("eer_floor_mu", "eer_floor_as_published", "eer_simulated")]
            floors = ["-" if value is None else f"{100 * value:.1f}" for value in values]
            numbers = [number(asv.get(key), ".4g") for key in ("sigma_over_u", "mu", "mu_as_published")]
            line = (str(row["set"]), numbers[0], numbers[1], floors[0], numbers[2], floors[1], floors[2])
            parts.append(markdown_table(columns, [line]))
    return parts


def provenance_line(result: dict) -> str:
    made = result.get("provenance", {})
    parts = [f"dpanon {made.get('version', '?')}, commit {made.get('commit', 'unknown')}"]
    parts.append(
        f"{made.get('hardware', 'unknown hardware')}"
        + (f", {duration(made['seconds'])}" if made.get("seconds") else "")
    )
    recogniser = next((row["asr"].get("recogniser") for row in result["rows"] if row.get("asr")), None)
    if recogniser:
        parts.append(f"WER by {recogniser}")
    return "; ".join(parts) + f"; results/{result['system']}.json"


def number(value: float | None, form: str) -> str:
    return _ABSENT if value is None else format(value, form)


def duration(seconds: int) -> str:
    """For people.

    >>> duration(45), duration(3725)
    ('45 s', '1 h 2 min')
    """
    if seconds < 60:
        return f"{seconds} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _with_interval(values: dict, key: str) -> str:
    if values.get(key) is None:
        return _ABSENT
    text = f"{100 * values[key]:.1f}"
    low, high = values.get(f"{key}_low"), values.get(f"{key}_high")
    return text if low is None or high is None else f"{text} [{100 * low:.1f}, {100 * high:.1f}]"


def _floor(floor: float | None) -> str:
    if floor is None:
        return _ABSENT
    return f"{100 * floor:.1f}" if floor >= VACUOUS else "vacuous"


def _order(result: dict) -> tuple:
    epsilons = [row.get("epsilon_utterance") for row in result["rows"]]
    claimed = [value for value in epsilons if value is not None]
    return (result["system"] != "original", bool(claimed), -max(claimed, default=0.0), result["system"])
