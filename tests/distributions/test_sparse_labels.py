"""Very many labels: against loops, against all labels written out, and within their memory."""

import tracemalloc

import numpy as np
import oracles
import oracles_sparse
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csc_array, csr_array, dia_array
from strategies import n_examples, summary_of

import labelsure as ls
from labelsure.errors import InputError, TooLargeError
from labelsure.labelsets.lists import from_indices
from labelsure.labelsets.sparse import is_sparse

MILLION = 1_000_000
METRICS = {
    "exact": oracles.exact,
    "hamming": oracles.hamming,
    "jaccard": oracles.jaccard,
    "f1": oracles.f1,
}
LISTED = [
    {3: 0.9, 70: 0.2, 500_000: 0.55, 999_998: 0.01, 999_999: 0.4},
    {0: 0.3, 1: 0.3, 2: 0.3, 3: 0.3, 4: 0.3},
    {10: 0.999, 20: 0.998, 30: 0.6, 40: 0.5, 50: 1e-6},
]
ASKED = [[3, 500_000], [0, 9, 77_777], []]


def listed_rows(rows, n_labels):
    entries = [(i, label, p) for i, row in enumerate(rows) for label, p in row.items()]
    i, label, p = zip(*entries, strict=True)
    return csr_array((p, (i, label)), shape=(len(rows), n_labels))


def make(floor=2.0**-24, rows=LISTED):
    return ls.SparseIndependentLabels(listed_rows(rows, MILLION), floor=floor)


def weigh_misses(tp, fp, fn, tn):
    return (tp + 1) / (tp + 2 * fp + 3 * fn + 1)


class TestAgainstLoops:
    @pytest.mark.parametrize("floor", [2.0**-24, 1e-6])
    def test_log_probability_and_expected_accuracy(self, floor):
        dist, asked = make(floor), from_indices(ASKED, MILLION)
        found = dist.log_prob(asked)
        for i, listed in enumerate(LISTED):
            assert found[i] == pytest.approx(
                oracles_sparse.log_prob(listed, floor, MILLION, ASKED[i]), abs=1e-12
            )
        for empty in (0.0, 1.0):
            for name, metric in METRICS.items():
                values = ls.expected_accuracy(dist, asked, metric=name, empty=empty).value
                for i, listed in enumerate(LISTED):
                    wanted = oracles_sparse.expected_accuracy(
                        listed, floor, MILLION, ASKED[i], metric, empty
                    )
                    assert values[i] == pytest.approx(wanted, abs=1e-12)

    def test_profile(self):
        found = make(1e-6)[:1].profile()
        wanted = oracles_sparse.profile(LISTED[0], 1e-6, MILLION)
        names = ("log_top", "log_runner_up", "entropy", "log_collision")
        for name, value in zip(names, wanted, strict=True):
            assert getattr(found, name)[0] == pytest.approx(value, abs=1e-9)  # sums of a million

    def test_any_metric(self):
        values = ls.expected_accuracy(
            make(), from_indices(ASKED, MILLION), metric=weigh_misses
        ).value
        for i, listed in enumerate(LISTED):
            wanted = oracles_sparse.expected_accuracy(
                listed, 2.0**-24, MILLION, ASKED[i], lambda *c: weigh_misses(*c[:4]), 1.0
            )
            assert values[i] == pytest.approx(wanted, abs=1e-12)

    @pytest.mark.parametrize("metric", ["jaccard", "f1"])
    @pytest.mark.parametrize("empty", [0.0, 1.0])
    def test_decisions(self, metric, empty):
        answer = ls.decide(make(), metric, empty=empty)
        decisions, gaps = answer.labelsets, answer.gap
        for i, listed in enumerate(LISTED):
            value, labels = oracles_sparse.best_prediction(
                listed, 2.0**-24, MILLION, METRICS[metric], empty
            )
            assert decisions[[i]].indices.tolist() == list(labels)
            assert value > 0.1
        assert gaps.tolist() == [0.0] * len(LISTED)

    def test_mode_and_majority(self):
        for rule in ("exact", "hamming"):
            decided = ls.decide(make(), rule).labelsets
            assert [decided[[i]].indices.tolist() for i in range(3)] == [
                [3, 500_000],
                [],
                [10, 20, 30],
            ]

    def test_candidates_lie_in_the_unit_interval(self):
        table = ls.confidence(make())
        assert ((table >= 0) & (table <= 1)).all(axis=None)
        assert table["SE"].nunique() == 3


def random_rows(rng, n_samples, n_labels, n_listed):
    rows = csr_array((n_samples, n_labels)).tolil()
    for i in range(n_samples):
        labels = rng.choice(n_labels, rng.integers(0, n_listed + 1), replace=False)
        rows[i, labels] = rng.beta(0.4, 1.5, size=len(labels)).clip(1e-9, 1 - 1e-6)
    return csr_array(rows)


@pytest.mark.jit_only  # half an hour of plain loops
@pytest.mark.parametrize("floor", [2.0**-24, 1e-3, 0.3, 0.0])
def test_equal_to_all_labels_written_out(floor):
    rng = np.random.default_rng(0)
    dist = ls.SparseIndependentLabels(random_rows(rng, 12, 2000, 60), floor=floor)
    dense = dist._with_dense_rows()
    asked = ((rng.random((12, 2000)) < 0.002) | (dist.mode().toarray() == 1)).astype(np.int8)
    close = {"rtol": 1e-12, "atol": 1e-12}
    for name in ("log_top", "log_runner_up", "entropy", "log_collision"):
        np.testing.assert_allclose(
            getattr(dist.profile(), name), getattr(dense.profile(), name), **close
        )
    np.testing.assert_allclose(dist.log_prob(asked), dense.log_prob(asked), **close)
    np.testing.assert_allclose(ls.confidence(dist), ls.confidence(dense), **close)
    for metric in (*METRICS, weigh_misses):
        for empty in (0.0, 0.7):
            for Y in (asked, np.zeros_like(asked), dist.mode()):
                plain = Y.toarray() if is_sparse(Y) else Y
                np.testing.assert_allclose(
                    ls.expected_accuracy(dist, Y, metric=metric, empty=empty).value,
                    ls.expected_accuracy(dense, plain, metric=metric, empty=empty).value,
                    **close,
                )
    for power in (0.5, 3.0):
        np.testing.assert_allclose(
            dist.temper(power).log_prob(asked), dense.temper(power).log_prob(asked), **close
        )
    for metric in METRICS:
        answer = ls.decide(dist, metric)
        decided, gaps = answer.labelsets, answer.gap
        best = ls.expected_accuracy(dense, ls.decide(dense, metric), metric=metric).value
        reached = ls.expected_accuracy(dense, decided.toarray(), metric=metric).value
        assert (best <= reached + gaps + 1e-12).all()
        assert (gaps <= {"f1": 2 * floor, "jaccard": floor}.get(metric, 0.0)).all()


@st.composite
def small_batches(draw):
    n_labels = draw(st.integers(1, 6))
    value = st.sampled_from([0.0, 1.0, 0.5, 0.25, 0.75]) | st.integers(1, 999).map(
        lambda i: i / 1000
    )
    row = st.dictionaries(st.integers(0, n_labels - 1), value, max_size=n_labels)
    rows = draw(st.lists(row, min_size=1, max_size=4))
    floor = draw(st.sampled_from([0.0, 2.0**-24, 0.01, 0.25, 0.4]))
    marginals = csr_array((len(rows), n_labels)).tolil()
    for i, listed in enumerate(rows):
        for label, p in listed.items():
            marginals[i, label] = p
    asked = draw(
        st.lists(
            st.lists(st.integers(0, 1), min_size=n_labels, max_size=n_labels),
            min_size=len(rows),
            max_size=len(rows),
        )
    )
    return ls.SparseIndependentLabels(csr_array(marginals), floor=floor), asked


def plain(labelsets):
    return labelsets.toarray().tolist() if is_sparse(labelsets) else np.asarray(labelsets).tolist()


@n_examples(60)
@given(small_batches(), st.sampled_from([0.0, 0.4, 1.0]), st.booleans())
def test_every_question_has_the_answer_of_all_labels_written_out(batch, empty, tempered):
    dist, asked = batch
    if tempered:
        dist = dist.temper(0.8)
    dense, L = dist._with_dense_rows(), dist.n_labels
    Y = np.array(asked, dtype=np.int8)
    close = {"rtol": 1e-12, "atol": 1e-12}
    summary, wanted = (summary_of(d, [*METRICS, weigh_misses], empty) for d in (dist, dense))
    for name in ("log_top", "log_runner_up", "entropy", "log_collision"):
        np.testing.assert_allclose(
            getattr(summary.profile, name), getattr(wanted.profile, name), **close
        )
    assert plain(summary.mode) == plain(wanted.mode) == plain(dist.mode())
    for name, values in wanted.expected.items():
        np.testing.assert_allclose(summary.expected[name], values, **close)
    np.testing.assert_allclose(dist.log_prob(Y), dense.log_prob(Y), **close)
    for metric in (*METRICS, weigh_misses):
        np.testing.assert_allclose(
            dist.expected(metric, Y, empty=empty).value,
            dense.expected(metric, Y, empty=empty).value,
            **close,
        )
        answer = ls.decide(dist, metric, empty=empty)
        decided, gaps = answer.labelsets, answer.gap
        assert is_sparse(decided)
        assert plain(decided) == plain(ls.decide(dense, metric, empty=empty).labelsets)
        assert not gaps.any()
    k = min(5, 2**L)
    top, best = dist.top(k), dense.top(k)
    np.testing.assert_allclose(top.probabilities, best.probabilities, **close)
    guesses = dist.expected("f1", top.labelsets, empty=empty).value
    for rank in range(k):
        rows = top.labelsets[:, rank]
        np.testing.assert_allclose(
            np.exp(dense.log_prob(rows)), top.probabilities[:, rank], **close
        )
        np.testing.assert_allclose(
            guesses[:, rank], dense.expected("f1", rows, empty=empty).value, **close
        )
        seen = np.array([plain(top.labelsets[:, r]) for r in range(k)])
        assert all(len(set(map(tuple, seen[:, i]))) == k for i in range(len(dist)))
    np.testing.assert_allclose(dist.probabilities(), dense.probabilities(), **close)
    np.testing.assert_allclose(dist._size_marginals(), dense._size_marginals(), **close)
    by_temperature = (d._tempered_log_prob(d.align(Y))(2.0) for d in (dist, dense))
    np.testing.assert_allclose(*by_temperature, **close)
    open_ = ls.decide(dist, "hamming", open_cost=0.3).abstentions
    assert (
        open_.values.tolist()
        == ls.decide(dense, "hamming", open_cost=0.3).abstentions.values.tolist()
    )
    part = dist[[len(dist) - 1, 0]]
    np.testing.assert_allclose(part.log_prob(Y[[-1, 0]]), dense.log_prob(Y)[[-1, 0]], **close)


def test_top_ranks_by_probability_and_lowest_code():
    dist = ls.SparseIndependentLabels(csr_array([[0, 0, 0.9, 0, 0.25]]), 6, floor=0.25)
    top, best = dist.top(12), dist._with_dense_rows().top(12)
    ranked = [plain(top.labelsets[:, rank])[0] for rank in range(12)]
    assert ranked == best.labelsets[0].tolist()


class TestDraws:
    def test_their_means_are_the_marginals(self):
        dist = ls.SparseIndependentLabels(csr_array([[0.9, 0, 0.2, 0, 0]]), 5, floor=0.1)
        draws = dist.sample(20_000, random_state=0)
        assert draws.shape == (1, 20_000, 5)
        means = draws[0].mean(axis=0)
        assert np.abs(means - [0.9, 0.1, 0.2, 0.1, 0.1]).max() < 0.01

    def test_labels_that_are_not_listed_are_drawn_from_all_of_them(self):
        dist = ls.SparseIndependentLabels.from_top([[5, 7]], [[0.5, 0.5]], 10**6, floor=1e-3)
        labels = dist.sample(20, random_state=0)[0].indices
        assert 19_000 < len(labels) < 21_000
        shares = np.histogram(labels, bins=4, range=(0, 10**6))[0] / len(labels)
        assert np.abs(shares - 0.25).max() < 0.02
        assert {5, 7} <= set(labels.tolist())

    def test_the_same_seed_gives_the_same_draws(self):
        first, second = (make().sample(3, random_state=1) for _ in range(2))
        assert first.rows.indices.tolist() == second.rows.indices.tolist()
        assert make().sample(0, random_state=1).shape == (0, 0, MILLION)


class TestMemory:
    @pytest.mark.jit_only  # of plain loops numbers are counted as well
    def test_it_grows_with_what_is_listed(self):
        rng = np.random.default_rng(0)
        indices = np.sort(rng.integers(0, MILLION // 50, size=(400, 50)) + 20_000 * np.arange(50))
        scores = rng.beta(0.3, 2, size=indices.shape)
        truth = from_indices(indices[:, :3].tolist(), MILLION)

        def ask():
            dist = ls.SparseIndependentLabels.from_top(indices, scores, MILLION)
            ls.confidence(dist)
            for metric in METRICS:
                ls.decide(dist, metric)
                ls.expected_accuracy(dist, truth, metric=metric)
                ls.accuracy(truth, dist.mode(), metric)
            (
                dist.top(3),
                dist.sample(2, random_state=0),
                dist.temper(2),
                dist[:7],
                dist.log_prob(truth),
            )

        ask()  # what is compiled stays
        tracemalloc.start()
        ask()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 60 * 8 * indices.size  # a row of all labels would be 40 times as much
        assert peak < 400 * MILLION / 30


class TestReading:
    def test_every_format_and_top_arrays_mean_the_same(self):
        rows = listed_rows(LISTED, MILLION)
        wanted = ls.SparseIndependentLabels(rows).profile().entropy.tolist()
        for form in (csc_array, coo_array):
            assert ls.SparseIndependentLabels(form(rows)).profile().entropy.tolist() == wanted
        labels = [[70, 3, 999_999, 500_000, 999_998], [4, 0, 1, 2, 3], [50, 40, 30, 20, 10]]
        scores = [[row[label] for label in some] for row, some in zip(LISTED, labels, strict=True)]
        top = ls.SparseIndependentLabels.from_top(labels, scores, MILLION)
        assert top.profile().entropy.tolist() == wanted
        assert ls.as_distribution(rows).profile().entropy.tolist() == wanted

    def test_padding_is_not_listed(self):
        dist = ls.SparseIndependentLabels.from_top([[3, -1], [-1, -1]], [[0.6, 0.9], [1, 1]], 5)
        assert dist.n_listed.tolist() == [1, 0]
        assert dist.listed_marginals().toarray()[0].tolist() == [0, 0, 0, 0.6, 0]

    def test_logits(self):
        logits = csr_array((np.array([100.0, 0.0]), ([0, 0], [3, 8])), shape=(1, 10))
        dist = ls.SparseIndependentLabels.from_logits(logits)
        assert dist.listed_marginals().data.tolist() == [1.0, 0.5]
        nothing = from_indices([[]], 10)
        assert dist.log_prob(nothing)[0] == pytest.approx(-100 - np.log(2), abs=1e-6)
        same = ls.as_distribution(logits, kind="logit")
        assert same.log_prob(nothing).tolist() == dist.log_prob(nothing).tolist()
        np.testing.assert_allclose(
            same.profile().log_runner_up, same._with_dense_rows().profile().log_runner_up
        )

    def test_what_is_not_above_the_floor_is_not_listed_and_nothing_is_certain(self):
        rows = csr_array([[0.05, 1.0, 0.1, 0.2]])
        dist = ls.SparseIndependentLabels(rows, floor=0.1)
        assert dist.n_listed.tolist() == [2]
        assert dist.listed_marginals().data.tolist() == [1 - 2.0**-24, 0.2]
        assert np.isfinite(dist.log_prob(from_indices([[]], 4))).all()
        exact = ls.SparseIndependentLabels(rows, floor=0)
        assert exact.listed_marginals().data.tolist() == [0.05, 1.0, 0.1, 0.2]
        assert exact.log_prob(from_indices([[]], 4))[0] == -np.inf

    def test_what_was_given_is_not_changed(self):
        rows = csr_array([[0.0, 1.0, 0.3]])
        before = rows.data.copy()
        ls.SparseIndependentLabels(rows, floor=0.2).temper(2).listed_marginals().data[:] = 0
        assert rows.data.tolist() == before.tolist()

    def test_names_and_rows(self):
        rows = csr_array([[0.9, 0.2, 0.0], [0.0, 0.0, 0.8]])
        dist = ls.SparseIndependentLabels(rows, label_names=["a", "b", "c"])
        assert dist.align([["a"], ["b", "c"]]).toarray().tolist() == [[1, 0, 0], [0, 1, 1]]
        with pytest.raises(ls.errors.UnknownNameError, match="label in row 0"):
            dist.align([["x"], []])
        assert len(dist[1]) == 1
        assert dist[[True, False]].mode().indices.tolist() == [0]
        import pandas as pd

        truth = pd.DataFrame([[1, 0, 0], [0, 1, 0]], columns=["c", "a", "b"], index=["q", "p"])
        indexed = dist._with_index(pd.Index(["p", "q"]))
        assert indexed.align(truth).toarray().tolist() == [[1, 0, 0], [0, 0, 1]]
        assert indexed[1:].index.tolist() == ["q"]
        assert indexed._with_dense_rows().index.tolist() == ["p", "q"]
        assert repr(dist) == "SparseIndependentLabels(n_samples=2, n_labels=3)"


class TestRefusals:
    @pytest.mark.parametrize("floor", [0.5, -1e-9, "a", None, True, np.nan])
    def test_floors(self, floor):
        with pytest.raises(InputError, match="`floor`"):
            ls.SparseIndependentLabels(csr_array([[0.5]]), floor=floor)

    @pytest.mark.parametrize(
        ("marginals", "message"),
        [
            (csr_array([[0.2, 1.5]]), r"must lie in \[0, 1\], got 1.5 in row 0, label 1"),
            (csr_array([[0.2], [np.nan]]), r"got nan in row 1, label 0"),
            (
                coo_array(([0.2, 0.2], ([0, 0], [1, 1])), shape=(1, 2)),
                "each label of an instance once",
            ),
            (csr_array((2, 0)), "at least one label"),
            (csr_array((1, 2), dtype=complex), "must hold real numbers, got dtype complex128"),
        ],
    )
    def test_marginals(self, marginals, message):
        with pytest.raises(InputError, match=message):
            ls.SparseIndependentLabels(marginals)

    def test_a_matrix_of_diagonals_has_no_duplicates(self):
        rows = dia_array((np.array([[0.5, 0.0]]), [0]), shape=(2, 2))
        assert ls.SparseIndependentLabels(rows).n_listed.tolist() == [1, 0]

    def test_sizes(self):
        with pytest.raises(InputError, match="`marginals`"):
            ls.SparseIndependentLabels(csr_array((1, 3)), 2)
        assert ls.SparseIndependentLabels(csr_array((1, 3)), 9).n_labels == 9

    @pytest.mark.parametrize(
        ("indices", "scores", "message"),
        [
            ([[1, 2]], [[0.5]], r"must have one shape \(n_samples, k\)"),
            ([[0.5]], [[0.5]], "indices being whole numbers"),
            ([[9]], [[0.5]], "labels from 0 to 8, or -1 for none, got 9 in row 0"),
            ([[-2]], [[0.5]], "got -2 in row 0"),
            ([[3, 3]], [[0.5, 0.5]], "each label of an instance once"),
        ],
    )
    def test_top_arrays(self, indices, scores, message):
        with pytest.raises(InputError, match=message):
            ls.SparseIndependentLabels.from_top(indices, scores, 9)

    def test_logits_that_are_no_numbers(self):
        with pytest.raises(InputError, match="`logits`"):
            ls.SparseIndependentLabels.from_logits(csr_array([[1.0], [np.nan]]))

    def test_questions_about_all_labels(self):
        dist = ls.SparseIndependentLabels(csr_array((3, MILLION)))[[0] * 400]
        questions = [
            dist._with_dense_rows,
            dist.probabilities,
            dist._size_marginals,
            lambda: ls.decide(dist, "hamming", open_cost=0.1).abstentions,
        ]
        for question in questions:
            with pytest.raises(TooLargeError, match="allowed"):
                question()
        with pytest.raises(TooLargeError, match="can be found for at most 12 labels"):
            ls.decide(dist, weigh_misses)

    def test_sizes_of_what_is_listed_count(self):
        dist = make()
        assert dist.top(1000).labelsets.shape == (3, 1000, MILLION)
        with pytest.raises(TooLargeError, match="probable"):
            dist.top(10**8)
        with pytest.raises(TooLargeError, match="draws of 3 instances need"):
            dist.sample(10**8)

    def test_dense_distributions_take_no_stacked_labelsets(self):
        dist = ls.SparseIndependentLabels(csr_array([[0.5, 0.2]]))
        with pytest.raises(InputError, match="rectangular"):
            dist._with_dense_rows().expected("f1", dist.top(2).labelsets)


class TestSuggestedFloor:
    def test_it_is_the_share_of_true_labels_among_those_not_listed(self):
        dist = make()
        truth = from_indices([[3, 5, 6], [], [10, 11]], MILLION)
        assert ls.distributions.suggest_floor(dist, truth) == pytest.approx(
            3.5 / (3 * MILLION - 15)
        )

    def test_the_truth_of_data_with_that_floor_is_as_likely_as_it_says(self):
        rng = np.random.default_rng(0)
        rows = random_rows(rng, 300, 5000, 20)
        truth = ls.SparseIndependentLabels(rows, floor=2e-4).sample(1, random_state=1)[:, 0]
        found = ls.distributions.suggest_floor(ls.SparseIndependentLabels(rows), truth)
        assert found == pytest.approx(2e-4, rel=0.2)

    def test_what_has_no_floor_is_refused(self):
        with pytest.raises(InputError, match="SparseIndependentLabels"):
            ls.distributions.suggest_floor(ls.IndependentLabels([[0.5]]), [[1]])
        with pytest.raises(InputError, match="at least one instance, got none"):
            ls.distributions.suggest_floor(make()[:0], from_indices([], MILLION))

    def test_it_is_a_floor(self):
        dist = ls.SparseIndependentLabels(csr_array((2, 3)))
        assert ls.distributions.suggest_floor(dist, [[1, 1, 1], [1, 1, 1]]) == 0.25
