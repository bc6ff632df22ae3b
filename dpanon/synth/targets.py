"""Target speakers: pseudo-speakers of a public pool, chosen without a look at the source."""

import json
import secrets
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpanon.errors import UsageError

MIN_VOICES = 10  # a pseudo-speaker averages at least so many people, so that none of them is shipped


@dataclass(frozen=True)
class Target:
    """A pseudo-speaker: x-vector of unit norm, and mean and deviation of log f0 (Hz)."""

    id: str
    sex: str
    xvector: np.ndarray
    log_f0_mean: float
    log_f0_std: float


class TargetPool:
    """Pseudo-speakers. No method takes anything that was computed from a source recording."""

    def __init__(self, targets: list[Target]):
        if not targets:
            raise ValueError("a target pool needs at least one pseudo-speaker")
        self.targets = {target.id: target for target in targets}

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self.targets)

    def choose(self, target: str = "random") -> Target:
        """``random``: uniform, by the operating system's randomness; else the pseudo-speaker of that id."""
        if target == "random":
            return self.targets[secrets.choice(self.ids)]
        if target not in self.targets:
            raise UsageError(f"unknown target {target!r}; choose random or one of {', '.join(self.ids[:6])}, ...")
        return self.targets[target]

    def save(self, path: Path) -> None:
        """Safetensors: xvector (S, 192), log_f0 (S, 2); ids and sexes in the metadata."""
        from safetensors.numpy import save_file

        items = list(self.targets.values())
        tensors = {
            "xvector": np.stack([t.xvector for t in items]).astype(np.float32),
            "log_f0": np.array([[t.log_f0_mean, t.log_f0_std] for t in items], dtype=np.float32),
        }
        save_file(tensors, path, {"targets": json.dumps([[t.id, t.sex] for t in items])})

    @classmethod
    def load(cls, path: Path) -> "TargetPool":
        from safetensors import safe_open

        with safe_open(path, "numpy") as file:
            names = json.loads(file.metadata()["targets"])
            xvector, log_f0 = file.get_tensor("xvector"), file.get_tensor("log_f0")
        return cls(
            [Target(i, sex, xvector[k], float(log_f0[k, 0]), float(log_f0[k, 1])) for k, (i, sex) in enumerate(names)]
        )


def make_pool(
    xvectors: dict[str, np.ndarray], log_f0: dict[str, tuple[float, float]], sexes: dict[str, str], seed: int = 1
) -> TargetPool:
    """Pseudo-speakers from the voices of public speakers (paper A; Srivastava et al. 2020).

    Affinity propagation on cosine similarities finds clusters within each sex; every cluster,
    grown by its nearest voices to at least twice MIN_VOICES, gives averages of random halves of it.

    Args:
        xvectors: speaker -> mean x-vector of unit norm.
        log_f0: speaker -> mean and deviation of log f0.
        sexes: speaker -> f or m.
    """
    from sklearn.cluster import AffinityPropagation

    rng = np.random.default_rng(seed)
    targets = []
    for sex in ("f", "m"):
        speakers = sorted(s for s in xvectors if sexes.get(s) == sex)
        if len(speakers) < 2 * MIN_VOICES:
            raise ValueError(f"{len(speakers)} speakers of sex {sex}: a pool needs at least {2 * MIN_VOICES}")
        matrix = np.stack([xvectors[s] for s in speakers])
        similarity = matrix @ matrix.T
        clusters = AffinityPropagation(affinity="precomputed", random_state=seed, damping=0.8, max_iter=1000)
        labels = clusters.fit(similarity).labels_
        for label in sorted(set(labels[labels >= 0])):
            centre = matrix[labels == label].mean(0)
            members = np.argsort(-(matrix @ centre))[: max(2 * MIN_VOICES, int((labels == label).sum()))]
            for half in range(2):
                chosen = rng.choice(members, size=max(MIN_VOICES, len(members) // 2), replace=False)
                mean = matrix[chosen].mean(0)
                stats = np.array([log_f0[speakers[i]] for i in chosen])
                targets.append(
                    Target(
                        f"{sex}{label:02d}{'ab'[half]}",
                        sex,
                        (mean / np.linalg.norm(mean)).astype(np.float32),
                        float(stats[:, 0].mean()),
                        float(stats[:, 1].mean()),
                    )
                )
    return TargetPool(targets)
