"""No cell is kept after the code that it may depend on has changed."""

import pytest

from labelsure.study.cells import digest_code
from labelsure.study.plan import Plan, load_plan
from labelsure.study.run import run_study


@pytest.fixture
def module_folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    digest_code.cache_clear()
    yield tmp_path
    digest_code.cache_clear()


@pytest.mark.parametrize("changed", ["own_package/__init__.py", "own_package/inner/sums.py"])
def test_every_file_of_a_package_counts(module_folder, changed):
    for name in ("own_package/__init__.py", "own_package/inner/sums.py"):
        (module_folder / name).parent.mkdir(exist_ok=True)
        (module_folder / name).write_text("total = sum\n")
    before = digest_code("own_package")
    assert digest_code("own_package") == before
    (module_folder / changed).write_text("total = max\n")
    digest_code.cache_clear()
    assert digest_code("own_package") != before


def test_cells_of_other_code_are_computed_again(tmp_path, monkeypatch):
    settings = load_plan("quick").to_dict()
    indep = {"class": "BinaryRelevance"}
    plan = Plan.from_dict({**settings, "n_repeats": 1, "classifiers": {"Indep": indep}})
    assert run_study(plan, tmp_path, n_jobs=1).n_computed == 2
    assert run_study(plan, tmp_path, n_jobs=1).n_kept == 2
    monkeypatch.setattr("labelsure.study.cells.digest_code", str)
    assert run_study(plan, tmp_path, n_jobs=1).n_computed == 2


def test_a_class_of_the_user_is_part_of_the_code(module_folder):
    own = module_folder / "own_class.py"
    own.write_text("from labelsure.classifiers import BinaryRelevance as Own\n")
    spec = load_plan("quick").to_dict() | {"classifiers": {"Own": {"class": "own_class.Own"}}}
    plan = Plan.from_dict({**spec, "n_repeats": 1})
    assert plan.classifiers["Own"].user_module == "own_class"
    before = digest_code("own_class")
    own.write_text(own.read_text() + "# changed\n")
    digest_code.cache_clear()
    assert digest_code("own_class") != before


@pytest.mark.parametrize("path", ["labelsure.BinaryRelevance", "sklearn.svm.SVC"])
def test_installed_classes_are_no_code_of_the_user(path):
    classifiers = {"A": {"class": path}}
    plan = Plan.from_dict({**load_plan("quick").to_dict(), "classifiers": classifiers})
    assert plan.classifiers["A"].user_module == ""
