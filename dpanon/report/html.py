"""report.html: one file that needs no other and no network."""

import base64
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from dpanon.report.tables import HEADER, NOTES, provenance_line, table_rows

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff }
table { border-collapse: collapse; font-size: 13px } .wide { overflow-x: auto }
th, td { border-bottom: 1px solid #ccc; padding: .3rem .6rem; text-align: left; white-space: nowrap }
th { border-bottom: 2px solid #555 } audio { width: 15rem; height: 2rem } img { max-width: 100%; background: #fff }
.note { color: #555; max-width: 55rem } .warning { border-left: 4px solid #d55e00; padding-left: .8rem }
code { font-size: 13px; white-space: pre-wrap }
"""


def report_html(
    results: Sequence[dict],
    title: str,
    histograms: str = "",
    overlays: Mapping[str, str] | None = None,
    players: Mapping[str, Mapping[str, Path]] | None = None,
    original: str | None = None,
) -> str:
    """The whole page.

    Args:
        results: as of ``tables.read_results``.
        histograms: SVG text.
        overlays: caption -> SVG text.
        players: utterance -> system -> 16-bit WAV file, copied into the page.
        original: name of the system among the players whose audio is of the original speaker: the page then warns.
    """
    parts = [f"<h1>{escape(title)}</h1>"]
    if original and any(original in files for files in (players or {}).values()):
        parts.append(
            '<p class="warning">This page holds recordings of original speakers. '
            "Do not give it away; <code>--original-audio false</code> makes one without them.</p>"
        )
    parts.append(f'<div class="wide">{_table(HEADER, table_rows(results))}</div><p class="note">{escape(NOTES)}</p>')
    if histograms:
        parts.append(f"<h2>Scores of the strongest attackers</h2>{_image(histograms, 'score histograms')}")
    for caption, svg in (overlays or {}).items():
        parts.append(f"<h2>f0 of {escape(caption)}</h2>{_image(svg, 'f0 over time')}")
    if players:
        parts.append(f'<h2>Listen</h2><div class="wide">{_players(players)}</div>')
    parts.append("<h2>How it was made</h2>")
    for result in results:
        sentence = (result.get("claim") or {}).get("sentence", "")
        command = result.get("provenance", {}).get("command") or ""
        parts.append(
            f"<h3>{escape(result['system'])} - {escape(result.get('status', 'smoke'))}</h3>"
            + (f"<p><code>{escape(command)}</code></p>" if command else "")
            + f"<p>{escape(provenance_line(result))}</p>"
            + (f'<p class="note">{escape(sentence)}</p>' if sentence else "")
        )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _players(players: Mapping[str, Mapping[str, Path]]) -> str:
    systems = list(dict.fromkeys(system for files in players.values() for system in files))
    head = "".join(f"<th>{escape(name)}</th>" for name in ("utterance", *systems))
    rows = []
    for utt, files in players.items():
        cells = [f"<td>{_audio(files[system]) if system in files else ''}</td>" for system in systems]
        rows.append(f"<tr><td>{escape(utt)}</td>{''.join(cells)}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _audio(file: Path) -> str:
    data = base64.b64encode(file.read_bytes()).decode("ascii")
    return f'<audio controls preload="none" src="data:audio/wav;base64,{data}"></audio>'


def _image(svg: str, alt: str) -> str:
    data = base64.b64encode(svg.encode("utf-8")).decode("ascii")
    return f'<img alt="{escape(alt)}" src="data:image/svg+xml;base64,{data}">'
