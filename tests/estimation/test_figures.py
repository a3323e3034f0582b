"""Figures show the numbers that they are given."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes

import labelsure as ls

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


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def looks(ax):
    """How each line is drawn, without its colour."""
    return [(line.get_linestyle(), line.get_marker()) for line in ax.lines]


def test_reliability(scored):
    result = ls.reliability(*scored)
    ax = drawn(result.plot())
    line, _, (bars,) = ax.containers[0].lines
    table = result.to_frame()
    np.testing.assert_allclose(line.get_xdata(orig=False), table["estimated"])
    np.testing.assert_allclose(line.get_ydata(orig=False), table["accuracy"])
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    np.testing.assert_allclose(ends, table[["accuracy_low", "accuracy_high"]])
    assert ax.get_title() == "Actual against estimated accuracy"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("estimated accuracy", "actual accuracy")
    shown = f"calibration error {result.expected_calibration_error:.3f}"
    assert legend_of(ax) == ["ideal", shown]
    assert result.plot(ax, label="again") is ax
    assert legend_of(ax) == ["ideal", shown, "again"]
    first, second = (container.lines[0] for container in ax.containers)
    assert first.get_marker() != second.get_marker()
    assert first.get_linestyle() != second.get_linestyle()


def test_intervals_without_instances_are_not_drawn():
    estimated = np.repeat([0.1, 0.5, 0.9], [10, 9, 20])
    ax = drawn(ls.reliability(estimated, estimated).plot())
    assert ax.containers[0].lines[0].get_xdata(orig=False) == pytest.approx([0.1, 0.9])
    (few,) = [line for line in ax.lines if line.get_label() == "fewer than 10 instances"]
    assert few.get_xdata(orig=False) == pytest.approx([0.5])
    assert few.get_markerfacecolor() == "none"


def test_limits_of_a_curve_fit_what_is_known_well_and_the_target():
    score, accuracy = np.arange(400), np.r_[np.full(200, 0.6), np.ones(198), 0, 0]
    curve = ls.accept_curve(score, accuracy)
    low = curve.plot().get_ylim()[0]
    assert 0.5 < low < curve.accuracy.min() + 0.8
    assert low > curve.interval()[0].min()  # that of one accepted is left out
    assert curve.plot(target=0.3).get_ylim()[0] < 0.3


def test_accept_curve(scored):
    curve = ls.accept_curve(*scored)
    ax = drawn(curve.plot(level=0.9))
    np.testing.assert_allclose(ax.lines[0].get_xdata()[1:], curve.share)
    np.testing.assert_allclose(ax.lines[0].get_ydata()[1:], curve.accuracy)
    few = "fewer than 30 accepted: mostly chance"
    assert legend_of(ax) == [f"area {curve.area:.3f}", "90% interval of the mean", few]
    assert ax.get_title() == "Accuracy of the most confident predictions"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("share accepted", "mean accuracy of the accepted")
    (hatched,) = [patch for patch in ax.patches if patch.get_hatch()]
    assert hatched.get_extents().transformed(ax.transData.inverted()).x1 == pytest.approx(29 / 2000)
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    low, high = curve.interval(0.9)
    assert (band.min(), band.max()) == pytest.approx((low.min(), high.max()))
    assert curve.plot(ax, label="again") is ax
    assert len(set(looks(ax))) == 2
    assert legend_of(ax).count(few) == 1


def test_a_curve_of_many_equal_scores_has_no_noisy_end():
    ax = drawn(ls.accept_curve([1.0] * 30 + [0.0], [1] * 31).plot(label="curve"))
    assert legend_of(ax) == ["curve", "95% interval of the mean"]
    ax = drawn(ls.accept_curve([1.0] * 29 + [0.0], [1] * 30).plot(label="curve"))
    assert legend_of(ax)[2] == "fewer than 30 accepted: mostly chance"


def test_a_target_is_marked_where_it_is_met():
    curve = ls.accept_curve([0.9, 0.8, 0.7, 0.6], [1, 0, 1, 0])
    ax = drawn(curve.plot(target=0.6))
    assert legend_of(ax)[-1] == "target 0.6: met here with 75% accepted"
    assert ax.lines[1].get_xydata().tolist() == [[0.75, 0.6]]
    assert set(ax.lines[2].get_ydata()) == {0.6}
    worse = ls.accept_curve([0.9, 0.8], [0.5, 0.5])
    assert legend_of(drawn(worse.plot(target=0.6)))[-1] == "target 0.6: not met here"


def test_an_empty_curve_is_drawn_as_such():
    assert legend_of(drawn(ls.accept_curve([], []).plot()))[0] == "nothing to accept"
