"""Figures, each drawn into the Axes it is given, or into new ones, and returning them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from labelsure.estimation import Reliability
from labelsure.selection import AcceptPolicy

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["plot_accept_curve", "plot_monitor", "plot_policy", "plot_reliability"]


def _axes(ax: Axes | None) -> Axes:
    # A figure of its own, not pyplot's: nothing stays open behind the caller's back.
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(layout="constrained").add_subplot()


def plot_reliability(
    result: Reliability, *, label: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw actual against estimated accuracy with error bars and the diagonal.

    Parameters
    ----------
    result
        Of `labelsure.reliability`.
    label
        For the legend; None shows the expected calibration error.
    ax
        Where to draw; several results can share it.
    """
    ax = _axes(ax)
    table = result.table[result.table["n_samples"] > 0]
    bars = np.array(
        [
            table["accuracy"] - table["accuracy_low"],
            table["accuracy_high"] - table["accuracy"],
        ]
    )
    if not ax.lines:
        ax.plot([0, 1], [0, 1], color="0.7", linestyle="--", label="ideal")
    shown = label or f"calibration error {result.expected_calibration_error:.3f}"
    ax.errorbar(
        table["estimated"], table["accuracy"], yerr=bars.clip(0), marker="o", capsize=3, label=shown
    )
    ax.set(xlabel="estimated accuracy", ylabel="actual accuracy", xlim=(0, 1), ylim=(0, 1))
    ax.legend()
    return ax


def plot_accept_curve(
    curve: pd.DataFrame, *, label: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the mean accuracy of the accepted against their share.

    Parameters
    ----------
    curve
        Of `labelsure.accept_curve`.
    label
        For the legend; None shows the area under the curve.
    ax
        Where to draw; several curves can share it.
    """
    ax = _axes(ax)
    area = f"area {curve['area'].iloc[-1]:.3f}" if len(curve) else "empty"
    ax.step(curve["coverage"], curve["accuracy"], where="pre", label=label or area)
    ax.set(xlabel="share accepted", ylabel="mean accuracy of the accepted", xlim=(0, 1))
    ax.legend()
    return ax


def plot_policy(policy: AcceptPolicy, *, ax: Axes | None = None) -> Axes:
    """Draw how many predictions each target leaves, the policy's own marked.

    Parameters
    ----------
    policy
        A fitted one.
    ax
        Where to draw.
    """
    ax = _axes(ax)
    table = policy.table()
    ax.plot(table["target"], table["coverage"], marker="o", label=f"level {policy.level:g}")
    ax.plot([policy.target], [policy.coverage_], "D", color="C1", label=f"target {policy.target:g}")
    ax.set(xlabel="target mean accuracy", ylabel="share accepted", ylim=(0, 1))
    ax.legend()
    return ax


def plot_monitor(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the estimated accuracy of each chunk, the band of what is usual, and alerts.

    Parameters
    ----------
    table
        Of `labelsure.monitor`.
    ax
        Where to draw.
    """
    ax = _axes(ax)
    chunk = table["chunk"].to_numpy()
    bars = np.array([table["estimated"] - table["low"], table["high"] - table["estimated"]])
    ax.fill_between(
        chunk, table["band_low"], table["band_high"], color="0.9", step="mid", label="usual"
    )
    ax.errorbar(chunk, table["estimated"], yerr=bars, marker="o", capsize=3, label="estimated")
    alerts = table["alert"].to_numpy() != "none"
    if alerts.any():
        ax.plot(chunk[alerts], table["estimated"][alerts], "s", color="C3", label="alert", zorder=3)
    ax.set(xlabel="chunk", ylabel="estimated mean accuracy")
    ax.legend()
    return ax
