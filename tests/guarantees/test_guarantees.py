"""The statistical claims themselves, on simulated truth."""

import numpy as np
import pytest
from scipy.stats import binom
from simulated_population import Population

import labelsure as ls
from labelsure.estimation._estimator import AccuracyEstimator
from labelsure.guarantees._policy import AcceptPolicy, TargetWarning
from labelsure.metrics.registry import get_metric

N_REPEATS = 500

pytestmark = pytest.mark.jit_only


@pytest.fixture(autouse=True)
def no_advice(monkeypatch):
    """Leave out the bootstrap for the message of each policy that accepts nothing."""
    monkeypatch.setattr("labelsure.guarantees._policy.AcceptPolicy._advise", lambda *settings: "")


def values_of(table, metric):
    counts = (table[name].to_numpy() for name in ("tp", "fp", "fn", "tn"))
    return get_metric(metric).values(*counts, empty=1.0)


def coverage(estimator, population, n_fit, n_batch):
    rng = np.random.default_rng(0)
    for_fits = population.draw(N_REPEATS * n_fit, rng)
    batches = population.draw(N_REPEATS * n_batch, rng)
    means = values_of(batches, estimator.metric).reshape(N_REPEATS, n_batch).mean(axis=1)
    covered = 0
    for repeat, mean in enumerate(means):
        estimator.fit(for_fits[repeat * n_fit : (repeat + 1) * n_fit])
        found = estimator.estimate(
            batches[repeat * n_batch : (repeat + 1) * n_batch], shift="ignore"
        )
        covered += found.low <= mean <= found.high
    return covered / N_REPEATS


@pytest.mark.parametrize(
    ("metric", "settings", "n_fit", "n_batch"),
    [
        ("jaccard", {}, 300, 200),
        ("jaccard", {"features": "full"}, 150, 300),
        ("exact", {"features": "mix"}, 200, 50),
        ("hamming", {"features": "SE"}, 100, 100),
    ],
)
@pytest.mark.slow
def test_the_interval_covers_the_mean_accuracy_of_the_batch(metric, settings, n_fit, n_batch):
    estimator = AccuracyEstimator(metric, **settings)
    covered = coverage(estimator, Population(metric), n_fit, n_batch)
    assert covered >= 0.92
    # Nor is it so wide that it says nothing.
    assert covered <= 0.995


def failures(population, scores, target, make_policy, n_fit):
    """How often the accepted have a true mean accuracy below the target."""
    rng = np.random.default_rng(1)
    # What is drawn below comes from these draws, whose means are not quite the expectations.
    drawn = get_metric(population.metric).values(*np.moveaxis(population.counts, 1, 0), empty=1.0)
    true = drawn.mean(axis=0)
    failed = reached = 0
    for _ in range(N_REPEATS):
        rows = rng.integers(len(scores), size=n_fit)
        draws = rng.integers(len(population.counts), size=n_fit)
        values = get_metric(population.metric).values(
            *population.counts[draws, :, rows].T, empty=1.0
        )
        policy = make_policy(target).fit(scores[rows], values)
        accepted = policy.accept(scores)
        reached += policy.reached_
        failed += bool(accepted.any()) and true[accepted].mean() < target
    return failed, reached


@pytest.mark.parametrize("grid", [None, np.arange(20) / 20])
@pytest.mark.parametrize(
    ("metric", "outcome", "target"),
    [("jaccard", "bounded", 0.75), ("exact", "binary", 0.6), ("hamming", "bounded", 0.87)],
)
@pytest.mark.filterwarnings("ignore::labelsure.TargetWarning")
@pytest.mark.slow
def test_the_target_fails_no_more_often_than_the_level_allows(metric, outcome, target, grid):
    population = Population(metric)
    rng = np.random.default_rng(0)
    estimator = AccuracyEstimator(metric, "SE").fit(population.draw(300, rng))
    scores = estimator.predict(population.table)
    level = 0.9
    failed, reached = failures(
        population,
        scores,
        target,
        lambda target: AcceptPolicy(target, confidence=level, outcome=outcome, grid=grid),
        n_fit=3000,
    )
    assert failed <= binom.ppf(0.999, N_REPEATS, 1 - level)
    assert reached > N_REPEATS / 2  # else nothing was tested


@pytest.mark.parametrize("grid", [None, np.arange(20) / 20])
@pytest.mark.filterwarnings("ignore::labelsure.TargetWarning")
def test_scores_that_know_nothing_fail_no_more_often_either(grid):
    # The hardest null: at every threshold the true mean is a hair below the target.
    level, target = 0.9, 0.7
    rng = np.random.default_rng(0)
    failed = 0
    for _ in range(N_REPEATS):
        score = rng.uniform(size=500)
        value = (rng.uniform(size=500) < target - 1e-9).astype(float)
        failed += (
            AcceptPolicy(target, confidence=level, outcome="binary", grid=grid)
            .fit(score, value)
            .reached_
        )
    assert failed <= binom.ppf(0.999, N_REPEATS, 1 - level)
    assert failed > 0  # the test has a chance to fail


@pytest.mark.filterwarnings("ignore::labelsure.TargetWarning")
@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, size: rng.beta(90, 10, size),  # little variance, as Hamming has it
        lambda rng, size: np.where(rng.random(size) < 0.85, 1.0, rng.choice([0, 0.5], size)),
    ],
    ids=["little variance", "nearly binary"],
)
def test_bounded_accuracies_below_the_target_are_rarely_accepted(draw):
    rng, level = np.random.default_rng(0), 0.9
    target = draw(np.random.default_rng(1), 2_000_000).mean() + 1e-5
    failed = 0
    for _ in range(N_REPEATS):
        score, value = rng.uniform(0.8, 1, size=4000), draw(rng, 4000)
        failed += AcceptPolicy(target, confidence=level).fit(score, value).reached_
    assert failed <= binom.ppf(0.999, N_REPEATS, 1 - level)
    assert failed > 0


@pytest.mark.parametrize("outcome", ["bounded", "binary"])
@pytest.mark.parametrize("digits", [15, 1], ids=["distinct scores", "tied scores"])
@pytest.mark.parametrize("slope", [0.6, -0.6], ids=["scores that tell", "scores that mislead"])
@pytest.mark.slow
def test_the_bound_of_a_coverage_holds(outcome, digits, slope):
    rng, level, n_failed, bounds = np.random.default_rng(0), 0.9, 0, []
    everything = np.round(rng.uniform(size=400_000), digits)

    def chance_of(score):
        return 0.5 + slope * (score - 0.5)

    for _ in range(N_REPEATS):
        score = np.round(rng.uniform(size=300), digits)
        value = (rng.uniform(size=300) < chance_of(score)).astype(float)
        if outcome == "bounded":
            value = (value + chance_of(score)) / 2
        policy = AcceptPolicy(share=0.6, confidence=level, outcome=outcome).fit(score, value)
        true = chance_of(everything[everything >= policy.threshold_]).mean()
        n_failed += policy.bound_ > true
        bounds.append(true - policy.bound_)
    assert n_failed <= binom.ppf(0.999, N_REPEATS, 1 - level)
    assert n_failed > 0
    assert np.mean(bounds) < 0.1  # it says something


@pytest.mark.parametrize("outcome", ["bounded", "binary"])
@pytest.mark.parametrize("digits", [15, 1], ids=["distinct scores", "tied scores"])
@pytest.mark.parametrize("grid", [None, [0.05, 0.45, 0.75]], ids=["shares", "thresholds"])
@pytest.mark.filterwarnings("ignore::labelsure.TargetWarning")
@pytest.mark.slow
def test_all_bounds_of_a_path_hold_at_once(outcome, digits, grid):
    """Also with ties where higher scores are less accurate."""
    rng, level, n_repeats, n_failed, gaps = np.random.default_rng(0), 0.9, 2000, 0, []
    everything = np.sort(np.round(rng.uniform(size=400_000), digits))
    chances = 0.8 - 0.6 * everything
    means = np.append(np.cumsum(chances[::-1])[::-1] / np.arange(400_000, 0, -1), np.inf)
    for _ in range(n_repeats):
        score = np.round(rng.uniform(size=200), digits)
        value = (rng.uniform(size=200) < 0.8 - 0.6 * score).astype(float)
        if outcome == "bounded":
            value = (value + 0.8 - 0.6 * score) / 2
        policy = AcceptPolicy(0.9, confidence=level, outcome=outcome, grid=grid)
        path = policy.fit(score, value).path().to_frame()
        true = means[everything.searchsorted(path["threshold"])]
        n_failed += bool((path["bound"].to_numpy() > true).any())
        gaps.append(true[-1] - path["bound"].iloc[-1])
    assert n_failed <= binom.ppf(0.999, n_repeats, 1 - level)
    assert n_failed > n_repeats * (1 - level) / 100  # the test has a chance to fail
    assert np.mean(gaps) < 0.12  # they say something


@pytest.mark.filterwarnings("ignore::labelsure.TargetWarning")
def test_the_target_holds_in_each_group():
    rng, level, target = np.random.default_rng(0), 0.9, 0.75
    failed = {"easy": 0, "hard": 0}
    chances = {"easy": lambda score: score, "hard": lambda score: score - 0.15}
    for _ in range(N_REPEATS):
        score, groups = rng.uniform(size=2000), rng.choice(["easy", "hard"], size=2000)
        chance = np.where(groups == "easy", chances["easy"](score), chances["hard"](score))
        value = (rng.uniform(size=2000) < chance).astype(float)
        policy = AcceptPolicy(target, confidence=level, outcome="binary")
        policy = ls.ByGroup(policy).fit(score, value, groups)
        for name, part in policy.parts_.items():
            threshold = part.threshold_
            if threshold < np.inf:
                accepted = np.linspace(threshold, 1, 1000)
                failed[name] += chances[name](accepted).mean() < target
    for n_failed in failed.values():
        assert 0 < n_failed <= binom.ppf(0.999, N_REPEATS, 1 - level)
    # One threshold for all would not do for the hard ones.
    pooled = AcceptPolicy(target, confidence=level, outcome="binary").fit(score, value)
    assert chances["hard"](np.linspace(pooled.threshold_, 1, 1000)).mean() < target


def test_the_default_level_is_the_promised_one():
    assert AcceptPolicy(0.9).confidence == 0.95
    assert ls.TargetWarning is TargetWarning
