"""Plans: what ships, what is read, and what is said of every mistake."""

import tomllib

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from labelsure.errors import DataError, InputError, UnknownNameError
from labelsure.study.cells import plan_cells
from labelsure.study.plan import Plan, Settings, load_plan, shipped_plans

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


PAPER_PLANS = ("paper", "paper-lasso", "paper-lasso-cv", "paper-standardised")


@pytest.mark.parametrize("name", ["embedded", *PAPER_PLANS, "quick", "wide"])
def test_shipped_plans_survive_being_written_and_read(name):
    plan = load_plan(name)
    assert name in shipped_plans()
    assert Plan.from_dict(tomllib.loads(tomli_w.dumps(plan.to_dict()))) == plan


def test_the_paper_plans_are_what_the_method_says():
    paper, standard = load_plan("paper"), load_plan("paper-standardised")
    assert (paper.base.parameters["C"], standard.base.parameters["C"]) == (0.1, 1.0)
    assert paper.scaler is None
    assert standard.scaler.path == "sklearn.preprocessing.StandardScaler"
    for plan in map(load_plan, PAPER_PLANS):
        assert plan.mixture_empty == 1.0
        assert (plan.n_repeats, plan.test_share, plan.empty, plan.engine) == (5, 0.4, 0.0, "dense")
        assert list(plan.classifiers) == ["Indep", "CT", "ECC"]
        assert plan.classifiers["ECC"].parameters["n_chains"] == 10
        names = ["emotions", "scene", "yeast", "stare", "enron", "slashdot"]
        assert list(plan.datasets) == names
        assert plan.datasets["enron"].labels == "last20"
        assert len(plan_cells(plan)) == 90


def test_the_wide_plan_asks_five_classifiers():
    wide, embedded = load_plan("wide"), load_plan("embedded")
    wide.check_classes()
    kinds = {type(wide.classifier(name, 0)).__name__ for name in wide.classifiers}
    assert len(kinds) == len(wide.classifiers) == 5
    assert wide.datasets == embedded.datasets


def test_only_the_base_learner_differs_between_the_paper_plans():
    paper, standard = load_plan("paper").to_dict(), load_plan("paper-standardised").to_dict()
    different = {key for key in standard if standard[key] != paper.get(key)}
    assert different == {"name", "description", "base", "scaler"}
    lasso, by_class_error = (load_plan(f"paper-lasso{end}").to_dict() for end in ("", "-cv"))
    different = {key for key in lasso if lasso[key] != by_class_error.get(key)}
    assert different == {"name", "description", "base"}
    different = {key for key in lasso if lasso[key] != paper.get(key)}
    assert different == {"name", "description", "base", "classifiers"}
    trellis = {"class": "labelsure.classifiers.ClassifierTrellis", "placement": "random"}
    assert lasso["classifiers"] == {**paper["classifiers"], "CT": trellis}


def test_a_plan_of_ones_own_has_defaults(tmp_path):
    plan = plan_of(tmp_path, GOOD)
    assert (plan.name, plan.n_repeats, plan.metrics[0]) == ("mine", 5, "exact")


def test_files_are_relative_to_the_plan(tmp_path):
    text = GOOD + '[datasets.own]\nfile = "own.csv"\nlabels = ["a", "b"]\n'
    plan = plan_of(tmp_path, text)
    assert plan.datasets["own"].file == str(tmp_path.resolve() / "own.csv")


TOP_LEVEL = [
    ("repeats = 3", r"Plan 'mine': Unknown key of the plan 'repeats'. Did you mean 'n_repeats'\?"),
    ("n_repeats = 0", r"`n_repeats` must be greater than or equal to 1, got 0"),
    ("n_repeats = 10001", r"`n_repeats` must be less than or equal to 10000, got 10001"),
    ("n_repeats = true", r"`n_repeats` must be a valid integer, got True"),
    ("seed = -1", r"`seed` must be greater than or equal to 0, got -1"),
    ("seed = 2147483648", r"`seed` must be less than or equal to 2147483647"),
    ("by_instance = 1", r"`by_instance` must be a valid boolean, got 1"),
    ("n_replicates = 0", r"`n_replicates` must be greater than or equal to 1, got 0"),
    ("test_share = 1.0", r"`test_share` must be less than 1, got 1.0"),
    ('test_share = "x"', r"`test_share` must be a valid number, got 'x'"),
    ('metrics = ["jacard"]', r"`metrics`: Unknown metric 'jacard'. Did you mean 'jaccard'\?"),
    ("metrics = []", r"`metrics` must have at least 1 item after validation, not 0, got \[\]"),
    ('metrics = "exact"', r"`metrics` must be a valid tuple, got 'exact'"),
    ('candidates = ["HQ"]', r"`candidates`: Unknown candidate 'HQ'"),
    ('candidates = ["HP", "HP"]', r"`candidates` must not name a candidate twice, got HP, HP"),
    ("empty = 2", r"`empty` must be a number in \[0, 1\]"),
    ('engine = "dens"', r"`engine`: Unknown engine 'dens'. Did you mean 'dense'\?"),
    ("name = 3", r"`name` must be a valid string, got 3"),
    (
        "scaler = { class = 'x.Y', C = 1979-05-27 }",
        r"`scaler.C` .*got datetime.date\(1979, 5, 27\)",
    ),
    ("datasets = 3 3", r"Plan 'mine': must be valid TOML, but it is not: "),
]


@pytest.mark.parametrize(("line", "message"), TOP_LEVEL)
def test_wrong_settings(tmp_path, line, message):
    with pytest.raises(InputError, match=message):
        plan_of(tmp_path, f"{line}\n{GOOD}")


TABLES = [
    ("[datasets.x]\nlabel = 1", r"Unknown key of `datasets.x` 'label'. Did you mean 'labels'\?"),
    (
        '[datasets.x]\nname = "a"\nfile = "b"',
        r"`datasets.x` must have one of .*, got name and file",
    ),
    ("[datasets.x]\nname = 3", r"`datasets.x.name` must be a valid string, got 3"),
    (
        '[datasets.x]\nfile = "a"\nsource = "b"',
        r"`datasets.x` must not have the key `source` beside `file`",
    ),
    ('[datasets.x]\nsep = ";"', r"must not have the key `sep` beside `name`"),
    ('[datasets.x]\nindex = "id"', r"must not have the key `index` beside `name`"),
    ('[datasets.x]\ndrop = ["id"]', r"must not have the key `drop` beside `name`"),
    ("[datasets.x]\nsimulated = 3", r"`datasets.x.simulated` must be a valid dictionary, got 3"),
    ("[datasets.x]\nsimulated = { n = 3 }", r"`datasets.x`: Unknown argument of `simulated` 'n'"),
    ("[datasets.x]\nsimulated = {}\nlabels = 3", r"key `labels` beside `simulated`"),
    ('[datasets."a b"]', r"`datasets.a b` must match pattern .*, got 'a b'"),
    ("[classifiers.X]", r"The plan must have the key `classifiers.X.class`"),
    ("[classifiers.X]\nclass = 3", r"`classifiers.X.class` must be a valid string, got 3"),
    (
        '[classifiers.X]\nclass = "BinaryRelevanc"',
        r"`classifiers.X.class`: Unknown classifier .* Did you mean 'BinaryRelevance'\?",
    ),
    (
        '[classifiers.X]\nclass = "BinaryRelevance"\nn_job = 1',
        r"`classifiers.X`: Unknown parameter of BinaryRelevance 'n_job'. Did you mean 'n_jobs'\?",
    ),
    (
        '[classifiers.X]\nclass = "sklearn.svm.LinearSVC"',
        r"`classifiers.X`: 'sklearn.svm.LinearSVC' must be an estimator class with `fit`, "
        r"`get_params` and `predict_distribution` or `predict_proba`, which it is not",
    ),
    ('[scaler]\nclass = "sklearn.svm.SVC"', r"`scaler`: .* estimator class with .*`transform`"),
    (
        '[scaler]\nclass = "StandardScaler"',
        r"`scaler.class` must be an import path .*, got 'StandardScaler'",
    ),
    (
        '[scaler]\nclass = "sklearn.no_such.X"',
        r"`scaler`: 'sklearn.no_such.X' cannot be imported: ModuleNotFoundError: No module named",
    ),
    (
        '[scaler]\nclass = "sklearn.preprocessing.StandardScale"',
        r"`scaler`: Unknown class of sklearn.preprocessing .* Did you mean 'StandardScaler'\?",
    ),
    ('[scaler]\nclass = "sklearn.preprocessing.scale"', r"`scaler`: .* must be an estimator class"),
    (
        '[scaler]\nclass = "sklearn.compose.ColumnTransformer"',
        r"`scaler`: ColumnTransformer must take the parameters of the plan, .*missing 1",
    ),
    (
        '[classifiers.X]\nclass = "sklearn.svm.SVC"',
        r"`classifiers.X`: SVC must have .*, which it has not with these parameters",
    ),
]


@pytest.mark.parametrize(("text", "message"), TABLES)
def test_wrong_tables(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        plan_of(tmp_path, f"{GOOD}\n{text}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The plan must have the key `base`"),
        ("datasets = 3\nclassifiers = 3\nbase = 3", "`base` must be a valid dictionary"),
        (
            '[base]\nclass = "x.Y"\n[classifiers]\n[datasets.digits]',
            "`classifiers` must have at least 1 item after validation",
        ),
        (GOOD.split("[datasets")[0] + "[datasets]\nx = 3", r"`datasets.x` must be a valid dict"),
        (
            GOOD.replace("linear_model.LogisticRegression", "svm.LinearSVC"),
            r"`base`: 'sklearn.svm.LinearSVC' must be an estimator class with .*`predict_proba`",
        ),
    ],
)
def test_what_is_missing(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        plan_of(tmp_path, text)


def test_plans_that_are_not_there(tmp_path):
    with pytest.raises(UnknownNameError, match="paper"):
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


def test_a_plan_is_the_settings_of_its_analyses():
    changes = {"metrics": ["f1"], "candidates": ["SE"], "empty": 0.25, "seed": 3}
    changes |= {"n_replicates": 4, "by_instance": True}
    plan = Plan.from_dict({**load_plan("quick").to_dict(), **changes})
    own = Settings(**changes)
    assert all(getattr(plan, name) == getattr(own, name) for name in Settings.model_fields)
    assert plan.rank_candidates == ("SE",)
