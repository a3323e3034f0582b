"""Figures show the numbers that they are given."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes

import labelsure as ls
from labelsure.report import figures

mpl.use("Agg")


@pytest.fixture(scope="module")
def scored():
    rng = np.random.default_rng(0)
    score = rng.uniform(size=2000)
    return score, (rng.uniform(size=2000) < score).astype(float)


def drawn(ax):
    assert isinstance(ax, Axes)
    ax.figure.canvas.draw()
    return ax


def test_reliability(scored):
    result = ls.reliability(*scored)
    ax = drawn(figures.plot_reliability(result))
    line = ax.containers[0].lines[0]
    np.testing.assert_allclose(line.get_ydata(orig=False), result.table["accuracy"])
    assert figures.plot_reliability(result, label="again", ax=ax) is ax
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts.count("ideal") == 1
    assert "again" in texts


def test_accept_curve(scored):
    curve = ls.accept_curve(*scored)
    ax = drawn(figures.plot_accept_curve(curve))
    np.testing.assert_allclose(ax.lines[0].get_ydata(), curve["accuracy"])
    assert f"area {curve['area'].iloc[-1]:.3f}" in ax.get_legend().get_texts()[0].get_text()


def test_policy(scored):
    policy = ls.AcceptPolicy(0.8, outcome="binary").fit(*scored)
    ax = drawn(figures.plot_policy(policy))
    np.testing.assert_allclose(ax.lines[0].get_ydata(), policy.table()["coverage"])
    assert ax.lines[1].get_xdata()[0] == 0.8


def test_monitor():
    rng = np.random.default_rng(0)
    dist = ls.IndependentLabels(rng.beta(0.3, 0.3, size=(600, 4)))
    estimator = ls.AccuracyEstimator("exact", model="plugin")
    table = ls.monitor(dist, estimator, chunk_size=200, reference=(0.9, 1.0))
    ax = drawn(figures.plot_monitor(table))
    shown = {text.get_text() for text in ax.get_legend().get_texts()}
    assert shown == {"usual", "estimated", "alert"}
