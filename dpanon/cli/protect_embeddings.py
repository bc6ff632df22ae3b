"""Protect the speaker embeddings of a data directory: IN/xvector.scp -> OUT, with privacy.json and privacy.jsonl.

    dpanon protect-embeddings --mu 1 data/test data/test_protected           # by the shipped speaker model
    dpanon protect-embeddings --model exp/speaker --noise-level 1 data/test data/test_protected
    dpanon protect-embeddings --model exp/gender_eps15 --epsilon 15 data/test data/test_protected
    dpanon protect-embeddings --model exp/gender_eps15 --system plain data/test data/test_hidden

The model is a folder made by steps/train_gender.sh (Laplace noise, --epsilon) or steps/train_speaker.sh (Gaussian
noise, --mu or --noise-level); the shipped one is of the second kind, for CAM++. OUT holds labels and vectors, no
recordings and no paths. The system plain releases without noise: whatever noise was there in training, that promises
nothing. OUT must not exist: a second release of the same embeddings costs their privacy a second time.

--noise-level N is the sigma of the paper's tables, in units of U. --sigma-rule corrected (the default) gives the
noise that makes mu = 1 / N true, 2 U N; as-published gives the paper's, U N, whose true mu is 2 / N. Both values of
mu and both floors are in privacy.json either way.
"""

from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from dpanon.anonymize.embeddings import RULES, Protector, protect_set, speaker_mechanism
from dpanon.anonymize.pretrained import SHIPPED, load_network
from dpanon.cli import ArgumentParser, run
from dpanon.data.data_dir import DataDir
from dpanon.errors import UsageError
from dpanon.privacy import ClippedLatent, SpeakerGaussian
from dpanon.privacy.floors import VACUOUS

KINDS = ("gender", "speaker")


def main(argv: list[str] | None = None) -> None:
    args = parse_args(argv)
    torch.set_num_threads(1)
    kind, network = find_model(args.model)
    protector = Protector(network, mechanism_of(args, kind, network), network.config.dim)
    options = {
        name: getattr(args, name) for name in ("epsilon", "mu", "noise_level", "sigma_rule") if getattr(args, name)
    }
    options |= {"model": kind, "keyed_noise": args.keyed_noise}
    name = args.name or (f"{kind}-plain" if args.system == "plain" else kind)
    with tqdm(total=len(DataDir.read(args.source, audio=False)), unit="embedding", delay=1.0) as bar:
        said = protect_set(protector, args.source, args.out, name, options, args.keyed_noise, bar.update)
    print(f"{args.out}: {said['num_released']} embeddings; {summary(said)}")


def parse_args(argv: list[str] | None):
    parser = ArgumentParser(prog="dpanon protect-embeddings", description=__doc__)
    parser.add_argument("source", type=Path, metavar="IN", help="data directory with xvector.scp")
    parser.add_argument("out", type=Path, metavar="OUT", help="data directory to be made")
    parser.add_argument(
        "--model",
        type=Path,
        default=SHIPPED,
        metavar="DIR",
        help="of a trained model (default: the shipped one)",
    )
    parser.add_argument("--system", choices=("dp", "plain"), default="dp", help="plain: no noise, no guarantee")
    parser.add_argument("--epsilon", type=float, help="of one embedding; gender models")
    parser.add_argument("--mu", type=float, help="of one embedding; speaker models")
    parser.add_argument("--noise-level", type=float, help="1 / mu by the rule; speaker models")
    parser.add_argument("--sigma-rule", choices=RULES, help="sigma = 2 U / mu, or U / mu (default corrected)")
    parser.add_argument("--name", default="", help="name in the tables (default: gender or speaker)")
    parser.add_argument("--keyed-noise", type=int, metavar="SEED", help="repeatable, for tests; NOT releasable")
    return parser.parse_args(argv)


def find_model(folder: Path):
    """(kind, network) of the model in ``folder``."""
    found = [kind for kind in KINDS if (folder / f"{kind}.safetensors").is_file()]
    if len(found) != 1:
        raise UsageError(f"{folder}: expected one of {', '.join(f'{kind}.safetensors' for kind in KINDS)} in it")
    network: Any = load_network(found[0], folder / f"{found[0]}.safetensors")
    if not (torch.isfinite(network.radius) and network.radius > 0):
        raise UsageError(f"{folder}: its clipping radius is {float(network.radius)}: train it again")
    return found[0], network


def mechanism_of(args, kind: str, network) -> ClippedLatent | SpeakerGaussian | None:
    """The mechanism that the options ask for; None for the system plain."""
    given = [name for name in ("epsilon", "mu", "noise_level") if getattr(args, name) is not None]
    if args.system == "plain":
        if given or args.sigma_rule:
            raise UsageError("the system plain has no noise: leave out its size, or choose dp")
        return None
    wanted = ("epsilon",) if kind == "gender" else ("mu", "noise_level")
    if len(given) != 1 or given[0] not in wanted:
        names = " or ".join(f"--{name.replace('_', '-')}" for name in wanted)
        raise UsageError(f"a {kind} model takes {names}, one of them; --system plain is the one without noise")
    radius, dim = float(network.radius), network.config.latent
    if kind == "gender":
        if args.sigma_rule:
            raise UsageError("--sigma-rule is about Gaussian noise; a gender model has Laplace noise")
        return ClippedLatent(args.epsilon, radius, dim)
    return speaker_mechanism(args.mu, args.noise_level, args.sigma_rule, radius, dim)


def summary(said: dict) -> str:
    if said["guarantee"]["kind"] == "none":
        return f"no privacy guarantee: {said['guarantee']['reason']}"
    floor = said["eer_floor"]
    words = f"{100 * floor:.1f} %" if floor >= VACUOUS else "vacuous (under 1 %)"
    text = f"EER floor {words}, AUC of any attribute at most {said['auc_ceiling']:.3f}"
    if "mu" in said:
        text += (
            f"; mu {said['mu']:.4g} (as published {said['mu_as_published']:.4g}, which would be a floor of "
            f"{100 * said['eer_floor_as_published']:.1f} %)"
        )
    return text if said["releasable"] else f"{text}; NOT RELEASABLE: the noise can be repeated"


if __name__ == "__main__":
    run(main)
