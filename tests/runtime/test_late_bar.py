"""The bar of long work: late, on terminals only, and silent on request."""

import io

import pytest

from labelsure._runtime import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def draw(monkeypatch, stream, seconds, quiet=""):
    moments = iter([0.0, *[seconds] * 10])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(moments))
    monkeypatch.setattr(progress.sys, "stderr", stream)
    monkeypatch.setenv(progress.QUIET_VARIABLE, quiet)
    with progress.LateBar("rows") as bar:
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
