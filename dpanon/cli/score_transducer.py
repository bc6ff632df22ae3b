"""Error rate of a transducer on test sets -> <out>/<set>/metrics.json. Called by steps/score_transducer.sh.

Syllables, words or characters by jiwer, whichever the list of tokens makes; greedy, and by beam search. A model without
privacy.json is scored with --baseline true only, and its rows say "no privacy claim".
"""

from pathlib import Path

import torch

from dpanon.anonymize.statement import write_text
from dpanon.cli import ArgumentParser, boolean, run
from dpanon.cli.score_commands import claim_of
from dpanon.data.data_dir import DataDir
from dpanon.data.tokens import decode, unit_of
from dpanon.evaluate.intervals import bootstrap_ratio
from dpanon.evaluate.metrics import write_metrics
from dpanon.models.transducer import load_transducer
from dpanon.train.transducer import error_counts, read_speech, recognise


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--baseline", type=boolean, default=False)
    parser.add_argument("--system", required=True, help="name in the tables")
    parser.add_argument("--beam", type=int, default=4, help="of the second search; 1: greedy only (default: 4)")
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("sets", type=Path, nargs="+", metavar="data-dir")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    claim, (model, tokens) = claim_of(args.model, args.baseline), load_transducer(args.model / "model.pt")
    unit = unit_of(tokens)
    for path in args.sets:
        data = DataDir.read(path)
        speech, text = read_speech(data, features=model.config.features), data.table("text")
        rates = {}
        for beam in sorted({1, args.beam}):
            said = recognise(model, speech, beam)
            errors, sizes = error_counts(said, [text[utt] for utt in data.utts], tokens)
            rates[beam], between = sum(errors) / sum(sizes), bootstrap_ratio(errors, sizes, data.utts)
        lines = (f"{utt} {decode(one, tokens)}\n" for utt, one in zip(data.utts, said, strict=True))
        (args.out / path.name).mkdir(parents=True, exist_ok=True)
        write_text(args.out / path.name / "hypotheses", "".join(lines))
        values: dict[str, object] = {"error": rates[args.beam], "error_low": between.low, "error_high": between.high}
        values |= {"error_greedy": rates[1], "beam": args.beam, "counted": unit}
        values |= {"num": len(data), "num_speakers": len(data.speakers), "claim": claim}
        write_metrics(args.out / path.name, "commands", args.system, path.name, values)
        told = ", ".join(f"beam {beam}: {100 * rate:.1f} %" for beam, rate in rates.items())
        print(f"{args.system}: {path.name}: {unit} errors of {sum(sizes)}: {told}")


if __name__ == "__main__":
    run(main)
