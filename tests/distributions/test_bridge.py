"""The bridge as a whole: its list of questions is the class, the documentation and all kinds."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
import strategies

import labelsure as ls
from labelsure import distributions
from labelsure.distributions._answers import PRIMITIVES

ARCHITECTURE = Path(__file__).parents[2] / "ARCHITECTURE.md"
REQUIRED = {
    "_take",
    "_marginals",
    "_log_prob",
    "_sample",
    "_top",
    "_summary",
    "_expected_by_counts",
    "_size_marginals",
    "_probabilities",
    "_max_marginals",
    "_temper",
}
SIZES = {
    "n_samples",
    "n_labels",
    "label_names",
    "index",
    "with_index",
    "align",
    "sparse_rows",
    "__len__",
    "__repr__",
}
SHOWN = {"to_frame", "plot"}  # to people; the base class `ShownInstances` has them


def concrete_kinds():
    found, waiting = set(), [ls.LabelsetDistribution]
    while waiting:
        for kind in waiting.pop().__subclasses__():
            waiting.append(kind)
            if kind.__module__.partition(".")[0] == "labelsure" and not inspect.isabstract(kind):
                found.add(kind.__name__)
    return found


def test_the_questions_are_the_public_methods():
    public = {name for name in dir(ls.LabelsetDistribution) if not name.startswith("_")}
    assert public | {"__getitem__", "__len__", "__repr__"} == set(PRIMITIVES) | SIZES | SHOWN


def test_the_primitives_are_the_private_methods():
    named = {name for names in PRIMITIVES.values() for name in names}
    private = {
        name
        for name, member in inspect.getmembers(ls.LabelsetDistribution, inspect.isfunction)
        if re.fullmatch("_[a-z_]*[a-z]", name)
    }
    assert private == named
    assert ls.LabelsetDistribution.__abstractmethods__ == REQUIRED
    assert named > REQUIRED


def section(title):
    text = ARCHITECTURE.read_text(encoding="utf-8")
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.M | re.S).group(1)


def test_the_documentation_lists_the_same():
    """A table: the question in the first column, its primitives in the second."""
    listed = {}
    for line in section("The bridge").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| `") and len(cells) > 1:
            (question,) = re.findall(r"`(\w+)`", cells[0])
            listed[question] = tuple(re.findall(r"`(\w+)`", cells[1]))
    assert listed == PRIMITIVES


def test_the_kinds_are_all_concrete_subclasses():
    kinds = concrete_kinds()
    exported = {
        name
        for name in distributions.__all__
        if inspect.isclass(getattr(distributions, name))
        and issubclass(getattr(distributions, name), ls.LabelsetDistribution)
    }
    assert exported == kinds | {"LabelsetDistribution"}
    # The labelsets of these are no arrays: `test_sparse_labels.py` compares all their answers.
    sparse = {"SparseIndependentLabels"}
    drawn = {type(strategies.many(kind, 1)).__name__ for kind in strategies.KINDS}
    assert drawn | sparse == kinds


@pytest.mark.parametrize("kind", strategies.KINDS)
def test_no_kind_adds_a_question_of_its_own(kind):
    """But for what it is made from, and what is its own property."""
    own = type(strategies.many(kind, 1))
    added = {
        name for name in dir(own) if name[0] != "_" and not hasattr(ls.LabelsetDistribution, name)
    }
    made = {name for name in added if isinstance(inspect.getattr_static(own, name), classmethod)}
    properties = {name for name in added if isinstance(getattr(own, name, None), property)}
    assert added == made | properties


@pytest.mark.parametrize("kind", strategies.KINDS)
def test_what_is_no_mixture_has_no_members(kind):
    dist = strategies.many(kind, 2)
    assert (dist.members() is None) == (
        not isinstance(dist, (ls.ChainMixture, ls.IndependentMixture))
    )


def test_guesses_that_are_none_are_refused():
    dist = ls.IndependentLabels([[0.2, 0.6], [0.1, 0.9]])
    shape = r"`Y_pred` .* must have shape \(2, n_guesses, 2\) and at least one guess, got shape "
    for wrong in ((1, 3, 2), (2, 3, 1), (2, 0, 2)):
        with pytest.raises(ls.InputError, match=shape + re.escape(str(wrong))):
            dist.expected("jaccard", np.zeros(wrong))
    guesses = np.zeros((2, 3, 2))
    guesses[1, 2, 0] = 0.5
    with pytest.raises(ls.InputError, match=r"got 0.5 in row 1, guess 2, column 0. This looks"):
        dist.expected("jaccard", guesses)


def test_bounds_of_several_guesses_stand_beside_each_other():
    rows = [(np.array([g, g + 5]), np.array([g - 1, g + 4]), np.full(2, g + 9)) for g in range(3)]
    columns = [distributions.Expected(*row) for row in rows]
    stacked = distributions.Expected.stack(columns)
    assert stacked.value.tolist() == [[0, 1, 2], [5, 6, 7]]
    assert stacked.low.tolist() == [[-1, 0, 1], [4, 5, 6]]
    assert stacked.high.tolist() == [[9, 10, 11], [9, 10, 11]]


def test_guesses_have_the_bounds_that_they_have_alone():
    chain = ls.LinearChain([1, 0, 2], [[0.3, -1.0, 0.5]] * 2, np.zeros((3, 3)))
    dist = ls.ChainMixture([chain], engine="certified", tolerance=0.0, budget=3)
    guesses = np.array([[[1, 0, 0], [1, 1, 1]], [[0, 0, 0], [0, 1, 0]]])
    found = dist.expected("f1", guesses)
    assert (found.low < found.high).all()
    for g in range(2):
        alone = dist.expected("f1", guesses[:, g])
        for name in ("value", "low", "high"):
            assert getattr(found, name)[:, g].tolist() == getattr(alone, name).tolist()
