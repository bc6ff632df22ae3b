"""The fast sampler rounds exactly as multiple precision does, and its keys are nobody's."""

import concurrent.futures
import copy
import math
import os
import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy import stats

from dpanon.privacy import BottleneckFrames, KeyedNoise, PrivacyError, SystemNoise, audit, exact, sampling
from dpanon.privacy.sampling import Keystream, add_gaussian, add_laplace, grid_bits

KEY = bytes(range(32))


@pytest.mark.parametrize("scale, bound", [(2.0, 1.0), (1500.0, 1.0), (2e-3, 1.0), (0.77, 18.35), (1e-9, 1.0)])
def test_every_laplace_draw_is_the_exact_one(scale, bound):
    x = np.linspace(-bound, bound, 1500)
    words = Keystream(KEY).words(x.size).copy()
    bits = grid_bits(scale, bound)
    truth = [
        exact.laplace_cell(float(a), bool(w >> 63), int(w) & (2**63 - 1), scale, bits, lambda: 2**63)
        for a, w in zip(x, words.tolist(), strict=True)
    ]
    assert np.array_equal(add_laplace(x, scale, bound, Keystream(KEY)), np.array(truth) * 2.0**-bits)


@pytest.mark.parametrize("sigma, bound", [(8.0, 1.0), (36.7, 18.35), (1e-4, 1.0)])
def test_every_gaussian_draw_is_the_exact_one(sigma, bound):
    x = np.linspace(-bound, bound, 801)  # odd: the last pair has one output to spare
    half = (x.size + 1) // 2
    words = Keystream(KEY).words(2 * half).copy()
    magnitude, turn = (words[:half] & sampling.MAGNITUDE).tolist(), words[half:].view(np.int64).tolist()
    bits = grid_bits(sigma, bound)
    padded = np.append(x, 0.0)
    cells = [
        exact.gaussian_cells((float(padded[i]), float(padded[i + half])), magnitude[i], turn[i], sigma, bits, lambda: 7)
        for i in range(half)
    ]
    truth = np.array(cells).T.ravel()[: x.size] * 2.0**-bits
    assert np.array_equal(add_gaussian(x, sigma, bound, Keystream(KEY)), truth)


def test_the_exact_cell_agrees_with_rational_arithmetic_on_easy_points():
    """U = 1/2 and x = 0: Z = b ln 2."""
    cell = exact.laplace_cell(0.0, True, 2**62, 1.0, 40, lambda: 0)
    assert cell == math.floor(Fraction(math.log(2.0)) * 2**40 + Fraction(1, 2))
    assert exact.laplace_cell(0.0, False, 2**62, 1.0, 40, lambda: 0) == -cell


class Scripted(Keystream):
    """Words chosen by the test; extra bits counted."""

    def __init__(self, words):
        super().__init__(KEY)
        self.script, self.asked = np.array(words, dtype=np.uint64), 0

    def words(self, num):
        return self.script[:num].copy()

    def more_bits(self):
        self.asked += 1
        return super().more_bits()


def test_the_smallest_uniforms_get_more_bits_and_stay_finite():
    stream = Scripted([0, 1, 2**63, 2**63 + 1, 2**40])
    y = add_laplace(np.zeros(5), 2.0, 1.0, stream)
    assert stream.asked >= 4 and np.isfinite(y).all()
    assert (np.abs(y[:4]) > 80).all() and (np.sign(y[:4]) == [-1, -1, 1, 1]).all()
    stream = Scripted([0, 2**62, 2**63 - 1, 5, 9, 2**61])  # magnitudes of three pairs, then their angles
    y = add_gaussian(np.zeros(6), 2.0, 1.0, stream)
    assert stream.asked >= 2 and np.isfinite(y).all() and np.abs(y[0]) > 15


def test_a_draw_at_the_border_of_a_cell_is_decided_by_more_bits():
    """Bisect a word whose interval holds a border: the filter must not decide it."""
    low, high = 2**62, 2**62 + 2**44  # ln U falls by 2^-18: one cell and a half at ratio 2^21 and more
    bits = grid_bits(2.0, 1.0)
    cell = lambda k: exact.laplace_cell(0.0, True, k, 2.0, bits, lambda: 2**63)  # noqa: E731
    left = cell(low)
    assert cell(high) != left
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if cell(middle) == left else (low, middle)
    for k in (low, high):
        stream = Scripted([k | 2**63])
        assert add_laplace(np.zeros(1), 2.0, 1.0, stream)[0] * 2.0**bits in (left, left - 1)


def test_few_draws_need_more_bits():
    class Counting(Keystream):
        asked = 0

        def more_bits(self):
            Counting.asked += 1
            return super().more_bits()

    add_laplace(np.zeros(400_000), 2.0, 1.0, Counting(os.urandom(32)))
    assert Counting.asked <= 40  # expected 0 to 3


def test_laplace_and_gaussian_have_their_laws():
    y = SystemNoise().add_laplace(np.zeros(300_000), 2.0, 1.0)
    assert not audit.shape(y, 2.0).broken and not audit.laplace_scale(y, 2.0).broken
    z = SystemNoise().add_gaussian(np.zeros(300_001), 8.0, 1.0)
    assert not audit.shape(z, 8.0, "gaussian").broken and not audit.gaussian_scale(z, 8.0).broken
    half = z.size // 2
    assert abs(np.corrcoef(np.abs(z[:half]), np.abs(z[half + 1 :]))[0, 1]) < 0.02  # pairs are independent


def test_the_low_bits_tell_nothing_about_the_input():
    """Under x and under x' the last 6 bits of the cell are uniform."""
    for x in (0.0, 1.0):
        y = SystemNoise().add_laplace(np.full(200_000, x), 2.0, 1.0)
        cells = (y * 2.0 ** grid_bits(2.0, 1.0)).astype(np.int64) & 63
        assert stats.chisquare(np.bincount(cells, minlength=64)).pvalue > 1e-9


@pytest.mark.parametrize("scale", [1e-25, 1e-6, 2.0, 6000.0, 1e25])
def test_outputs_are_on_the_grid_and_finite(scale):
    x = np.linspace(-1, 1, 3001)
    for y in (SystemNoise().add_laplace(x, scale, 1.0), SystemNoise().add_gaussian(x, scale, 1.0)):
        assert not audit.grid(y, grid_bits(scale, 1.0)).broken


def residual():
    return SystemNoise().add_laplace(np.zeros(64), 2.0, 1.0)


def in_child(read, write, function):
    pid = os.fork()
    if pid == 0:
        os.write(write, function().tobytes())
        os._exit(0)
    os.waitpid(pid, 0)
    return np.frombuffer(os.read(read, 64 * 8))


def test_no_two_draws_are_alike_whatever_is_seeded_forked_or_copied():
    draws = [residual(), residual()]
    for _ in range(2):
        torch.manual_seed(0)
        np.random.seed(0)  # noqa: NPY002
        draws.append(residual())
    noise = SystemNoise()
    for twin in (copy.deepcopy(noise), copy.copy(noise), pickle.loads(pickle.dumps(noise))):
        draws.append(twin.add_laplace(np.zeros(64), 2.0, 1.0))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        draws += [f.result() for f in [pool.submit(residual) for _ in range(4)]]
    read, write = os.pipe()
    draws += [in_child(read, write, residual) for _ in range(2)]
    for i, a in enumerate(draws):
        for b in draws[:i]:
            assert (a == b).mean() < 0.2


class Frames(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.from_numpy(BottleneckFrames(1.0, dim=16).release(np.zeros((1, 16))).value)


def test_workers_of_a_data_loader_share_no_noise():
    torch.manual_seed(0)
    values = torch.cat([torch.cat(list(torch.utils.data.DataLoader(Frames(), num_workers=2))) for _ in range(2)])
    assert len({tuple(row) for row in values.reshape(16, 16).tolist()}) == 16


def test_threads_compute_what_one_thread_computes():
    x = np.linspace(-1, 1, 40_000)
    keys = [bytes([i]) * 32 for i in range(6)]
    alone = [add_gaussian(x, 8.0, 1.0, Keystream(key)) for key in keys]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda key: add_gaussian(x, 8.0, 1.0, Keystream(key)), keys))
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))


def test_keyed_noise_repeats_by_its_material_alone():
    x = np.zeros(40)
    draw = lambda *key: KeyedNoise(*key).add_laplace(x, 2.0, 1.0)  # noqa: E731
    assert np.array_equal(draw(1, "u1", "bn"), draw(1, "u1", "bn"))
    for other in ((2, "u1", "bn"), (1, "u2", "bn"), (1, "u1", "f0"), (1, "u", "1bn"), (11, "u1", "bn")):
        assert not np.array_equal(draw(1, "u1", "bn"), draw(*other))
    source = KeyedNoise(1, "u1", "bn")
    assert not np.array_equal(source.add_laplace(x, 2.0, 1.0), source.add_laplace(x, 2.0, 1.0))
    assert not KeyedNoise.releasable and SystemNoise().releasable


def test_a_keyed_draw_has_not_changed_since_it_was_recorded():
    """Tables made with keyed noise can be made again by later versions."""
    y = KeyedNoise(1, "utt", "bn").add_laplace(np.zeros(3), 2.0, 1.0)
    assert y.tolist() == [1.8322458267211914, 0.4683542251586914, -0.7938785552978516]


def test_a_key_of_the_wrong_length_is_refused():
    with pytest.raises(PrivacyError):
        Keystream(b"short")


def test_insecure_noise_is_asked_for_by_name_and_stamped(monkeypatch):
    monkeypatch.setenv("DPANON_INSECURE_FAST", "1")
    released = BottleneckFrames(1.0, dim=64).release(np.zeros((2000, 64)))
    assert released.guarantee.sampler == "INSECURE" and not released.guarantee.releasable
    assert released.guarantee.sentence().startswith("INSECURE.") and "do NOT release" in released.guarantee.sentence()
    assert '"INSECURE"' in released.guarantee.to_json()
    assert np.abs(released.value).mean() == pytest.approx(2.0, rel=0.05)
    assert audit.grid(released.value, grid_bits(2.0, 1.0)).broken
    assert not SystemNoise().releasable
    for value in ("0", "", "yes"):
        monkeypatch.setenv("DPANON_INSECURE_FAST", value)
        assert SystemNoise().sampler == "exact"


def test_importing_the_core_is_light():
    program = (
        "import sys, dpanon.privacy; from dpanon.privacy import Guarantee, BottleneckFrames, floors; "
        "assert not {'torch', 'dp_accounting', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=os.getcwd(), env={**os.environ, "PYTHONPATH": "."})
