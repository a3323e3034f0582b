"""No cell is kept after the code that it depends on has changed."""

import pytest

from labelsure.classifiers import BinaryRelevance, RecalibratedClassifier
from labelsure.study import cells
from labelsure.study.cells import digest_code
from labelsure.study.plan import Plan, load_plan
from labelsure.study.run import run_study

FILES = {
    "cells.py": "from labelsure.models import Model\n",
    "models/__init__.py": "def fit():\n    from labelsure import sums\n",
    "sums.py": "total = sum\n",
    "pages.py": "from labelsure.cells import Model\n",
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of four modules; `cells` depends on two of the others."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(cells, "_ROOT", tmp_path)
    digest_code.cache_clear()
    yield tmp_path
    digest_code.cache_clear()


@pytest.mark.parametrize("name", FILES)
def test_a_change_counts_where_the_code_is_used(package, name):
    before = digest_code("labelsure.cells")
    (package / name).write_text(FILES[name] + "more = 1\n")
    digest_code.cache_clear()
    assert (digest_code("labelsure.cells") == before) == (name == "pages.py")


def test_cells_depend_on_what_makes_numbers_and_not_on_what_shows_them():
    names = set(cells._find_files(["labelsure.study.cells", "labelsure.classifiers"]))
    needed = {
        "estimation.score_table",
        "metrics.registry",
        "decisions._rules",
        "_kernels.chain_joints",
        "tables.arff",
    }
    needed |= {"classifiers._chain_classifiers", "distributions._enumeration", "study.plan"}
    assert {f"labelsure.{name}" for name in needed} <= names
    assert "labelsure.cli" not in names
    shown = {"run", "analyses", "mixture", "tables", "figures", "report", "paper"}
    assert not {f"labelsure.study.{name}" for name in shown} & names


def test_cells_of_other_code_are_computed_again(tmp_path, monkeypatch):
    settings = load_plan("quick").to_dict()
    indep = {"class": "BinaryRelevance"}
    plan = Plan.from_dict({**settings, "n_repeats": 1, "classifiers": {"Indep": indep}})
    assert run_study(plan, tmp_path, n_jobs=1).n_computed == 2
    assert run_study(plan, tmp_path, n_jobs=1).n_kept == 2
    monkeypatch.setattr("labelsure.study.cells.digest_code", lambda *modules: str(modules))
    assert run_study(plan, tmp_path, n_jobs=1).n_computed == 2


def test_a_class_of_ones_own_is_part_of_the_code(tmp_path, monkeypatch):
    own = tmp_path / "own_class.py"
    own.write_text("from labelsure.classifiers import BinaryRelevance as Own\n")
    monkeypatch.syspath_prepend(tmp_path)
    spec = load_plan("quick").to_dict() | {"classifiers": {"Own": {"class": "own_class.Own"}}}
    plan = Plan.from_dict({**spec, "n_repeats": 1})
    assert plan.classifiers["Own"].own_module == "own_class"
    before = digest_code("own_class")
    own.write_text(own.read_text() + "# changed\n")
    digest_code.cache_clear()
    assert digest_code("own_class") != before


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("labelsure.BinaryRelevance", BinaryRelevance.__module__),
        ("labelsure.classifiers.RecalibratedClassifier", RecalibratedClassifier.__module__),
        ("sklearn.ensemble.RandomForestClassifier", ""),
    ],
)
def test_modules_of_classes(path, module):
    classifiers = {"A": {"class": path}}
    plan = Plan.from_dict({**load_plan("quick").to_dict(), "classifiers": classifiers})
    assert plan.classifiers["A"].own_module == module
