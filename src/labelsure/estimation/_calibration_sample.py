"""What a fitted estimator keeps of its labelled instances, to compare batches with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from labelsure._runtime.typing import Floats, Indices, Labelsets
from labelsure.estimation._design import Inputs
from labelsure.estimation._shift_test import MAX_LABELS, View, sample_rows
from labelsure.estimation.label_outcomes import largest_marginals
from labelsure.labelsets.rows import show_names

if TYPE_CHECKING:
    from labelsure.estimation._models import FitSettings, Model, Outcomes
    from labelsure.estimation.label_outcomes import LabelOutcomes
    from labelsure.estimation.score_table import ScoreTable

N_FOLDS = 5
MIN_FOLDED = 20  # instances, below which folds would teach nothing


@dataclass(frozen=True)
class CalibrationSample:
    """Some labelled instances: what is compared of them, how they came out, what was estimated.

    At most 2,000, chosen by chance: more would narrow the interval of a weighted estimate by the
    root of their number only, and every saved model carries them.

    Parameters
    ----------
    view
        What is compared with batches.
    accuracy
        (n,) how accurate each prediction was.
    estimated
        (n,) its estimated accuracy, by models that were fitted to others.
    label_names
        Those labels whose truth is kept, as many as `view` has probabilities of.
    truth
        (n, L / 8) their truth, eight labels to a byte.
    of_one_model
        Whether one classifier made all predictions. Those of several, as of cross-fitting, are told
        apart by the probabilities of their labels, in yeast with an AUC of 0.64, so that a batch is
        not compared with them.
    """

    view: View
    accuracy: Floats
    estimated: Floats
    label_names: tuple[str, ...] = ()
    truth: NDArray[np.uint8] | None = None
    of_one_model: bool = True

    @classmethod
    def of_fit(
        cls, table: ScoreTable, outcomes: LabelOutcomes | None, accuracy: Floats, estimated: Floats
    ) -> CalibrationSample:
        """Keep some of the instances that an estimator was fitted to.

        Parameters
        ----------
        table
            All instances.
        outcomes
            Their labels one by one; None for a table without them, and for sparse labels.
        accuracy, estimated
            (n,) of each.
        """
        rows = sample_rows(len(table))
        if outcomes is None:
            view = View.of_table(table, rows)
            largest = [largest_marginals(dist) for dist, _ in table.compared if dist.sparse_rows]
            if largest:
                values = np.concatenate([values for _, values in largest])
                view = view.with_columns(largest[0][0], values[rows])
            one = len(table.compared) <= 1
            return cls(view, accuracy[rows], estimated[rows], of_one_model=one)
        marginals = outcomes.marginals[rows]
        often = np.argsort(-outcomes.marginals.mean(axis=0), kind="stable")[:MAX_LABELS]
        kept = np.sort(often)
        names = tuple(show_names(outcomes.label_names, kept.tolist()))
        view = View.of_table(table, rows, marginals[:, kept], names)
        truth = np.packbits(outcomes.Y_true[rows][:, kept].astype(bool), axis=1)
        one = outcomes.n_batches == 1
        return cls(view, accuracy[rows], estimated[rows], names, truth, one)

    def __len__(self) -> int:
        return len(self.view)

    @property
    def residuals(self) -> Floats:
        """How much more accurate each prediction was than estimated, (n,)."""
        return self.accuracy - self.estimated

    @property
    def share(self) -> float:
        """How far estimates count beside labels of a batch: cov / var, within [0, 1]."""
        centred = self.estimated - self.estimated.mean()
        below = float(centred @ centred)
        above = float(centred @ (self.accuracy - self.accuracy.mean()))
        return float(np.clip(above / below, 0.0, 1.0)) if below > 0 else 0.0

    def true_labels(self) -> Labelsets:
        """Return the truth of the labels that are kept, (n, L)."""
        truth = np.zeros((len(self), 0), np.uint8) if self.truth is None else self.truth
        return np.unpackbits(truth, axis=1, count=len(self.label_names)).astype(np.int8)


def estimate_by_folds(
    model_class: type[Model],
    inputs: Inputs,
    outcomes: Outcomes,
    settings: FitSettings,
    estimated: Floats,
) -> Floats:
    """Return the estimate of each instance by a model that was fitted to others, (n,).

    Parameters
    ----------
    model_class, inputs, outcomes
        What is fitted to what.
    settings
        With the penalty that was chosen.
    estimated
        (n,) by the model of all instances, returned where it learns nothing or has too few.
    """
    if not model_class.learns or len(inputs) < MIN_FOLDED:
        return estimated
    by_others = np.empty(len(inputs))
    folds = settings.folds % N_FOLDS
    for fold in range(N_FOLDS):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        model = model_class().fit(
            _take_inputs(inputs, train), _take_outcomes(outcomes, train), settings
        )
        by_others[test] = model.predict(_take_inputs(inputs, test))
    return by_others


def _take_inputs(inputs: Inputs, rows: Indices) -> Inputs:
    return Inputs(inputs.features[rows], inputs.slope[rows], inputs.offset[rows])


def _take_outcomes(outcomes: Outcomes, rows: Indices) -> Outcomes:
    return type(outcomes)(outcomes.targets[rows], outcomes.values[rows])
