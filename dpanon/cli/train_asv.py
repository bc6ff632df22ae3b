"""Train the back-ends of the speaker verification attackers on released speech. Called by steps/train_asv.sh.

<asv-dir>/<extractor>/{wccn,lda-plda}.safetensors, config.yaml, training.json. Several data directories may be given,
e.g. several releases of the same training speech; speakers of equal name are one speaker.
"""

from pathlib import Path

from dpanon.attack.asv import AsvConfig, train_asv
from dpanon.cli import ArgumentParser, boolean, run
from dpanon.config import load_config, parse_set
from dpanon.data.data_dir import DataDir
from dpanon.evaluate.claims import read_claim


def parse_args(argv=None):
    parser = ArgumentParser(description=__doc__)
    parse_set(parser)
    parser.add_argument("--baseline", type=boolean, default=False, help="train on clear speech (default: false)")
    parser.add_argument("--cache", type=Path, default=Path("exp/embeddings"), help="directory of embeddings")
    parser.add_argument("data", type=Path, nargs="+", metavar="data-dir")
    parser.add_argument("out", type=Path, metavar="asv-dir")
    return parser.parse_args(argv)


def main(argv=None):
    args = parse_args(argv)
    config = load_config(AsvConfig, args.config, args.set)
    sets = [DataDir.read(path) for path in args.data]
    for data in sets:
        read_claim(data.path, data.utts, args.baseline)  # refuses clear speech that nobody asked for
    numbers = train_asv(sets, args.out, config, args.cache)
    print(f"{args.out}: {', '.join(config.backends)} over {', '.join(config.extractors)}, trained on {_count(numbers)}")


def _count(numbers):
    return ", ".join(f"{value} {name.removeprefix('num_')}" for name, value in numbers.items())


if __name__ == "__main__":
    run(main)
