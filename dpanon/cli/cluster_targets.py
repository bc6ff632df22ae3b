"""Public voices: <data-dir> with xvector.scp, f0.scp -> <out-dir>/targets.safetensors (pseudo-speakers), contour.json.

Called by steps/cluster_targets.sh.
"""

import json
from collections import defaultdict
from pathlib import Path

import numpy as np

from dpanon.cli import ArgumentParser, run
from dpanon.data.arrays import load_scp
from dpanon.data.data_dir import DataDir
from dpanon.synth.targets import make_pool
from dpanon.train.contour import fit_contour


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the choice of members; no release depends on it")
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args(argv)
    data = DataDir.read(args.data)
    xvectors, f0 = load_scp(data.path / "xvector.scp"), load_scp(data.path / "f0.scp")
    vectors: dict[str, list[np.ndarray]] = defaultdict(list)
    pitch: dict[str, list[np.ndarray]] = defaultdict(list)
    for utt in data.utts:
        speaker = data.speaker(utt)
        if data.sex(speaker) in ("f", "m"):
            vectors[speaker].append(xvectors[utt])
            pitch[speaker].append(np.log(f0[utt][f0[utt] > 0]))
    means = {s: np.mean(v, 0) / np.linalg.norm(np.mean(v, 0)) for s, v in vectors.items()}
    stats = {}
    for speaker, values in pitch.items():
        log_f0 = np.concatenate(values)
        if len(log_f0) > 100:  # median and quartiles: octave errors of the estimator move a mean
            low, middle, high = np.quantile(log_f0, [0.25, 0.5, 0.75])
            stats[speaker] = (float(middle), float((high - low) / 1.349))
    sexes = {s: str(data.sex(s)) for s in stats}
    pool = make_pool({s: means[s] for s in stats}, stats, sexes, args.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    pool.save(args.out / "targets.safetensors")
    shape = fit_contour([f0[utt] for utt in data.utts])
    (args.out / "contour.json").write_text(json.dumps(shape, indent=1) + "\n")
    print(f"{args.out}: {len(pool.ids)} pseudo-speakers of {len(stats)} people")


if __name__ == "__main__":
    run(main)
