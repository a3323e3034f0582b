"""Plans that are wrong on purpose: nothing is called, nothing is written, one sentence says why."""

import sys
from copy import deepcopy
from datetime import date, datetime, time
from types import ModuleType

import pytest
import tomli_w

from labelsure.errors import InputError, LabelsureError
from labelsure.study import Plan, load_plan
from labelsure.study._plan_parts import is_installed

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
    with pytest.raises(InputError, match=r"\[base\] must be an estimator class with .*`predict_pr"):
        plan.base.build()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("missing", ["fit", "get_params", "predict_proba"])
def test_an_estimator_has_all_of_its_methods(tmp_path, monkeypatch, modules, missing):
    monkeypatch.chdir(tmp_path)
    methods = [name for name in ("fit", "get_params", "predict_proba") if name != missing]
    lines = [f"    def {name}(self): ..." for name in methods]
    lines.append("    def __init__(self): open('MADE', 'w')")
    modules("nearly_a_learner", "\n".join(["class Nearly:", *lines]))
    plan = write_plan(tmp_path, base={"class": "nearly_a_learner.Nearly"})
    with pytest.raises(InputError, match=r"must be an estimator class with .*, which Nearly is no"):
        load_plan(plan, trust_imports=True)
    assert not (tmp_path / "MADE").exists()


def test_modules_outside_of_installed_packages_need_trust(tmp_path, modules):
    text = "from sklearn.linear_model import LogisticRegression as Mine\n"
    modules("learner_of_ones_own", f"open({str(tmp_path / 'MADE')!r}, 'w').close()\n{text}")
    plan = write_plan(tmp_path, base={"class": "learner_of_ones_own.Mine"})
    message = (
        r"Plan 'mine': The class of \[base\], 'learner_of_ones_own.Mine', is in a module outside "
        r"of the installed packages, .*, pass `trust_imports=True` \(`--trust-imports`"
    )
    with pytest.raises(InputError, match=message):
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


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("raise SystemExit(7)", "SystemExit: 7"),
        ("import sys; sys.exit()", "SystemExit"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import pytest; pytest.skip(allow_module_level=True)", "Skipped"),
        ("import no_such_module", "No module named 'no_such_module'"),
        ("def broken(:", "SyntaxError"),
    ],
)
def test_modules_that_cannot_be_imported(tmp_path, modules, text, reason):
    modules("leaves_at_once", text)
    plan = write_plan(tmp_path, base={"class": "leaves_at_once.Learner"})
    with pytest.raises(
        InputError, match=rf"'leaves_at_once.Learner', cannot be imported.*{reason}"
    ):
        load_plan(plan, trust_imports=True)


@pytest.mark.parametrize("path", ["..X", ".X", "X.", "a..X", "sklearn svm.SVC", "-.X", "a\0b.X"])
def test_paths_that_are_none(tmp_path, path):
    plan = write_plan(tmp_path, base={"class": path})
    with pytest.raises(InputError, match=r"The class of \[base\] must be an import path, got '"):
        load_plan(plan)


def test_a_learner_that_loses_its_probabilities_by_its_parameters(tmp_path, modules):
    modules(
        "sometimes_sure",
        "from sklearn.linear_model import LogisticRegression\n"
        "from sklearn.utils.metaestimators import available_if\n"
        "class Sometimes(LogisticRegression):\n"
        "    predict_proba = available_if(lambda self: self.C > 1)(lambda self, X: X)\n",
    )
    plan = write_plan(tmp_path, base={"class": "sometimes_sure.Sometimes", "C": 0.5})
    with pytest.raises(
        InputError, match=r"must have `predict_proba`, which Sometimes has not with"
    ):
        load_plan(plan, trust_imports=True)
    good = write_plan(tmp_path, base={"class": "sometimes_sure.Sometimes", "C": 2.0})
    assert load_plan(good, trust_imports=True).base.parameters == {"C": 2.0}


@pytest.mark.parametrize("value", [date(1979, 5, 27), time(7, 32), datetime(1979, 5, 27, 7, 32)])
def test_dates_and_times(tmp_path, value):
    plan = write_plan(tmp_path, base={**GOOD["base"], "C": [{"when": value}]})
    message = rf"`base.C.when` in the plan must be .*, got the {type(value).__name__} .*as a string"
    with pytest.raises(InputError, match=message):
        load_plan(plan)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("seed = " + "9" * 5000, "Plan 'mine': a number in it has too many digits"),
        ("seed = " + "9" * 4000, "`seed` in the plan must be a whole number of at most 64 bits"),
        ("seed = 0x" + "f" * 9000, "`seed` in the plan must be a whole number of at most 64 bits"),
        (
            f"seed = 4294967296\n{tomli_w.dumps(GOOD)}",
            r"`seed` must be a whole number from 0 to 2147483647, got 42949672",
        ),
        ("seed = " + "[" * 5000, "Plan 'mine': its lists and tables are nested too deeply"),
        ("base.x = " + "[" * 50 + "]" * 50, r"`base.x` in the plan must not be nested deeper than"),
        ("base" + ".x" * 200 + " = 1", r"must not be nested deeper than 10 lists and tables"),
    ],
)
def test_numbers_and_nests_without_end(tmp_path, line, message):
    path = tmp_path / "mine.toml"
    path.write_text(line)
    with pytest.raises(InputError, match=message) as caught:
        load_plan(path)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("dependence", [1e300, -1e300, 101.0, -101.0])
def test_a_dependence_without_bounds(tmp_path, dependence):
    simulated = {"n_samples": 60, "n_labels": 3, "dependence": dependence}
    plan = load_plan(write_plan(tmp_path, datasets={"small": {"simulated": simulated}}))
    with pytest.raises(InputError, match="`dependence` must be a number from -100 to 100, got"):
        plan.datasets[0].load()
    inside = {"simulated": {**simulated, "dependence": dependence / abs(dependence) * 100}}
    plan = load_plan(write_plan(tmp_path, datasets={"small": inside}))
    assert plan.datasets[0].load().data.n_samples == 60


WHOLE = {
    **GOOD,
    "name": "mine",
    "description": "for people",
    "n_repeats": 2,
    "test_share": 0.5,
    "seed": 1,
    "metrics": ["exact"],
    "candidates": ["HP"],
    "empty": 1.0,
    "engine": "auto",
    "best_labels": 3,
    "n_replicates": 2,
    "by_instance": True,
    "scaler": {"class": "sklearn.preprocessing.StandardScaler", "with_mean": True},
    "datasets": {
        "simulated": {
            "simulated": {
                "n_samples": 30,
                "n_labels": 2,
                "n_features": 2,
                "dependence": 1.0,
                "cardinality": 1.0,
                "noise": 0.5,
                "random_state": 1,
            }
        },
        "named": {"name": "own", "source": "openml", "labels": 1, "index": "a", "drop": "b"},
        "own": {
            "file": "own.csv",
            "labels": "y",
            "index": "a",
            "drop": "b",
            "sep": ";",
            "nominal": "onehot",
        },
    },
}
STRANGE = [
    [[]], [["x"]], [{}], [[[1]]], [1], [True], [date(2000, 1, 1)],
    {}, {"x": {}}, {"class": 1}, {"class": {"class": []}}, {"x": [{}]},
    "", "x", "\0", "a" * 3000, "..", "[bold]", -1, 0, 2**62, 1.5, 1e300,
    float("nan"), float("inf"), True, False, time(1, 2), datetime(2000, 1, 1),
]  # fmt: skip


def places_of(table, before=()):
    """Yield where in a nested table there is something."""
    for key, value in table.items():
        yield (*before, key)
        if isinstance(value, dict):
            yield from places_of(value, (*before, key))


def place_value(place, value):
    """Return the whole plan with another value somewhere."""
    settings = deepcopy(WHOLE)
    inner = settings
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return settings


def assert_sentence_or_result(call):
    """Return what a call returns, or the one sentence with which it refuses."""
    try:
        return call()
    except LabelsureError as error:
        sentence = str(error)
    assert len(sentence.splitlines()) == 1
    return sentence


@pytest.mark.parametrize("place", list(places_of(WHOLE)), ids=".".join)
def test_whatever_stands_at_any_place_gets_a_sentence_or_works(tmp_path, place):
    rows = "\n".join(f"{i},2,{i % 3},u;v" for i in range(9))
    (tmp_path / "own.csv").write_text(f"a,b,c,y\n{rows}")
    path = tmp_path / "mine.toml"
    for value in STRANGE:
        path.write_text(tomli_w.dumps(place_value(place, value)), encoding="utf-8")
        plan = assert_sentence_or_result(lambda: load_plan(path))
        if isinstance(plan, Plan):
            changed = [source for source in plan.datasets if source.key in place]
            for source in changed or plan.datasets[:1]:
                assert_sentence_or_result(lambda source=source: source.load(tmp_path))
