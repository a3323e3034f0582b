"""Plans: what ships, what is read, and what is said of every mistake."""

import tomllib

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from labelsure.errors import DataError, InputError, UnknownNameError
from labelsure.study._cells import plan_cells
from labelsure.study._plan import Plan, load_plan, shipped_plans
from labelsure.study.analyses._all_analyses import AnalysisSettings

GOOD = """
[base]
class = "sklearn.linear_model.LogisticRegression"
[classifiers.Indep]
class = "BinaryRelevance"
[datasets.small]
simulated = { n_samples = 60, n_labels = 3 }
"""


def plan_of(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return load_plan(path)


@pytest.mark.parametrize("name", ["embedded", "paper", "paper-standardised", "quick", "wide"])
def test_shipped_plans_survive_being_written_and_read(name):
    plan = load_plan(name)
    assert name in shipped_plans()
    assert Plan.from_dict(tomllib.loads(tomli_w.dumps(plan.to_dict()))) == plan


def test_the_paper_plans_are_what_the_method_says():
    paper, standard = load_plan("paper"), load_plan("paper-standardised")
    assert (paper.base.parameters["C"], standard.base.parameters["C"]) == (0.1, 1.0)
    assert paper.scaler is None
    assert standard.scaler.path == "sklearn.preprocessing.StandardScaler"
    for plan in (paper, standard):
        assert (plan.n_repeats, plan.test_share, plan.empty, plan.engine) == (5, 0.4, 0.0, "dense")
        assert list(plan.classifiers) == ["Indep", "CT", "ECC"]
        assert plan.classifiers["ECC"].parameters["n_chains"] == 10
        sources = {source.key: source.settings for source in plan.datasets}
        assert list(sources) == ["emotions", "scene", "yeast", "stare", "enron", "slashdot"]
        assert sources["enron"]["labels"] == "last20"
        assert len(plan_cells(plan)) == 90


def test_the_wide_plan_asks_six_classifiers():
    wide, embedded = load_plan("wide"), load_plan("embedded")
    wide.check_classes()
    kinds = {type(wide.classifier(name, 0)).__name__ for name in wide.classifiers}
    assert len(kinds) == len(wide.classifiers) == 6
    assert wide.datasets == embedded.datasets


def test_only_the_base_learner_differs_between_the_paper_plans():
    paper, standard = load_plan("paper").to_dict(), load_plan("paper-standardised").to_dict()
    different = {key for key in standard if standard[key] != paper.get(key)}
    assert different == {"name", "description", "base", "scaler"}


def test_a_plan_of_ones_own_has_defaults(tmp_path):
    plan = plan_of(tmp_path, GOOD)
    assert (plan.name, plan.n_repeats, plan.metrics[0]) == ("mine", 5, "exact")


def test_files_are_relative_to_the_plan(tmp_path):
    text = GOOD + '[datasets.own]\nfile = "own.csv"\nlabels = ["a", "b"]\n'
    plan = plan_of(tmp_path, text)
    assert plan.datasets[1].settings["file"] == str(tmp_path.resolve() / "own.csv")


TOP_LEVEL = [
    ("repeats = 3", r"Plan 'mine': Unknown key of the plan 'repeats'. Did you mean 'n_repeats'\?"),
    ("replicates = 3", r"Unknown key of the plan 'replicates'. Did you mean 'n_replicates'\?"),
    ("n_repeats = 0", r"`n_repeats` must be a whole number from 1 to 10000, got 0"),
    ("n_repeats = true", r"`n_repeats` must be a whole number from 1 to 10000, got True"),
    ("seed = -1", r"`seed` must be a whole number from 0 to 2147483647, got -1"),
    ("by_instance = 1", r"`by_instance` must be true or false, got 1"),
    ("best_labels = 1.5", r"`best_labels` must be a whole number >= 0, got 1.5"),
    ("n_replicates = 0", r"`n_replicates` must be a whole number from 1 to 10000, got 0"),
    ("test_share = 1.0", r"`test_share` must be a number between 0 and 1, got 1.0"),
    ('test_share = "x"', r"`test_share` must be a number between 0 and 1, got 'x'"),
    ('metrics = ["jacard"]', r"Unknown entry of `metrics` 'jacard'. Did you mean 'jaccard'\?"),
    ("metrics = []", r"`metrics` must be a list of at least one name, got \(\)"),
    ('metrics = "exact"', r"`metrics` must be a list of at least one name, got 'exact'"),
    ('candidates = ["HQ"]', r"Unknown entry of `candidates` 'HQ'"),
    ('candidates = ["HP", "HP"]', r"`candidates` must not name anything twice, got HP, HP"),
    ("empty = 2", r"`empty` must be a number in \[0, 1\]"),
    ('engine = "dens"', r"Unknown engine 'dens'. Did you mean 'dense'\?"),
    ("name = 3", r"`name` of the plan must be a string, got 3"),
    ("description = 3", r"`description` of the plan must be a string, got 3"),
    ("datasets = 3 3", r"Plan 'mine': this is not TOML that can be read: "),
    pytest.param(
        "seed = " + "9" * 5000,
        r"Plan 'mine': this is not TOML that can be read: .*4300 digits",
        id="digits",
    ),
    pytest.param(
        "seed = " + "[" * 5000,
        r"Plan 'mine': this is not TOML that can be read: .*recursion",
        id="lists",
    ),
    pytest.param(
        "seed" + ".x" * 2000 + " = 1",
        r"Plan 'mine': its tables are nested too deeply. Flatten it",
        id="dots",
    ),
]


@pytest.mark.parametrize(("line", "message"), TOP_LEVEL)
def test_wrong_settings(tmp_path, line, message):
    with pytest.raises(InputError, match=message):
        plan_of(tmp_path, f"{line}\n{GOOD}")


TABLES = [
    ("[datasets.x]\nlabel = 1", r"Unknown key of \[datasets.x\] 'label'. Did you mean 'labels'\?"),
    ('[datasets.x]\nname = "a"\nfile = "b"', r"must have one of .*, got name and file"),
    ("[datasets.x]\nname = 3", r"`name` in \[datasets.x\] must be a string, got 3"),
    ("[datasets.x]\nfile = 3", r"`file` in \[datasets.x\] must be a string, got 3"),
    ('[datasets.x]\nfile = "a"\nsource = "b"', r"is a file, so it must not have the key `source`"),
    (
        '[datasets.x]\nsep = ";"',
        r"has a name, so it must not have the key `sep`. Read it as a `file`",
    ),
    ("[datasets.x]\nsimulated = 3", r"`simulated` in \[datasets.x\] must be a table"),
    ("[datasets.x]\nsimulated = { n = 3 }", r"Unknown argument of `simulated` in \[datasets.x\]"),
    ("[datasets.x]\nsimulated = {}\nlabels = 3", r"is simulated, so it must not have .*`labels`"),
    ('[datasets."a b"]', r"Names in `datasets` must consist of letters.*got 'a b'"),
    ("[classifiers.X]", r"\[classifiers.X\] must be a table with the key `class`"),
    ('[classifiers.X]\nclass = "BinaryRelevanc"', r"Did you mean 'BinaryRelevance'\?"),
    (
        '[classifiers.X]\nclass = "BinaryRelevance"\nn_job = 1',
        r"Unknown parameter of \[classifiers.X\] \(BinaryRelevance\) 'n_job'. Did you mean 'n_j",
    ),
    (
        '[classifiers.X]\nclass = "sklearn.svm.LinearSVC"',
        r"\[classifiers.X\] must be an estimator class with `fit`, `get_params`, "
        r"`predict_distribution` or `predict_proba`, which LinearSVC is not",
    ),
    (
        '[scaler]\nclass = "sklearn.svm.SVC"',
        r"\[scaler\] must be an estimator class with .*`transform`",
    ),
    ('[scaler]\nclass = "StandardScaler"', r"must be an import path, got 'StandardScaler'"),
    (
        '[scaler]\nclass = "sklearn.no_such.X"',
        r"class of \[scaler\], 'sklearn.no_such.X', cannot be imported: No module named",
    ),
    (
        '[scaler]\nclass = "sklearn.preprocessing.StandardScale"',
        r"Unknown class of \[scaler\] .* Did you mean 'StandardScaler'\?",
    ),
    ('[scaler]\nclass = "sklearn.preprocessing.scale"', r"must be a class, got the function"),
    (
        '[scaler]\nclass = "sklearn.compose.ColumnTransformer"',
        r"\[scaler\] must give parameters that ColumnTransformer takes, but it says: .*missing 1",
    ),
]


@pytest.mark.parametrize(("text", "message"), TABLES)
def test_wrong_tables(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        plan_of(tmp_path, f"{GOOD}\n{text}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The plan must have the key `datasets`"),
        ("datasets = 3\nclassifiers = 3\nbase = 3", "`datasets` must hold at least one table"),
        (GOOD.replace("[datasets.small]", "[datasets]\nsmall = 3\n[x]"), "Unknown key of the plan"),
        (
            '[base]\nclass = "x.Y"\n[classifiers]\n[datasets.digits]',
            "`classifiers` must hold at least one table",
        ),
        (GOOD.split("[datasets")[0] + "[datasets]\nx = 3", r"\[datasets.x\] must be a table"),
        (
            GOOD.replace("linear_model.LogisticRegression", "svm.LinearSVC"),
            r"\[base\] must be an estimator class with .*`predict_proba`, which LinearSVC is not",
        ),
    ],
)
def test_what_is_missing(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        plan_of(tmp_path, text)


def test_plans_that_are_not_there(tmp_path):
    with pytest.raises(UnknownNameError, match=r"Unknown plan 'papr'. Did you mean 'paper'\?"):
        load_plan("papr")
    with pytest.raises(DataError, match="There is no plan file"):
        load_plan(tmp_path / "no.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="cannot be read"):
        load_plan(tmp_path / "binary.toml")


VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), VALUES, max_size=4))
def test_whatever_parameters_a_plan_has_it_survives_being_written_and_read(parameters):
    settings = load_plan("quick").to_dict()
    settings["base"] = {**parameters, "class": "x.Learner"}
    settings["description"] = " ".join(parameters)
    plan = Plan.from_dict(settings)
    assert plan.base.parameters == {k: v for k, v in parameters.items() if k != "class"}
    assert Plan.from_dict(tomllib.loads(tomli_w.dumps(plan.to_dict()))) == plan


def test_settings_of_the_analyses_come_from_the_plan():
    changes = {"metrics": ["f1"], "candidates": ["SE"], "empty": 0.25, "seed": 3}
    changes |= {"n_replicates": 4, "by_instance": True}
    plan = Plan.from_dict({**load_plan("quick").to_dict(), **changes})
    expected = AnalysisSettings(("f1",), ("SE",), 0.25, True, 4, "rates", 3)
    assert AnalysisSettings.from_plan(plan) == expected


def test_the_record_of_an_older_run_is_read_under_the_names_of_today():
    plan = Plan.from_record({"repeats": 3, "replicates": 7, "empty": 0.0}, ["a", "b"], ["net"])
    assert (plan.n_repeats, plan.n_replicates, plan.empty) == (3, 7, 0.0)
    assert [source.key for source in plan.datasets] == ["a", "b"]
    assert list(plan.classifiers) == ["net"]
    classes = {"class": "no_such.Class"}
    whole = {"base": classes, "classifiers": {"X": classes}, "datasets": {"c": {}}}
    plan = Plan.from_record(whole, ["a"], ["net"])  # nothing of it is imported
    assert (plan.base.path, list(plan.classifiers)) == ("no_such.Class", ["X"])
    with pytest.raises(UnknownNameError, match="Unknown key of the plan 'seeds'"):
        Plan.from_record({"seeds": 3}, ["a"], ["net"])
