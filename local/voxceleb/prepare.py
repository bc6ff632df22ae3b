#!/usr/bin/env python3
"""One part of VoxCeleb 1 or 2 -> one data directory.

    local/voxceleb/prepare.py [--partial true] CORPUS PART DATA

    local/voxceleb/prepare.py corpora/VoxCeleb vox1/dev data/attack

CORPUS holds vox1/dev/wav/id10001/1zcIwhmdeo4/00001.wav, vox2/dev/aac/id00012/21Uxsk56VDQ/00001.wav (the corpus comes
as .m4a: convert it, the names stay) and vox1_meta.csv, vox2_meta.csv with lines such as

    id10001<tab>A.J._Buckley<tab>m<tab>Ireland<tab>dev            (vox1)
    id00012 ,n000012 ,m ,dev                                      (vox2)

A part must have the speakers that the meta file lists for it; --partial true takes what is there.
"""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dpanon.cli import ArgumentParser, boolean, run
from dpanon.data.audio import num_samples
from dpanon.data.data_dir import write_data_dir
from dpanon.errors import DataDirError

PARTS = ("vox1/dev", "vox1/test", "vox2/dev", "vox2/test")


def read_meta(path: Path) -> dict[str, tuple[str, str]]:
    """speaker -> (f or m, dev or test)"""
    if not path.is_file():
        raise DataDirError(f"{path}: no such file; it comes with the corpus")
    found = {}
    for row, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fields = [field.strip() for field in re.split(r"[\t,]", line)]
        if fields[0].startswith("id"):
            sex, part = fields[2], fields[-1]
            if sex not in ("f", "m") or part not in ("dev", "test"):
                raise DataDirError(f"{path}:{row}: expected 'id..., name, f or m, ..., dev or test', found {line!r}")
            found[fields[0]] = (sex, part)
    return found


def prepare(corpus: Path, part: str, partial: bool) -> dict[str, dict[str, object]]:
    version, _, name = part.partition("/")
    meta = read_meta(corpus / f"{version}_meta.csv")
    wavs: dict[str, Path] = {}
    for file in sorted((corpus / part).glob("*/id*/*/*")):
        if file.suffix in (".wav", ".flac"):
            speaker, video = file.parts[-3:-1]
            wavs[f"{speaker}-{video}-{file.stem}"] = file.absolute()
    if not wavs:
        raise DataDirError(f"no {part}/{{wav,aac}}/id*/*/*.wav under {corpus}; .m4a files have to be converted first")
    utt2spk = {utt: utt.split("-", 1)[0] for utt in wavs}
    expected = {speaker for speaker, (_, of) in meta.items() if of == name}
    if unknown := sorted(set(utt2spk.values()) - meta.keys()):
        raise DataDirError(f"{corpus}/{version}_meta.csv: {len(unknown)} speakers have no line (e.g. {unknown[:3]})")
    missing = sorted(expected - set(utt2spk.values()))
    if missing and not partial:
        raise DataDirError(
            f"{corpus / part}: {len(missing)} of {len(expected)} speakers are not there (e.g. {missing[:3]}); unpack "
            "it again, or take what is there with --partial true"
        )
    with ThreadPoolExecutor(2) as pool:  # decoding does not hold the interpreter
        lengths = dict(zip(wavs, pool.map(num_samples, wavs.values()), strict=True))
    sexes = {speaker: meta[speaker][0] for speaker in utt2spk.values()}
    return {"wav.scp": {**wavs}, "utt2spk": {**utt2spk}, "utt2num_samples": {**lengths}, "spk2gender": {**sexes}}


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--partial", type=boolean, default=False, metavar="true|false")
    parser.add_argument("corpus", type=Path, help="the folder with vox1, vox2 and their meta files")
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("data", help="the data directory to be written")
    args = parser.parse_args(argv)
    data = write_data_dir(args.data, prepare(args.corpus, args.part, args.partial))
    print(f"{args.data}: {len(data)} utterances of {len(data.speakers)} speakers")


if __name__ == "__main__":
    run(main)
