"""`FittedAttributes`: attributes of a fitted model, in the manner of scikit-learn."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from labelsure._runtime.notebook import make_html
from labelsure._runtime.typing import Estimator, LabelNames
from labelsure.classifiers._predictor import Classes, LabelsetPredictor
from labelsure.classifiers.recalibration._base import Recalibration
from labelsure.estimation._batch_estimates import Estimate
from labelsure.estimation._estimator import AccuracyEstimator
from labelsure.guarantees._labelset_region import LabelsetRegion
from labelsure.guarantees._policy import AcceptPolicy
from labelsure.model._fitted import Fitted
from labelsure.model._model_card import ModelCard

T = TypeVar("T")


class FittedAttributes(LabelsetPredictor):
    """Base class: each attribute is read from `fitted_`."""

    fitted_: Fitted

    def _fitted_model(self) -> Fitted:
        if "fitted_" not in vars(self):
            check_is_fitted(self, "fitted_")
        return self.fitted_

    @property
    def estimator_(self) -> Estimator:
        """The fitted classifier."""
        return self.fitted_.predictor.estimator

    @property
    def recalibration_(self) -> Recalibration | None:
        """The fitted recalibration; None without one."""
        return self.fitted_.predictor.recalibration

    @property
    def accuracy_estimator_(self) -> AccuracyEstimator:
        """The fitted `AccuracyEstimator`."""
        return self.fitted_.accuracy_estimator

    @property
    def policy_(self) -> AcceptPolicy | None:
        """The fitted `AcceptPolicy`; None without target and share."""
        return self.fitted_.policy

    @property
    def region_(self) -> LabelsetRegion | None:
        """The fitted `LabelsetRegion`; None after cross-fitting and for very many labels."""
        return self.fitted_.region

    @property
    def card_(self) -> ModelCard:
        """Data sizes, metric, target, guarantee, calibration."""
        return self.fitted_.card

    @property
    def guaranteed_(self) -> bool:
        """Whether the target is guaranteed at `confidence`."""
        return self.fitted_.card.guaranteed

    @property
    def decision_(self) -> str:
        """Rule of the judged predictions: "best", "mode", "predict", "thresholds" or "given"."""
        return self.fitted_.predictor.rule.name

    @property
    def judged_(self) -> str:
        """Rule of the judged predictions, in words."""
        return self.fitted_.predictor.judged

    @property
    def reference_(self) -> Estimate:
        """The `Estimate` for the rows that the accuracy estimator was fitted to."""
        return self.accuracy_estimator_.reference_

    @property
    def summary_(self) -> str:
        """Threshold, guarantee, and the predictions whose accuracy is estimated, in words."""
        sentences = (
            self.card_.summary,
            f"Accuracy is that of {self.judged_}.",
            self.card_.comparison,
        )
        return " ".join(filter(None, sentences))

    @property
    def classes_(self) -> Classes:  # type: ignore[override]
        """The two values of a vector y; otherwise a list with [0, 1] for each label."""
        return self.fitted_.predictor.labels.classes

    @property
    def label_names_(self) -> LabelNames:  # type: ignore[override]
        """Names of the labels; None without names."""
        return self.fitted_.label_names

    @property
    def n_labels_(self) -> int:  # type: ignore[override]
        """Number of labels."""
        return self.fitted_.n_labels

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X, where the model knows it."""
        return self._require(self.fitted_.predictor.inputs.n_features, "n_features_in_")

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the columns of X, where it had some."""
        names = self.fitted_.predictor.inputs.names
        own_names = None if names is None else np.array(names, dtype=object)
        return self._require(
            getattr(self.estimator_, "feature_names_in_", own_names), "feature_names_in_"
        )

    def _require(self, value: T | None, name: str) -> T:
        """Value of an attribute. Raises AttributeError for None, as scikit-learn expects."""
        if value is None:
            raise AttributeError(f"This {type(self).__name__} has no `{name}`.")
        return value

    def _repr_html_(self) -> str:
        if not hasattr(self, "card_"):
            return str(estimator_html_repr(self))
        return make_html(self.summary_, self.card_.brief())

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}
