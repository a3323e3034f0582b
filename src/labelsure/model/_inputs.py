"""Input validation of X: records, tables and arrays in the form that a model takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.utils import check_array

from labelsure._runtime.typing import Estimator, FeaturesLike, Settings
from labelsure.classifiers._inner_models import first_step
from labelsure.classifiers._precomputed import PrecomputedProbabilities
from labelsure.classifiers._predictor import LabelsetClassifier
from labelsure.errors import InputError, LabelsureError
from labelsure.labelsets.foreign import as_table, refuse_masked
from labelsure.labelsets.names import list_some

OWNER = "AccuracyAwareClassifier"


def as_batch(X: FeaturesLike) -> FeaturesLike:
    """X; a list of dicts as a DataFrame. Raises InputError for a single record."""
    has_rows = any(hasattr(X, name) for name in ("__len__", "__array__", "__arrow_c_stream__"))
    if type(X) in (dict, str) or not (has_rows or hasattr(X, "shape")):
        raise InputError(
            f"`X` must hold rows, got one {type(X).__name__}. Write [record] for a single record."
        )
    if isinstance(X, list) and X and all(isinstance(row, dict) for row in X):
        import pandas as pd

        return pd.DataFrame(X)
    return X


class _InputTypeError(InputError, TypeError):
    """Input error where scikit-learn raises TypeError, as for values that are no numbers."""


@contextmanager
def refuse_as_input() -> Iterator[None]:
    """Context that turns TypeError and ValueError of a library into InputError."""
    try:
        yield
    except LabelsureError:
        raise
    except TypeError as error:
        raise _InputTypeError(f"{error}") from error
    except ValueError as error:
        raise InputError(f"{error}") from error


def column_names(X: FeaturesLike) -> list[str] | None:
    """Names of the columns of a table; None without names that are all strings."""
    if not hasattr(X, "columns"):
        return None
    names = list(X.columns)
    return names if all(isinstance(name, str) for name in names) else None


def selects_columns(estimator: Estimator) -> bool:
    """Whether a model selects columns by name itself and ignores further ones."""
    first = first_step(estimator)
    return isinstance(first, (ColumnTransformer, PrecomputedProbabilities)) or hasattr(
        first, "describe_columns"
    )


@dataclass(frozen=True)
class InputColumns:
    """Columns of X: names, number, and requirements of the model.

    Parameters
    ----------
    names
        Names in the order of the model; None where columns go by position, or the model selects
        them by name itself.
    n_features
        Number of columns; None where the model has no `n_features_in_`.
    requirements
        Arguments of scikit-learn's `check_array` for this package's classifiers; None for other
        models, which get X unchanged.
    """

    names: list[str] | None
    n_features: int | None = None
    requirements: Settings | None = None

    @classmethod
    def of(cls, X: FeaturesLike, estimator: Estimator, requirements: Settings) -> InputColumns:
        """Columns of the X of `fit`, in the order of a model that is fitted already."""
        names = None if selects_columns(estimator) else column_names(as_table(X))
        fitted_names = getattr(estimator, "feature_names_in_", None)
        if names is not None and fitted_names is not None:
            names = [str(name) for name in fitted_names]
        if not isinstance(estimator, LabelsetClassifier):
            return cls(names)
        columns = cls(names, None, {**requirements, "ensure_min_samples": 0})
        return replace(columns, n_features=columns.read(X).shape[1])

    def of_fitted(self, estimator: Estimator) -> InputColumns:
        """Columns with the `n_features_in_` of the fitted model."""
        n_features = getattr(estimator, "n_features_in_", self.n_features)
        return replace(self, n_features=None if n_features is None else int(n_features))

    def read(self, X: FeaturesLike) -> FeaturesLike:
        """X as the model takes it, columns aligned by name. Raises InputError."""
        refuse_masked(X, "X")
        X = self._no_rows() if isinstance(X, list) and not X else self._align(X)
        if self.requirements is None:
            return X
        with refuse_as_input():
            checked = check_array(as_table(X), estimator=OWNER, input_name="X", **self.requirements)
        if self.n_features not in (None, checked.shape[1]):
            raise InputError(
                f"X has {checked.shape[1]} features, but {OWNER} is expecting {self.n_features} "
                "features as input."
            )
        return checked

    def _no_rows(self) -> FeaturesLike:
        """Batch without rows, the meaning of an empty list."""
        import pandas as pd

        if self.names is not None:
            return pd.DataFrame(np.empty((0, len(self.names))), columns=self.names)
        return [] if self.n_features is None else np.empty((0, self.n_features))

    def _align(self, X: FeaturesLike) -> FeaturesLike:
        """Columns of a table in the order of the model. Raises InputError."""
        names = column_names(table := as_table(X))
        if self.names is None or names is None or names == self.names:
            return X
        problems = []
        for kind, own, other_names in (
            ("missing", self.names, set(names)),
            ("unknown", names, set(self.names)),
        ):
            if differing := [name for name in own if name not in other_names]:
                problems.append(f"{kind}: {list_some(differing)}")
        if problems or len(names) != len(self.names):
            raise InputError(
                f"The columns of `X` must be the {len(self.names)} that the model was fitted to, "
                f"in any order, got {len(names)}; {'; '.join(problems) or 'some twice'}."
            )
        return table[self.names]
