"""Cells of time: moments and days, value by value."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from headrace.connectors.tables import moments
from headrace.connectors.tables.columns import CELLS
from tests.connectors.tables.fitted import INFINITY, NAN, NO_STRINGS, exact, taken, told

# Moments


def at(*parts, hours=0, minutes=0):
    offset = timedelta(hours=hours, minutes=minutes)
    return datetime(*parts, tzinfo=timezone(offset) if offset else UTC)


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("2026-03-01T08:00:00Z", at(2026, 3, 1, 8)),
        ("2026-03-01t08:00:00z", at(2026, 3, 1, 8)),
        ("2026-03-01 08:00:00Z", at(2026, 3, 1, 8)),
        ("2026-03-01T08:00:00.5Z", at(2026, 3, 1, 8, 0, 0, 500_000)),
        ("2026-03-01T08:00:00,5Z", at(2026, 3, 1, 8, 0, 0, 500_000)),
        ("2026-03-01T08:00:00.123456789Z", at(2026, 3, 1, 8, 0, 0, 123_456)),
        ("2026-03-01T08:00:00.999999999999Z", at(2026, 3, 1, 8, 0, 0, 999_999)),
        ("2026-03-01T08:00:00+01:00", at(2026, 3, 1, 8, hours=1)),
        ("2026-03-01T08:00:00-23:59", at(2026, 3, 1, 8, hours=-23, minutes=-59)),
        ("2026-03-01T08:00:00-00:00", at(2026, 3, 1, 8)),
        ("2026-03-01T08:00:00+0530", at(2026, 3, 1, 8, hours=5, minutes=30)),
        ("2026-03-01T08:00:00+01", at(2026, 3, 1, 8, hours=1)),
        ("2026-03-01T08:00Z", at(2026, 3, 1, 8)),
        ("2026-03-01T08:00:00", at(2026, 3, 1, 8)),
        ("2026-03-01 08:00", at(2026, 3, 1, 8)),
        ("2026-03-01", at(2026, 3, 1)),
        ("2024-02-29T00:00:00Z", at(2024, 2, 29)),
        ("2016-12-31T23:59:60Z", at(2017, 1, 1)),
        ("2016-12-31T23:59:60.5Z", at(2017, 1, 1, 0, 0, 0, 500_000)),
        ("2017-01-01T00:59:60+01:00", at(2017, 1, 1, 1, hours=1)),
        ("2026-03-01T24:00:00Z", at(2026, 3, 2)),
        ("2026-03-01T24:00:00.0000001+01:00", at(2026, 3, 2, hours=1)),
        ("2026-03-01T24:00", at(2026, 3, 2)),
        ("0001-01-01T00:00:00Z", at(1, 1, 1)),
        ("9999-12-31T23:59:59.999999Z", at(9999, 12, 31, 23, 59, 59, 999_999)),
        (0, at(1970, 1, 1)),
        (1_772_352_000, at(2026, 3, 1, 8)),
        (1_772_352_000.25, at(2026, 3, 1, 8, 0, 0, 250_000)),
        (exact("1772352000.250"), at(2026, 3, 1, 8, 0, 0, 250_000)),
        (-0.5, at(1969, 12, 31, 23, 59, 59, 500_000)),
        (9_000_000_000, at(2255, 3, 14, 16)),
        (-9e9, at(1684, 10, 19, 8)),
    ],
)
def test_a_timestamp_is_iso_8601_or_seconds(value, moment):
    taken(CELLS["timestamp"], value, moment)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "now",
        "infinity",
        "2026",
        "2026-03",
        "2026-3-1",
        "20260301T080000Z",
        "20260301",
        "2026-W09-7T08:00Z",
        "2026-060",
        "2026-03-01T08",
        "2026-03-01T08Z",
        "2026-03-01T08:00:00.Z",
        "2026-03-01T08:00:00 Z",
        "2026-03-01T08:00.5Z",
        "2026-03-01_08:00:00Z",
        "2026-03-01T08:00:00+1",
        "2026-03-01T08:00:00+01:00:00",
        "2026-03-01T08:00:00Z\n",
        " 2026-03-01T08:00:00Z",
        "2026-03-01Z",
        "+2026-03-01T08:00:00Z",
        "-2026-03-01T08:00:00Z",
        "12026-03-01T08:00:00Z",
        "\u0662026-03-01T08:00:00Z",
        "Sun, 01 Mar 2026 08:00:00 GMT",
        "1772352000",
    ],
)
def test_a_string_of_another_form_is_no_timestamp(value):
    assert told(CELLS["timestamp"], value) == "expected an ISO 8601 timestamp, found another string"


@pytest.mark.parametrize(
    "value",
    [
        "2026-02-29",
        "2026-13-01T08:00:00Z",
        "0000-01-01T00:00:00Z",
        "2026-03-01T25:00:00Z",
        "2026-03-01T24:00:01Z",
        "2026-03-01T24:00:00.000001Z",
        "2026-03-01T24:01Z",
        "2026-03-01T08:60:00Z",
        "2026-03-01T08:00:61Z",
        "2026-03-01T08:00:60Z",
        "2026-03-01T08:00:00+24:00",
        "2026-03-01T08:00:00+01:60",
        "9999-12-31T23:59:60Z",
        "9999-12-31T24:00:00Z",
    ],
)
def test_a_timestamp_is_in_the_calendar_and_on_the_clock(value):
    assert told(CELLS["timestamp"], value) == (
        "expected an ISO 8601 timestamp, found one that no calendar or clock shows"
    )


@pytest.mark.parametrize("value", [9_000_000_001, -9_000_000_001, 1.7e12, 10**400, NAN, INFINITY])
def test_milliseconds_are_no_seconds(value):
    assert told(CELLS["timestamp"], value) == (
        "expected at most 9000000000 seconds from 1970, found more"
    )


@pytest.mark.parametrize(
    ("value", "found"), [(True, "a boolean"), ([0], "a list"), ({"s": 0}, "an object")]
)
def test_nothing_else_is_a_timestamp(value, found):
    assert told(CELLS["timestamp"], value) == (
        f"expected a timestamp in a string, or seconds, found {found}"
    )


def test_timestamps_lie_between_two_days_in_utc():
    cell = moments.timestamp("1900-01-01", "2299-12-31")
    text = "expected a timestamp from 1900-01-01 to 2299-12-31, found another one"

    for value in (
        "1900-01-01T00:00:00Z",
        "1899-12-31T23:00:00-01:00",
        "2299-12-31T23:59:59.999999Z",
        "2300-01-01T00:59:59+01:00",
        -2_208_988_800,
    ):
        taken(cell, value, cell.one(value))
    for value in (
        "1899-12-31T23:59:59Z",
        "1900-01-01T00:59:59+01:00",
        "2300-01-01T00:00:00Z",
        "2299-12-31T23:00:00-01:00",
        -2_208_988_800.5,
    ):
        assert told(cell, value) == text
    for value in ("0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01"):
        assert told(CELLS["timestamp"], value) == (
            "expected a timestamp from 0001-01-01 to 9999-12-31, found another one"
        )


# Dates


@pytest.mark.parametrize("value", ["2026-03-01", "0001-01-01", "9999-12-31", "2024-02-29"])
def test_a_date_is_a_day_of_the_calendar(value):
    taken(CELLS["date"], value, date(*map(int, value.split("-"))))


@pytest.mark.parametrize(
    "value",
    ["", "2026-3-1", "20260301", "2026-W09-7", "2026-03-01T08:00:00Z", "01.03.2026", " 2026-03-01",
     "2026-03-01\n", "2026/03/01", "\u0662026-03-01"],
)  # fmt: skip
def test_a_string_of_another_form_is_no_date(value):
    assert told(CELLS["date"], value) == "expected a date as YYYY-MM-DD, found another string"


@pytest.mark.parametrize("value", ["2026-02-29", "2026-00-01", "2026-13-01", "0000-01-01"])
def test_a_date_is_in_the_calendar(value):
    assert told(CELLS["date"], value) == (
        "expected a date as YYYY-MM-DD, found one that is in no calendar"
    )


@pytest.mark.parametrize(("value", "found"), NO_STRINGS)
def test_nothing_else_is_a_date(value, found):
    assert told(CELLS["date"], value) == f"expected a date in a string, found {found}"


def test_dates_lie_between_two_days():
    cell = moments.date("1900-01-01", "2299-12-31")

    taken(cell, "1900-01-01", date(1900, 1, 1))
    taken(cell, "2299-12-31", date(2299, 12, 31))
    for value in ("1899-12-31", "2300-01-01"):
        assert (
            told(cell, value) == "expected a date from 1900-01-01 to 2299-12-31, found another one"
        )
