"""Word error rate of a released set, in two actions. Called by steps/score_asr.sh.

transcribe <shard> <text>          words of every utterance of a shard, not normalised -> table <text>
           --model <folder>        by a recogniser of steps/train_transducer.sh; --features: the set with what it hears
score <data-dir> <text> <out-dir>  against the set's own text -> <out-dir>/metrics.json
"""

from pathlib import Path

import torch

from dpanon.cli import ArgumentParser, boolean, run
from dpanon.data.data_dir import DataDir, read_table
from dpanon.data.tokens import decode
from dpanon.errors import UsageError
from dpanon.evaluate import EvaluationError
from dpanon.evaluate.ceiling import channel_bits, text_bits
from dpanon.evaluate.claims import read_claim
from dpanon.evaluate.metrics import write_metrics
from dpanon.evaluate.wer import Transcriber, transcribe_set, word_error_rate
from dpanon.models.transducer import load_transducer
from dpanon.train.transducer import read_speech, recognise


def parse_args(argv=None):
    parser = ArgumentParser(description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    transcribe = actions.add_parser("transcribe")
    score = actions.add_parser("score")
    for action in (transcribe, score):
        action.add_argument("--model", default="tiny.en", help="or the path of a CTranslate2 model (default: tiny.en)")
        action.add_argument("--beam-size", type=int, default=5, help="1: greedy (default: 5)")
    transcribe.add_argument("--features", type=Path, help="data-dir with fbank.scp or content.scp (default: <shard>)")
    transcribe.add_argument("data", type=Path, metavar="shard")
    transcribe.add_argument("text", type=Path)
    score.add_argument("--baseline", type=boolean, default=False, help="the set is clear speech (default: false)")
    score.add_argument("--system", default="", help="name in the tables (default: that in privacy.json)")
    score.add_argument("--recogniser", help="name of another one than Whisper, whose words <text> has")
    score.add_argument("data", type=Path, metavar="data-dir")
    score.add_argument("text", type=Path)
    score.add_argument("out", type=Path, metavar="out-dir")
    return parser.parse_args(argv)


def main(argv=None):
    args = parse_args(argv)
    if args.beam_size < 1:
        raise UsageError(f"--beam-size {args.beam_size}: expected a whole number > 0")
    (transcribe if args.action == "transcribe" else score)(args)


def transcribe(args):
    data = DataDir.read(args.data)
    if (Path(args.model) / "model.pt").is_file():
        words = transcribe_by_own(args, data.utts)
    else:
        words = transcribe_set({utt: data.wav(utt) for utt in data.utts}, Transcriber(args.model, args.beam_size))
    args.text.parent.mkdir(parents=True, exist_ok=True)
    tmp = args.text.with_name(f".{args.text.name}.tmp")
    tmp.write_text("".join(f"{utt} {words[utt]}".rstrip() + "\n" for utt in data.utts), encoding="utf-8")
    tmp.replace(args.text)
    print(f"{args.text}: words of {len(words)} utterances")


def transcribe_by_own(args, utts):
    torch.set_num_threads(1)
    model, tokens = load_transducer(Path(args.model) / "model.pt")
    speech = read_speech(DataDir.read(args.features or args.data), utts, model.config.features)
    said = recognise(model, speech, args.beam_size)
    return {utt: decode(numbers, tokens) for utt, numbers in zip(utts, said, strict=True)}


def score(args):
    data = DataDir.read(args.data)
    claim = read_claim(data.path, data.utts, args.baseline)
    metrics = word_error_rate(
        data.table("text"), read_table(args.text), [data.speaker(utt) for utt in data.table("text")]
    )
    if args.recogniser == "":
        raise UsageError("words of another recogniser than Whisper need its name, as --recogniser NAME")
    name = args.recogniser or f"Whisper {args.model}, beam {args.beam_size}"
    metrics |= {"data": str(args.data), "recogniser": name, "u_asr": 1 - metrics["wer"]}
    found, most = text_bits(metrics["num_words"], metrics["wer_high"]), channel_bits(claim.rows or ({},))
    metrics |= {"text_bits": found, "channel_bits": most}
    kind = "asr_other" if args.recogniser else "asr"
    write_metrics(args.out, kind, args.system or claim.system, args.data.resolve().name, metrics)
    print(f"{args.out}: WER {100 * metrics['wer']:.1f} % of {metrics['num_words']} words by {name}")
    if found > most:
        raise EvaluationError(
            f"{args.data}: {found:.0f} bits of text were recognised where its noise lets {most:.0f} bits through "
            "at most: the noise that privacy.jsonl states is not in this speech, or something goes around it "
            "(try dpanon audit)"
        )


if __name__ == "__main__":
    run(main)
