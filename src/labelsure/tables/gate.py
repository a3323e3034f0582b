"""Estimates of files with their shift tests, and the gate of a pipeline."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from labelsure._runtime.arguments import read_number
from labelsure._runtime.typing import JsonObject
from labelsure.errors import InputError
from labelsure.estimation._shift import describe_shift

if TYPE_CHECKING:
    from labelsure.estimation._batch_estimates import Estimate


@dataclass(frozen=True)
class FileEstimate:
    """Estimate of the rows of files, and the weighted one under a shift.

    Parameters
    ----------
    name
        The file; "" for all files together.
    plain
        The estimate, with its shift test; None if it is refused.
    weighted
        The importance-weighted estimate, where a shift was found.
    refusal
        Why there is no estimate, or no weighted one.
    """

    name: str
    plain: Estimate | None
    weighted: Estimate | None = None
    refusal: str = ""

    @property
    def shift_found(self) -> bool:
        """Whether the rows differ from the calibration set."""
        test = None if self.plain is None else self.plain.shift
        return test is not None and test.found

    @property
    def usable(self) -> Estimate | None:
        """The estimate to rely on: under a shift the weighted one; None if there is none."""
        return self.weighted if self.shift_found else self.plain

    @property
    def shift(self) -> str:
        """Whether the rows differ from the calibration set, in words."""
        return "" if self.plain is None else describe_shift(self.plain.shift, self.plain.untested)

    def to_dict(self) -> JsonObject:
        """Plain values for JSON."""
        test = None if self.plain is None else self.plain.shift
        return {
            **({"file": self.name} if self.name else {}),
            **({} if self.plain is None else _plain_fields(self.plain)),
            "shift": None
            if test is None
            else {
                "found": test.found,
                "auc": test.auc,
                "p_value": test.p_value,
                "moved": test.moved.reset_index().to_dict("records"),
            },
            "weighted": None if self.weighted is None else _plain_fields(self.weighted),
            "refusal": self.refusal or None,
        }


def _plain_fields(estimate: Estimate) -> dict[str, object]:
    """Fields for JSON, without NaN and without the test."""
    values = {field.name: getattr(estimate, field.name) for field in fields(estimate)}
    del values["shift"]
    return {name: value for name, value in values.items() if value == value}


@dataclass(frozen=True)
class Gate:
    """Conditions that an estimate must fulfil for a pipeline to go on.

    Parameters
    ----------
    fail_below
        Lowest acceptable estimate, or lower end of its interval if `strict`; None for any.
    strict
        Whether the lower end of the interval counts instead of the estimate.
    fail_on_shift
        Whether rows that differ from the calibration set, or cannot be compared with it, fail.

    Examples
    --------
    >>> from labelsure import Estimate
    >>> week = Estimate(0.57, 0.552, 0.588, 2158, level=0.95, spread=0.2, quantity="mean F1")
    >>> Gate(0.56).failures(FileEstimate("", week))
    []
    >>> Gate(0.56, strict=True).failures(FileEstimate("", week))
    ['the lower end of mean F1, 0.552, is below 0.56']
    """

    fail_below: float | None = None
    strict: bool = False
    fail_on_shift: bool = False

    def __post_init__(self) -> None:
        if self.fail_below is not None:
            read_number(self.fail_below, "fail_below", 0, 1)
        elif self.strict:
            raise InputError(
                "`strict` must come with `fail_below`, the limit of the lower end. Pass both."
            )

    @property
    def is_set(self) -> bool:
        """Whether there is any condition."""
        return self.fail_below is not None or self.fail_on_shift

    def failures(self, estimate: FileEstimate) -> list[str]:
        """Conditions that an estimate does not fulfil, each with its number."""
        return [*self._number_failures(estimate), *self._shift_failures(estimate)]

    def all_failures(self, whole: FileEstimate, files: list[FileEstimate]) -> list[str]:
        """Failed conditions of the estimate of all rows, and failed shift tests of files."""
        failures = self.failures(whole)
        for file in files:
            failures += [f"{file.name}: {reason}" for reason in self._shift_failures(file)]
        return failures

    def _number_failures(self, estimate: FileEstimate) -> list[str]:
        if self.fail_below is None:
            return []
        usable = estimate.usable
        if usable is None:
            return [f"the estimate is refused ({(estimate.refusal or estimate.shift).rstrip('.')})"]
        value = usable.low if self.strict else usable.mean
        if value >= self.fail_below:
            return []
        name = f"the lower end of {usable.quantity}," if self.strict else usable.quantity
        shown = f"{value:.3f}" if round(value, 3) < self.fail_below else repr(value)
        return [f"{name} {shown}{',' * self.strict} is below {self.fail_below:g}"]

    def _shift_failures(self, estimate: FileEstimate) -> list[str]:
        if not self.fail_on_shift:
            return []
        if estimate.plain is None:
            return [f"the estimate is refused ({estimate.refusal.rstrip('.')})"]
        test = estimate.plain.shift
        if test is None:
            return [f"not tested for shift ({estimate.plain.untested})"]
        return (
            [f"shift detected (AUC {test.auc:.2f}, p = {test.p_value:.2g})"] if test.found else []
        )
