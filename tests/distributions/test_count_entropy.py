"""Entropy and collision of draws whose probabilities nobody can evaluate."""

import numpy as np
import oracles_engines as oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import labelsure as ls

CORRECTED = ("miller_madow", "grassberger", "chao_shen")
ESTIMATORS = ("plugin", *CORRECTED)


def draw(seed, n_labels, size, n_samples=3):
    """Draws of a few labels, the others never set: many equal, some not, in turn."""
    rng = np.random.default_rng(seed)
    often = rng.random((n_samples, 1, n_labels)) < 3 / n_labels
    p = np.where(often, rng.random((n_samples, 1, n_labels)), 0.01)
    return (rng.random((n_samples, size, n_labels)) < p).astype(int)


draw_settings = st.tuples(
    st.integers(0, 10**6), st.sampled_from([1, 2, 5, 63, 64, 130]), st.integers(2, 40)
)


@given(draw_settings, st.sampled_from(ESTIMATORS))
def test_entropy_is_that_of_the_formula(settings, name):
    draws = draw(*settings)
    profile = ls.LabelsetTable.from_samples(draws, entropy=name).profile()
    most = draws.shape[2] * np.log(2)
    expected = [getattr(oracles, name)(oracles.counted(one.tolist())) for one in draws]
    assert_allclose(profile.entropy, np.clip(expected, 0, most), atol=1e-12)
    assert_array_equal(profile.method, [name] * 3)


@given(draw_settings, st.sampled_from(CORRECTED))
def test_collision_is_the_share_of_equal_pairs(settings, name):
    draws = draw(*settings)
    profile = ls.LabelsetTable.from_samples(draws, entropy=name).profile()
    expected = [oracles.share_of_equal_pairs(one.tolist()) for one in draws]
    assert_allclose(profile.collision, np.clip(expected, 2.0 ** -draws.shape[2], 1), rtol=1e-12)


@given(draw_settings)
def test_plugin_keeps_the_shares_as_they_are(settings):
    draws = draw(*settings)
    table = ls.LabelsetTable.from_samples(draws)
    shares = [np.array(oracles.counted(one.tolist())) / draws.shape[1] for one in draws]
    assert_allclose(table.profile().collision, [(share**2).sum() for share in shares])
    assert_array_equal(table.profile().method, ["plugin"] * 3)


@given(draw_settings, st.sampled_from(CORRECTED))
def test_only_entropy_and_collision_depend_on_the_estimator(settings, name):
    draws = draw(*settings)
    plain = ls.LabelsetTable.from_samples(draws)
    other = ls.LabelsetTable.from_samples(draws, entropy=name)
    assert_array_equal(plain.profile().log_top, other.profile().log_top)
    assert_array_equal(plain.profile().log_runner_up, other.profile().log_runner_up)
    assert_array_equal(plain.mode(), other.mode())
    assert_array_equal(plain.marginals(), other.marginals())


@pytest.mark.parametrize("name", ESTIMATORS)
def test_slices_keep_the_estimator(name):
    table = ls.LabelsetTable.from_samples(draw(0, 70, 9), entropy=name)
    whole = table.profile()
    for rows in (slice(1, 3), [2, 0]):
        some = table[rows].profile()
        assert_array_equal(some.method, whole.method[rows])
        assert_array_equal(some.entropy, whole.entropy[rows])
        assert_array_equal(some.log_collision, whole.log_collision[rows])
    assert len(table[:0].profile()) == 0


def test_singletons_only_leave_chao_shen_finite():
    n, n_labels = 6, 20
    draws = np.eye(n, n_labels)[np.newaxis]
    profile = ls.LabelsetTable.from_samples(draws, entropy="chao_shen").profile()
    p = 1 / n**2  # coverage 1/n of a share of 1/n
    assert_allclose(profile.entropy, [-n * p * np.log(p) / (1 - (1 - p) ** n)])
    assert_allclose(profile.collision, [2.0**-n_labels])  # no equal pair: clipped


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("n_labels", [3, 2000])
def test_equal_draws_have_no_entropy(name, n_labels):
    draws = np.ones((2, 8, n_labels))
    profile = ls.LabelsetTable.from_samples(draws, entropy=name).profile()
    assert_allclose(profile.entropy, 0, atol=1e-12)
    assert_allclose(profile.collision, 1)


@pytest.mark.parametrize("name", CORRECTED)
def test_estimates_stay_within_what_so_many_labels_can_have(name):
    all_once = ls.LabelsetTable.from_samples([[[0, 0], [0, 1], [1, 0], [1, 1]]], entropy=name)
    assert 0 <= all_once.profile().entropy[0] <= 2 * np.log(2)
    assert_allclose(all_once.profile().collision, 0.25)
    frame = ls.confidence(all_once)
    assert ((frame >= 0) & (frame <= 1)).all(axis=None)


def test_corrections_take_bias_away():
    """At 10 fair labels and 200 draws the plain entropy is a fifth too low."""
    rng = np.random.default_rng(0)
    draws = rng.integers(0, 2, size=(50, 200, 10))
    truth = 10 * np.log(2)
    bias = {
        name: ls.LabelsetTable.from_samples(draws, entropy=name).profile().entropy.mean() - truth
        for name in ESTIMATORS
    }
    assert bias["plugin"] < -1.5
    assert all(abs(bias[name]) < abs(bias["plugin"]) - 0.4 for name in CORRECTED)
    assert abs(bias["chao_shen"]) < 0.1


def test_collision_of_few_draws_is_unbiased():
    rng = np.random.default_rng(1)
    p = np.array([0.9, 0.2, 0.6])
    draws = (rng.random((4000, 5, 3)) < p).astype(int)
    truth = np.prod(p**2 + (1 - p) ** 2)
    pairs = np.array(
        [oracles.share_of_equal_pairs(one) for one in draws.tolist()]
    )  # the clipping at 1/8 would add a bias of its own
    table = ls.LabelsetTable.from_samples(draws, entropy="grassberger")
    assert_allclose(table.profile().collision, np.maximum(pairs, 1 / 8))
    assert abs(pairs.mean() - truth) < 4 * pairs.std() / np.sqrt(len(pairs))


def test_unknown_estimators_are_refused_with_the_nearest():
    with pytest.raises(
        ls.errors.UnknownNameError, match=r"'chao-shen'.*Did you mean 'chao_shen'\?"
    ):
        ls.LabelsetTable.from_samples([[[0, 1]]], entropy="chao-shen")


@pytest.mark.parametrize("name", CORRECTED)
def test_one_draw_has_no_pairs(name):
    with pytest.raises(ls.InputError, match=rf"'{name}' needs at least two draws .*, got 1\."):
        ls.LabelsetTable.from_samples([[[0, 1]]], entropy=name)
    assert ls.LabelsetTable.from_samples([[[0, 1]]]).profile().entropy == 0
