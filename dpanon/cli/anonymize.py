"""Anonymize a file, a folder or a data directory: IN -> OUT, with privacy.json and privacy.jsonl.

    dpanon anonymize interview.mp3 out.wav           # out.wav, out.privacy.json, out.privacy.jsonl
    dpanon anonymize recordings/ out/                # out/wav/a-1f2e3d4c.wav, ..., out.names.tsv for you alone
    dpanon anonymize data/test data/test_anon        # a data directory: same utterances, tables and trials
    dpanon anonymize --system voxlet --noise-level 1 --voice-model exp/speaker recordings/ out/
    dpanon anonymize --ledger budget.jsonl --cap-epsilon 200000 recordings/ out/

The audio written is PCM16, 16 kHz, one channel, with nothing but samples in it. A recording that cannot be anonymized
is refused with one line, the others are finished, and the exit code is 1. A run that was stopped goes on when the same
command is given again; nothing that is finished is anonymized a second time, since that would cost its privacy again.

With --ledger every release is counted in that file before its noise is drawn, under keyed hashes of the recording and,
in a data directory, of its speaker. Releases of the same recording add up, whatever its file is called; one that would
go over a cap is refused. See dpanon ledger --help.
"""

import math
import os
import shlex
import sys
import time
from argparse import ArgumentTypeError
from pathlib import Path

from tqdm import tqdm

from dpanon.anonymize.batch import Result, release
from dpanon.anonymize.sources import Plan, make_plan, printable
from dpanon.anonymize.systems import DEFAULTS, SYSTEMS, check_parameters, option
from dpanon.anonymize.workers import Options
from dpanon.cli import INTERRUPTED, ArgumentParser, boolean, run
from dpanon.errors import UsageError
from dpanon.features.f0 import METHODS
from dpanon.privacy.floors import VACUOUS

RULES = ("corrected", "as-published")  # as dpanon.anonymize.embeddings has them, which loads torch
CONVERTERS = ("openvoice",)  # as dpanon.anonymize.converter has them
BEAT = 10  # seconds between lines of a log


def main(argv: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    args = parse_args(arguments)
    options = options_of(args)
    plan = make_plan(args.source, args.out, args.keep_names, args.part)
    if options.cap_epsilon_speaker is not None and plan.data is None:
        raise UsageError("--cap-epsilon-speaker needs a data directory, whose utt2spk says who speaks")
    if plan.passed_over:
        names = ", ".join(printable(path.name) for path in plan.passed_over[:3])
        print(f"{args.source}: {len(plan.passed_over)} other files are passed over (e.g. {names})", file=sys.stderr)
    progress = Progress(plan)
    try:
        with progress.bar:
            result = release(plan, options, args.jobs, on_refused=progress.on_refused, on_done=progress.on_done)
    except KeyboardInterrupt:
        print(f"\ninterrupted: what is finished is kept in {plan.partial}. To go on:", file=sys.stderr)
        print(f"  dpanon anonymize {shlex.join(arguments)}", file=sys.stderr)
        return INTERRUPTED
    if plan.part is not None:
        kept = f" ({result.kept} of them before)" if result.kept else ""
        print(f"{plan.out}: part {args.part[0]}: {result.released} made{kept}, {result.refused} refused")
        return 1 if result.refused and not args.allow_refused else 0
    print(summary(result))
    return 1 if result.statement is None or (result.refused and not args.allow_refused) else 0


def parse_args(argv: list[str]):
    parser = ArgumentParser(prog="dpanon anonymize", description=__doc__)
    parser.add_argument("source", type=Path, metavar="IN", help="audio file, folder, or data directory")
    parser.add_argument("out", type=Path, metavar="OUT", help="file.wav or directory; must not exist")
    parser.add_argument(
        "--system",
        choices=list(SYSTEMS),
        default="dp",
        help="dp: noise in what is said and in its pitch; plain: none at all; dp_bn, dp_pitch: in one of them; token: "
        "few tokens for what is said; voxlet: noise in the voice (see README.md)",
    )
    for name, what in (
        ("epsilon_f0", "of the pitch of an utterance"),
        ("epsilon_bn", "of a frame of 10 ms of what is said"),
        ("epsilon_token", "system token: of a token of what is said"),
        ("mu_f0", "systems token, dp_contour: of the pitch contour of an utterance"),
    ):
        parser.add_argument(option(name), type=epsilon, help=f"{what} (default {DEFAULTS[name]:g})")
    parser.add_argument("--mu", type=epsilon, help="voxlet: of the voice of an utterance")
    parser.add_argument("--noise-level", type=epsilon, metavar="N", help="voxlet: 1 / mu by the rule for sigma")
    parser.add_argument("--sigma-rule", choices=RULES, help="voxlet: sigma = 2 U / mu (corrected, default), or U / mu")
    parser.add_argument("--voice-model", type=Path, metavar="DIR", help="voxlet: made by steps/train_speaker.sh")
    parser.add_argument(
        "--converter", choices=CONVERTERS, help="voxlet: in place of the synthesizer; see tools/install_openvoice.sh"
    )
    parser.add_argument("--target", default="random", help="voice: random (for each utterance, the default) or its id")
    parser.add_argument("--jobs", type=positive, default=1, help="processes; each holds one recording (default 1)")
    parser.add_argument("--f0-method", choices=METHODS, default="swift", help="yaapt is the paper's, and slow")
    parser.add_argument("--models", type=Path, metavar="DIR", help="weights of your own instead of the shipped ones")
    parser.add_argument(
        "--keep-names", type=boolean, default=False, help="of a folder: name the output as the input (default false)"
    )
    parser.add_argument(
        "--pad-lengths",
        type=boolean,
        default=False,
        help="pad with silence to a public ladder of lengths, so that only its step is told (default false)",
    )
    parser.add_argument(
        "--allow-refused", type=boolean, default=False, help="exit code 0 if only some are refused (default false)"
    )
    parser.add_argument("--ledger", type=Path, metavar="FILE", help="count every release there; made if there is none")
    parser.add_argument(
        "--cap-epsilon", type=epsilon, metavar="E", help="the most all releases of a recording may cost"
    )
    parser.add_argument("--cap-epsilon-speaker", type=epsilon, metavar="E", help="the same for a speaker")
    parser.add_argument("--cap-delta", type=delta, metavar="D", help="delta of the caps (default 0: basic composition)")
    parser.add_argument(
        "--ledger-names", type=boolean, default=False, help="write the names of the output into the ledger as well"
    )
    parser.add_argument(
        "--part", type=part, metavar="K/N", help="a job of an array: every Nth utterance of a data directory, no name"
    )
    parser.add_argument("--keyed-noise", type=int, metavar="SEED", help="repeatable, for tests; NOT releasable")
    return parser.parse_args(argv)


def options_of(args) -> Options:
    check_voxlet_options(args)
    noise = check_parameters(args.system, {name: getattr(args, name) for name in DEFAULTS}, defaults=True)
    if args.models is not None and not args.models.is_dir():
        raise UsageError(f"--models {args.models}: no such directory")
    check_ledger_options(args)
    return Options(
        system=args.system,
        **noise,
        target=args.target,
        f0_method=args.f0_method,
        models=str(args.models.resolve()) if args.models else "",
        keyed_noise=args.keyed_noise,
        keep_names=args.keep_names,
        pad_lengths=args.pad_lengths,
        ledger=os.path.abspath(args.ledger) if args.ledger else "",
        ledger_names=args.ledger_names,
        cap_epsilon=args.cap_epsilon,
        cap_epsilon_speaker=args.cap_epsilon_speaker,
        cap_delta=args.cap_delta or 0.0,
        mu=args.mu,
        noise_level=args.noise_level,
        sigma_rule=args.sigma_rule,
        voice_model=str(args.voice_model.resolve()) if args.voice_model else "",
        converter=args.converter or "",
    )


def check_voxlet_options(args) -> None:
    """UsageError for what cannot be meant."""
    if args.system != "voxlet":
        if (args.mu, args.noise_level, args.sigma_rule, args.voice_model, args.converter) != (None,) * 5:
            raise UsageError(
                "--mu, --noise-level, --sigma-rule, --voice-model and --converter are of the system voxlet, not of "
                f"{args.system}"
            )
        return
    if (args.mu is None) == (args.noise_level is None):
        raise UsageError("the system voxlet takes --mu or --noise-level (1 / mu), one of them")
    if args.target != "random":
        raise UsageError("the system voxlet takes no --target: its voice is the released one of the recording")
    if args.converter and (args.voice_model is None or any(getattr(args, name) is not None for name in DEFAULTS)):
        raise UsageError(
            "--converter takes content and pitch from the recording, without noise, and needs --voice-model, trained "
            "on its own embeddings: leave out the epsilons of those, give --voice-model"
        )


def check_ledger_options(args) -> None:
    """UsageError for what cannot be meant."""
    caps = args.cap_epsilon is not None or args.cap_epsilon_speaker is not None
    if args.ledger is None:
        if caps or args.cap_delta is not None or args.ledger_names:
            raise UsageError("a cap is kept by a ledger: give --ledger FILE as well")
    elif args.part is not None and "SLURM_JOB_ID" in os.environ:
        raise UsageError("a ledger is locked on one machine, and parts run on several: leave out --part or --ledger")
    elif args.keyed_noise is not None:
        raise UsageError("--ledger counts what is released, and what --keyed-noise makes may not be: leave one out")
    elif caps and args.system == "plain":
        raise UsageError("the system plain promises nothing, so no cap allows it: leave out the cap, or choose dp")
    elif args.cap_delta is not None and not caps:
        raise UsageError("--cap-delta belongs to --cap-epsilon or --cap-epsilon-speaker")


class Progress:
    """On stderr, by the size of the files, so that one long recording among short ones does not spoil the estimate.

    A bar on a terminal; a line now and then in a log, where a refusal has a line of its own.
    """

    def __init__(self, plan: Plan):
        self.num, self.done = len(plan.sources), 0
        self.total, self.seen = sum(size(source.path) for source in plan.sources), 0
        self.began = self.said = time.monotonic()
        shape = "{desc}: {percentage:3.0f} %|{bar}| [{elapsed}, {remaining} left]"
        self.bar = tqdm(total=self.total, bar_format=shape, delay=0.5, disable=not sys.stderr.isatty())

    def on_refused(self, path: Path, reason: str) -> None:
        self.bar.clear()
        print(f"refused: {printable(path)}: {printable(reason)}", file=sys.stderr)

    def on_done(self, path: Path) -> None:
        self.done += 1
        self.seen += size(path)
        self.bar.set_description_str(f"{self.done}/{self.num} recordings", refresh=False)
        self.bar.update(size(path))
        now = time.monotonic()
        if self.bar.disable and now - self.said > BEAT and self.seen:
            self.said = now
            left = tqdm.format_interval((now - self.began) * (self.total - self.seen) / self.seen)
            spent = tqdm.format_interval(now - self.began)
            print(f"{self.done}/{self.num} recordings [{spent}, {left} left]", file=sys.stderr, flush=True)


def summary(result: Result) -> str:
    """What was released and what it promises, in lines for people."""
    if result.statement is None:
        return f"{result.out}: nothing was released, {result.refused} refused"
    statement = result.statement
    kept = f" ({result.kept} of them before)" if result.kept else ""
    lines = [f"{result.out}: {result.released} released{kept}, {result.refused} refused"]
    if statement["guarantee"]["kind"] == "none":
        lines.append(f"  no privacy guarantee: {statement['guarantee']['reason']}")
    else:
        floor = statement["eer_floor"]
        floor_words = f"{100 * floor:.2f} %" if floor >= VACUOUS else "vacuous (under 1 %)"
        if "mu" in statement:
            lines.append(
                f"  mu of the voice {statement['mu']:g} (EER floor {percent(statement, 'mu')}), read as "
                f"published {statement['mu_as_published']:g} ({percent(statement, 'as_published')})"
            )
        if statement["epsilon_utterance_worst"] is None:
            given = " and ".join(statement["guarantee"]["conditional_on"])
            lines.append(f"  EER floor {floor_words}{f', if {given} tell nothing of the speaker' if given else ''}")
        else:
            frame = statement["epsilon_frame_worst"]  # none without noise in frames
            lines.append(
                f"  epsilon {'' if frame is None else f'of a frame {frame:g}, '}of an utterance "
                f"{statement['epsilon_utterance_median']:g} (median) to {statement['epsilon_utterance_worst']:g}; "
                f"EER floor {floor_words}"
            )
    if statement["releasable"] is False:
        lines.append("  NOT RELEASABLE: the noise can be repeated or is insecure; for tests only")
    if result.head:
        lines.append(f"  the ledger ends in {result.head}; kept elsewhere, this shows later that no row is missing")
    if result.names:
        lines.append(f"  {result.names} says which recording is which: keep it to yourself")
    return "\n".join(lines)


def percent(statement: dict, rule: str) -> str:
    return f"{100 * statement[f'eer_floor_{rule}']:.1f} %"


def size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def epsilon(text: str) -> float:
    value = _number(text)
    if not (value > 0 and math.isfinite(value)):
        raise ArgumentTypeError(f"epsilon must be finite and > 0, got {text}; --system plain is the one without noise")
    return value


def delta(text: str) -> float:
    value = _number(text)
    if not 0 < value < 1:
        raise ArgumentTypeError(f"delta must be between 0 and 1, got {text}")
    return value


def positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ArgumentTypeError(f"expected a whole number > 0, got {text!r}")
    return int(text)


def part(text: str) -> tuple[int, int]:
    fields = [positive(field) for field in text.split("/")]
    if len(fields) != 2 or fields[0] > fields[1]:
        raise ArgumentTypeError(f"expected K/N with 1 <= K <= N, got {text!r}")
    return fields[0], fields[1]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"expected a number, got {text!r}") from None


if __name__ == "__main__":
    run(main)
