"""De-identification and gain of voice distinctiveness of a released set -> <out-dir>/metrics.json, matrices.npz.

Called by steps/score_voices.sh. Log-likelihood ratios are those of the lda-plda back-end in <asv-dir>, trained on
original speech, for all three matrices, as the challenge has it.
"""

from pathlib import Path

import numpy as np

from dpanon.attack.asv import load_backend
from dpanon.attack.embeddings import embed_set
from dpanon.cli import ArgumentParser, boolean, run
from dpanon.data.data_dir import DataDir
from dpanon.evaluate import EvaluationError
from dpanon.evaluate.claims import read_claim
from dpanon.evaluate.metrics import write_metrics
from dpanon.evaluate.similarity import similarity_matrix, voice_metrics
from dpanon.features.xvector import EXTRACTORS, load_extractor


def parse_args(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--baseline", type=boolean, default=False, help="the released set is clear (default: false)")
    parser.add_argument("--system", default="", help="name in the tables (default: that in privacy.json)")
    parser.add_argument("--extractor", choices=EXTRACTORS, default="campplus", help="default: campplus")
    parser.add_argument("--cache", type=Path, default=Path("exp/embeddings"), help="directory of embeddings")
    parser.add_argument("asv", type=Path, metavar="asv-dir")
    parser.add_argument("original", type=Path, metavar="original-dir")
    parser.add_argument("released", type=Path, metavar="released-dir")
    parser.add_argument("out", type=Path, metavar="out-dir")
    return parser.parse_args(argv)


def main(argv=None):
    args = parse_args(argv)
    original, released = DataDir.read(args.original), DataDir.read(args.released)
    claim = read_claim(released.path, released.utts, args.baseline)
    if strange := sorted(set(released.utts) - set(original.utts)):
        raise EvaluationError(f"{args.released}: {len(strange)} utterances are not in {args.original} ({strange[:3]})")
    extractor = load_extractor(args.extractor)
    backend = load_backend("lda-plda", args.extractor, args.asv)
    spoken = {utt: original.speaker(utt) for utt in original.utts}
    used = [utt for utt in released.utts if sum(spoken[other] == spoken[utt] for other in released.utts) > 1]
    o = embed_set(original, extractor, args.cache / original.path.name, used)
    a = embed_set(released, extractor, args.cache / released.path.name, used)
    matrices: dict[str, np.ndarray] = {}
    names: list[str] = []
    for name, left, right in (("oo", o, o), ("oa", o, a), ("aa", a, a)):
        matrices[name], names = similarity_matrix(left, right, spoken, backend)
    metrics: dict = voice_metrics(matrices["oo"], matrices["oa"], matrices["aa"], names)
    metrics |= {"data": str(args.released), "original": str(args.original), "num_speakers": len(names)}
    metrics |= {"attacker": f"{args.extractor}+lda-plda", "num_utterances": len(used)}
    args.out.mkdir(parents=True, exist_ok=True)
    np.savez(
        args.out / "matrices.npz", names=np.asarray(names), oo=matrices["oo"], oa=matrices["oa"], aa=matrices["aa"]
    )
    write_metrics(args.out, "voices", args.system or claim.system, args.released.resolve().name, metrics)
    print(f"{args.out}: DeID {metrics['deid']:.2f}, G_VD {metrics['g_vd']:.1f} dB of {len(names)} speakers")


if __name__ == "__main__":
    run(main)
