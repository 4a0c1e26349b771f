"""Timestamps as text: what RFC 3339 allows, in one spelling."""

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.timestamps import rfc3339, rfc3339_of_seconds


@pytest.mark.parametrize(
    ("given_text", "rendered"),
    [
        ("2026-03-01T08:00:00Z", "2026-03-01T08:00:00+00:00"),
        ("2026-03-01t08:00:00z", "2026-03-01T08:00:00+00:00"),
        ("2026-03-01 08:00:00+05:30", "2026-03-01T08:00:00+05:30"),
        ("2026-03-01T08:00:00-23:59", "2026-03-01T08:00:00-23:59"),
        ("2026-03-01T08:00:00-00:00", "2026-03-01T08:00:00+00:00"),
        ("2026-03-01", "2026-03-01T00:00:00+00:00"),
        ("2024-02-29", "2024-02-29T00:00:00+00:00"),
        ("0001-01-01T00:00:00+23:59", "0001-01-01T00:00:00+23:59"),
        ("9999-12-31T23:59:59-23:59", "9999-12-31T23:59:59-23:59"),
        ("2016-12-31T23:59:60Z", "2016-12-31T23:59:60+00:00"),
        ("2017-01-01T05:29:60.5+05:30", "2017-01-01T05:29:60.500+05:30"),
        ("2016-12-31T15:59:60-08:00", "2016-12-31T15:59:60-08:00"),
    ],
)
def test_a_timestamp_keeps_its_offset_and_gets_one_spelling(given_text, rendered):
    assert rfc3339(given_text) == rendered


@pytest.mark.parametrize(
    ("fraction", "rendered"),
    [
        (".0", ""),
        (".000000000000", ""),
        (".5", ".500"),
        (".120", ".120"),
        (".1234", ".123400"),
        (".123456", ".123456"),
        (".1234567", ".123456700"),
        (".123456789", ".123456789"),
        (".1234567899999", ".123456789"),
        (".0000000001", ""),
    ],
)
def test_a_fraction_has_no_3_6_or_9_digits(fraction, rendered):
    assert rfc3339(f"2026-03-01T08:00:00{fraction}Z") == f"2026-03-01T08:00:00{rendered}+00:00"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-03-01T08:00:00",
        "2026-03-01 08:00:00",
        "2026-03-01T08:00Z",
        "2026-03-01T08:00:00.Z",
        "2026-03-01T08:00:00+0530",
        "2026-03-01T08:00:00+05",
        "2026-03-01T08:00:00+24:00",
        "2026-03-01T08:00:00+05:60",
        "2026-03-01T08:00:00 Z",
        "2026-03-01_08:00:00Z",
        " 2026-03-01T08:00:00Z",
        "2026-03-01T08:00:00Z\n",
        "2026-3-1T08:00:00Z",
        "20260301T080000Z",
        "20260301",
        "2026-W09-7",
        "2026-W09-7T08:00:00Z",
        "2026-060",
        "2026-02-29",
        "2026-13-01T08:00:00Z",
        "2026-03-32T08:00:00Z",
        "2026-03-00",
        "0000-01-01",
        "2026-03-01T24:00:00Z",
        "2026-03-01T08:60:00Z",
        "2026-03-01T08:00:61Z",
        "2026-03-01T08:00:60Z",
        "2016-12-31T23:59:60+01:00",
        "1770000000",
        "+2026-03-01",
        "12026-03-01",
        "\N{BENGALI DIGIT TWO}026-03-01",
        "2026-03-01T08:00:00\N{MINUS SIGN}05:00",
    ],
)
def test_every_other_form_is_refused(text):
    with pytest.raises(ValueError, match=r"neither|must be in|out of range|leap second"):
        rfc3339(text)


@pytest.mark.parametrize(
    ("seconds", "rendered"),
    [
        (0, "1970-01-01T00:00:00+00:00"),
        (1772352000, "2026-03-01T08:00:00+00:00"),
        (1772352000.0, "2026-03-01T08:00:00+00:00"),
        (1772352000.5, "2026-03-01T08:00:00.500+00:00"),
        (1772352000.123456, "2026-03-01T08:00:00.123456+00:00"),
        (0.0000016, "1970-01-01T00:00:00.000002+00:00"),
        (0.0000001, "1970-01-01T00:00:00+00:00"),
        (-0.25, "1969-12-31T23:59:59.750+00:00"),
        (9e9, "2255-03-14T16:00:00+00:00"),
        (-9_000_000_000, "1684-10-19T08:00:00+00:00"),
    ],
)
def test_seconds_are_rounded_to_microseconds(seconds, rendered):
    assert rfc3339_of_seconds(seconds) == rendered


@pytest.mark.parametrize("seconds", [9_000_000_001, -9e9 - 1, 1772352000000, 1e308, 10**400])
def test_seconds_beyond_9e9_are_refused(seconds):
    with pytest.raises(ValueError, match="more than 9000000000 seconds"):
        rfc3339_of_seconds(seconds)


offsets = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(timezones=offsets), st.sampled_from("Tt "))
def test_what_datetime_writes_is_read_as_the_same_moment(moment, separator):
    rendered = rfc3339(moment.isoformat(sep=separator))

    assert datetime.fromisoformat(rendered) == moment
    assert rfc3339(rendered) == rendered
