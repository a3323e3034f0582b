"""Fitted models of every kind, and saved files taken apart and put together again by hand.

Nothing here uses the package's own code for files: `join` writes the format as its page has it.
"""

import io
import json
import zipfile
from functools import cache

import numpy as np
import pandas as pd
from data_for_classifiers import make_problem
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

import labelsure as ls
from labelsure.classifiers.recalibration._base import Recalibration
from labelsure.tables.inputs import infer_roles

X, Y = make_problem(n_samples=200, n_labels=3)
P = np.random.default_rng(1).uniform(0.01, 0.99, size=(200, 3))
TRUTH = (np.random.default_rng(2).uniform(size=P.shape) < P).astype(int)
VOTES = ls.LabelsetTable.from_samples(np.stack([TRUTH, 1 - TRUTH, TRUTH], axis=1))
RULES = ls.LabelConstraints({"2": "0"})
GROUPS = np.repeat(["a", "b"], 100)


N_SPARSE = 20_000  # labels, of which ten are listed of each instance
LISTED = np.sort(np.random.default_rng(3).integers(0, 2000, size=(120, 10)) + 2000 * np.arange(10))
SPARSE = ls.SparseIndependentLabels.from_top(
    LISTED, np.random.default_rng(4).beta(0.4, 1.2, size=LISTED.shape), N_SPARSE
)


def fit_sparse(**settings):
    estimator = ls.PrecomputedProbabilities()
    model = ls.AccuracyAwareClassifier(estimator, "f1", cv=0.5, random_state=0, **settings)
    return model.fit(SPARSE.listed_marginals(), SPARSE.sample(1, random_state=5)[:, 0])


def fit_estimator(**settings):
    estimator = ls.AccuracyEstimator("jaccard", **settings)
    return estimator.fit(ls.IndependentLabels(P), TRUTH)


def fit_policy(**settings):
    rng = np.random.default_rng(0)
    score = rng.uniform(size=2000)
    return ls.AcceptPolicy(**settings).fit(score, (rng.uniform(size=2000) < score).astype(float))


def fit_aware(Y_pred=None, **settings):
    model = ls.AccuracyAwareClassifier(
        ls.BinaryRelevance(random_state=0), "hamming", 0.3, cv=0.5, random_state=0, **settings
    )
    return model.fit(X, Y, Y_pred=Y_pred)


def fit_thresholds():
    return ls.LabelThresholds("each").fit(ls.IndependentLabels(P), TRUTH)


TABLE = pd.DataFrame(
    {
        "id": [f"row {i}" for i in range(200)],
        "first": X[:, 0].round(3).astype(str),
        "colour": np.where(X[:, 1] > 0, "red", np.where(X[:, 0] > 0, "green", "blue")),
        "note": [f"word{i % 7} and another{i % 3} here" for i in range(200)],
    }
)
SCORES = pd.DataFrame(P, columns=["a", "b", "c"]).round(6)


def fit_columns():
    columns = ls.tables.TableColumns(infer_roles(TABLE, id_column="id"))
    pipeline = Pipeline([("columns", columns), ("classifier", ls.BinaryRelevance(random_state=0))])
    return ls.AccuracyAwareClassifier(pipeline, "hamming", cv=2, random_state=0).fit(TABLE, Y)


def fit_predictions():
    columns = ls.tables.PredictionColumns(["a", "b", "c"])
    truth = pd.DataFrame(TRUTH, columns=SCORES.columns)
    pipeline = Pipeline([("columns", columns), ("scores", ls.PrecomputedProbabilities())])
    frozen = FrozenEstimator(pipeline.fit(SCORES, truth))
    return ls.AccuracyAwareClassifier(frozen, random_state=0).fit(SCORES, truth)


MAKERS = {
    "TableColumns": lambda: ls.tables.TableColumns(infer_roles(TABLE, id_column="id")).fit(TABLE),
    "PredictionColumns": lambda: ls.tables.PredictionColumns(["a", "b", "c"]).fit(SCORES),
    "a table": fit_columns,
    "predictions": fit_predictions,
    "BinaryRelevance": lambda: ls.BinaryRelevance(random_state=0).fit(X, Y),
    "ClassifierTrellis": lambda: ls.classifiers.ClassifierTrellis(random_state=0).fit(X, Y),
    "ProbabilisticClassifierChain": lambda: ls.ProbabilisticClassifierChain(random_state=0).fit(
        X, Y
    ),
    "EnsembleOfClassifierChains": lambda: ls.EnsembleOfClassifierChains(
        n_chains=2, random_state=0
    ).fit(X, Y),
    "LabelPowerset": lambda: ls.LabelPowerset(random_state=0).fit(X, Y),
    "PrecomputedProbabilities": lambda: ls.PrecomputedProbabilities().fit(P, TRUTH),
    "sparse": fit_sparse,
    "sparse, recalibrated": lambda: fit_sparse(recalibration=ls.TemperatureScaling(gate=False)),
    "ridge": lambda: fit_estimator(features=["HP", "SE"]),
    "ridge of constant features": lambda: ls.AccuracyEstimator("hamming").fit(
        ls.IndependentLabels(0.5 + P / 2), TRUTH
    ),
    "AcceptPolicy": lambda: fit_policy(target=0.7, outcome="binary"),
    "AccuracyAwareClassifier": fit_aware,
    "TemperatureScaling": lambda: ls.TemperatureScaling(gate=False).fit(
        ls.IndependentLabels(P), TRUTH
    ),
    "LabelwiseCalibration": lambda: ls.LabelwiseCalibration(gate=False).fit(
        ls.IndependentLabels(P), TRUTH
    ),
    "ChainDependence": lambda: ls.classifiers.ChainDependence(gate=False).fit(
        ls.IndependentLabels(P), TRUTH
    ),
    "through rules": lambda: ls.ConstrainedCalibration(RULES).fit(
        ls.IndependentLabels(P), RULES.apply(ls.IndependentLabels(0.4 + 0.2 * P)).sample(1, 0)[:, 0]
    ),
    "rules as links": lambda: ls.ConstrainedCalibration(RULES).fit(
        ls.IndependentLabels(P), np.repeat(TRUTH[:, :1], 3, axis=1)
    ),
    "VoteSmoothing": lambda: ls.classifiers.VoteSmoothing(gate=False).fit(VOTES, TRUTH),
    "RecalibratedClassifier": lambda: ls.RecalibratedClassifier(random_state=0).fit(X, Y),
    "LabelThresholds": fit_thresholds,
    "judges the mode": lambda: fit_aware(decision="mode"),
    "judges its own predict": lambda: fit_aware(decision="predict"),
    "judges thresholds": lambda: fit_aware(decision=fit_thresholds()),
    "judges given predictions": lambda: fit_aware(Y),
    "top k": lambda: ls.LabelThresholds("top_k").fit(ls.IndependentLabels(P), TRUTH),
    "LabelsetRegion": lambda: ls.LabelsetRegion(coverage=0.8).fit(ls.IndependentLabels(P), TRUTH),
    "with a region": lambda: fit_aware(region=0.8),
    "region by group": lambda: ls.ByGroup(ls.LabelsetRegion(recall=0.8)).fit(
        ls.IndependentLabels(P), TRUTH, GROUPS
    ),
    "policy by group": lambda: ls.ByGroup(ls.AcceptPolicy(share=0.5)).fit(P[:, 0], P[:, 1], GROUPS),
    "recalibrated": lambda: fit_aware(recalibration=ls.TemperatureScaling(gate=False)),
    "of folds": lambda: ls.AccuracyAwareClassifier(
        ls.BinaryRelevance(random_state=0), cv=3, random_state=0
    ).fit(X, Y),
}


@cache
def fitted(kind):
    """A fitted model of a kind; tests do not change it."""
    return MAKERS[kind]()


def answers(model):
    """What a model says, to be compared to the last bit."""
    if isinstance(model, ls.AcceptPolicy):
        return [model.accept(np.linspace(0, 1, 101)), model.path().to_frame().to_numpy()]
    if isinstance(model, ls.AccuracyEstimator):
        return [model.predict(ls.IndependentLabels(P)), model.reference_.mean]
    if isinstance(model, ls.LabelsetRegion):
        return [model.predict(ls.IndependentLabels(P)).values, str(model)]
    if isinstance(model, ls.ByGroup) and isinstance(model.estimator, ls.AcceptPolicy):
        return [model.accept(P[:, 2], GROUPS), str(model)]
    if isinstance(model, ls.ByGroup):
        return [model.predict(ls.IndependentLabels(P), GROUPS).values, str(model)]
    if isinstance(model, ls.LabelThresholds):
        return [model.predict(ls.IndependentLabels(P)), model.accuracy_]
    if isinstance(model, ls.classifiers.VoteSmoothing):
        return [model.transform(VOTES).marginals(), str(model)]
    if isinstance(model, Recalibration):
        return [model.transform(ls.IndependentLabels(P)).marginals(), str(model)]
    if isinstance(model, ls.tables.TableColumns):
        return [model.transform(TABLE).toarray(), model.medians_]
    if isinstance(model, ls.tables.PredictionColumns):
        return [model.transform(SCORES).to_numpy()]
    if getattr(getattr(model, "card_", None), "columns", None):
        table = SCORES if model.card_.columns[0]["role"] == "probability" else TABLE
        return [model.predict(table), model.predict_accuracy(table)]
    if model.n_labels_ == N_SPARSE:
        listed = SPARSE.listed_marginals()
        return [model.predict(listed).indices, model.predict_accuracy(listed)]
    features = P if isinstance(model, ls.PrecomputedProbabilities) else X
    found = [model.predict_proba(features)]
    given = Y if getattr(model, "decision_", "") == "given" else None
    if given is None:
        found.append(model.predict(features))
    if isinstance(model, ls.AccuracyAwareClassifier):
        found.append(model.predict_accuracy(features, Y_pred=given))
    return found


@cache
def content_of(kind, folder):
    """The bytes of a saved model."""
    path = folder / "original.labelsure"
    fitted(kind).save(path)
    return path.read_bytes()


def split(content):
    """The entries of a zip file by name."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return {name: file.read(name) for name in file.namelist()}


def join(entries, compression=zipfile.ZIP_STORED):
    """A saved model of these entries."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, content in entries.items() if isinstance(entries, dict) else entries:
            file.writestr(name, content)
    return buffer.getvalue()


def change_json(content, entry, change):
    """The file with one of its JSON entries changed."""
    entries = split(content)
    values = json.loads(entries[entry])
    changed = change(values)
    entries[entry] = json.dumps(values if changed is None else changed).encode()
    return join(entries)


def nodes(part):
    """Every node of a schema."""
    if isinstance(part, dict):
        if "__loader__" in part:
            yield part
        for value in part.values():
            yield from nodes(value)
    elif isinstance(part, list):
        for value in part:
            yield from nodes(value)


def text_node(value):
    """A text or number as skops has it."""
    return {
        "__class__": "str",
        "__module__": "builtins",
        "__loader__": "JsonNode",
        "content": json.dumps(value),
        "is_json": True,
    }


def node(loader, name, **more):
    """A node of a schema."""
    module, _, kind = name.rpartition(".")
    return {"__class__": kind, "__module__": module, "__loader__": loader, **more}


def list_node(*parts, loader="ListNode", name="builtins.list"):
    return node(loader, name, content=list(parts))


def dict_node(content, key_types=None):
    types = key_types or [node("TypeNode", "builtins.str") for _ in content]
    return node("DictNode", "builtins.dict", content=content, key_types=list_node(*types))
