"""L1-penalised logistic regression: the base learners of the plans paper-lasso and paper-lasso-cv.

scikit-learn has them under parameters that change with its version, and cannot cross-validate the
penalty of a rare label.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.utils.fixes import parse_version

from labelsure._runtime.typing import FeaturesLike, LabelsetsLike, RandomState, Settings

_L1: Settings = {"l1_ratio": 1.0}
if parse_version(sklearn.__version__) < parse_version("1.8"):
    _L1 = {"penalty": "l1"}


class Lasso(LogisticRegression):  # type: ignore[misc]
    """Logistic regression with an L1 penalty.

    Parameters
    ----------
    C
        Inverse of the penalty.
    max_iter
        Iterations of liblinear.
    random_state
        Seed of its coordinate descent.

    Examples
    --------
    >>> X, y = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0], [3.0, 0.0]]), [0, 0, 1, 1]
    >>> Lasso(C=0.01, random_state=0).fit(X, y).coef_
    array([[0., 0.]])
    """

    def __init__(
        self, C: float = 1.0, max_iter: int = 200, random_state: RandomState = None
    ) -> None:
        super().__init__(
            C=C, max_iter=max_iter, random_state=random_state, solver="liblinear", **_L1
        )


class LassoCV(Lasso):
    """Logistic regression with the L1 penalty of the least cross-validated class error.

    Parameters
    ----------
    Cs
        Inverses of the penalty, the strongest penalty first; it wins ties.
    cv
        Folds. A label with fewer positive (or negative) rows than folds is not cross-validated: it
        gets the strongest penalty, which nearly always wins for so rare a label.
    max_iter, random_state
        As for `Lasso`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 3)), np.zeros(60, dtype=int)
    >>> y[0] = 1
    >>> LassoCV(Cs=[0.01, 1.0], random_state=0).fit(X, y).C_
    0.01
    """

    def __init__(
        self,
        Cs: Sequence[float] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0),
        cv: int = 5,
        max_iter: int = 200,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(max_iter=max_iter, random_state=random_state)
        self.Cs, self.cv = Cs, cv

    def fit(self, X: FeaturesLike, y: LabelsetsLike, sample_weight: object = None) -> Self:
        """Choose the penalty and fit to one label."""
        self.C_ = self.Cs[0]
        single = Lasso(self.C_, self.max_iter, self.random_state)
        if np.unique(y, return_counts=True)[1].min() >= self.cv:
            search = GridSearchCV(
                single, {"C": list(self.Cs)}, scoring="accuracy", cv=self.cv, refit=False
            )
            self.C_ = search.fit(X, y, sample_weight=sample_weight).best_params_["C"]
        single.set_params(C=self.C_).fit(X, y, sample_weight)
        self.__dict__.update({k: v for k, v in vars(single).items() if k.endswith("_")})
        return self
