"""Protected speaker embeddings: network -> mechanism -> network, and a data directory of them (papers B and C).

    x --encode--> z --[clip, noise: dpanon.privacy]--> decode --> x', of unit norm

Behind the mechanism nothing of x is used. Every vector is protected by itself: a batch would couple its members.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

import dpanon
from dpanon.anonymize.statement import write_statement
from dpanon.data.data_dir import DataDir
from dpanon.data.embeddings import read_set, write_set
from dpanon.errors import UsageError
from dpanon.privacy import ClippedLatent, Guarantee, KeyedNoise, PrivacyError, SpeakerGaussian, SystemNoise
from dpanon.privacy.checks import shaped
from dpanon.privacy.floors import auc_gdp, auc_laplace
from dpanon.privacy.layers import require_eval
from dpanon.privacy.mechanisms import Released
from dpanon.privacy.sampling import NoiseSource

NOT_COVERED = (
    "the fact that the embedding was released",
    "other releases of the utterance or of its speaker: their costs add up",
    "membership of training speakers",
)
EMBEDDING = "replace the speaker embedding of one utterance by any other"
RULES = ("corrected", "as-published")  # sigma = 2 U / mu, sigma = U / mu
TRAINING_NOISE = "noise in training alone promises nothing, and this release has none of its own"


class Coder(Protocol):
    """A network with a latent of one vector per embedding; both functions are deterministic in eval mode."""

    def encode(self, x: Tensor) -> Tensor: ...

    def decode(self, z: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Protected:
    """A released embedding of unit norm (D,) float32 and what is promised for it."""

    vector: np.ndarray
    guarantee: Guarantee


class Protector:
    """Releases embeddings through ``network`` and ``mechanism``; None is the baseline without any noise.

    Raises:
        PrivacyError: batch normalisation of the network still takes the statistics of its batch.
    """

    def __init__(self, network: Coder, mechanism: ClippedLatent | SpeakerGaussian | None, dim: int):
        self.network, self.mechanism, self.dim = network, mechanism, dim
        self._check()

    def _check(self) -> None:
        if isinstance(self.network, nn.Module):
            require_eval(self.network)

    @torch.inference_mode()
    def protect(self, x: np.ndarray, noise: NoiseSource | None = None) -> Protected:
        """(D,) -> a released embedding.

        Args:
            noise: None draws from the operating system; a ``KeyedNoise`` repeats and is marked not releasable.

        Raises:
            PrivacyError: a wrong shape, NaN, infinity or a zero vector, before anything is drawn.
        """
        self._check()
        x = shaped("speaker embedding", x, "(D,)", self.dim)
        if not np.isfinite(x).all() or not np.linalg.norm(x) > 0.0:
            raise PrivacyError("the speaker embedding has NaN or infinite entries, or is zero: nothing is released")
        z = self.network.encode(torch.from_numpy((x / np.linalg.norm(x)).astype(np.float32))[None])[0]
        released = self.release(z, noise)
        # private until here; from here on only the released latent is used
        return Protected(self.decode(released.value), released.guarantee)

    def release(self, z: Tensor, noise: NoiseSource | None) -> Released:
        if not torch.isfinite(z).all():
            raise PrivacyError("the latent has NaN or infinite entries: nothing is released")
        if self.mechanism is None:
            return Released(z.numpy().copy(), Guarantee.none(TRAINING_NOISE))
        released = self.mechanism.release(z, SystemNoise() if noise is None else noise)
        if isinstance(self.mechanism, SpeakerGaussian):  # the vector alone leaves: there is no content to be equal
            words = {"mechanism": released.guarantee.mechanism, "sampler": released.guarantee.sampler}
            whole = Guarantee.gdp(self.mechanism.mu, "utterance", adjacency=EMBEDDING, **words)
            return Released(released.value, whole)
        return released

    def decode(self, latent: np.ndarray) -> np.ndarray:
        """Released latent (M,) -> (D,) float32 of unit norm."""
        out = self.network.decode(torch.from_numpy(latent)[None])[0].numpy().astype(np.float64)
        norm = np.linalg.norm(out)
        if not np.isfinite(norm) or norm == 0.0:
            raise ValueError("the decoder made a zero or infinite embedding of a finite latent: its weights are broken")
        return (out / norm).astype(np.float32)


def protect_set(
    protector: Protector,
    source: Path,
    out: Path,
    system: str,
    options: dict[str, Any],
    keyed_noise: int | None = None,
    on_done: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Protect every vector of ``source`` -> ``out`` with privacy.json and privacy.jsonl, which comes to be as a whole.

    Returns:
        what privacy.json says.
    """
    data, vectors = read_set(source)
    if vectors.shape[1] != protector.dim:
        raise UsageError(f"{source}: vectors of {vectors.shape[1]} entries; the model takes {protector.dim}")
    if out.exists():
        raise UsageError(f"{out} exists: to release a set a second time costs its privacy a second time")
    made, rows, guarantee = [], [], Guarantee.none(TRAINING_NOISE)
    for utt, vector in zip(data.utts, vectors, strict=True):
        noise = None if keyed_noise is None else KeyedNoise(keyed_noise, utt, "release")
        protected = protector.protect(vector, noise)
        guarantee = protected.guarantee  # the same for all: it depends on no input
        made.append(protected.vector)
        rows.append({"utt": utt, **claim(guarantee, protector.mechanism, keyed_noise is not None)})
        on_done()
    statement = {
        "schema": 1,
        "dpanon": dpanon.__version__,
        "system": system,
        "released": "speaker embeddings",
        "options": options,
        "guarantee": guarantee.to_dict(),
        "sentence": sentence(data, guarantee, keyed_noise is not None),
        **{key: value for key, value in rows[0].items() if key != "utt"},
        "num_released": len(rows),
    }
    write_set(
        data,
        np.stack(made),
        out,
        lambda folder: write_statement(statement, rows, folder / "privacy.json", folder / "privacy.jsonl"),
    )
    return statement


def claim(guarantee: Guarantee, mechanism: Any, keyed: bool) -> dict[str, Any]:
    """What one released embedding promises, as a row of privacy.jsonl has it; None where nothing is promised."""
    claims = guarantee.kind != "none"
    epsilon = guarantee.epsilon() if claims else math.inf
    row: dict[str, Any] = {
        "epsilon_frame": None,
        "epsilon_utterance": epsilon if math.isfinite(epsilon) else None,
        "unit": guarantee.unit,
        "adjacency": guarantee.adjacency if claims else None,
        "conditional_on": list(guarantee.conditional_on),
        "not_covered": list(dict.fromkeys((*guarantee.not_covered, *NOT_COVERED))) if claims else ["everything"],
        "eer_floor": guarantee.eer_floor() if claims else None,
        "auc_ceiling": None,
        "sampler": "keyed" if keyed else guarantee.sampler if claims else "none",
        "releasable": False if keyed else guarantee.releasable if claims else None,
    }
    if isinstance(mechanism, ClippedLatent):
        row["auc_ceiling"] = auc_laplace(mechanism.epsilon)
    if isinstance(mechanism, SpeakerGaussian):
        row |= {"auc_ceiling": auc_gdp(mechanism.mu), **both_rules(mechanism)}
    return row


def speaker_mechanism(
    mu: float | None, noise_level: float | None, rule: str | None, radius: float, dim: int
) -> SpeakerGaussian:
    """The Gaussian speaker mechanism of ``mu``, or of ``mu = 1 / noise_level``, by a rule for sigma.

    Args:
        rule: ``corrected`` (sigma = 2 U / mu; the default) or ``as-published`` (U / mu, of a true mu twice as large).

    Raises:
        UsageError: both or none of mu and noise_level, an unknown rule. PrivacyError: a value out of range.
    """
    if (mu is None) == (noise_level is None):
        raise UsageError("give --mu or --noise-level (1 / mu), one of them")
    if noise_level is not None:
        if not 0 < noise_level < math.inf:
            raise UsageError(f"--noise-level must be finite and > 0, got {noise_level}; without noise: --system plain")
        mu = 1.0 / noise_level
    if rule not in (None, *RULES):
        raise UsageError(f"unknown --sigma-rule {rule!r}; choose one of {', '.join(RULES)}")
    make = SpeakerGaussian.as_published if rule == "as-published" else SpeakerGaussian
    return make(float(mu or 0.0), radius, dim)


def both_rules(mechanism: SpeakerGaussian) -> dict[str, float]:
    """mu and EER floor of this noise, and those that the paper's rule sigma = U / mu reads off the same noise."""
    from dpanon.privacy.floors import eer_gdp

    published = mechanism.radius / mechanism.sigma
    return {
        "sigma": mechanism.sigma,
        "sigma_over_u": 1.0 / published,
        "mu": mechanism.mu,
        "eer_floor_mu": eer_gdp(mechanism.mu),
        "mu_as_published": published,
        "eer_floor_as_published": eer_gdp(published),
    }


def sentence(data: DataDir, guarantee: Guarantee, keyed: bool) -> str:
    text = guarantee.sentence()
    if guarantee.kind != "none":
        text = f"{len(data)} speaker embeddings, one release of each. Of each: {text}"
    return f"NOT RELEASABLE. {text}" if keyed else text
