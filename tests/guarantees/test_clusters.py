"""Dependent rows: what is promised goes by cluster, and clusters of one row change nothing."""

import numpy as np
import pytest
from scipy.stats import binom

import labelsure as ls
from labelsure.guarantees._policy import AcceptPolicy

pytestmark = pytest.mark.filterwarnings("ignore::labelsure.TargetWarning")


@pytest.fixture(autouse=True)
def no_advice(monkeypatch, request):
    if "advice" not in request.node.name:
        monkeypatch.setattr(AcceptPolicy, "_advise", lambda *settings: "")


def sizes_of(kind, n_clusters, rng):
    if kind == "equal":
        return np.full(n_clusters, 20)
    return rng.geometric(1 / 6, n_clusters)


def draw(kind, n_clusters, rng):
    """Scores, accuracies that depend on the luck of their cluster, and clusters."""
    sizes = sizes_of(kind, n_clusters, rng)
    clusters = np.repeat(np.arange(n_clusters), sizes)
    luck = rng.normal(size=n_clusters)
    if kind == "harder":
        luck -= 0.15 * (sizes - 6)
    score = rng.uniform(size=len(clusters))
    chance = 1 / (1 + np.exp(-(1.0 + score + luck[clusters])))
    return score, (rng.uniform(size=len(clusters)) < chance).astype(float), clusters


def true_mean(kind, size, threshold):
    """Mean accuracy of what a threshold accepts, where clusters count with up to `size` rows."""
    score, accuracy, clusters = draw(kind, 40_000, np.random.default_rng(99))
    from labelsure.metrics.clusters import first_rows

    rows = first_rows(clusters, size)
    return accuracy[rows][score[rows] >= threshold].mean()


@pytest.mark.parametrize("outcome", ["bounded", "binary"])
@pytest.mark.parametrize("setting", [{"target": 0.7}, {"share": 0.5}, {"target": 0.99}])
def test_clusters_of_one_row_areindependent_rows(outcome, setting):
    rng = np.random.default_rng(0)
    score = rng.uniform(size=400)
    accuracy = (rng.uniform(size=400) < score).astype(float)
    policy = AcceptPolicy(**setting, outcome=outcome)
    alone, clustered = (
        ls.AcceptPolicy(**policy.get_params()).fit(score, accuracy, clusters=clusters)
        for clusters in (None, rng.permutation(400))
    )
    for name in ("threshold_", "share_", "bound_", "message_", "n_samples_"):
        np.testing.assert_equal(getattr(alone, name), getattr(clustered, name))
    assert alone.path().to_frame().equals(clustered.path().to_frame())


@pytest.mark.parametrize("kind", ["equal", "unequal", "harder"])
def test_a_target_above_the_true_mean_is_rarely_reached(kind):
    """By row, 30 % of policies on equal clusters reach it, where 10 % may."""
    rng, size, level = np.random.default_rng(0), 20 if kind == "equal" else 13, 0.9
    target = true_mean(kind, size, 0.0) + 1e-3
    reached = by_row = 0
    for _ in range(200):
        score, accuracy, clusters = draw(kind, 60, rng)
        fixed = {"confidence": level, "outcome": "binary", "grid": [0.0]}
        policy = AcceptPolicy(target, **fixed, max_cluster_size=size)
        reached += policy.fit(score, accuracy, clusters=clusters).reached_
        by_row += AcceptPolicy(target, **fixed).fit(score, accuracy).reached_
    assert reached <= binom.ppf(0.999, 200, 1 - level)
    if kind == "equal":
        assert by_row > binom.ppf(0.999, 200, 1 - level)  # the rows do depend on each other


@pytest.mark.parametrize("kind", ["equal", "unequal"])
def test_bounds_of_a_path_hold(kind):
    rng, size, failed, gaps = np.random.default_rng(0), 20 if kind == "equal" else 13, 0, []
    grid = [0.0, 0.5]
    true = {threshold: true_mean(kind, size, threshold) for threshold in grid}
    for _ in range(60):
        policy = AcceptPolicy(0.5, grid=grid, max_cluster_size=size, confidence=0.9)
        score, accuracy, clusters = draw(kind, 100, rng)
        path = policy.fit(score, accuracy, clusters=clusters).path().to_frame()
        failed += any(path["bound"] > path["threshold"].map(true))
        gaps.append(true[0.0] - path["bound"].iloc[-1])
    assert failed <= binom.ppf(0.999, 60, 0.1)
    assert np.mean(gaps) < 0.2  # they say something


def test_a_target_below_the_mean_is_reached():
    rng = np.random.default_rng(0)
    policies = [
        AcceptPolicy(0.65, max_cluster_size=size).fit(score, accuracy, clusters=clusters)
        for size, (score, accuracy, clusters) in ((20, draw("equal", 200, rng)),)
    ]
    assert policies[0].reached_
    said = "n = 4,000 in 200 clusters, which count with up to 20 rows"
    assert said in policies[0].message_
    assert policies[0].path().threshold.tolist() == [k / 10 for k in range(9, -1, -1)]


def test_large_clusters_count_with_some_random_rows():
    clusters = np.repeat([0, 1, 2], [50, 3, 4])
    accuracy = np.linspace(0, 1, 57)
    seen = [
        AcceptPolicy(0.5, max_cluster_size=4, random_state=seed).fit(
            np.zeros(57), accuracy, clusters=clusters
        )
        for seed in (0, 1)
    ]
    assert [policy.n_samples_ for policy in seen] == [11, 11]
    assert set(seen[0].accuracies_) != set(seen[1].accuracies_)


def test_order_statistics_of_clusters_are_refused():
    score, accuracy, clusters = draw("equal", 20, np.random.default_rng(0))
    with pytest.raises(ls.InputError, match="`share` needs independent rows"):
        AcceptPolicy(share=0.5, max_cluster_size=20).fit(score, accuracy, clusters=clusters)
    one_of_each = AcceptPolicy(share=0.5).fit(score, accuracy, clusters=clusters)
    assert one_of_each.n_samples_ == 20


def test_advice_names_too_few_clusters():
    clusters = np.repeat(np.arange(15), 20)
    rng = np.random.default_rng(0)
    values = rng.uniform(size=300)
    for accuracy in (np.ones(300), values):
        policy = AcceptPolicy(0.9, max_cluster_size=20).fit(values, accuracy, clusters=clusters)
        assert "Too few clusters" in policy.message_
    many = np.repeat(np.arange(150), 2)
    policy = AcceptPolicy(0.9, max_cluster_size=2).fit(values, values, clusters=many)
    assert "Within reach: 0." in policy.message_


def test_groups_and_clusters_together():
    """A group is a subpopulation with its own threshold; a cluster depends on itself."""
    rng = np.random.default_rng(0)
    score, accuracy, clusters = draw("equal", 100, rng)
    groups = np.where(rng.uniform(size=2000) < 0.5, "a", "b")
    policy = ls.ByGroup(AcceptPolicy(0.6, max_cluster_size=10))
    policy.fit(score, accuracy, groups, clusters=clusters)
    for name, part in policy.parts_.items():
        own = groups == name
        alone = AcceptPolicy(0.6, max_cluster_size=10)
        alone.fit(score[own], accuracy[own], clusters=clusters[own])
        assert part.threshold_ == alone.threshold_


@pytest.mark.parametrize("score", ["labels", "probability"])
def test_regions_use_one_row_of_each_cluster(score):
    """So they cover a random row of a new cluster, also where rows are copies."""
    rng = np.random.default_rng(0)
    P = rng.uniform(size=(60, 3))
    clusters = np.repeat(np.arange(60), 10)
    dist = ls.IndependentLabels(P[clusters])
    Y = ls.IndependentLabels(P).sample(1, random_state=0)[:, 0][clusters]
    region = ls.LabelsetRegion(0.8, score=score).fit(dist, Y, clusters=clusters)
    alone = ls.LabelsetRegion(0.8, score=score).fit(dist[::10], Y[::10])
    assert region.n_samples_ == 60
    assert region.threshold_ == alone.threshold_
    every = ls.LabelsetRegion(0.8, score=score).fit(dist, Y, clusters=np.arange(600))
    by_row = ls.LabelsetRegion(0.8, score=score).fit(dist, Y)
    assert every.threshold_ == by_row.threshold_
    groups = np.where(clusters % 2, "a", "b")
    by_group = ls.ByGroup(ls.LabelsetRegion(0.8, score=score))
    by_group.fit(dist, Y, groups, clusters=clusters)
    assert [part.n_samples_ for part in by_group.parts_.values()] == [30, 30]


def test_students_test_of_clusters_needs_no_bound_on_their_size():
    rng = np.random.default_rng(0)
    score, accuracy, clusters = draw("unequal", 200, rng)
    policy = AcceptPolicy(0.66, guarantee="approximate").fit(score, accuracy, clusters=clusters)
    assert policy.n_samples_ == len(score)
    assert policy.reached_
    target = true_mean("unequal", 1000, 0.0) + 1e-3
    reached = by_row = 0
    for _ in range(200):
        score, accuracy, clusters = draw("unequal", 100, rng)
        policy = AcceptPolicy(target, confidence=0.9, grid=[0.0], guarantee="approximate")
        reached += policy.fit(score, accuracy, clusters=clusters).reached_
        by_row += policy.fit(score, accuracy).reached_
    assert reached <= binom.ppf(0.999, 200, 0.1) < by_row
