"""What regions promise, over 1,000 sets of labelled instances: the coverage has its Beta law.

Given n labelled instances, the number of m new ones that are covered has a beta-binomial
distribution, whatever the model, if scores do not tie; if they do, more are covered.
"""

import numpy as np
import oracles
import oracles_regions
import pytest
from scipy.stats import betabinom, kstest
from sklearn.covariance import ledoit_wolf

import labelsure as ls

N_SETS, N_LABELLED, N_NEW, COVERAGE = 1000, 39, 60, 0.8
SIZE = N_LABELLED + N_NEW
RANK = 32  # of 40 * 0.8
LAW = betabinom(N_NEW, RANK, N_LABELLED + 1 - RANK)

pytestmark = pytest.mark.jit_only


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Thousands of small batches: handing them to threads takes longer than computing them."""
    monkeypatch.setenv("LABELSURE_NUM_THREADS", "1")


def population(seed):
    """True marginals of all instances, and a truth drawn from them."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.6, 1.2, size=(N_SETS * SIZE, 4))
    return rng, p, (rng.random(p.shape) < p).astype(np.int8)


def good(rng, p):
    return ls.IndependentLabels(p)


def bad(rng, p):
    """Overconfident, and two labels are taken for each other."""
    odds = (p / (1 - p))[:, [1, 0, 2, 3]] ** 1.8
    return ls.IndependentLabels(odds / (1 + odds))


def votes(rng, p):
    """Seven draws: many truths are not among them."""
    return ls.LabelsetTable.from_samples(
        (rng.random((len(p), 7, 4)) < p[:, np.newaxis]).astype(int)
    )


def covered(dist, Y, groups=None, **settings):
    """How many new instances of each set are covered."""
    counts = np.empty(N_SETS, dtype=int)
    for i in range(N_SETS):
        some = slice(i * SIZE, (i + 1) * SIZE)
        mine, truth = dist[some], Y[some]
        region = ls.LabelsetRegion(COVERAGE, **settings)
        region.fit(mine[:N_LABELLED], truth[:N_LABELLED])
        counts[i] = region.predict(mine[N_LABELLED:]).contains(truth[N_LABELLED:]).sum()
    return counts


def distance(counts):
    """The p-value of "these numbers are beta-binomial", and how far too low they ever are."""
    values = np.arange(N_NEW + 1)
    share = np.searchsorted(np.sort(counts), values, side="right") / len(counts)
    # Numbers spread over the steps of the law, so that the test for continuous laws applies.
    rng = np.random.default_rng(0)
    spread = LAW.cdf(counts - 1) + rng.random(len(counts)) * LAW.pmf(counts)
    return kstest(spread, "uniform").pvalue, (share - LAW.cdf(values)).max()


@pytest.mark.parametrize(
    ("model", "score"),
    [
        (good, "labels"),
        (bad, "labels"),
        (bad, "probability"),
        pytest.param(good, "probability", marks=pytest.mark.slow),
    ],
)
def test_coverage_has_its_law_whatever_the_model(model, score):
    rng, p, Y = population(1)
    p_value, _ = distance(covered(model(rng, p), Y, score=score))
    assert p_value > 0.001


def test_the_test_notices_a_rank_that_is_one_off():
    rng, p, Y = population(2)
    scores = -good(rng, p).log_prob(Y).reshape(N_SETS, SIZE)
    for rank, holds in ((RANK, True), (RANK - 1, False), (RANK + 1, False)):
        limits = np.sort(scores[:, :N_LABELLED], axis=1)[:, rank - 1 : rank]
        counts = (scores[:, N_LABELLED:] <= limits).sum(axis=1)
        assert (distance(counts)[0] > 0.001) == holds


@pytest.mark.parametrize("score", ["labels", pytest.param("probability", marks=pytest.mark.slow)])
def test_votes_are_covered_at_least_as_often(score):
    """They tie, so that the law is a bound: no number is reached less often than it says."""
    rng, p, Y = population(3)
    counts = covered(votes(rng, p), Y, score=score)
    assert distance(counts)[1] < 1.95 / np.sqrt(N_SETS)  # at a level of 0.05%, one-sided
    if score == "probability":  # marginals of seven votes tie far more often
        assert counts.mean() / N_NEW < COVERAGE + 0.05


def test_each_group_has_its_law():
    rng, p, Y = population(4)
    dist = bad(rng, p)
    hard = np.arange(len(p)) % 2 == 1
    Y[hard] = rng.integers(0, 2, size=(hard.sum(), 4))
    groups = np.where(hard, "hard", "easy")
    n_each = {"easy": 0, "hard": 0}
    by_group = {"easy": [], "hard": []}
    alone = []
    for i in range(0, N_SETS, 2):  # two sets together: as many of each group as one set has
        some = slice(i * SIZE, (i + 2) * SIZE)
        mine, truth, names = dist[some], Y[some], groups[some]
        first = np.arange(2 * SIZE) < 2 * N_LABELLED
        region = ls.ByGroup(ls.LabelsetRegion(COVERAGE)).fit(
            mine[first], truth[first], names[first]
        )
        inside = region.predict(mine[~first], names[~first]).contains(truth[~first])
        for name in by_group:
            by_group[name].append(inside[names[~first] == name].sum())
            n_each[name] = (names[~first] == name).sum()
        one = ls.LabelsetRegion(COVERAGE).fit(mine[first], truth[first])
        alone.append(one.predict(mine[~first]).contains(truth[~first])[names[~first] == "hard"])
    assert n_each == {"easy": N_NEW, "hard": N_NEW}
    for counts in by_group.values():
        assert distance(np.array(counts))[0] > 0.001
    assert np.mean(alone) < COVERAGE - 0.05  # one threshold for all does not cover the hard ones


def test_recall_is_kept_on_average():
    """Over 1,000 sets the mean share of true labels missed is at most what was allowed."""
    rng, p, Y = population(5)
    dist = bad(rng, p)
    missed = np.empty(N_SETS)
    for i in range(N_SETS):
        some = slice(i * SIZE, (i + 1) * SIZE)
        mine, truth = dist[some], Y[some]
        region = ls.LabelsetRegion(recall=0.8).fit(mine[:N_LABELLED], truth[:N_LABELLED])
        possible = region.predict(mine[N_LABELLED:]).is_possible
        true = truth[N_LABELLED:] == 1
        missed[i] = ((true & ~possible).sum(axis=1) / np.maximum(true.sum(axis=1), 1)).mean()
    error = missed.std() / np.sqrt(N_SETS)
    assert missed.mean() < 0.2 + 3 * error
    assert missed.mean() > 0.2 - 1 / (N_LABELLED + 1) - 3 * error  # and not far below


@pytest.mark.parametrize("n_labels", [8, 10, 12])
def test_beside_a_rule_of_marginals_alone(n_labels):
    """mulaconf's rule: as often right, and larger where labels depend on each other."""
    data, truth = ls.make_labelsets(700, n_labels, dependence=3.0, random_state=n_labels)
    Y = np.asarray(data.Y)
    marginals = truth.marginals()
    past, labelled, new = slice(0, 300), slice(300, 600), slice(600, 700)
    matrix = np.linalg.inv(ledoit_wolf(np.abs(marginals[past] - Y[past]))[0]).tolist()
    own = [
        oracles_regions.mahalanobis_scores(p, [oracles.code_of(y)], matrix)[0]
        for p, y in zip(marginals[labelled].tolist(), Y[labelled].tolist(), strict=True)
    ]
    quantile = oracles_regions.conformal_quantile(own, 0.9)
    sizes, inside = [], []
    errors = np.abs(marginals[new][:, np.newaxis] - np.array(oracles.all_labelsets(n_labels)))
    lengths = np.sqrt(np.einsum("nki,ij,nkj->nk", errors, np.array(matrix), errors))
    spot = oracles_regions.mahalanobis_scores(marginals[600].tolist(), [5], matrix)[0]
    assert lengths[0, 5] == pytest.approx(spot)  # the array is the loop
    sizes = (lengths <= quantile).sum(axis=1)
    codes = [oracles.code_of(y) for y in Y[new].tolist()]
    inside = lengths[np.arange(100), codes] <= quantile
    region = ls.LabelsetRegion(0.9, score="probability").fit(truth[labelled], Y[labelled])
    answer = region.predict(truth[new])
    # 100 new instances: within what 300 labelled ones lead to, and chance.
    law = betabinom(100, 271, 30)
    for n_inside in (inside.sum(), answer.contains(Y[new]).sum()):
        assert 0.001 < law.cdf(n_inside) < 0.9999
    assert answer.n_labelsets.mean() < 0.5 * sizes.mean()
