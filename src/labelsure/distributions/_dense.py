"""`DenseDistribution`: all 2**L probabilities of each instance, written out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from labelsure._kernels import dense_sweeps as kernels
from labelsure._kernels.threads import for_rows
from labelsure._runtime.typing import Array, Floats, Indices, Labelsets, Names, Rows
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._dense_block import DenseBlock, temper_probabilities
from labelsure.distributions._probabilities import as_floats, check_row_sums
from labelsure.distributions.candidates import log
from labelsure.errors import InputError
from labelsure.labelsets.codes import codes_of
from labelsure.labelsets.foreign import as_table, index_of


class DenseDistribution(LabelsetDistribution):
    """Joint distributions given by the probabilities of all 2**L labelsets.

    Parameters
    ----------
    probabilities
        (n, 2**L); column c is the labelset with code c, label 0 being the lowest bit.
    label_names
        One for each label.
    normalise
        Divide each row by its sum (in a copy) instead of refusing rows that do not sum to one.
    copy
        Keep a copy of the probabilities. False saves that memory where an array of float32 or
        float64 is large: it is used as it is, so that a later change of it changes the answers.

    See Also
    --------
    LabelsetTable : Only some labelsets have a positive probability.
    IndependentLabels : Probabilities of single labels.
    as_distribution : Make a distribution from a model or from probabilities.

    Examples
    --------
    Two labels, P(00), P(10), P(01), P(11):

    >>> dist = DenseDistribution([[0.1, 0.2, 0.3, 0.4]])
    >>> dist.marginals()
    array([[0.6, 0.7]])
    >>> dist.mode()
    array([[1, 1]], dtype=int8)
    """

    _is_dense = True

    def __init__(
        self,
        probabilities: ArrayLike,
        label_names: Names = None,
        *,
        normalise: bool = False,
        copy: bool = True,
    ) -> None:
        P = as_floats(as_table(probabilities), "probabilities")
        n_labels = P.shape[1].bit_length() - 1 if P.ndim == 2 else 0
        if n_labels < 1 or P.shape[1] != 2**n_labels:
            raise InputError(
                f"`probabilities` must have shape (n_samples, 2**n_labels), got shape {P.shape}. "
                "For a few labelsets use `LabelsetTable`, for marginals `IndependentLabels`."
            )
        super().__init__(P.shape[0], n_labels, label_names)
        totals, n_bad = np.empty(len(P)), np.empty(len(P), dtype=np.int64)
        for_rows(kernels.check_rows, len(P), P, into=[totals, n_bad])
        check_row_sums(totals, n_bad, P.dtype, normalise=normalise)
        self._P = P / totals[:, np.newaxis] if normalise else P.copy() if copy else P
        self._index = index_of(probabilities)

    @classmethod
    def from_trusted(cls, P: Array, label_names: Names = None) -> Self:
        """Distributions of rows that are known to be probabilities, without a sweep to check them.

        Parameters
        ----------
        P
            (n, 2**L) probabilities in one piece, used as they are.
        label_names
            One for each label.

        Examples
        --------
        >>> DenseDistribution.from_trusted(np.full((3, 4), 0.25))
        DenseDistribution(n_samples=3, n_labels=2)
        """
        new = cls.__new__(cls)
        LabelsetDistribution.__init__(new, len(P), P.shape[1].bit_length() - 1, label_names)
        new._P = P
        return new

    def _take(self, rows: Rows) -> Self:
        # In one piece, as kernels are compiled for: every other row would compile them anew.
        return self.from_trusted(np.ascontiguousarray(self._P[rows]), self.label_names)

    def _dense_blocks(self) -> Iterator[tuple[Indices, DenseBlock]]:
        yield np.arange(len(self)), DenseBlock(self._P)

    def _log_prob(self, Y: Labelsets) -> Floats:
        return DenseBlock(self._P).log_prob(Y)

    def _probabilities(self) -> Floats:
        # The array itself, which may be large: read-only: the answers depend on it.
        P = self._P.astype(np.float64, copy=False).view()
        P.flags.writeable = False
        return P

    def _temper(self, temperature: float) -> Self:
        return self.from_trusted(temper_probabilities(self._P, temperature), self.label_names)

    def _tempered_log_prob(self, Y: Labelsets) -> Callable[[float], Floats]:
        largest = self._P.max(axis=1, keepdims=True).astype(np.float64)
        logs = log(self._P / largest)
        of_truth = logs[np.arange(len(self)), codes_of(Y)]
        return lambda temperature: (
            of_truth / temperature - np.log(np.exp(logs / temperature).sum(axis=1))
        )
