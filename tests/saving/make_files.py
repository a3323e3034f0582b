"""Make the saved models of this version: small files of every kind, and their answers beside them.

    PYTHONPATH=src python tests/saving/make_files.py

Run it once for each release, with the lowest versions of dependencies (`.ci/lowest.py`): learners
load with the versions that fitted them and with later ones. `test_older_files.py` loads the files
with every later version, so that an existing file is never replaced.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelsure as ls
from labelsure.tables.inputs import infer_roles

FOLDER = Path(__file__).parent / "files"

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3)).round(2)
P = (1 / (1 + np.exp(-2 * X))).round(3)
Y = (rng.uniform(size=P.shape) < P).astype(int)
SCORE = rng.uniform(size=300)
TABLE = pd.DataFrame({"a": X[:, 0].astype(str), "b": ["red", "green", "blue"] * 20})
TEXT = pd.DataFrame({"note": [f"word{i % 7} and another{i % 3} here" for i in range(60)]})
RULES = ls.LabelConstraints({"2": "0"})
VALID = np.column_stack([Y[:, 0] | Y[:, 2], Y[:, 1:]])
VOTES = np.stack([Y, 1 - Y, Y], axis=1)


def dist():
    return ls.IndependentLabels(P)


def fit_aware(classifier=None, X=X, Y=Y, **settings):
    classifier = ls.BinaryRelevance() if classifier is None else classifier
    model = ls.AccuracyAwareClassifier(classifier, "f1", cv=0.5, random_state=0, **settings)
    return model.fit(X, Y)


def fit_table(table):
    columns = ls.tables.TableColumns(infer_roles(table))
    return fit_aware(make_pipeline(columns, ls.BinaryRelevance()), table)


LEARNERS = {
    "bayes": GaussianNB(),
    "boosting": GradientBoostingClassifier(n_estimators=2, max_depth=2, random_state=0),
    "forest": RandomForestClassifier(2, max_depth=2, random_state=0),
    "neighbours": KNeighborsClassifier(algorithm="brute"),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
}

MODELS = {
    **{
        name: lambda learner=learner: ls.ProbabilisticClassifierChain(learner).fit(X, Y)
        for name, learner in LEARNERS.items()
    },
    "binary-relevance": lambda: ls.BinaryRelevance().fit(X, Y),
    "chain": lambda: ls.ProbabilisticClassifierChain(random_state=0).fit(X, Y),
    "chains": lambda: ls.EnsembleOfClassifierChains(n_chains=2, random_state=0).fit(X, Y),
    "powerset": lambda: ls.LabelPowerset(random_state=0).fit(X, Y),
    "trellis": lambda: ls.classifiers.ClassifierTrellis(random_state=0).fit(X, Y),
    "precomputed": lambda: ls.PrecomputedProbabilities().fit(P, Y),
    "recalibrated": lambda: ls.RecalibratedClassifier(cv=2, random_state=0).fit(X, Y),
    "aware": lambda: fit_aware(target=0.3, region=0.8),
    "aware-mode": lambda: fit_aware(decision="mode", recalibration=ls.TemperatureScaling()),
    "aware-rules": lambda: fit_aware(Y=VALID, constraints=RULES),
    "aware-scores": lambda: fit_aware(ls.PrecomputedProbabilities(), P),
    "aware-table": lambda: fit_table(TABLE),
    "aware-text": lambda: fit_table(TEXT),
    "temperature": lambda: ls.TemperatureScaling(gate=False).fit(dist(), Y),
    "labelwise": lambda: ls.LabelwiseCalibration(gate=False).fit(dist(), Y),
    "dependence": lambda: ls.classifiers.ChainDependence(gate=False).fit(dist(), Y),
    "rules": lambda: ls.ConstrainedCalibration(RULES).fit(dist(), VALID),
    "votes": lambda: ls.classifiers.VoteSmoothing(gate=False).fit(
        ls.LabelsetTable.from_samples(VOTES), Y
    ),
    "estimator": lambda: ls.AccuracyEstimator("jaccard").fit(dist(), Y),
    "policy": lambda: ls.AcceptPolicy(target=0.7, outcome="binary").fit(
        SCORE, (SCORE**0.3 > 0.5).astype(float)
    ),
    "policy-by-group": lambda: ls.ByGroup(ls.AcceptPolicy(share=0.5)).fit(
        P[:, 0], P[:, 1], np.repeat(["a", "b"], 30)
    ),
    "region": lambda: ls.LabelsetRegion(coverage=0.8).fit(dist(), Y),
    "thresholds": lambda: ls.LabelThresholds("each").fit(dist(), Y),
}


def answers(name: str, model: object) -> list[np.ndarray]:
    """What a loaded model says about the rows above: arrays of numbers."""
    if isinstance(model, ls.AccuracyAwareClassifier):
        rows = {"aware-table": TABLE, "aware-text": TEXT, "aware-scores": P}.get(name, X)
        assessed = model.assess(rows)
        return [model.predict(rows), model.predict_proba(rows), assessed.accuracy]
    if hasattr(model, "predict_proba"):
        return [model.predict_proba(P if name == "precomputed" else X)]
    if isinstance(model, ls.AcceptPolicy):
        return [model.accept(SCORE)]
    if isinstance(model, ls.ByGroup):
        return [model.accept(P[:, 2], np.repeat(["a", "b"], 30))]
    if isinstance(model, ls.LabelsetRegion):
        return [np.asarray(model.predict(dist()).values)]
    if name == "votes":
        return [model.transform(ls.LabelsetTable.from_samples(VOTES)).marginals()]
    if hasattr(model, "transform"):
        return [model.transform(dist()).marginals()]
    return [np.asarray(model.predict(dist()))]


def main() -> None:
    """Write the models of this version that are missing, and the answers of all."""
    folder = FOLDER / ls.__version__
    folder.mkdir(parents=True, exist_ok=True)
    expected = dict(np.load(folder / "answers.npz")) if (folder / "answers.npz").exists() else {}
    for name, make in MODELS.items():
        if not (path := folder / f"{name}.labelsure").exists():
            make().save(path)
            model = ls.load(path)
            expected |= {f"{name}.{i}": a for i, a in enumerate(answers(name, model))}
    np.savez_compressed(folder / "answers.npz", **expected)


if __name__ == "__main__":
    main()
