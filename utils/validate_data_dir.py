#!/usr/bin/env python3
"""Check data directories; print what they hold, or where the first mistake is.

    utils/validate_data_dir.py [--audio true] [--fix true] [--allow-pipes true] DATA ...

--audio true    also decodes every file and compares its length with utt2num_samples
--fix true      first sorts, removes repeated lines, puts speakers before utterance ids, and makes spk2utt,
                utt2num_samples and spk2gender where they are absent; it drops nothing and guesses nothing
--allow-pipes true   lets `cmd |` in wav.scp stand; with --fix true runs these commands (as you!) and keeps their
                output as files instead
"""

from collections import Counter

from dpanon.cli import ArgumentParser, boolean, run
from dpanon.data.audio import SAMPLE_RATE
from dpanon.data.data_dir import DataDir
from dpanon.data.sets import fix


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--audio", type=boolean, default=False, metavar="true|false")
    parser.add_argument("--fix", type=boolean, default=False, metavar="true|false")
    parser.add_argument("--allow-pipes", type=boolean, default=False, metavar="true|false")
    parser.add_argument("data", nargs="+", help="data directories")
    args = parser.parse_args(argv)
    for path in args.data:
        data = fix(path, args.allow_pipes) if args.fix else DataDir.read(path, args.allow_pipes)
        data.check_audio(decode=args.audio)
        sexes = Counter(data.sex(speaker) or "u" for speaker in data.speakers)
        hours = sum(map(data.num_samples, data.utts)) / SAMPLE_RATE / 3600
        print(
            f"{path}: valid; {len(data)} utterances, {len(data.speakers)} speakers "
            f"({', '.join(f'{n} {sex}' for sex, n in sorted(sexes.items()))}), {hours:.2f} h"
        )


if __name__ == "__main__":
    run(main)
