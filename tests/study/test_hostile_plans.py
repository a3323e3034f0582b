"""Plans that are wrong on purpose: nothing is called, nothing is written, one sentence says why."""

import sys
from types import ModuleType

import pytest
import tomli_w

from labelsure._runtime.code import is_installed
from labelsure.errors import InputError
from labelsure.study.plan import Plan, load_plan

GOOD = {
    "base": {"class": "sklearn.linear_model.LogisticRegression"},
    "classifiers": {"Indep": {"class": "BinaryRelevance"}},
    "datasets": {"small": {"simulated": {"n_samples": 60, "n_labels": 3}}},
}


def write_plan(folder, **changes):
    path = folder / "mine.toml"
    path.write_text(tomli_w.dumps({**GOOD, **changes}))
    return path


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Return a function that makes a module outside of the installed packages."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)

    return write


CALLS = {
    "subprocess.Popen": {"args": ["touch", "MADE"]},
    "io.FileIO": {"file": "MADE", "mode": "w"},
    "logging.FileHandler": {"filename": "MADE"},
    "pathlib.Path": {},
}


@pytest.mark.parametrize("trust_imports", [True, False])
@pytest.mark.parametrize("part", ["base", "scaler", "classifiers"])
@pytest.mark.parametrize("path", CALLS)
def test_a_plan_calls_nothing_but_estimators(tmp_path, monkeypatch, path, part, trust_imports):
    monkeypatch.chdir(tmp_path)
    table = {"class": path, **CALLS[path]}
    plan = write_plan(tmp_path, **{part: {"X": table} if part == "classifiers" else table})
    reason = "must be an estimator class with" if trust_imports else "outside of the installed"
    with pytest.raises(InputError, match=reason):
        load_plan(plan, trust_imports=trust_imports)
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine.toml"]


def test_a_class_is_looked_at_whoever_made_the_plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = Plan.from_dict({**GOOD, "base": {"class": "io.FileIO", **CALLS["io.FileIO"]}})
    with pytest.raises(InputError, match="class"):
        plan.base.build()
    assert list(tmp_path.iterdir()) == []


def test_modules_outside_of_installed_packages_need_trust(tmp_path, modules):
    text = "from sklearn.linear_model import LogisticRegression as Mine\n"
    modules("learner_of_ones_own", f"open({str(tmp_path / 'MADE')!r}, 'w').close()\n{text}")
    plan = write_plan(tmp_path, base={"class": "learner_of_ones_own.Mine"})
    with pytest.raises(InputError, match="trust_imports"):
        load_plan(plan)
    assert not (tmp_path / "MADE").exists()  # it was not even imported
    assert load_plan(plan, trust_imports=True).base.path == "learner_of_ones_own.Mine"
    assert (tmp_path / "MADE").exists()


def test_what_is_installed(modules, tmp_path, monkeypatch):
    assert all(is_installed(name) for name in ("sklearn.svm", "numpy", "labelsure.classifiers"))
    assert not any(is_installed(name) for name in ("subprocess", "sys", "no_such"))
    monkeypatch.setitem(sys.modules, "made_by_hand", ModuleType("made_by_hand"))
    assert not is_installed("made_by_hand")
    modules("lies_around", "")
    (tmp_path / "in_a_folder").mkdir()  # a package without __init__
    assert not is_installed("lies_around")
    assert not is_installed("in_a_folder.module")
    assert "lies_around" not in sys.modules


@pytest.mark.parametrize("text", ["raise SystemExit(7)", "1 / 0", "def broken(:"])
def test_modules_that_cannot_be_imported(tmp_path, modules, text):
    modules("leaves_at_once", text)
    plan = write_plan(tmp_path, base={"class": "leaves_at_once.Learner"})
    with pytest.raises(InputError, match="cannot be imported"):
        load_plan(plan, trust_imports=True)


@pytest.mark.parametrize(
    "line",
    [
        "seed = " + "9" * 5000,
        "seed = " + "[" * 5000,
        *(f"{key}{'.x' * 3000} = 1" for key in ("seed", "base")),
    ],
    ids=["digits", "lists", "a number of tables", "parameters"],
)
def test_numbers_and_nests_without_end(tmp_path, line):
    path = tmp_path / "mine.toml"
    path.write_text(
        line + "\n" + tomli_w.dumps({key: GOOD[key] for key in ("classifiers", "datasets")})
    )
    with pytest.raises(InputError) as caught:
        load_plan(path)
    assert len(str(caught.value)) < 500
