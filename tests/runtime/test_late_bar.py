"""The bar of long work: late, on terminals only, one at a time, and silent on request."""

import io

import pytest

from labelsure._runtime import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def draw(monkeypatch, stream, seconds, quiet=""):
    moments = iter([0.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(moments, seconds))
    monkeypatch.setattr(progress.sys, "stderr", stream)
    monkeypatch.setenv(progress.QUIET_VARIABLE, quiet)
    with progress.ProgressBar("rows") as bar:
        bar(1, 4)
        return bar._bar is not None


@pytest.mark.parametrize(
    ("stream", "seconds", "quiet", "expected"),
    [
        (Terminal, 2.5, "", True),
        (Terminal, 1.5, "", False),
        (Terminal, 2.5, "1", False),
        (io.StringIO, 2.5, "", False),
    ],
)
def test_the_bar(monkeypatch, stream, seconds, quiet, expected):
    assert draw(monkeypatch, stream(), seconds, quiet) == expected


def test_a_bar_within_another_is_not_drawn(monkeypatch):
    stream = Terminal()
    moments = iter([0.0, 0.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(moments, 3.0))
    monkeypatch.setattr(progress.sys, "stderr", stream)
    monkeypatch.setenv(progress.QUIET_VARIABLE, "")
    with progress.ProgressBar("rows") as outer, progress.ProgressBar("instances") as inner:
        outer(1, 4)
        inner(1, 2)
        assert (outer._bar is not None, inner._bar is not None) == (True, False)
    with progress.ProgressBar("rows") as later:
        later._began = 0.0
        later(1, 4)
        assert later._bar is not None


@pytest.mark.parametrize(("logs", "expected"), [(True, "3 of 4 rows\n"), (False, "")])
def test_a_line_a_minute_without_a_terminal(monkeypatch, logs, expected):
    stream = io.StringIO()
    moments = iter([0.0, 30.0, 61.0, 62.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(moments))
    monkeypatch.setattr(progress.sys, "stderr", stream)
    monkeypatch.setenv(progress.QUIET_VARIABLE, "")
    with progress.ProgressBar("rows", logs=logs) as bar:
        for n_done in (2, 3, 4):
            bar(n_done, 4)
    assert stream.getvalue() == expected
