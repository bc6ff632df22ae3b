"""What is clipped is inside its set exactly, not up to rounding; and no input can break it."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dpanon.privacy import BottleneckFrames, PitchBox, PrivacyError, SpeakerGaussian, audit, clip

ROWS = audit.awkward_rows(40, 16)
ANY_FLOAT = st.floats(width=64, allow_nan=True, allow_infinity=True)
ANY_ROWS = arrays.arrays(np.float64, arrays.array_shapes(min_dims=2, max_dims=2, max_side=7), elements=ANY_FLOAT)
QUICK = settings(max_examples=60, deadline=None)


def inside(rows, norm, radius):
    return np.isfinite(rows).all() and all(norm(row) <= Fraction(radius) for row in rows)


@pytest.mark.parametrize("project", [clip.l1_sphere, clip.l1_ball, clip.simplex])
@QUICK
@given(ANY_ROWS)
def test_every_row_is_in_the_l1_ball_exactly(project, rows):
    assert inside(project(rows), clip.exact_l1_norm, 1)


@pytest.mark.parametrize("radius", [1e-20, 0.3, 18.35, 1e20])
@QUICK
@given(ANY_ROWS)
def test_every_row_is_in_the_l2_ball_exactly(radius, rows):
    assert inside(clip.l2_ball(rows, radius), clip.exact_squared_l2_norm, Fraction(radius) ** 2)


@QUICK
@given(ANY_ROWS)
def test_the_box_holds_every_entry_and_no_negative_zero(rows):
    boxed = clip.unit_box(rows)
    assert (boxed >= 0).all() and (boxed <= 1).all() and not np.signbit(boxed).any()


def test_dense_float32_frames_are_inside_where_float32_normalisation_is_not():
    rows = np.random.default_rng(0).standard_normal((200, 256)).astype(np.float32)
    naive = rows / np.abs(rows).sum(-1, keepdims=True)
    assert any(clip.exact_l1_norm(row) > 1 for row in naive)
    assert inside(clip.l1_sphere(rows), clip.exact_l1_norm, 1)


def test_awkward_rows_keep_what_is_finite_in_them():
    sphere = clip.l1_sphere(ROWS)
    assert inside(sphere, clip.exact_l1_norm, 1)
    norms = np.abs(sphere).sum(-1)
    assert norms[0] == 0  # zero stays zero
    assert norms[[1, 2, 3, 5, 6, 7, 8, 9]] == pytest.approx(1.0, abs=1e-11)
    assert sphere[1, 5] == pytest.approx(1.0) and sphere[1, 0] == 0  # NaN -> 0 before the clip
    assert norms[4] < 1e-280  # denormal: too small to be told from zero, so not blown up
    assert sphere[3, -1] == pytest.approx(sphere[8, -1])  # 1e308 * ramp has the direction of the ramp


def test_balls_leave_what_is_inside_alone():
    rows = np.array([[0.25, -0.5], [0.0, 0.0]])
    assert np.array_equal(clip.l1_ball(rows), rows)
    assert np.array_equal(clip.l2_ball(rows), rows)


@pytest.mark.parametrize("epsilon_free", [clip.l1_sphere, clip.l1_ball, clip.l2_ball, clip.simplex])
def test_clipping_twice_changes_nothing_that_could_be_heard(epsilon_free):
    once = epsilon_free(ROWS)
    assert np.abs(epsilon_free(once) - once).max() < 1e-11


def test_each_diameter_is_reached_by_its_pair_and_not_exceeded():
    rng = np.random.default_rng(1)
    a, b = (clip.l1_sphere(rng.standard_normal((500, 5)) ** 7) for _ in range(2))
    assert np.abs(a - b).sum(-1).max() <= clip.l1_ball_diameter(1.0)
    a, b = (clip.l2_ball(9 * rng.standard_normal((500, 3)), 2.5) for _ in range(2))
    assert np.linalg.norm(a - b, axis=-1).max() <= clip.l2_ball_diameter(2.5)
    for x, y, l1, l2 in (
        (*clip.l1_ball_pair(5, 3.0), clip.l1_ball_diameter(3.0), None),
        (*clip.l2_ball_pair(5, 3.0), None, clip.l2_ball_diameter(3.0)),
        (*clip.unit_box_pair(2, 30), clip.unit_box_l1_diameter(2, 30), clip.unit_box_l2_diameter(2, 30)),
        (*clip.simplex_pair(4), clip.simplex_l1_diameter(), clip.simplex_l2_diameter()),
    ):
        assert l1 is None or np.abs(x - y).sum() == l1
        assert l2 is None or math.isclose(np.linalg.norm(x - y), l2)


def test_a_pair_of_disjoint_support_reaches_the_l1_diameter_too():
    rows = clip.l1_sphere(np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert np.abs(rows[0] - rows[1]).sum() == pytest.approx(clip.l1_ball_diameter(1.0))


def test_any_stride_precision_and_container_gives_the_same_frame():
    rows = np.arange(24.0).reshape(4, 6) % 5 - 2
    want = clip.l1_sphere(rows)
    clipper = BottleneckFrames(1.0, dim=6).clip
    for same in (
        np.asfortranarray(rows),
        np.repeat(rows, 2, axis=1)[:, ::2],
        rows.astype(np.float16),
        rows.astype(np.float32),
        rows.astype(np.longdouble),
        torch.tensor(rows),
        torch.tensor(rows).half(),
        torch.tensor(rows).bfloat16(),
        torch.tensor(rows.T.copy()).T,
        torch.tensor(rows, requires_grad=True),
        rows[::-1][::-1],
    ):
        assert np.array_equal(clipper(same), want)


BAD_ARRAYS = [
    [[1.0, 2.0]],
    None,
    "x",
    np.ones((2, 2), dtype=np.int64),
    np.ones((2, 2), dtype=bool),
    np.ones((2, 2), dtype=complex),
    np.array([["a", "b"]]),
    np.ma.masked_array(np.ones((2, 2)), mask=True),
    np.ones(2),
    np.ones((2, 3)),
    np.ones((1, 2, 2)),
    np.ones((0, 2)),
    np.float64(3.0),
    torch.ones(2, 2, dtype=torch.long),
    torch.ones(2, 2).to_sparse(),
    torch.ones(2, 2, device="meta"),
    torch.ones(0, 2),
]


class NoNoiseYet:
    releasable, sampler = True, "exact"

    def add_laplace(self, *args):
        raise AssertionError("noise was drawn before the input was checked")

    add_gaussian = add_laplace


@pytest.mark.parametrize("bad", BAD_ARRAYS, ids=lambda x: type(x).__name__)
def test_a_bad_array_is_refused_before_any_noise_is_drawn(bad):
    with pytest.raises(PrivacyError):
        BottleneckFrames(1.0, dim=2).release(bad, NoNoiseYet())
    with pytest.raises(PrivacyError):
        PitchBox(1.0, channels=4).release(bad, NoNoiseYet())
    with pytest.raises(PrivacyError):
        SpeakerGaussian(1.0, 1.0, dim=5).release(bad, NoNoiseYet())


BAD_NUMBERS = [0, 0.0, -1.0, math.inf, -math.inf, math.nan, True, False, "1", None, [1.0], 1e-300, 1 + 0j, np.bool_(1)]


@pytest.mark.parametrize("bad", BAD_NUMBERS, ids=repr)
def test_a_bad_parameter_is_refused(bad):
    for make in (
        lambda: BottleneckFrames(bad),
        lambda: PitchBox(bad, 1),
        lambda: SpeakerGaussian(bad, 1.0, 4),
        lambda: SpeakerGaussian(1.0, bad, 4),
        lambda: SpeakerGaussian.as_published(bad, 1.0, 4),
    ):
        with pytest.raises(PrivacyError):
            make()


@pytest.mark.parametrize("bad", [0, -1, 2.0, True, "3", None])
def test_a_bad_size_is_refused(bad):
    for make in (
        lambda: BottleneckFrames(1.0, bad),
        lambda: PitchBox(1.0, bad),
        lambda: SpeakerGaussian(1.0, 1.0, bad),
        lambda: PitchBox(1.0, 1).scale(bad),
    ):
        with pytest.raises(PrivacyError):
            make()


def test_the_message_says_what_to_do_instead():
    with pytest.raises(PrivacyError, match="use a model without a noise layer"):
        BottleneckFrames(float("inf"))
