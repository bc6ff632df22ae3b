"""``dpanon audit``: honest mechanisms pass, every broken one is found, and so is what goes around the noise."""

from types import SimpleNamespace

import numpy as np
import pytest

from dpanon.anonymize.audit import audit_system
from dpanon.cli import audit as cli
from dpanon.errors import UsageError
from dpanon.privacy import (
    BottleneckFrames,
    ClippedLatent,
    CodebookChoice,
    IntegerLaplace,
    LowRankPitch,
    NoisyVotes,
    PitchBox,
    PitchGaussian,
    Released,
    SpeakerGaussian,
    SubsetSelection,
    TokenResponse,
    audit,
    clip,
    suites,
)


def broken(findings):
    return {finding.check for finding in findings if finding.broken}


@pytest.mark.parametrize(
    "name, claim", [*((name, 0.7) for name in suites.SUITES), ("bn", 50.0), ("speaker", 50.0), ("counts", 50.0)]
)
def test_honest_mechanisms_pass(name, claim):
    findings = suites.SUITES[name][1](claim)
    assert broken(findings) == set()
    assert len(findings) >= 1


def with_half_the_noise(kind):
    """The mechanism for twice the claim, which says half of it."""
    return lambda claim, *sizes, **options: kind(2.0 * claim, *sizes, **options)


@pytest.mark.parametrize(
    "suite, kind",
    [
        (suites.frames, BottleneckFrames),
        (suites.f0, PitchBox),
        (suites.f0_gaussian, PitchGaussian),
        (suites.f0_contour, LowRankPitch),
        (suites.speaker, SpeakerGaussian),
        (suites.embedding, ClippedLatent),
        (suites.tokens, TokenResponse),
        (suites.subsets, SubsetSelection),
        (suites.codes, CodebookChoice),
        (suites.counts, IntegerLaplace),
    ],
)
def test_half_the_noise_is_found_by_more_than_one_check(suite, kind):
    found = broken(suite(1.0, with_half_the_noise(kind)))
    assert found
    assert len({check.split(" (")[0] for check in found}) >= (
        1 if kind in (TokenResponse, SubsetSelection, CodebookChoice) else 2
    )


def test_half_the_noise_of_votes_is_found():
    found = broken(suites.votes(1.0, lambda mu, teachers, num: NoisyVotes(teachers, num, mu=2.0 * mu)))
    assert {"Gaussian scale", "EER floor"} <= found


def without_clip(kind):
    class Unclipped(kind):
        def clip(self, x):
            return clip.sanitise(x).clip(-1e9, 1e9)

    return Unclipped


@pytest.mark.parametrize(
    "suite, kind",
    [
        (suites.frames, BottleneckFrames),
        (suites.f0, PitchBox),
        (suites.f0_gaussian, PitchGaussian),
        (suites.f0_contour, LowRankPitch),
        (suites.speaker, SpeakerGaussian),
        (suites.embedding, ClippedLatent),
    ],
)
def test_a_missing_clip_is_found(suite, kind):
    assert broken(suite(1.0, without_clip(kind)))


def test_noise_that_is_kept_is_found():
    class Frozen(BottleneckFrames):
        kept: dict = {}

        def release(self, x, noise=None):
            if x.shape not in self.kept:
                self.kept[x.shape] = super().release(np.zeros(x.shape)).value
            return Released((self.clip(x) + self.kept[x.shape]).astype(np.float32), self.guarantee(len(x)))

    found = broken(suites.frames(1.0, Frozen))
    assert {"noise reused by seeding", "noise reused by two threads", "noise reused by two forks"} <= found


def test_a_norm_beyond_its_ball_is_found_however_little():
    assert audit.norms(np.array([[0.5, -0.5]]), 1.0, 1).broken is False
    assert audit.norms(np.array([[0.5, -0.5, 2.0**-60]]), 1.0, 1).broken
    assert audit.norms(np.array([[0.6, 0.8000000000000002]]), 1.0, 2).broken
    assert audit.norms(np.array([[np.nan, 0.0]]), 1.0, 1).broken


class Fake:
    """A system without networks; ``around`` is what reaches the waveform without noise."""

    def __init__(self, frames=None, around=0.0):
        self.frames, self.box = frames or BottleneckFrames(100.0, 8), PitchBox(10.0, 2)
        self.extractor, self.prosody = SimpleNamespace(width=self.frames.dim), SimpleNamespace(box=self.box)
        self.around = around
        self.pool = SimpleNamespace(ids=("a",), choose=lambda target: target)

    def anonymize(self, samples, target, noise):
        num = len(samples) // 160
        parts = samples[: num * 160].reshape(num, 160)
        released = self.frames.release(parts[:, :8].astype(np.float64), noise)
        pitch = self.box.release(np.abs(parts[:, :2]).T.astype(np.float64), noise)
        made = np.repeat(released.value.sum(1) + pitch.value.sum(0), 160) + self.around * samples[: num * 160]
        return SimpleNamespace(
            samples=made.astype(np.float32),
            num_frames=num,
            guarantee_frame=released.guarantee,
            guarantee_f0=pitch.guarantee,
        )


def test_an_honest_system_passes():
    assert broken(audit_system(Fake())) == set()


def test_a_waveform_that_knows_the_recording_is_found():
    assert "samples that know what went around the noise" in broken(audit_system(Fake(around=1e-3)))


def test_a_system_with_too_little_noise_or_no_clip_is_found():
    class Less(BottleneckFrames):
        def __init__(self, epsilon, dim):
            super().__init__(epsilon, dim)
            self.scale /= 2

    assert "entries of bn with noise" in broken(audit_system(Fake(frames=Less(100.0, 8))))
    loud = without_clip(BottleneckFrames)(100.0, 8)
    assert "largest L1 norm of a frame before the noise" in broken(audit_system(Fake(frames=loud)))


def test_the_command_says_what_it_found(capsys, monkeypatch):
    assert cli.main(["--mechanism", "tokens", "--epsilon", "2"]) == 0
    said = capsys.readouterr().out
    assert "tokens, epsilon = 2" in said and "0 broken" in said
    suite = ("epsilon", lambda claim, alarm: suites.tokens(claim, with_half_the_noise(TokenResponse), alarm))
    monkeypatch.setitem(suites.SUITES, "tokens", suite)
    assert cli.main(["--mechanism", "tokens", "--epsilon", "1"]) == 1
    assert "BROKEN" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [["--mechanism", "tokens", "--mu", "1"], ["--models", "shipped", "--epsilon", "1"], ["--epsilon", "0"]],
)
def test_misuse_is_refused(arguments):
    with pytest.raises((UsageError, SystemExit)) as error:
        cli.main(arguments)
    assert getattr(error.value, "exit_code", getattr(error.value, "code", None)) == 2
