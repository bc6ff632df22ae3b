"""Figures computed by two independent implementations each; the numbers are those of the reference table.

All 60 are here, each to 1e-6 relative but for what is said where it is tested:
31-35, 38, 40, 42 to 2e-4, since the grid of losses (bounded in time and memory) errs upwards;
37, 39, 41 by dp-accounting's fractional orders, which our whole orders bound from above;
47 for its ln q alone: the table has no second implementation of its Renyi divergence;
55, 56, 59 to the digits that the table prints; 60 pins a fault of dp-accounting's event interface.
"""

import math
import re

import numpy as np
import pytest

from dpanon.privacy import accounting, audit, capacity, floors, pate, psn, rdp
from dpanon.privacy.dpsgd import DpSgd
from dpanon.privacy.guarantee import Part

EXACT = {"rel": 1e-6, "abs": 1e-9}


@pytest.mark.parametrize(
    "number, epsilon, order, value",
    [
        (1, 1.0, 2.0, 0.61912363),
        (2, 1.0, 1.0, 0.3678794412),
        (3, 0.1, 10.0, 0.04271518247),
        (4, 10.0, 1.5, 9.424635856),
        (5, 2.0, 32.0, 1.978148425),
        (6, 0.1, 1.0, 0.004837418036),
        (8, 10.0, 1.0, 9.0000454),
    ],
)
def test_laplace_rdp(number, epsilon, order, value):
    assert rdp.laplace(epsilon, order) == pytest.approx(value, **EXACT)


def test_7_laplace_zcdp_bounds_every_order():
    assert rdp.laplace(1.0, 1.0) == pytest.approx(0.3678794412, **EXACT)
    orders = 1.0 + 10.0 ** np.linspace(-6, 4, 50)
    assert max(rdp.laplace(1.0, a) / a for a in orders) <= rdp.laplace(1.0, 1.0) + 1e-12


def test_10_delta_of_unit_gdp():
    assert accounting.gdp_delta(1.0, 1.0) == pytest.approx(0.1269367375, **EXACT)


@pytest.mark.parametrize(
    "number, mu, delta, value",
    [
        (11, 1.0, 1e-5, 4.377178096),
        (12, 0.5, 1e-6, 2.25408465),
        (13, 2.0, 1e-5, 9.997256146),
        (14, 0.1, 1e-5, 0.3406693647),
    ],
)
def test_gdp_epsilon(number, mu, delta, value):
    assert accounting.gdp_epsilon(mu, delta) == pytest.approx(value, **EXACT)
    assert accounting.gdp_mu(value, delta) == pytest.approx(mu, rel=1e-6)


@pytest.mark.parametrize(
    "number, epsilon, delta, value",
    [(15, 1.0, 1e-5, 3.730631635), (16, 8.0, 1e-5, 0.6002290722), (17, 0.1, 1e-6, 36.30469043)],
)
def test_analytic_gaussian(number, epsilon, delta, value):
    assert accounting.analytic_gaussian_sigma(epsilon, delta, 1.0) == pytest.approx(value, **EXACT)


def test_18_the_classic_formula_wastes_a_fifth():
    classic = math.sqrt(2.0 * math.log(1.25 / 1e-5))
    assert classic == pytest.approx(4.844805263, **EXACT)
    assert accounting.analytic_gaussian_sigma(1.0, 1e-5, 1.0) < 0.78 * classic


@pytest.mark.parametrize(
    "number, floor, value",
    [
        (19, floors.eer_pure(1.0), 0.2689414214),
        (20, floors.eer_approx(1.0, 0.01), 0.2662520072),
        (21, floors.eer_gdp(1.0), 0.3085375387),
        (22, floors.eer_laplace(1.0), 0.3032653299),
        (23, floors.eer_laplace(3.0), 0.1115650801),
        (24, floors.eer_gdp(0.1), 0.4800611942),
        (25, floors.eer_gdp(0.2), 0.4601721627),
        (53, floors.reid_pure(3.0, 20), 0.513886683),
        (54, floors.auc_gdp(1.0), 0.7602499389),
    ],
)
def test_closed_floors(number, floor, value):
    assert floor == pytest.approx(value, **EXACT)


def test_26_total_variation_of_laplace():
    assert accounting.loss_distribution([Part("laplace", 1.0)], 1e-3).get_delta_for_epsilon(0.0) == pytest.approx(
        0.3934693403, rel=1e-5
    )


def test_27_total_variation_of_gdp():
    assert accounting.gdp_delta(1.0, 0.0) == pytest.approx(0.3829249225, **EXACT)
    assert 2.0 * floors.normal_tail(-0.5) - 1.0 == pytest.approx(0.3829249225, **EXACT)


@pytest.mark.parametrize("number, epsilon, value", [(28, 1.0, 0.1585650787), (29, 8.0, 5.700429522)])
def test_amplification_of_one_pure_release(number, epsilon, value):
    assert math.log1p(0.1 * math.expm1(epsilon)) == pytest.approx(value, **EXACT)


def test_30_best_composition_of_pure_dp():
    assert accounting.pure_composition_epsilon(0.1, 100, 1e-6) == pytest.approx(4.774567588, **EXACT)
    assert accounting.epsilon([Part("pure", 0.1, 100)], 1e-6) == pytest.approx(4.774567588, **EXACT)
    by_distribution = accounting.loss_distribution([Part("pure", 0.1, 100)], 1e-4).get_delta_for_epsilon(4.7753)
    assert by_distribution == pytest.approx(1e-6, rel=0.1)


@pytest.mark.parametrize(
    "number, epsilon, times, value",
    [
        (31, 0.1, 100, 4.692667),
        (32, 0.01, 1500, 1.699640),
        (33, 1.0, 100, 71.54553),
        (34, 1.0, 1500, 697.6509),
        (35, 10.0, 100, 964.7536),
    ],
)
def test_composition_of_laplace_frames(number, epsilon, times, value):
    tight = accounting.epsilon([Part("laplace", epsilon, times)], 1e-6)
    assert tight == pytest.approx(value, rel=2e-4)
    assert tight >= value * (1.0 - 2e-7)  # the grid of losses errs on the safe side
    assert tight <= times * epsilon


def test_36_rdp_of_laplace_frames_is_looser():
    orders = 1.0 + 10.0 ** np.linspace(-4, 3, 2000)
    log_delta = math.log(1e-6)
    by_rdp = min(
        100 * rdp.laplace(0.1, a) + math.log1p(-1.0 / a) - (log_delta + math.log(a)) / (a - 1.0)
        for a in orders.tolist()
    )
    assert by_rdp == pytest.approx(4.984174, rel=1e-4)
    assert accounting.epsilon([Part("laplace", 0.1, 100)], 1e-6) < by_rdp


def test_55_and_56_linkability():
    assert floors.linkability_gdp(1.0) == pytest.approx(0.29349, abs=1e-5)
    assert floors.linkability_laplace(1.0) == pytest.approx(0.28211, abs=1e-5)


def test_58_clopper_pearson():
    from scipy import stats

    assert stats.beta.ppf(0.05, 90, 11) == pytest.approx(0.8362823767, **EXACT)
    bound = audit.event(90, 0, 100, 1.0, false_alarm=0.1).measured
    assert math.exp(bound) == pytest.approx(0.8362823767 / (1.0 - 0.05 ** (1 / 100)), rel=1e-6)


def test_59_information_ceiling():
    assert capacity.pure_nats(1.0) == pytest.approx(0.12330, abs=1e-5)
    assert capacity.pure_nats(10.0) == pytest.approx(6.69782, abs=1e-5)


@pytest.mark.parametrize("epsilon, bits", [(0.1, 0.0018), (1.0, 0.1779), (2.0, 0.6845), (5.0, 3.488), (10.0, 9.663)])
def test_ceiling_table(epsilon, bits):
    assert capacity.pure_nats(epsilon) * capacity.NAT == pytest.approx(bits, rel=0.02)
    grid = np.exp(np.linspace(-2.0 * epsilon - 1.0, 0.0, 200_001))
    low = 1.0 / (1.0 + grid * math.expm1(epsilon))
    by_search = (grid * math.exp(epsilon) * low * epsilon + np.log(low)).max()
    assert capacity.pure_nats(epsilon) == pytest.approx(by_search, rel=1e-6)


@pytest.mark.parametrize("epsilon, bits", [(1.0, 0.1537), (2.0, 0.5307), (5.0, 2.283), (10.0, 5.78)])
def test_laplace_ceiling_table(epsilon, bits):
    assert capacity.laplace_frame_nats(epsilon) * capacity.NAT == pytest.approx(bits, rel=1e-3)
    assert capacity.laplace_frame_nats(epsilon) < capacity.pure_nats(epsilon)


def test_converse_of_the_words():
    assert capacity.pure_epsilon_for(52.0) == pytest.approx(57.0, abs=0.1)
    assert capacity.pure_epsilon_for(104.0) == pytest.approx(109.7, abs=0.1)
    assert capacity.gaussian_mu_for(104.0) == pytest.approx(28.8, abs=0.1)
    assert capacity.gaussian_ball_nats(28.8) == pytest.approx(104.0, rel=0.01)
    assert capacity.pure_nats(capacity.pure_epsilon_for(3.0)) == pytest.approx(3.0)
    assert capacity.pure_nats(800.0) == pytest.approx(800.0 - math.log(800.0) - 1.0)


# The table of floors: epsilon, then pure and Laplace values.
FLOORS = [
    # eps, EER pure, EER Lap, AUC pure, AUC Lap, D pure, D Lap, re-ID 20 pure, Lap
    (0.5, 0.3775, 0.3894, 0.6225, 0.6209, 0.1525, 0.1367, 0.0798, 0.0798),
    (1.0, 0.2689, 0.3033, 0.7311, 0.7241, 0.3378, 0.2821, 0.1252, 0.1252),
    (2.0, 0.1192, 0.1839, 0.8808, 0.8647, 0.6708, 0.5376, 0.2800, 0.2800),
    (4.0, 0.0180, 0.0677, 0.9820, 0.9725, 0.9467, 0.8263, 0.7418, 0.7050),
    (8.0, 3.4e-4, 0.0092, 0.99966, 0.99916, 0.9990, 0.9765, 0.9937, 0.9601),
    (10.0, 4.5e-5, 0.0034, 0.99995, 0.99986, 0.9999, 0.9913, 0.9991, 0.9853),
]


@pytest.mark.parametrize("row", FLOORS, ids=lambda row: f"epsilon {row[0]}")
def test_floor_table_pure_and_laplace(row):
    epsilon = row[0]
    found = (
        floors.eer_pure(epsilon),
        floors.eer_laplace(epsilon),
        floors.auc_pure(epsilon),
        floors.auc_laplace(epsilon),
        floors.linkability_pure(epsilon),
        floors.linkability_laplace(epsilon),
        floors.reid_pure(epsilon, 20),
        floors.reid_laplace(epsilon, 20),
    )
    assert found == pytest.approx(row[1:], abs=7e-5)


@pytest.mark.parametrize(
    "mu, eer, auc, link, reid20, reid921",
    [
        (0.1, 0.48006, 0.52819, 0.02119, 0.06054, 0.001509),
        (0.2, 0.46017, 0.55623, 0.04478, 0.07263, 0.002078),
        (0.5, 0.40129, 0.63816, 0.12818, 0.11880, 0.005130),
        (1.0, 0.30854, 0.76025, 0.29349, 0.22852, 0.019172),
        (2.0, 0.15866, 0.92135, 0.61654, 0.51834, 0.133905),
        (3.0, 0.06681, 0.98305, 0.83457, 0.77148, 0.412519),
    ],
)
def test_floor_table_gdp(mu, eer, auc, link, reid20, reid921):
    found = (floors.eer_gdp(mu), floors.auc_gdp(mu), floors.linkability_gdp(mu))
    assert found == pytest.approx((eer, auc, link), abs=1e-5)
    assert (floors.reid_gdp(mu, 20), floors.reid_gdp(mu, 921)) == pytest.approx((reid20, reid921), rel=4e-4)


def test_reid_laplace_among_many():
    assert floors.reid_laplace(8.0, 921) == pytest.approx(0.722, abs=1e-3)
    assert floors.reid_laplace(10.0, 921) == pytest.approx(0.898, abs=1e-3)


def test_targets_of_the_table():
    assert floors.epsilon_for_eer_pure(0.40) == pytest.approx(0.4055, abs=1e-4)
    assert floors.epsilon_for_eer_laplace(0.40) == pytest.approx(0.4463, abs=1e-4)
    assert floors.mu_for_eer(0.40) == pytest.approx(0.5067, abs=1e-4)
    assert floors.mu_for_eer(0.45) == pytest.approx(0.2513, abs=1e-4)
    assert floors.max_log10_likelihood_ratio(1.0) == pytest.approx(0.4343, abs=1e-4)


def test_general_floor_agrees_with_the_closed_forms():
    laplace = [Part("laplace", 3.0)]
    assert accounting.eer_floor(laplace) == pytest.approx(0.1115650801, rel=1e-4)
    assert accounting.eer_floor(laplace) <= 0.1115650801
    by_gdp = floors.eer_from_delta(lambda epsilon: accounting.gdp_delta(1.0, epsilon), 20.0)
    assert by_gdp == pytest.approx(0.3085375387, rel=1e-6)


def test_9_and_48_and_49_gaussian_renyi_divergences():
    assert rdp.gaussian(0.5, 8.0) == pytest.approx(1.0, **EXACT)
    assert pate.votes_rdp(math.log(0.9), 40.0, 8.0) == pytest.approx(0.005, **EXACT)
    assert pate.check_rdp(math.log(0.5), 150.0, 8.0) == pytest.approx(1.7777778e-4, rel=1e-6)


@pytest.mark.parametrize(
    "number, rate, sigma, steps, delta, value",
    [
        (37, 0.01, 1.0, 10_000, 1e-5, 6.712757),
        (39, 256 / 6e4, 1.1, 14_063, 1e-5, 2.596656),
        (41, 0.001, 0.8, 20_000, 1e-6, 1.897196),
    ],
)
def test_dp_sgd_by_renyi(number, rate, sigma, steps, delta, value):
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
    from dp_accounting.rdp import RdpAccountant

    theirs = RdpAccountant()  # add or remove one
    theirs.compose(PoissonSampledDpEvent(rate, GaussianDpEvent(sigma)), steps)
    assert theirs.get_epsilon(delta) == pytest.approx(value, **EXACT)
    ours = accounting.renyi_epsilon(DpSgd(sigma, rate, steps).guarantee().parts, delta)
    assert value * (1.0 - 1e-6) <= ours <= 1.003 * value


@pytest.mark.parametrize(
    "number, rate, sigma, steps, delta, value",
    [
        (38, 0.01, 1.0, 10_000, 1e-5, 6.187745),
        (40, 256 / 6e4, 1.1, 14_063, 1e-5, 2.381779),
        (42, 0.001, 0.8, 20_000, 1e-6, 1.286152),
    ],
)
def test_dp_sgd_by_loss_distribution(number, rate, sigma, steps, delta, value):
    found = DpSgd(sigma, rate, steps).guarantee().epsilon(delta)
    assert found == pytest.approx(value, rel=2e-4)


@pytest.mark.parametrize(
    "number, votes, sigma, log_q",
    [
        (43, [240, 5, 5] + 7 * [0], 40.0, -9.115466409),
        (45, [200, 30, 20] + 7 * [0], 40.0, -5.659945978),
        (47, [4800, 100, 50, 50], 200.0, -141.6971834),
    ],
)
def test_gnmax_flips(number, votes, sigma, log_q):
    assert pate.log_flip(votes, sigma) == pytest.approx(log_q, rel=1e-9)


@pytest.mark.parametrize(
    "number, votes, value", [(44, [240, 5, 5] + 7 * [0], 4.75095163e-5), (46, [200, 30, 20] + 7 * [0], 1.085641731e-3)]
)
def test_gnmax_renyi_divergence(number, votes, value):
    assert pate.votes_rdp(pate.log_flip(votes, 40.0), 40.0, 8.0) == pytest.approx(value, rel=1e-6)


def test_50_confident_gnmax_answers():
    assert math.exp(pate.log_answered([240, 5, 5], 200.0, 150.0)) == pytest.approx(0.6051370895, **EXACT)


@pytest.mark.parametrize(
    "number, teachers, exact, adaptive, published, every",
    [(51, 10, 20.40326426, 27.418, 1.685, 91.817), (52, 3, 11.11544124, 14.219, 3.047, 16.676)],
)
def test_psn(number, teachers, exact, adaptive, published, every):
    setting = (1.0, teachers, 1.0 / teachers, 1e-5)
    assert psn.epsilon(*setting) == pytest.approx(exact, rel=1e-8)
    assert psn.adaptive_epsilon(*setting) == pytest.approx(adaptive, abs=1e-3)
    assert psn.published_epsilon(*setting) == pytest.approx(published, abs=1e-3)
    assert psn.all_teachers_epsilon(1.0, teachers, 1e-5) == pytest.approx(every, abs=1e-3)


def test_57_variance_of_the_discrete_laplace_law():
    ratio = math.exp(-1.0 / 8.0)
    assert 2.0 * ratio / (1.0 - ratio) ** 2 == pytest.approx(127.8334635, **EXACT)
    n = np.arange(-2000, 2001)
    mass = (1.0 - ratio) / (1.0 + ratio) * ratio ** np.abs(n)
    assert (n**2 * mass).sum() == pytest.approx(127.8334635, **EXACT)


def test_60_replace_one_of_the_event_interface_is_still_wrong():
    """When this fails the fault is mended upstream; the low-level constructors stay what we use."""
    from dp_accounting import GaussianDpEvent, NeighboringRelation
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    found = []
    for accountant in (RdpAccountant, PLDAccountant):
        theirs = accountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
        found.append(theirs.compose(GaussianDpEvent(1.0)).get_epsilon(1e-5))
    assert found == pytest.approx([4.7285, 9.9973], abs=1e-4)
    assert accounting.gdp_epsilon(2.0, 1e-5) == pytest.approx(found[1], abs=1e-4)


def test_all_sixty_are_here():
    numbers = set()
    for name, test in globals().items():
        if not name.startswith("test_"):
            continue
        numbers |= {int(digits) for digits in re.findall(r"(?<=_)\d+(?=_)", name)}
        for mark in getattr(test, "pytestmark", ()):
            if mark.args[0].startswith("number"):
                numbers |= {case[0] for case in mark.args[1]}
    assert numbers == set(range(1, 61))
