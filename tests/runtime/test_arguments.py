"""Single values that users pass: accepted as they should be, or refused by name."""

import numpy as np
import pytest

from labelsure._runtime.arguments import read_choice, read_number, read_whole_number
from labelsure.errors import InputError, UnknownNameError


@pytest.mark.parametrize("value", [0.5, 1, np.float32(0.25), np.int64(1)])
def test_numbers_in_an_interval(value):
    read = read_number(value, "share", 0, 1, ends="(]")
    assert type(read) is float
    assert read == value


@pytest.mark.parametrize("value", [0, 1.5, np.nan, np.inf, True, "0.5", None, [0.5]])
def test_other_values_are_refused_with_the_interval(value):
    with pytest.raises(InputError, match=r"`share`.*\(0, 1\].*Take half\."):
        read_number(value, "share", 0, 1, ends="(]", hint="Take half.")


def test_ends_decide_whether_a_limit_is_allowed():
    assert read_number(np.inf, "cost", 0) == np.inf
    assert read_number(0, "cost", 0) == 0
    for value in (0, np.inf):
        with pytest.raises(InputError, match="> 0"):
            read_number(value, "cost", 0, ends="()")


def test_whole_numbers():
    assert type(read_whole_number(np.int8(3), "k", most=3)) is int
    for value in (0, 4, 2.0, True, "2", None):
        with pytest.raises(InputError, match="from 1 to 3"):
            read_whole_number(value, "k", most=3)
    with pytest.raises(InputError, match=">= 0"):
        read_whole_number(-1, "size", 0)


def test_choices():
    assert read_choice("f1", "metric", {"f1": 1}) == "f1"
    for value in ("F 1", None, ["f1"]):
        with pytest.raises(UnknownNameError, match="metric"):
            read_choice(value, "metric", ["f1"])
