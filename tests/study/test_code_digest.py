"""No cell is kept after the code that it may depend on has changed."""

import pytest

from labelsure._runtime import code
from labelsure._runtime.code import digest_code
from labelsure.study.plan import Plan, load_plan
from labelsure.study.run import run_study

SETTINGS = {**load_plan("quick").to_dict(), "n_repeats": 1}


@pytest.fixture
def module_folder(tmp_path, monkeypatch):
    folder = tmp_path / "modules"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    digest_code.cache_clear()
    yield folder
    digest_code.cache_clear()


def computed(plan, folder):
    digest_code.cache_clear()
    done = run_study(plan, folder / "run", n_jobs=1)
    assert done.n_computed in (0, 2)
    assert done.n_computed + done.n_kept == 2
    return done.n_computed == 2


def test_cells_of_another_library_version_are_computed_again(tmp_path, monkeypatch):
    plan = Plan.from_dict({**SETTINGS, "classifiers": {"Indep": {"class": "BinaryRelevance"}}})
    assert [computed(plan, tmp_path), computed(plan, tmp_path)] == [True, False]
    real = code.version
    monkeypatch.setattr(
        code, "version", lambda name: "99.0" if name == "scikit-learn" else real(name)
    )
    assert [computed(plan, tmp_path), computed(plan, tmp_path)] == [True, False]
    digest_code.cache_clear()


def test_a_module_that_a_class_of_the_user_imports_is_part_of_the_code(module_folder, tmp_path):
    helper = module_folder / "own_helper.py"
    helper.write_text("C = 1.0\n")
    (module_folder / "own_class.py").write_text(
        "from labelsure.classifiers import BinaryRelevance as Own\nfrom own_helper import C\n"
    )
    plan = Plan.from_dict({**SETTINGS, "classifiers": {"Own": {"class": "own_class.Own"}}})
    assert [computed(plan, tmp_path), computed(plan, tmp_path)] == [True, False]
    helper.write_text("C = 1e-6\n")
    assert [computed(plan, tmp_path), computed(plan, tmp_path)] == [True, False]


@pytest.mark.parametrize("key", ["base", "scaler"])
def test_base_learner_and_scaler_of_the_user_are_part_of_the_code(module_folder, tmp_path, key):
    module = module_folder / f"own_{key}.py"
    module.write_text(
        "from sklearn.linear_model import LogisticRegression as Base\n"
        "from sklearn.preprocessing import StandardScaler as Scaler\n"
    )
    indep = {"Indep": {"class": "BinaryRelevance"}}
    spec = {"class": f"own_{key}.{key.capitalize()}"}
    plan = Plan.from_dict({**SETTINGS, "classifiers": indep, key: spec})
    assert [computed(plan, tmp_path), computed(plan, tmp_path)] == [True, False]
    module.write_text(module.read_text() + "# changed\n")
    assert [computed(plan, tmp_path), computed(plan, tmp_path)] == [True, False]
