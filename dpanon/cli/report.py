"""Figures of the scoring steps -> results/<system>.json, RESULTS.md and report.html beside the folder, a table here.

Called by steps/report.sh. RESULTS.md and report.html show every system of the results folder, also of earlier runs.
"""

import tempfile
from pathlib import Path

from dpanon.attack.asv import read_scores
from dpanon.cli import ArgumentParser, boolean, run
from dpanon.data.audio import read_audio, write_wav
from dpanon.data.data_dir import DataDir
from dpanon.errors import UsageError
from dpanon.evaluate.metrics import read_metrics, write_json
from dpanon.features.f0 import extract_f0
from dpanon.report import collect, html, identification, plots, tables

MAX_SECONDS = 20  # of an audio player


def parse_args(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--system", default="all", help="names of systems (default: all that have figures)")
    parser.add_argument("--status", choices=collect.STATUSES, default="smoke", help="default: smoke")
    parser.add_argument("--command", default="", help="the command that made the figures")
    parser.add_argument("--started", default="", help="seconds since 1970 at its start")
    parser.add_argument("--title", default="", help="default: name of the folder that holds the results folder")
    parser.add_argument("--players", type=int, default=2, help="utterances to listen to; 0: none (default: 2)")
    parser.add_argument("--original-audio", type=boolean, default=True, help="with the original speech (default: true)")
    parser.add_argument("exp", type=Path, metavar="exp-dir")
    parser.add_argument("results", type=Path, metavar="results-dir")
    return parser.parse_args(argv)


def main(argv=None):
    args = parse_args(argv)
    try:
        started = float(args.started) if args.started else None
    except ValueError:
        raise UsageError(f"--started {args.started}: expected seconds since 1970, as `date +%s` prints") from None
    dirs, original = collect.data_dirs(args.exp)
    released = collect.released_dirs(args.exp)
    made = collect.provenance(args.command, started)
    for name, result in collect.collect(args.exp, None if args.system == "all" else args.system.split()).items():
        claim = collect.claim_of(released[name]) if name in released else None
        result |= {"status": args.status, "claim": collect.claim_words(claim.details) if claim else None}
        write_json(args.results / f"{name}.json", result | {"provenance": made})
    results = tables.read_results(args.results)
    folder = args.results.resolve().parent
    title = args.title or "/".join(folder.parts[-2:])
    figures = [file.name for file in sorted(args.results.glob("*.svg"))]
    page = tables.results_markdown(results, title, figures, [identification.section(args.results)])
    (folder / "RESULTS.md").write_text(page, encoding="utf-8")
    sets = {"original": original} if original and args.original_audio else {}
    sets |= {result["system"]: dirs[result["system"]] for result in results if result["system"] in dirs}
    if not args.original_audio:
        sets.pop("original", None)
    write_html(folder / "report.html", results, title, args.exp, sets, args.players)
    print(tables.text_table(tables.HEADER, tables.table_rows(results)), end="")
    print(f"{folder / 'RESULTS.md'}, {folder / 'report.html'}")


def write_html(file, results, title, exp, sets, num_players):
    """``sets``: system -> data directory, for the audio players and the f0 overlay."""
    data = {name: DataDir.read(path) for name, path in sets.items()}
    common = sorted(set.intersection(*(set(d.utts) for d in data.values()))) if data else []
    chosen = _spread(common, data, num_players)
    with tempfile.TemporaryDirectory() as tmp:
        players: dict[str, dict[str, Path]] = {}
        overlays: dict[str, str] = {}
        for utt in chosen:
            players[utt], tracks = {}, {}
            for number, (name, d) in enumerate(data.items()):
                samples = read_audio(d.wav(utt))[: MAX_SECONDS * 16000]
                wav = Path(tmp) / f"{number}-{utt}.wav"
                write_wav(wav, samples)
                players[utt][name] = wav
                tracks[name] = extract_f0(samples)
            if not overlays:
                overlays[utt] = plots.f0_overlay(tracks)
        panels = score_panels(exp)
        histograms = plots.score_histograms(panels) if panels else ""
        page = html.report_html(results, title, histograms, overlays, players, "original")
    file.write_text(page, encoding="utf-8")


def score_panels(exp):
    """Scores of the strongest attacker of every system and condition below ``exp``."""
    panels = {}
    for file, metrics in read_metrics(exp):
        scores = file.with_name("scores")
        if metrics["kind"] == "asv" and metrics.get("strongest") and scores.is_file():
            title = f"{metrics['system']}, {metrics['condition']}\n{metrics['attacker']}"
            panels[title] = read_scores(scores)
    return panels


def _spread(utts, data, num):
    """Up to ``num`` utterances, of different speakers first."""
    if not utts or num < 1:
        return []
    any_set = next(iter(data.values()))
    rank: dict[str, int] = {}
    seen: dict[str, int] = {}
    for utt in utts:
        speaker = any_set.speaker(utt)
        rank[utt] = seen[speaker] = seen.get(speaker, -1) + 1
    return sorted(utts, key=lambda utt: (rank[utt], utt))[:num]


if __name__ == "__main__":
    run(main)
