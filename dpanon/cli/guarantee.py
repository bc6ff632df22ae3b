"""What a mechanism promises, in words and numbers, before anything is released.

    dpanon guarantee --mechanism bn --epsilon 10 --frames 1000     # bottleneck frames of ten seconds
    dpanon guarantee --mechanism f0 --epsilon 10 --frames 1000     # pitch of an utterance
    dpanon guarantee --mechanism dp --epsilon 10 --epsilon-f0 10   # both, as the system dp releases them
    dpanon guarantee --mechanism speaker --mu 1                    # Gaussian speaker latent
    dpanon guarantee --mechanism f0-contour --mu 1                 # low-rank Gaussian pitch of an utterance
    dpanon guarantee --mechanism embedding --epsilon 15            # clipped latent of a speaker embedding
    dpanon guarantee --mechanism tokens --epsilon 4 --symbols 256 --segments 25   # randomized response
    dpanon guarantee --mechanism votes --mu 1 --queries 600        # noisy votes of teachers of disjoint parts
    dpanon guarantee --mechanism psn --mu 1 --teachers 3 --gamma 0.333   # the same of Poisson sub-samples
    dpanon guarantee --mechanism dp-sgd --sigma 1 --rate 0.01 --steps 10000

Floors and ceilings hold for every attacker, whatever it was trained on. An EER floor is the least equal error rate,
an AUC or linkability ceiling the most that any attacker reaches; "vacuous" means that next to nothing is proved.
"""

import math
import sys
from collections.abc import Callable

from dpanon.cli import ArgumentParser, run
from dpanon.cli.anonymize import epsilon, positive
from dpanon.errors import UsageError
from dpanon.privacy import (
    BottleneckFrames,
    ClippedLatent,
    Guarantee,
    LowRankPitch,
    PitchBox,
    SpeakerGaussian,
    TokenResponse,
    accounting,
    capacity,
    floors,
    psn,
)
from dpanon.privacy.dpsgd import DpSgd
from dpanon.privacy.guarantee import CENTRAL
from dpanon.privacy.votes import NoisyVotes

# Options that a mechanism needs, and that it may have besides.
MECHANISMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "bn": (("epsilon",), ()),
    "f0": (("epsilon",), ()),
    "dp": (("epsilon", "epsilon_f0"), ()),
    "speaker": (("mu",), ()),
    "f0-contour": (("mu",), ()),
    "embedding": (("epsilon",), ()),
    "tokens": (("epsilon", "symbols", "segments"), ()),
    "votes": (("mu", "queries"), ("teachers", "unit")),
    "psn": (("mu", "teachers", "gamma"), ("queries", "unit")),
    "dp-sgd": (("sigma", "rate", "steps"), ("unit",)),
}
OPTIONS = (
    "mu",
    "epsilon",
    "epsilon_f0",
    "queries",
    "teachers",
    "gamma",
    "sigma",
    "rate",
    "steps",
    "unit",
    "symbols",
    "segments",
)
TEACHERS = 10
FRAMES_PER_SECOND = 100
RADIUS, DIM = 1.0, 64  # of the speaker latent; the guarantee depends on neither
ALMOST_ONE = 1 - floors.VACUOUS


def main(argv: list[str] | None = None) -> None:
    args = parse_args(sys.argv[1:] if argv is None else argv)
    if args.mechanism == "speaker":
        lines = gaussian_lines(SpeakerGaussian(args.mu, RADIUS, DIM).guarantee(), "the speaker latent", args.delta)
    elif args.mechanism == "f0-contour":
        lines = gaussian_lines(LowRankPitch(args.mu).guarantee(), "the pitch contour", args.delta)
    elif args.mechanism == "f0":
        lines = laplace_lines(PitchBox(args.epsilon, 1).guarantee(), "the pitch of an utterance", args.delta)
    elif args.mechanism == "embedding":
        lines = laplace_lines(ClippedLatent(args.epsilon, RADIUS, DIM).guarantee(), "the embedding", args.delta)
    elif args.mechanism == "tokens":
        lines = tokens(args.epsilon, args.symbols, args.segments, args.delta)
    elif args.mechanism in ("votes", "psn"):
        lines = votes(args)
    elif args.mechanism == "dp-sgd":
        lines = dp_sgd(args)
    else:
        lines = bn(args.epsilon, args.frames, args.delta, args.epsilon_f0)
    print("\n".join(lines))


def parse_args(argv: list[str]):
    parser = ArgumentParser(prog="dpanon guarantee", description=__doc__)
    parser.add_argument("--mechanism", choices=list(MECHANISMS), required=True, help="dp is bn and f0")
    parser.add_argument(
        "--epsilon", type=epsilon, help="bn, dp: of a frame; tokens: of a segment; f0, embedding: of one"
    )
    parser.add_argument("--epsilon-f0", type=epsilon, help="dp: of the pitch of an utterance")
    parser.add_argument(
        "--mu", type=epsilon, help="speaker, f0-contour: of one release; votes, psn: of a teacher, all queries"
    )
    parser.add_argument("--queries", type=positive, help="votes, psn: all that are ever asked; a frame is one")
    parser.add_argument("--teachers", type=positive, help=f"votes (default {TEACHERS}), psn")
    parser.add_argument("--gamma", type=share, help="psn: share of the private set in a sub-sample, Poisson")
    parser.add_argument("--sigma", type=epsilon, help="dp-sgd: noise over the clipping norm")
    parser.add_argument("--rate", type=share, help="dp-sgd: probability of a unit in a step, Poisson")
    parser.add_argument("--steps", type=positive, help="dp-sgd: of the whole run")
    parser.add_argument("--unit", choices=list(CENTRAL), help="votes, psn, dp-sgd: of the private set (utterance)")
    parser.add_argument("--symbols", type=positive, help="tokens: of the alphabet")
    parser.add_argument("--segments", type=positive, help="tokens: of the utterance")
    parser.add_argument("--frames", type=positive, default=1000, help="of the utterance, 10 ms each (default 1000)")
    parser.add_argument("--delta", type=probability, default=1e-6, help="of tight accounting (default 1e-6)")
    args = parser.parse_args(argv)
    needed, allowed = MECHANISMS[args.mechanism]
    for name in OPTIONS:
        option = f"--{name.replace('_', '-')}"
        if getattr(args, name) is not None and name not in needed + allowed:
            raise UsageError(f"--mechanism {args.mechanism} does not take {option}")
        if getattr(args, name) is None and name in needed:
            raise UsageError(f"--mechanism {args.mechanism} needs {option}")
    return args


def bn(epsilon_bn: float, frames: int, delta: float, epsilon_f0: float | None) -> list[str]:
    """Bottleneck frames, with the pitch when ``epsilon_f0`` is given."""
    frame = BottleneckFrames(epsilon_bn).guarantee(num_frames=frames)
    whole = frame.to_unit("utterance")
    if epsilon_f0 is not None:
        whole = PitchBox(epsilon_f0, 1).guarantee().compose(whole)
    nats = capacity.laplace_frame_nats(epsilon_bn)
    return [
        frame.sentence(delta),
        *figures("one frame", frame.eer_floor(), *laplace_ceilings(epsilon_bn)),
        f"  information ceiling: {rate(nats)} of what is said",
        "",
        whole.sentence(delta),
        *figures(f"the utterance of {frames} frames", whole.eer_floor(), *pure_ceilings(whole.epsilon())),
        *cost(whole, delta),
    ]


def laplace_lines(whole: Guarantee, what: str, delta: float) -> list[str]:
    """One release of Laplace noise for an utterance."""
    bits = capacity.pure_nats(whole.epsilon()) * capacity.NAT
    return [
        whole.sentence(delta),
        *figures(what, whole.eer_floor(), *laplace_ceilings(whole.epsilon())),
        f"  information ceiling: {bits:.4g} bits for the whole utterance",
        *cost(whole, delta),
    ]


def gaussian_lines(whole: Guarantee, what: str, delta: float) -> list[str]:
    """One release of Gaussian noise on a ball."""
    mu = whole.mu()
    bits = capacity.gaussian_ball_nats(mu) * capacity.NAT
    return [
        whole.sentence(delta),
        *figures(what, whole.eer_floor(), floors.auc_gdp(mu), floors.linkability_gdp(mu)),
        f"  information ceiling: {bits:.4g} bits",
        f"  cost of an utterance: mu = {mu:g} exactly; epsilon = {whole.epsilon(delta):.6g} at delta = {delta:g}",
    ]


def tokens(epsilon_segment: float, symbols: int, segments: int, delta: float) -> list[str]:
    """Randomized response, of one segment and of an utterance of many."""
    mechanism = TokenResponse(epsilon_segment, symbols)
    one = mechanism.guarantee(segments)
    whole = one.to_unit("utterance")
    bits = min(math.log2(symbols), capacity.pure_nats(epsilon_segment) * capacity.NAT)
    return [
        one.sentence(delta),
        f"  a token is kept with a probability of {mechanism.keep:.4g}",
        f"  information ceiling: {bits:.4g} bits per segment",
        "",
        whole.sentence(delta),
        *figures(f"the utterance of {segments} segments", whole.eer_floor(), *pure_ceilings(whole.epsilon())),
        *cost(whole, delta),
    ]


def votes(args) -> list[str]:
    """Noisy votes of teachers, of disjoint parts or (with gamma) of Poisson sub-samples."""
    teachers, unit = args.teachers or TEACHERS, args.unit or "utterance"
    mechanism = NoisyVotes(teachers, args.queries or 1, mu=args.mu, unit=unit, rate=args.gamma)
    whole = mechanism.guarantee()
    lines = [
        whole.sentence(args.delta),
        f"Of all answers of {teachers} teachers ({mechanism.budget.queries}), against any attacker:",
        f"  noise: sigma = {mechanism.sigma:.6g} on each entry of the mean posterior",
        *membership(whole),
    ]
    if args.gamma is None:
        return [*lines, f"  cost: mu = {args.mu:g} exactly; epsilon = {whole.epsilon(args.delta):.6g}{at(args.delta)}"]
    setting = (args.mu, teachers, args.gamma, args.delta)
    return [
        *lines,
        f"  cost: epsilon = {whole.epsilon(args.delta):.6g}{at(args.delta)}, exact (mixture of Gaussians)",
        f"    {psn.adaptive_epsilon(*setting):.6g} if queries depend on earlier answers; "
        f"{psn.all_teachers_epsilon(args.mu, teachers, args.delta):.6g} if a unit is in every sub-sample",
        f"    {accounting.gdp_epsilon(args.mu, args.delta):.6g} with the same noise and disjoint parts (PATE)",
        f"    {psn.published_epsilon(*setting):.6g} as published, which does not hold",
    ]


def dp_sgd(args) -> list[str]:
    run_of = DpSgd(args.sigma, args.rate, args.steps, unit=args.unit or "utterance")
    whole = run_of.guarantee()
    return [
        whole.sentence(args.delta),
        "Of the model, against any attacker:",
        *membership(whole),
        f"  cost: epsilon = {whole.epsilon(args.delta):.6g}{at(args.delta)} by the privacy-loss distribution; "
        f"{accounting.renyi_epsilon(whole.parts, args.delta):.6g} by Renyi divergences",
    ]


def membership(whole: Guarantee) -> list[str]:
    eer = whole.eer_floor()
    return [f"  membership EER floor: {f'{100 * eer:.2f} %' if eer >= floors.VACUOUS else 'vacuous (under 1 %)'}"]


def at(delta: float) -> str:
    return f" at delta = {delta:g}"


def figures(what: str, eer: float, auc: float, linkability: float) -> list[str]:
    return [
        f"Of {what}, against any attacker:",
        f"  EER floor: {f'{100 * eer:.2f} %' if eer >= floors.VACUOUS else 'vacuous (under 1 %)'}",
        f"  AUC ceiling: {f'{auc:.4f}' if auc <= ALMOST_ONE else f'vacuous (over {ALMOST_ONE:g})'}",
        f"  linkability ceiling: "
        f"{f'{linkability:.4f}' if linkability <= ALMOST_ONE else f'vacuous (over {ALMOST_ONE:g})'}",
    ]


def cost(whole: Guarantee, delta: float) -> list[str]:
    return [
        f"  cost of an utterance: epsilon = {whole.epsilon():g} by basic composition; "
        f"{whole.epsilon(delta):.6g} at delta = {delta:g} by the privacy-loss distribution",
        f"    {accounting.renyi_epsilon(whole.parts, delta):.6g} by Renyi divergences; "
        f"{accounting.advanced_epsilon(whole.parts, delta):.6g} by advanced composition (the least known holds)",
    ]


def laplace_ceilings(value: float) -> tuple[float, float]:
    return floors.auc_laplace(value), _or_one(floors.linkability_laplace, value)


def pure_ceilings(value: float) -> tuple[float, float]:
    """Of a composition: its total as pure epsilon-DP, which bounds it, if loosely."""
    return floors.auc_pure(value), floors.linkability_pure(value)


def rate(nats: float) -> str:
    bits = nats * capacity.NAT
    return f"{bits:.4g} bits per frame, {bits * FRAMES_PER_SECOND:.4g} bits per second"


def probability(text: str) -> float:
    value = epsilon(text)
    if value >= 1:
        raise UsageError(f"--delta must be between 0 and 1, got {text}")
    return value


def share(text: str) -> float:
    value = epsilon(text)
    if value > 1:
        raise UsageError(f"a rate must be at most 1, got {text}")
    return value


def _or_one(ceiling: Callable[[float], float], value: float) -> float:
    """Beyond the range of floats it is 1 in all digits."""
    try:
        return min(1.0, ceiling(value))
    except OverflowError:
        return 1.0 if math.isfinite(value) else math.nan


if __name__ == "__main__":
    run(main)
