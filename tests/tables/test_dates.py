"""Dates of a column: ISO 8601 or one named format; nothing is guessed."""

import datetime as dt
import re

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelsure.errors import InputError
from labelsure.tables.dates import read_dates

DAY = dt.datetime(2024, 3, 5)


@pytest.mark.parametrize(
    "value",
    ["05.03.2024", "03/05/2024", "2024", 2024, 20240105, 20240105.0, "20240105", 1709596800,
     "1709596800", "24-01-05", "10:00", "5 March 2024", "2024-3-5", "2024-03", True],
)  # fmt: skip
def test_numbers_and_ambiguous_dates_are_refused(value):
    shown = re.escape(repr(str(value)))
    message = rf"Dates in 'at' must be ISO 8601.* got {shown} in row 0 .*Name their format"
    with pytest.raises(InputError, match=message):
        read_dates(pd.Series([value] * 3, name="at"))


@pytest.mark.parametrize(
    ("values", "time_format"),
    [
        (["2024-03-05", "2024-03-05T00:00"], None),
        (["2024-03-05 00:00:00", "2024-03-05T01:00:00+01:00"], None),
        ([dt.date(2024, 3, 5)] * 2, None),
        (pd.to_datetime(["2024-03-05"] * 2), None),
        (pd.to_datetime(["2024-03-05 01:00"] * 2).tz_localize("Europe/Berlin"), None),
        (["05.03.2024"] * 2, "%d.%m.%Y"),
        (["03/05/2024"] * 2, "%m/%d/%Y"),
        ([20240305] * 2, "%Y%m%d"),
        ([20240305.0] * 2, "%Y%m%d"),
        ([1709596800] * 2, "s"),
        (["1709596800000"] * 2, "ms"),
    ],
)
def test_one_meaning(values, time_format):
    dates, reasons = read_dates(pd.Series(values), time_format)
    assert reasons == {}
    assert [date.to_pydatetime() for date in dates] == [DAY] * 2


@pytest.mark.parametrize("time_format", ["%Q", "%d.%m.%Y %q"])
def test_formats_that_are_none(time_format):
    with pytest.raises(InputError, match="`time_format` must be a format of strptime"):
        read_dates(pd.Series(["05.03.2024"]), time_format)


@pytest.mark.parametrize("bad", ["soon", "05.03.2024", "2024-13-01", "", None, "20240305"])
def test_single_rows_that_cannot_be_read(bad):
    dates, reasons = read_dates(pd.Series(["2024-03-05", bad, "2024-03-06"], name="at"))
    shown = "nothing" if bad is None else repr(bad)
    assert reasons == {1: f"'at' must be an ISO 8601 date, got {shown}"}
    assert list(dates.isna()) == [False, True, False]


@given(st.lists(st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1)), min_size=1))
def test_what_isoformat_writes_is_read(days):
    dates, reasons = read_dates(pd.Series([day.isoformat() for day in days]))
    assert reasons == {}
    assert [date.to_pydatetime() for date in dates] == days
