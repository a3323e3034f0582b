"""Every error by its text: what must hold, what came, what to do."""

import pickle
import re

import numpy as np
import pytest

import labelsure as ls
from labelsure._limits import format_bytes
from labelsure.candidates import confidence_of_profile
from labelsure.errors import unknown_name
from labelsure.labelsets import check_label_names, check_labelsets, from_codes, from_names, to_codes
from labelsure.metrics import Metric, counts

INDEPENDENT = ls.IndependentLabels([[0.9, 0.2], [0.5, 0.5]])
DENSE = ls.DenseDistribution([[0.1, 0.2, 0.3, 0.4], [1, 0, 0, 0]])
TABLE = ls.LabelsetTable([[[1, 0], [1, 1]], [[0, 0]]], [[0.25, 0.75], [1]])
TRELLIS = ls.TrellisDistribution([[[0.2], [0.5]], [[0.3, 0.6]] * 2], [[], [0]], [1, 0])
MIXTURE = ls.ChainMixture([ls.LinearChain([1, 0], [[0.0, -2.0]] * 2, [[0, 0], [4.0, 0]])])
KINDS = [INDEPENDENT, DENSE, TABLE, TRELLIS, MIXTURE]
for_each_kind = pytest.mark.parametrize("dist", KINDS, ids=lambda dist: type(dist).__name__)


def raises(error, *parts):
    """Expect an error whose text has all these parts, in this order."""
    return pytest.raises(error, match="(?s)" + ".*".join(map(re.escape, parts)))


class TestErrorTypes:
    def test_one_base_and_all_are_value_errors(self):
        for error in (ls.InputError, ls.UnknownNameError, ls.TooLargeError):
            assert issubclass(error, ls.LabelsureError)
            assert issubclass(error, ValueError)
        assert issubclass(ls.UnknownNameError, ls.InputError)

    @pytest.mark.parametrize(
        "error",
        [
            ls.LabelsureError("a"),
            ls.InputError("b"),
            ls.TooLargeError("c"),
            unknown_name("metric", "jacard", ["jaccard"]),
        ],
    )
    def test_errors_survive_pickling(self, error):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error)
        assert str(copy) == str(error)

    def test_the_nearest_name_whatever_its_case(self):
        error = unknown_name("candidate", "hp", ["HP", "TG"])
        assert str(error) == "Unknown candidate 'hp'. Did you mean 'HP'? Known: HP, TG."
        error = unknown_name("candidate", "xyz", ["HP", "TG"])
        assert str(error) == "Unknown candidate 'xyz'. Known: HP, TG."


class TestLabelsets:
    @pytest.mark.parametrize(
        ("Y", "got"),
        [
            ([0, 1], "shape (2,)"),
            (np.zeros((2, 0)), "shape (2, 0)"),
            (np.zeros((1, 2, 3)), "shape (1, 2, 3)"),
            (1, "shape ()"),
            ([], "shape (0,)"),
        ],
    )
    def test_shape(self, Y, got):
        with raises(
            ls.InputError, "`Y` must have shape (n_samples, n_labels)", got, "is one row: `[Y]`"
        ):
            check_labelsets(Y)

    @pytest.mark.parametrize("value", [2, -1, 0.5, 256, np.nan, np.inf])
    def test_values_name_row_and_column(self, value):
        Y = np.zeros((3, 4))
        Y[1, 2] = value
        with raises(
            ls.InputError,
            "`Y` must contain only 0 and 1",
            f"got {Y[1, 2]} in row 1, column 2",
            "`(Y > 0).astype(int)`",
        ):
            to_codes(Y)

    @pytest.mark.parametrize(
        ("Y", "dtype"),
        [
            ([["cat", "dog"]], "<U3"),
            ([[None, 1]], "object"),
            ([[1j]], "complex128"),
            (np.array([["2020-01-01"]], dtype="datetime64[D]"), "datetime64[D]"),
        ],
    )
    def test_dtype(self, Y, dtype):
        with raises(
            ls.InputError,
            "numeric or boolean array",
            f"dtype {dtype}",
            "`labelsure.labelsets.from_names`",
        ):
            check_labelsets(Y)

    def test_ragged(self):
        with raises(
            ls.InputError,
            "`Y` must be a rectangular array",
            "rows of different lengths",
            "from_names",
        ):
            check_labelsets([[0, 1], [1]])

    @pytest.mark.parametrize(
        ("names", "text"),
        [
            ("a,b", "got the single string 'a,b'. Split it, e.g. `label_names.split(',')`."),
            (["a"], "one name for each of the 2 labels, got 1. Name every label"),
            (["a", "b", "c"], "one name for each of the 2 labels, got 3. Name every label"),
            (["a", "a"], "must be distinct, got 'a' twice. Rename one of them."),
            (["1", 1], "must be distinct, got '1' twice. Rename one of them."),
            (7, "must be a sequence of names, got 7. Pass one name for each label, or None."),
        ],
    )
    def test_label_names(self, names, text):
        with raises(ls.InputError, "`label_names`", text):
            check_label_names(names, 2)
        with raises(ls.InputError, "`label_names`", text):
            ls.IndependentLabels([[0.5, 0.5]], names)
        with raises(ls.InputError, "`label_names`", text):
            ls.DenseDistribution([[0.25] * 4], names)
        with raises(ls.InputError, "`label_names`", text):
            ls.LabelsetTable([[[0, 0]]], [[1.0]], names)

    @pytest.mark.parametrize(
        ("codes", "n_labels", "text"),
        [
            ([1], 0, "`n_labels` must be at least 1, got 0."),
            ([0.5], 2, "`codes` must be integers, got dtype float64. Use `to_codes`."),
            ([[1]], 2, "a vector of integers, got shape (1, 1). Packed rows are for more than 63"),
            ([3, 4], 2, "must lie in [0, 4), got 4. Check the number of labels."),
            ([-1], 2, "must lie in [0, 4), got -1. Check the number of labels."),
            ([1], 64, "packed rows of 8 bytes, got shape (1,). Make them with `to_codes`."),
            ([[1] * 9], 64, "packed rows of 8 bytes, got shape (1, 9). Make them with `to_codes`."),
            ([[256] * 8], 64, "must be bytes, from 0 to 255, that set no bit beyond the last"),
            ([[-1] * 8], 64, "must be bytes, from 0 to 255, that set no bit beyond the last"),
            ([[0] * 12 + [16]], 100, "must be bytes, from 0 to 255, that set no bit beyond the"),
        ],
    )
    def test_codes(self, codes, n_labels, text):
        with raises(ls.InputError, text):
            from_codes(codes, n_labels)

    def test_label_that_does_not_exist(self):
        with raises(
            ls.UnknownNameError, "Unknown label 'catt'. Did you mean 'cat'? Known: cat, dog."
        ):
            from_names([["catt"]], ["cat", "dog"])


class TestMetrics:
    @pytest.mark.parametrize(
        ("name", "near"), [("jacard", "jaccard"), ("F1", "f1"), ("Hamming", "hamming")]
    )
    def test_unknown_name(self, name, near):
        text = (
            f"Unknown metric {name!r}. Did you mean {near!r}? Known: exact, hamming, jaccard, f1."
        )
        for ask in (
            lambda: ls.accuracy([[0]], [[0]], name),
            lambda: ls.decide(INDEPENDENT, name),
            lambda: ls.expected_accuracy(INDEPENDENT, metric=name),
            lambda: INDEPENDENT.summary([name]),
        ):
            with raises(ls.UnknownNameError, text):
                ask()

    @pytest.mark.parametrize("metric", [3, None, ["jaccard"]])
    def test_neither_name_nor_function(self, metric):
        with raises(
            ls.InputError,
            "`metric` must be a name (exact, hamming, jaccard, f1)",
            "or a function of (tp, fp, fn, tn), got",
            repr(metric),
        ):
            ls.decide(INDEPENDENT, metric)

    @pytest.mark.parametrize("empty", [-0.1, 1.5, np.nan, np.inf, "one", None])
    def test_empty(self, empty):
        for ask in (
            lambda: ls.accuracy([[0]], [[0]], "f1", empty=empty),
            lambda: ls.decide(DENSE, "f1", empty=empty),
            lambda: ls.expected_accuracy(DENSE, metric="f1", empty=empty),
            lambda: DENSE.summary(["f1"], empty=empty),
        ):
            with raises(
                ls.InputError,
                "`empty` must be a number in [0, 1]",
                f"got {empty!r}",
                "Usual choices are 1.0 and 0.0",
            ):
                ask()

    def test_a_function_that_returns_one_number(self):
        with raises(
            ls.InputError,
            "The metric '<lambda>' must return an array of shape (2,)",
            "got shape ()",
            "`np.where` instead of `if`",
        ):
            ls.accuracy([[0], [1]], [[0], [1]], lambda tp, fp, fn, tn: 1.0)

    @for_each_kind
    def test_a_function_that_is_not_finite(self, dist):
        def precision(tp, fp, fn, tn):
            return tp / (tp + fp)

        text = (
            "The metric 'precision' must be finite, got nan at tp=0, fp=0, fn=",
            "Only two empty labelsets may give NaN",
        )
        with raises(ls.InputError, *text):
            ls.expected_accuracy(dist, [[0, 0], [0, 0]], metric=precision)
        with raises(ls.InputError, *text):
            ls.accuracy([[1, 0]], [[0, 0]], precision)

    def test_mismatched_arrays(self):
        with raises(
            ls.InputError, "`Y_pred` must have 2 labels (columns), got 3.", "in the same order"
        ):
            counts([[0, 1]], [[0, 1, 1]])
        with raises(
            ls.InputError, "`Y_pred` must have 1 rows, got 2.", "one labelset for each instance"
        ):
            ls.accuracy([[0, 1]], [[0, 1], [1, 1]], "exact")
        with raises(ls.InputError, "`Y_true` must contain only 0 and 1, got 3 in row 0, column 1"):
            ls.accuracy([[0, 3]], [[0, 1]], "exact")

    def test_two_metrics_of_one_name(self):
        def one(tp, fp, fn, tn):
            return tp + 0.0

        with raises(
            ls.InputError,
            "`metrics` must have distinct names, got two called 'one'.",
            "Name them: `Metric(name, function)`",
        ):
            DENSE.summary([one, Metric("one", lambda tp, fp, fn, tn: fp)])
        assert list(DENSE.summary([one, "f1", "f1"]).expected) == ["one", "f1"]

    def test_metrics_as_one_string(self):
        with raises(
            ls.InputError, "`metrics` must be a sequence of metrics, got 'f1'. Write ['f1']."
        ):
            DENSE.summary("f1")


class TestProbabilities:
    @pytest.mark.parametrize("shape", [(4,), (1, 3), (1, 1), (2, 0), (1, 2, 2), ()])
    def test_dense_shape(self, shape):
        with raises(
            ls.InputError,
            "`probabilities` must have shape (n_samples, 2**n_labels)",
            f"got shape {shape}",
            "`LabelsetTable`, for marginals `IndependentLabels`",
        ):
            ls.DenseDistribution(np.zeros(shape))

    @pytest.mark.parametrize("shape", [(4,), (2, 0), (1, 2, 2), ()])
    def test_marginals_shape(self, shape):
        with raises(
            ls.InputError,
            "`marginals` must have shape (n_samples, n_labels)",
            f"got shape {shape}",
            "`[marginals]`",
        ):
            ls.IndependentLabels(np.zeros(shape))

    @pytest.mark.parametrize("make", [ls.DenseDistribution, ls.IndependentLabels])
    @pytest.mark.parametrize("values", [[["a", "b"]], [[1j, 0]], [[None, 1.0]]])
    def test_dtype(self, make, values):
        with raises(
            ls.InputError,
            "must be an array of real numbers, got dtype",
            "`np.asarray(..., dtype=float)`",
        ):
            make(values)

    @pytest.mark.parametrize(
        "make", [ls.DenseDistribution, ls.IndependentLabels, ls.as_distribution]
    )
    def test_ragged(self, make):
        with raises(
            ls.InputError, "must be a rectangular array of numbers, got rows of different lengths."
        ):
            make([[0.5, 0.5], [1.0]])

    @pytest.mark.parametrize("value", [-0.1, 1.1, np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_marginals_outside_the_unit_interval(self, value, dtype):
        p = np.full((3, 2), 0.5, dtype=dtype)
        p[2, 1] = value
        with raises(
            ls.InputError,
            "`marginals` must lie in [0, 1], got",
            "in row 2, column 1.",
            "must be filled in" if np.isnan(value) else 'kind="logit"',
        ):
            ls.IndependentLabels(p)

    @pytest.mark.parametrize("value", [-0.1, np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("normalise", [False, True])
    def test_not_finite_or_negative(self, value, normalise):
        P = np.full((3, 4), 0.25)
        P[1, 2] = value
        text = (
            "`probabilities` must be finite and not negative, row 1 is not. Mend or drop that row."
        )
        with raises(ls.InputError, text):
            ls.DenseDistribution(P, normalise=normalise)
        with raises(ls.InputError, text):
            ls.DenseDistribution(P.astype(np.float32), normalise=normalise)
        with raises(ls.InputError, text):
            ls.LabelsetTable([[[0], [1], [0], [1]]] * 3, P, normalise=normalise)

    def test_a_negative_value_does_not_hide_in_a_sum_of_one(self):
        with raises(ls.InputError, "must be finite and not negative, row 0 is not"):
            ls.DenseDistribution([[1.5, -0.5]])

    def test_sums(self):
        P = [[0.25, 0.75], [0.5, 0.4]]
        text = "must sum to one for each instance, row 1 sums to 0.9. Pass `normalise=True`"
        with raises(ls.InputError, text):
            ls.DenseDistribution(P)
        with raises(ls.InputError, text):
            ls.LabelsetTable([[[0], [1]]] * 2, P)

    def test_nothing_to_normalise(self):
        text = "`probabilities` cannot be normalised where all are zero, as in row 1. Mend or drop"
        with raises(ls.InputError, text):
            ls.DenseDistribution([[1, 1], [0, 0]], normalise=True)
        with raises(ls.InputError, text):
            ls.LabelsetTable([[[0]], [[1]]], [[1], [0]], normalise=True)


class TestTables:
    @pytest.mark.parametrize(
        ("labelsets", "probabilities", "text"),
        [
            ([[[0]]], [[1.0], [1.0]], "one entry for each instance, got 1 and 2."),
            (
                [[[0], [1]]],
                [[1.0]],
                "`probabilities[0]` must have one value for each of the 2 labelsets of instance 0",
            ),
            (
                [[[0]], np.empty((0, 1))],
                [[1.0], []],
                "of the 0 labelsets of instance 1, at least one, got shape (0,).",
            ),
            ([[[0]]], [1.0], "`probabilities[0]` must have one value for each of the 1 labelsets"),
            (
                [[[0, 1]], [[1]]],
                [[1.0], [1.0]],
                "`labelsets[1]` must have 2 labels (columns), got 1.",
            ),
            ([[0, 1]], [[1.0]], "`labelsets[0]` must have shape (n_samples, n_labels)"),
            (
                [[[0, 2]]],
                [[1.0]],
                "`labelsets[0]` must contain only 0 and 1, got 2 in row 0, column 1.",
            ),
            (
                [[[0]]],
                [["a"]],
                "`probabilities[0]` must be an array of real numbers, got dtype <U1.",
            ),
            (
                [],
                [],
                "must say the number of labels: pass an array of shape (0, k, n_labels), got",
            ),
            (
                3,
                [[1.0]],
                "`labelsets` must be a list with one array for each instance, or one array, got",
            ),
            (
                [[[0]]],
                None,
                "must be a list with one array for each instance, or one array, got NoneType.",
            ),
            (np.array(1), [[1.0]], "`labelsets` must be a list with one array for each instance"),
        ],
    )
    def test_tables(self, labelsets, probabilities, text):
        with raises(ls.InputError, text):
            ls.LabelsetTable(labelsets, probabilities)

    @pytest.mark.parametrize("shape", [(2, 3), (2, 0, 3), (2, 3, 0), (1,)])
    def test_samples(self, shape):
        with raises(
            ls.InputError,
            "`samples` must have shape (n_samples, size, n_labels) with at least one draw",
            f"got shape {shape}",
            "`[draws]`",
        ):
            ls.LabelsetTable.from_samples(np.zeros(shape))

    def test_ragged_samples(self):
        with raises(
            ls.InputError,
            "`samples` must have shape (n_samples, size, n_labels)",
            "got lists of different lengths.",
            "`normalise=True`",
        ):
            ls.LabelsetTable.from_samples([[[0, 1]], [[0, 1], [1, 1]]])


class TestArrays:
    def test_unknown_kind(self):
        with raises(
            ls.UnknownNameError,
            "Unknown kind 'logits'. Did you mean 'logit'? Known: marginal, joint, logit.",
        ):
            ls.as_distribution([[0.5]], kind="logits")

    def test_a_label_with_a_single_class(self):
        with raises(
            ls.InputError,
            "one array of shape (n_samples, 2) for each label, got shape (3, 1) for label 1.",
            "A label with a single class",
        ):
            ls.as_distribution([np.full((3, 2), 0.5), np.ones((3, 1))])
        with raises(ls.InputError, "got shape (2, 2) for label 1."):
            ls.as_distribution([np.full((3, 2), 0.5), np.full((2, 2), 0.5)])

    def test_three_axes(self):
        with raises(
            ls.InputError,
            "must have shape (n_samples, n_labels, 2)",
            "got shape (1, 2, 3). For draws use `LabelsetTable.from_samples`",
        ):
            ls.as_distribution(np.zeros((1, 2, 3)))

    def test_pairs(self):
        pairs = np.full((2, 3, 2), 0.5)
        pairs[1, 2] = [0.5, 0.25]
        with raises(ls.InputError, "sum to one, got [0.5, 0.25] in row 1, label 2."):
            ls.as_distribution(pairs)
        pairs[1, 2] = [1.5, -0.5]
        with raises(
            ls.InputError, "`source` must lie in [0, 1], got 1.5 in row 1, column 2, entry 0."
        ):
            ls.as_distribution(pairs)

    def test_logits(self):
        with raises(ls.InputError, "`logits` must hold logits that are numbers, got NaN in row 1."):
            ls.as_distribution([[0.0, 2.0], [np.nan, 0.0]], kind="logit")

    @pytest.mark.parametrize("kind", ["marginal", "joint", "logit"])
    def test_one_row_without_brackets(self, kind):
        with raises(ls.InputError, "must have shape (n_samples, ", "got shape (2,)"):
            ls.as_distribution([0.5, 0.5], kind=kind)

    def test_logits_taken_for_marginals(self):
        with raises(
            ls.InputError,
            "must lie in [0, 1], got 3.0 in row 0, column 1.",
            'pass kind="logit" to `as_distribution`',
        ):
            ls.as_distribution([[0.5, 3.0]])


class TestQuestions:
    @for_each_kind
    def test_mismatched_labelsets(self, dist):
        for ask, name in (
            (dist.log_prob, "Y"),
            (lambda Y: ls.expected_accuracy(dist, Y, metric="f1"), "Y_pred"),
        ):
            with raises(
                ls.InputError,
                f"`{name}` must have 2 labels (columns), got 3.",
                "that the distribution was made for",
            ):
                ask(np.zeros((2, 3)))
            with raises(
                ls.InputError,
                f"`{name}` must have 2 rows, got 1. Pass one labelset for each instance.",
            ):
                ask(np.zeros((1, 2)))
            with raises(
                ls.InputError, f"`{name}` must contain only 0 and 1, got 0.5 in row 1, column 0."
            ):
                ask([[0, 0], [0.5, 1]])

    @for_each_kind
    @pytest.mark.parametrize("k", [0, -1, 5, 1.0, "2", None])
    def test_k(self, dist, k):
        with raises(ls.InputError, f"`k` must be a whole number from 1 to 2**2, got {k!r}."):
            dist.top(k)

    @for_each_kind
    @pytest.mark.parametrize("size", [-1, 1.0, None, (2, 3)])
    def test_size(self, dist, size):
        with raises(ls.InputError, f"`size` must be a whole number >= 0, got {size!r}."):
            dist.sample(size)

    @for_each_kind
    @pytest.mark.parametrize("random_state", [-1, 0.5, "seed"])
    def test_random_state(self, dist, random_state):
        with raises(
            ls.InputError,
            "`random_state` must be a whole number >= 0, a numpy generator or None",
            f"got {random_state!r}.",
        ):
            dist.sample(1, random_state=random_state)

    @for_each_kind
    def test_rows(self, dist):
        for row in (2, -3):
            with raises(IndexError, f"Row {row} is out of range for 2 instances."):
                dist[row]
        with pytest.raises(IndexError):
            dist[[0, 2]]
        with pytest.raises(IndexError):
            dist[[True, False, True]]
        with raises(IndexError, "Rows must be an index, a slice, indices or a mask, got 2 axes."):
            dist[[[0, 1], [1, 0]]]

    @pytest.mark.parametrize("dist", [[[0.5, 0.5]], None, np.zeros((1, 2))])
    def test_what_is_no_distribution(self, dist):
        got = f"`dist` must be a LabelsetDistribution, got {type(dist).__name__}."
        for ask in (
            lambda: ls.confidence(dist),
            lambda: ls.decide(dist, "f1"),
            lambda: ls.expected_accuracy(dist, metric="f1"),
        ):
            with raises(ls.InputError, got, "Wrap probabilities with `as_distribution`."):
                ask()

    @pytest.mark.parametrize("names", ["hp", ["HP", "hp"]])
    def test_unknown_candidate(self, names):
        text = "Unknown candidate 'hp'. Did you mean 'HP'? Known: HP, TG, SE, CE, ME, GI, CS, ESS."
        with raises(ls.UnknownNameError, text):
            ls.confidence(DENSE, names)
        with raises(ls.UnknownNameError, text):
            confidence_of_profile(DENSE.profile(), names)

    def test_candidates_that_are_no_names(self):
        with raises(ls.InputError, "`candidates` must be a name or names out of HP, TG", "got 7."):
            ls.confidence(DENSE, 7)
        with raises(ls.UnknownNameError, "Unknown candidate ['HP']."):
            ls.confidence(DENSE, [["HP"]])


def one_of(L):
    return [
        ls.IndependentLabels(np.full((3, L), 0.25)),
        ls.LabelsetTable(np.ones((3, 1, L)), np.ones((3, 1))),
    ]


class TestTooLarge:
    @pytest.mark.parametrize(
        ("L", "needs"),
        [
            (40, "24.0 TiB"),
            (64, "over 10**8 TiB"),
            (5000, "over 10**1494 TiB"),
            (20000, "over 10**6009 TiB"),
        ],
    )
    def test_all_probabilities(self, L, needs):
        for dist in one_of(L):
            with raises(
                ls.TooLargeError,
                f"All 2**{L} probabilities of 3 instances need {needs}",
                "more than the 2.0 GiB allowed.",
                "Use `marginals`, `log_prob`, `top`, `sample` or `profile`",
            ):
                dist.probabilities()

    @pytest.mark.parametrize("L", [40, 5000])
    def test_no_instance_has_as_many_columns(self, L):
        for dist in one_of(L):
            with raises(ls.TooLargeError, f"All 2**{L} probabilities"):
                dist[:0].probabilities()

    def test_the_limit_can_be_moved(self):
        with raises(ls.TooLargeError, "need 64.0 bytes, more than the 63.0 bytes allowed"):
            DENSE.probabilities(max_bytes=63)
        assert DENSE.probabilities(max_bytes=64).shape == (2, 4)

    @pytest.mark.parametrize("L", [40, 5000])
    def test_top_and_sample(self, L):
        for dist in one_of(L):
            with raises(
                ls.TooLargeError,
                "The `k` most probable labelsets of 3 instances need",
                "Ask for fewer",
            ):
                dist.top(2**40)
            with raises(
                ls.TooLargeError,
                "`size` draws of 3 instances need",
                "more than the 2.0 GiB allowed. Draw fewer",
            ):
                dist.sample(2**40)

    @pytest.mark.parametrize("kind", ["independent", "trellis"])
    def test_the_search_for_the_most_probable(self, kind, monkeypatch):
        """It takes more than what it returns, which alone would be allowed."""
        monkeypatch.setenv("LABELSURE_NUM_THREADS", "2")
        dist = ls.IndependentLabels(np.full((3, 200), 0.25))
        needs = "need 3.4 GiB"  # 512 + 2 * 200 bytes for each
        if kind == "trellis":
            dist = ls.TrellisDistribution([np.full((3, 1), 0.25)] * 200, [()] * 200, range(200))
            needs = "need 47.7 GiB"  # on two threads 200 entries of 32 bytes for each
        with raises(
            ls.TooLargeError,
            f"The search for the `k` most probable labelsets of 200 labels {needs}",
            "more than the 2.0 GiB allowed. Ask for fewer.",
        ):
            dist[:2].top(4 * 10**6)

    def test_size_marginals(self):
        dist = ls.IndependentLabels(np.full((11, 5000), 0.5))
        with raises(
            ls.TooLargeError,
            "P(y_j = 1 and |y| = s) of 11 instances with 5000 labels need 2.0 GiB",
            "fewer instances",
        ):
            dist.size_marginals()

    @pytest.mark.parametrize("L", [13, 20, 40, 5000])
    def test_deciding_under_a_function(self, L):
        def hit(tp, fp, fn, tn):
            return tp > 0

        for dist in one_of(L):
            with raises(
                ls.TooLargeError,
                "The best labelset under the metric 'hit' is only known by comparing all pairs",
                f"for at most 12 labels, got {L}.",
                "`expected_accuracy`",
            ):
                ls.decide(dist, hit)
            if L <= 40:  # the way out that the message names
                assert ls.expected_accuracy(dist, metric=hit).shape == (3,)

    @pytest.mark.parametrize(
        ("n_bytes", "text"),
        [
            (0, "0.0 bytes"),
            (1023, "1023.0 bytes"),
            (1024, "1.0 KiB"),
            (3 * 2**29, "1.5 GiB"),
            (2**40, "1.0 TiB"),
            (2**50, "1024.0 TiB"),
            (2**59, "524288.0 TiB"),
            (2**60, "over 10**6 TiB"),
        ],
    )
    def test_how_sizes_are_spelled(self, n_bytes, text):
        assert format_bytes(n_bytes) == text
