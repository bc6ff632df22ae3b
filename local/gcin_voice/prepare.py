#!/usr/bin/env python3
"""Debian's gcin-voice -> one data directory, text in syllables: local/gcin_voice/prepare.py FOLDER DATA_DIR.

FOLDER/<syllable>/<speaker>.ogg, /usr/share/gcin-voice/ogg when the package is installed (apt-get install gcin-voice).
<syllable> is in Zhuyin with the number of its tone (none: the first), <speaker> a number. Tones are left out.
"""

from pathlib import Path

from dpanon.cli import ArgumentParser, run
from dpanon.data.audio import num_samples
from dpanon.data.data_dir import write_data_dir
from dpanon.data.tokens import encode, read_tokens
from dpanon.errors import DataDirError, MissingDependencyError

TOKENS = read_tokens(Path(__file__).resolve().parent.parent / "mandarin" / "tokens.txt")


def zhuyin_to_pinyin() -> dict[str, str]:
    """Without tones, for all syllables that a character is read as and that the list of tokens can say."""
    try:
        from pypinyin import Style
        from pypinyin.constants import PINYIN_DICT
        from pypinyin.contrib.tone_convert import to_normal
        from pypinyin.style import convert
    except ImportError as error:
        raise MissingDependencyError(f"Zhuyin needs: pip install 'dpanon[mandarin]' ({error})") from error
    table: dict[str, str] = {}
    for toned in sorted({reading for readings in PINYIN_DICT.values() for reading in readings.split(",")}):
        pinyin = to_normal(toned)
        try:
            encode(pinyin, TOKENS)
        except DataDirError:
            continue
        table.setdefault(convert(toned, Style.BOPOMOFO, strict=True).rstrip("ˊˇˋ˙"), pinyin)
    return table


def read_tables(folder: Path) -> tuple[dict[str, dict[str, object]], int]:
    """Tables, and the number of recordings that were left out."""
    files = sorted(folder.glob("*/*.ogg"))
    if not files:
        raise DataDirError(f"{folder}: no <syllable>/<speaker>.ogg in it; apt-get install gcin-voice makes it")
    pinyin, left_out = zhuyin_to_pinyin(), 0
    tables: dict[str, dict[str, object]] = {name: {} for name in ("wav.scp", "utt2spk", "utt2num_samples", "text")}
    for path in files:
        syllable = path.parent.name
        text = pinyin.get(syllable.rstrip("12345˙ˊˇˋ"))
        if text is None:
            left_out += 1
            continue
        encode(text, TOKENS)
        tone = syllable[-1] if syllable[-1] in "2345" else "1"
        speaker = f"gcin{path.stem}"
        utt = f"{speaker}-{text}{tone}"
        tables["wav.scp"][utt] = path.absolute()
        tables["utt2spk"][utt] = speaker
        tables["utt2num_samples"][utt] = num_samples(path)
        tables["text"][utt] = text
    return tables, left_out


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="e.g. /usr/share/gcin-voice/ogg")
    parser.add_argument("data", type=Path, help="the data directory to be written")
    args = parser.parse_args(argv)
    tables, left_out = read_tables(args.folder)
    data = write_data_dir(args.data, tables)
    print(f"{data.path}: {len(data)} utterances, {len(data.speakers)} speakers, {left_out} left out")


if __name__ == "__main__":
    run(main)
