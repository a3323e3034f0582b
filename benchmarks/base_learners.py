"""The base learner of the paper: which one explains its correlations on independent labels.

    LABELSURE_DATA=folder python -m benchmarks.base_learners

The paper does not name its base learner. Twenty-one of scikit-learn are fitted to each label of the
six data sets, on splits of this script; mode, candidates and correlations of independent labels
have closed forms. The table has the mean absolute difference (MAD) of one split from the 72
published correlations of independent labels, by data set, and its ratio to the MAD of two splits
from each other: at 1 the paper could be just another split. Penalties compare on the same numbers
that the paper prints, so that only families of learners can be told apart. Writes
docs/evidence/base_learners.csv.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from scipy import sparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import labelsure as ls
from labelsure.estimation.score_table import ScoreTable
from labelsure.study.analyses import KEYS, correlate
from labelsure.study.conclusions import published_table
from labelsure.study.learners import Lasso, LassoCV
from labelsure.study.plan import Settings

N_SPLITS = 3
TEST_SHARE = 0.4
LABELS = {"enron": "last20"}
OUT = Path("docs/evidence/base_learners.csv")
SETTINGS = Settings(empty=0.0)


def ridge(C: float) -> LogisticRegression:
    """Return logistic regression with a ridge penalty."""
    return LogisticRegression(C=C, max_iter=1000)


def standardised(learner: Any) -> Any:
    """Return a learner behind a scaler; sparse features are not centred."""
    return make_pipeline(StandardScaler(with_mean=False), learner)


LEARNERS: dict[str, Callable[[], Any]] = {
    "lasso, C = 0.03": lambda: Lasso(0.03),
    "lasso, C = 0.1": lambda: Lasso(0.1),
    "lasso, C = 0.3": lambda: Lasso(0.3),
    "lasso, C = 1": lambda: Lasso(1.0),
    "lasso, C by class error": lambda: LassoCV(cv=3),
    "standardised lasso, C = 0.03": lambda: standardised(Lasso(0.03)),
    "ridge, C = 0.01": lambda: ridge(0.01),
    "ridge, C = 0.1": lambda: ridge(0.1),
    "ridge, C = 1": lambda: ridge(1.0),
    "standardised ridge, C = 0.0015": lambda: standardised(ridge(0.0015)),
    "standardised ridge, C = 1": lambda: standardised(ridge(1.0)),
    "linear discriminant": lambda: LinearDiscriminantAnalysis("lsqr", shrinkage="auto"),
    "naive Bayes": lambda: GaussianNB(),
    "naive Bayes of binary features": lambda: make_pipeline(MaxAbsScaler(), BernoulliNB()),
    "10 nearest neighbours": lambda: KNeighborsClassifier(10),
    "support vectors with Platt scaling": lambda: standardised(SVC(probability=True)),
    "tree, 20 rows a leaf": lambda: DecisionTreeClassifier(min_samples_leaf=20),
    "random forest": lambda: RandomForestClassifier(50),
    "extra trees": lambda: ExtraTreesClassifier(50),
    "gradient boosting": lambda: HistGradientBoostingClassifier(max_iter=30),
    "neural network": lambda: standardised(MLPClassifier((20,), alpha=1.0, max_iter=100)),
}
DENSE = (LinearDiscriminantAnalysis, GaussianNB, HistGradientBoostingClassifier)


def correlations(name: str, learner: Any, seed: int) -> pd.DataFrame:
    """Return Kendall's correlations of independent labels on one split."""
    data = ls.load_dataset(name, labels=LABELS.get(name))
    train, test = ls.split_dataset(data, 1 - TEST_SHARE, random_state=1000 + seed)
    X_train, X_test = train.X, test.X
    if isinstance(learner, DENSE) and sparse.issparse(X_train):
        X_train, X_test = X_train.toarray(), X_test.toarray()
    model = ls.BinaryRelevance(learner, random_state=seed).fit(X_train, train.Y)
    table = ScoreTable.from_distribution(model.predict_distribution(X_test), test.Y).to_frame()
    cell = {"dataset": name, "classifier": "Indep", "repeat": seed}
    return correlate(table.assign(**cell), "kendall", SETTINGS)


def compare(found: pd.DataFrame) -> dict[str, float]:
    """Return how far the splits of one learner are from print, and from each other."""
    paper = published_table("correlations").set_index(KEYS)["correlation"]
    wide = found.pivot(index=KEYS, columns="repeat", values="correlation").dropna()
    reference = paper.reindex(wide.index)
    gaps = wide.sub(reference, axis=0).abs().mean(axis=1)
    own = sum((wide[a] - wide[b]).abs() for a, b in combinations(wide, 2))
    own /= len(list(combinations(wide, 2)))
    mean = wide.mean(axis=1)
    row = {
        "Spearman": mean.corr(reference, method="spearman"),
        "Pearson": mean.corr(reference),
        "MAD": gaps.mean(),
    }
    for name in published_table("datasets")["dataset"]:
        is_set = wide.index.get_level_values("dataset") == name
        row[name] = gaps[is_set].mean()
        row[f"{name} ratio"] = gaps[is_set].mean() / own[is_set].mean()
    return row


def main() -> None:
    """Print and write the table."""
    warnings.simplefilter("ignore")  # of learners that stop early
    console = Console(width=140)
    rows = []
    for title, make in LEARNERS.items():
        parts = [
            correlations(name, make(), seed)
            for name in published_table("datasets")["dataset"]
            for seed in range(N_SPLITS)
        ]
        rows.append({"learner": title, **compare(pd.concat(parts))})
        shown = ", ".join(f"{key} {value:.3f}" for key, value in list(rows[-1].items())[1:])
        console.print(f"{title}: {shown}", highlight=False)
        table = pd.DataFrame(rows).sort_values("MAD")
        OUT.write_text(table.round(3).to_csv(index=False), encoding="utf-8")


if __name__ == "__main__":
    main()
