"""The base class as a whole: its methods are those of the documentation and of all kinds."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
import strategies

import labelsure as ls
from labelsure import distributions

ARCHITECTURE = Path(__file__).parents[2] / "ARCHITECTURE.md"
QUESTIONS = {
    "marginals",
    "marginal_bounds",
    "log_prob",
    "sample",
    "top",
    "mode",
    "profile",
    "expected",
    "probabilities",
    "temper",
    "with_engine",
    "align",
    "to_frame",
    "plot",
}
SIZES = {"n_samples", "n_labels", "label_names", "index", "rules", "sparse_rows"}
HELPERS = {
    "_align_truth",
    "_repr_html_",
    "_with_index",
    "_dense_blocks",
    "_write",
    "_simple",
    "_summarise",
}


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
    assert public == QUESTIONS | SIZES


def section(title):
    text = ARCHITECTURE.read_text(encoding="utf-8")
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.M | re.S).group(1)


def test_the_documentation_lists_the_same():
    """A table: questions, primitives, and the defaults of those that are not required."""
    lines = section("The base class").splitlines()
    rows = [line.split("|")[1:4] for line in lines if line.startswith("|")][2:]
    asked, answered = ([re.findall(r"`(\w+)`", row[column]) for row in rows] for column in (0, 1))
    assert {name for names in asked for name in names} == QUESTIONS
    listed = {name for names in answered for name in names}
    private = {
        name
        for name, member in inspect.getmembers(ls.LabelsetDistribution, inspect.isfunction)
        if re.fullmatch("_[a-z_]*[a-z]", name)
    }
    assert listed == private - HELPERS
    defaults = [row[2].strip() for row in rows]
    required = {
        names[0] for names, default in zip(answered, defaults, strict=True) if not default and names
    }
    assert required == ls.LabelsetDistribution.__abstractmethods__


def test_the_kinds_are_all_concrete_subclasses():
    kinds = concrete_kinds()
    exported = {
        name
        for name in distributions.__all__
        if inspect.isclass(getattr(distributions, name))
        and issubclass(getattr(distributions, name), ls.LabelsetDistribution)
    }
    assert exported == kinds - {"TemperedJoint", "ValidLabelsets"} | {"LabelsetDistribution"}
    # The labelsets of these are no arrays: `test_sparse_labels.py` compares all their answers.
    sparse = {"SparseIndependentLabels"}
    drawn = {type(strategies.many(kind, 1)).__name__ for kind in strategies.KINDS}
    of_the_guide = {"LabelCounts"}
    assert drawn | sparse == kinds | of_the_guide


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
    assert (not dist._members) == (not isinstance(dist, ls.distributions.ChainMixture))


def test_guesses_that_are_none_are_refused():
    dist = ls.IndependentLabels([[0.2, 0.6], [0.1, 0.9]])
    shape = r"`Y_pred` must have shape \(2, n_guesses, 2\) with at least one guess, got shape "
    for wrong in ((1, 3, 2), (2, 3, 1), (2, 0, 2)):
        with pytest.raises(ls.InputError, match=shape + re.escape(str(wrong))):
            dist.expected("jaccard", np.zeros(wrong))
    guesses = np.zeros((2, 3, 2))
    guesses[1, 2, 0] = 0.5
    with pytest.raises(ls.InputError, match="guess"):
        dist.expected("jaccard", guesses)


def test_guesses_have_the_bounds_that_they_have_alone():
    chain = ls.distributions.LinearChain([1, 0, 2], [[0.3, -1.0, 0.5]] * 2, np.zeros((3, 3)))
    dist = ls.distributions.ChainMixture([chain], engine="certified", tolerance=0.0, budget=3)
    guesses = np.array([[[1, 0, 0], [1, 1, 1]], [[0, 0, 0], [0, 1, 0]]])
    found = dist.expected("f1", guesses)
    assert (found.low < found.high).all()
    for g in range(2):
        alone = dist.expected("f1", guesses[:, g])
        for name in ("value", "low", "high"):
            assert getattr(found, name)[:, g].tolist() == getattr(alone, name).tolist()
