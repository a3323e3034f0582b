"""Scores by label as other systems give them: dicts, pairs, yes and no, tensors."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import labelsure as ls
from labelsure.errors import DataError, InputError

LABELS = ["billing", "login", "urgent"]
probability = st.floats(0.01, 0.99)
tables = st.lists(st.tuples(probability, probability, probability), min_size=1, max_size=5)

STORED = [
    [
        {"label": "urgent", "score": 0.91},
        {"label": "login", "score": 0.4},
        {"label": "billing", "score": 0.02},
    ],
    [
        {"label": "billing", "score": 0.88},
        {"label": "urgent", "score": 0.5},
        {"label": "login", "score": 0.01},
    ],
]
"""In the form of `pipeline("text-classification", top_k=None)`: the highest score first."""


def marginals(source, **settings):
    return ls.as_distribution(source, label_names=LABELS, **settings).marginals()


@given(tables, st.randoms(use_true_random=False))
def test_all_forms_say_the_same(rows, random):
    def shuffled(row):
        return random.sample(list(zip(LABELS, row, strict=True)), 3)

    expected = marginals(np.array(rows))
    dicts = [dict(shuffled(row)) for row in rows]
    pairs = [[{"label": label, "score": p} for label, p in shuffled(row)] for row in rows]
    lists = [
        dict(zip(("labels", "scores"), map(list, zip(*shuffled(row), strict=True)), strict=True))
        for row in rows
    ]
    series = pd.Series([json.dumps(row) for row in dicts], index=range(5, 5 + len(rows)))
    for form in (dicts, pairs, lists, series, pd.DataFrame(dicts)):
        np.testing.assert_array_equal(marginals(form), expected)
    logs = [{label: float(np.log(p)) for label, p in row.items()} for row in dicts]
    np.testing.assert_allclose(marginals(logs, kind="logprob"), expected, rtol=1e-12)
    both = [{label: {"yes": p / 2, "no": (1 - p) / 2} for label, p in row.items()} for row in dicts]
    np.testing.assert_allclose(marginals(both), expected, rtol=1e-12)
    in_logs = [
        {label: {word: float(np.log(p)) for word, p in pair.items()} for label, pair in row.items()}
        for row in both
    ]
    np.testing.assert_allclose(marginals(in_logs, kind="logprob"), expected, rtol=1e-12)


def test_stored_output_of_a_pipeline():
    np.testing.assert_allclose(marginals(STORED), [[0.02, 0.4, 0.91], [0.88, 0.01, 0.5]])
    assert ls.as_distribution(STORED).label_names == ("urgent", "login", "billing")
    Y = pd.DataFrame([[0, 0, 1], [1, 0, 0]], columns=LABELS)
    model = ls.PrecomputedProbabilities().fit(STORED, Y)
    assert model.label_names_ == tuple(LABELS)
    np.testing.assert_allclose(model.predict_proba(STORED[:1]), [[0.02, 0.4, 0.91]])
    assert model.fit(STORED, [["urgent"], ["billing"]]).predict(STORED[1:]).sum() == 1


def test_a_list_that_is_cut_off_is_refused_or_has_a_floor():
    cut = [row[:2] for row in STORED]
    with pytest.raises(DataError, match=r"Row 0 .*'billing' has no score.*`floor`"):
        marginals(cut)
    Y = pd.DataFrame([[0, 0, 1], [1, 0, 0]], columns=LABELS)
    for kind, scale in (("marginal", float), ("logprob", np.log)):
        said = [{p["label"]: float(scale(p["score"])) for p in row} for row in cut]
        model = ls.PrecomputedProbabilities(kind, LABELS, floor=0.001)
        for form in (said, pd.DataFrame(said)):
            found = model.fit(form, Y).predict_proba(form)
            np.testing.assert_allclose(found, [[0.001, 0.4, 0.91], [0.88, 0.001, 0.5]])


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        ([{"billing": 0.1, "login": 0.2, "spam": 0.3}], "marginal", "'spam'"),
        ([{"billing": 1.2, "login": 0.2, "urgent": 0.3}], "marginal", r"\[0, 1\]"),
        ([{"billing": 0.2, "login": 0.2, "urgent": 0.3}], "logprob", "at most 0"),
        ([{"billing": None, "login": 0.2, "urgent": 0.3}], "marginal", "finite number"),
        ([{"billing": 0.1, "login": 0.2, "urgent": 0.3}, "no idea"], "marginal", "Row 1"),
        ([{"billing": {"yes": 0.0, "no": 0.0}, "login": 0.2, "urgent": 0.3}], "marginal", "finite"),
    ],
)
def test_what_is_refused(source, kind, message):
    with pytest.raises((InputError, DataError), match=message):
        marginals(source, kind=kind)


def test_rows_that_sum_to_one_are_warned_of():
    with pytest.warns(ls.ProbabilityWarning, match="softmax"):
        marginals([{"billing": 0.2, "login": 0.3, "urgent": 0.5}] * 3)


def test_the_flagship_takes_dicts_and_pairs():
    rng = np.random.default_rng(0)
    P = rng.beta(0.5, 1, size=(300, 3))
    Y = pd.DataFrame((rng.uniform(size=P.shape) < P).astype(int), columns=LABELS)
    dicts = [dict(zip(LABELS, row, strict=True)) for row in P.tolist()]
    pairs = [[{"label": label, "score": p} for label, p in row.items()] for row in dicts]
    expected = None
    for form in (pd.DataFrame(P, columns=LABELS), dicts, pairs):
        model = ls.AccuracyAwareClassifier(ls.PrecomputedProbabilities(), "f1", random_state=0)
        found = model.fit(form[:200], Y[:200]).predict_accuracy(form[200:])
        expected = found if expected is None else expected
        np.testing.assert_allclose(found, expected)


class Tensor:
    """As PyTorch has them: with a gradient, on a device, of a type that NumPy does not have."""

    def __init__(self, values, steps=("detach", "cpu", "float"), dtype="torch.bfloat16"):
        self.values, self.steps, self.dtype = values, steps, dtype

    def _after(self, step, dtype):
        assert self.steps[0] == step
        return Tensor(self.values, self.steps[1:], dtype)

    def detach(self):
        return self._after("detach", self.dtype)

    def cpu(self):
        return self._after("cpu", self.dtype)

    def float(self):
        return self._after("float", "torch.float32")

    def numpy(self):
        assert not self.steps
        return self.values


def test_a_tensor_is_detached_copied_and_widened():
    P = np.array([[0.9, 0.2, 0.4]], dtype=np.float32)
    np.testing.assert_array_equal(marginals(Tensor(P)), P)
    plain = Tensor(P, ("detach", "cpu"), "torch.float32")
    np.testing.assert_array_equal(marginals(plain), P)


def test_what_has_an_array_is_read():
    class Array:
        def __array__(self, dtype=None, copy=None):
            return np.array([[0.9, 0.2, 0.4]])

    np.testing.assert_array_equal(marginals(Array()), [[0.9, 0.2, 0.4]])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("library", ["torch", "jax"])
def test_arrays_of_other_libraries(library, dtype):
    module = pytest.importorskip(library)
    array = np.array([[0.75, 0.25, 0.5]], dtype=np.float32)
    if library == "torch":
        source = module.tensor(array, dtype=getattr(module, dtype), requires_grad=True)
    else:
        source = module.numpy.asarray(array, dtype=dtype)
    np.testing.assert_array_equal(marginals(source), array)
