"""Train a transducer: <data-dir> with text, and fbank.scp or content.scp, -> <out>/model.pt.

Called by steps/train_transducer.sh.

On released labels (a privacy.json beside them) it is a student; --baseline true trains on clear text: the public start
model, and the one without any privacy.
"""

from pathlib import Path

import torch

from dpanon.anonymize.statement import write_text
from dpanon.cli import ArgumentParser, boolean, run
from dpanon.config import load_config, parse_set, save_config
from dpanon.data.data_dir import DataDir
from dpanon.data.partitions import require_apart
from dpanon.data.tokens import read_tokens
from dpanon.models.transducer import load_transducer, save_transducer
from dpanon.train.students import require_released
from dpanon.train.transducer import TrainTransducerConfig, labels_of, read_speech, train_transducer


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parse_set(parser)
    parser.add_argument("--baseline", type=boolean, default=False, help="train on clear text (default: false)")
    parser.add_argument("--tokens", type=Path, required=True, help="the list of tokens, public")
    parser.add_argument("--start", type=Path, help="folder of a public model to begin with")
    parser.add_argument("--private", type=Path, help="students: the private set, of which they may hear nothing")
    parser.add_argument("--public", type=Path, help="students: the set that the labels are about, with fbank.scp")
    parser.add_argument("--known", type=Path, help="a public set with clear text that is learned as well")
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args(argv)
    if not args.baseline and (args.private is None or args.public is None):
        parser.error("a student needs --public, and --private, to be kept from it; or --baseline true")
    torch.set_num_threads(1)
    config = load_config(TrainTransducerConfig, args.config, args.set)
    tokens, data = read_tokens(args.tokens), DataDir.read(args.data)
    start = load_transducer(args.start / "model.pt")[0] if args.start else None
    features = (start.config if start is not None else config.model).features
    speech = read_speech(data if args.baseline else DataDir.read(args.public), data.utts, features)
    labels = labels_of(data, data.utts, tokens)
    speakers = [data.speaker(utt) for utt in data.utts]
    known = DataDir.read(args.known) if args.known else None
    if not args.baseline:
        private = DataDir.read(args.private)
        require_released(data, private)
        for other in (DataDir.read(args.public), *([known] if known else [])):
            require_apart(private, other)
    if known is not None:
        speech, labels = (
            speech.join(read_speech(known, features=features)),
            labels + labels_of(known, known.utts, tokens),
        )
        speakers += [known.speaker(utt) for utt in known.utts]
    args.out.mkdir(parents=True, exist_ok=True)
    save_config(config, args.out / "config.yaml")
    model = train_transducer(args.out, config, speech, labels, len(tokens), start, speakers)
    save_transducer(model, tokens, args.out / "model.pt")
    if args.baseline:
        print(f"{args.out}: trained on the clear text of {len(labels)} utterances: no privacy claim")
        return
    write_text(args.out / "privacy.json", (data.path / "privacy.json").read_text(encoding="utf-8"))
    print(f"{args.out}: student of {len(data)} released labels")


if __name__ == "__main__":
    run(main)
