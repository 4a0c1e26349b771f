"""Zones: clocks that come twice or never, days without a midnight, and names of the list alone."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.times.notatime import NotATime
from headrace.compiler.times.truncating import WORDS, truncation
from headrace.compiler.times.zones import MOST_HOURS, UnknownZone, Zone, zone_names
from tests.examples import examples


def clock(text):
    return datetime.fromisoformat(text)


def spelled(shown):
    clock, offset = shown
    return (clock - offset).isoformat() + "Z", clock.isoformat()


@pytest.mark.parametrize(
    ("zone", "local", "shift", "moment", "shown"),
    [
        # Berlin: the clock goes forward at 02:00 on 29 March, and back at 03:00 on 25 October.
        (
            "Europe/Berlin",
            "2026-03-29T02:30:00",
            "before",
            "2026-03-29T01:30:00Z",
            "2026-03-29T03:30:00",
        ),
        (
            "Europe/Berlin",
            "2026-03-29T02:30:00",
            "after",
            "2026-03-29T00:30:00Z",
            "2026-03-29T01:30:00",
        ),
        (
            "Europe/Berlin",
            "2026-10-25T02:30:00",
            "before",
            "2026-10-25T00:30:00Z",
            "2026-10-25T02:30:00",
        ),
        (
            "Europe/Berlin",
            "2026-10-25T02:30:00",
            "after",
            "2026-10-25T01:30:00Z",
            "2026-10-25T02:30:00",
        ),
        (
            "Europe/Berlin",
            "2026-03-29T01:59:59",
            "after",
            "2026-03-29T00:59:59Z",
            "2026-03-29T01:59:59",
        ),
        (
            "Europe/Berlin",
            "2026-03-29T03:00:00",
            "before",
            "2026-03-29T01:00:00Z",
            "2026-03-29T03:00:00",
        ),
        # Sydney: summer is in January.
        (
            "Australia/Sydney",
            "2026-10-04T02:30:00",
            "before",
            "2026-10-03T16:30:00Z",
            "2026-10-04T03:30:00",
        ),
        (
            "Australia/Sydney",
            "2026-10-04T02:30:00",
            "after",
            "2026-10-03T15:30:00Z",
            "2026-10-04T01:30:00",
        ),
        (
            "Australia/Sydney",
            "2026-04-05T02:30:00",
            "before",
            "2026-04-04T15:30:00Z",
            "2026-04-05T02:30:00",
        ),
        (
            "Australia/Sydney",
            "2026-04-05T02:30:00",
            "after",
            "2026-04-04T16:30:00Z",
            "2026-04-05T02:30:00",
        ),
        # Lord Howe: half an hour.
        (
            "Australia/Lord_Howe",
            "2026-10-04T02:15:00",
            "before",
            "2026-10-03T15:45:00Z",
            "2026-10-04T02:45:00",
        ),
        (
            "Australia/Lord_Howe",
            "2026-10-04T02:15:00",
            "after",
            "2026-10-03T15:15:00Z",
            "2026-10-04T01:45:00",
        ),
        (
            "Australia/Lord_Howe",
            "2026-10-04T02:30:00",
            "after",
            "2026-10-03T15:30:00Z",
            "2026-10-04T02:30:00",
        ),
        (
            "Australia/Lord_Howe",
            "2026-04-05T01:45:00",
            "before",
            "2026-04-04T14:45:00Z",
            "2026-04-05T01:45:00",
        ),
        (
            "Australia/Lord_Howe",
            "2026-04-05T01:45:00",
            "after",
            "2026-04-04T15:15:00Z",
            "2026-04-05T01:45:00",
        ),
        (
            "Australia/Lord_Howe",
            "2026-04-05T01:15:00",
            "after",
            "2026-04-04T14:15:00Z",
            "2026-04-05T01:15:00",
        ),
        # Apia: a whole day was left out.
        (
            "Pacific/Apia",
            "2011-12-30T12:00:00",
            "before",
            "2011-12-30T22:00:00Z",
            "2011-12-31T12:00:00",
        ),
        # Berlin by the sun, 53 minutes and 28 seconds ahead: shown with the nearest minute.
        (
            "Europe/Berlin",
            "1890-01-01T00:00:00",
            "before",
            "1889-12-31T23:06:32Z",
            "1889-12-31T23:59:32",
        ),
        ("UTC", "2026-11-22T12:00:00", "refuse", "2026-11-22T12:00:00Z", "2026-11-22T12:00:00"),
    ],
)
def test_a_clock_that_comes_twice_or_never_has_the_offset_of_before_or_after(
    zone, local, shift, moment, shown
):
    asked = Zone(zone)

    for _ in range(3):  # at first, when it is kept, and from what is kept
        assert spelled(asked.placed(clock(local), shift)) == (moment, shown)


@pytest.mark.parametrize(
    ("zone", "local", "why"),
    [
        ("Europe/Berlin", "2026-03-29T02:00:00", "never comes in Europe/Berlin"),
        ("Europe/Berlin", "2026-10-25T02:59:59", "comes twice in Europe/Berlin"),
        ("Australia/Lord_Howe", "2026-10-04T02:29:59", "never comes in Australia/Lord_Howe"),
        ("Australia/Lord_Howe", "2026-04-05T01:30:00", "comes twice in Australia/Lord_Howe"),
    ],
)
def test_it_may_be_refused(zone, local, why):
    with pytest.raises(NotATime) as refused:
        Zone(zone).placed(clock(local), "refuse")

    assert str(refused.value) == f"{why}, where the clock is changed then"


@pytest.mark.parametrize(
    ("zone", "local"),
    [
        ("Europe/Berlin", "2026-03-29T03:00:00"),
        ("Europe/Berlin", "2026-10-25T01:59:59"),
        ("Europe/Berlin", "2026-10-25T03:00:00"),
        ("Australia/Lord_Howe", "2026-04-05T01:29:59"),
        ("Australia/Lord_Howe", "2026-04-05T02:00:00"),
    ],
)
def test_a_clock_that_comes_once_is_never_refused(zone, local):
    assert Zone(zone).placed(clock(local), "refuse")[0] == clock(local)


@pytest.mark.parametrize(
    ("unit", "zone", "moment", "begun"),
    [
        ("hour", "Europe/Berlin", "2026-10-25T00:45:00", "2026-10-25T02:00:00+02:00"),
        ("hour", "Europe/Berlin", "2026-10-25T01:45:00", "2026-10-25T02:00:00+01:00"),
        ("minute", "Europe/Berlin", "2026-10-25T01:45:30", "2026-10-25T02:45:00+01:00"),
        ("day", "Europe/Berlin", "2026-10-25T12:00:00", "2026-10-25T00:00:00+02:00"),
        ("week", "Europe/Berlin", "2026-10-26T12:00:00", "2026-10-26T00:00:00+01:00"),
        ("week", "Europe/Berlin", "2026-10-25T12:00:00", "2026-10-19T00:00:00+02:00"),
        ("month", "Europe/Berlin", "2026-10-31T22:59:59", "2026-10-01T00:00:00+02:00"),
        ("month", "Europe/Berlin", "2026-10-31T23:00:00", "2026-11-01T00:00:00+01:00"),
        ("year", "Europe/Berlin", "2026-12-31T23:00:00", "2027-01-01T00:00:00+01:00"),
        ("day", "Asia/Kolkata", "2026-11-22T18:30:00", "2026-11-23T00:00:00+05:30"),
        ("hour", "Asia/Kathmandu", "2026-11-22T18:30:00", "2026-11-23T00:00:00+05:45"),
        # 02:00 to 02:30 is left out, so that hour begins at its half.
        ("hour", "Australia/Lord_Howe", "2026-10-03T15:45:00", "2026-10-04T02:30:00+11:00"),
        # 01:30 to 02:00 comes again, within the hour that began at 01:00 of summer.
        ("hour", "Australia/Lord_Howe", "2026-04-04T15:15:00", "2026-04-05T01:00:00+11:00"),
        # Days that began at one o'clock, as midnight was left out.
        ("day", "America/Sao_Paulo", "2018-11-04T12:00:00", "2018-11-04T01:00:00-02:00"),
        ("day", "Asia/Beirut", "2026-03-29T12:00:00", "2026-03-29T01:00:00+03:00"),
        ("day", "Africa/Cairo", "2026-04-24T12:00:00", "2026-04-24T01:00:00+03:00"),
        ("month", "Asia/Amman", "2022-03-31T21:00:00", "2022-04-01T00:00:00+03:00"),
        # Midnight came twice, at the end of summer: the day began with the first.
        ("day", "America/Havana", "2026-11-01T05:30:00", "2026-11-01T00:00:00-04:00"),
        ("day", "America/Havana", "2026-11-01T05:00:00", "2026-11-01T00:00:00-04:00"),
        ("hour", "America/Havana", "2026-11-01T05:30:00", "2026-11-01T00:00:00-05:00"),
    ],
)
def test_a_unit_begins_by_the_clock_that_shows_it(unit, zone, moment, begun):
    zone = Zone(zone)

    shown, offset = truncation(unit)(*zone.shown(clock(moment)), zone)

    expected = datetime.fromisoformat(begun)
    assert (shown, offset) == (expected.replace(tzinfo=None), expected.utcoffset())


NAMES = sorted(zone_names())
zones = st.sampled_from(NAMES).map(Zone)
seconds = st.integers(0, 67 * 365 * 86_400)
WATCHED = [
    "Europe/Berlin", "Australia/Sydney", "Australia/Lord_Howe", "America/Havana", "America/Sao_Paulo",
    "Asia/Beirut", "Africa/Casablanca", "Pacific/Apia", "America/New_York", "Asia/Tehran",
]  # fmt: skip


@st.composite
def near_changes(draw):
    """Draw a zone, and a moment within two hours of a change of its clock."""
    name = draw(st.sampled_from(WATCHED))
    known, year = ZoneInfo(name), draw(st.integers(1990, 2030))
    days = [datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=n) for n in range(365)]
    changed = [
        day
        for day in days
        if day.astimezone(known).utcoffset()
        != (day + timedelta(days=1)).astimezone(known).utcoffset()
    ]
    day = draw(st.sampled_from(changed or days))
    return Zone(name), day.replace(tzinfo=None) + timedelta(seconds=draw(st.integers(0, 90_000)))


somewhere = st.one_of(
    near_changes(),
    st.tuples(zones, seconds.map(lambda n: clock("1973-01-01T00:00:00") + timedelta(seconds=n))),
)


@examples(400)
@given(somewhere)
def test_clocks_are_those_of_zoneinfo(drawn):
    zone, utc = drawn
    theirs = utc.replace(tzinfo=UTC).astimezone(ZoneInfo(zone.name))

    for _ in range(3):  # at first, when it is kept, and from what is kept
        assert zone.shown(utc) == (theirs.replace(tzinfo=None, fold=0), theirs.utcoffset())


@examples(400)
@given(somewhere, st.sampled_from(["before", "after"]))
def test_moments_of_clocks_are_those_of_zoneinfo(drawn, shift):
    zone, local = drawn
    theirs = local.replace(tzinfo=ZoneInfo(zone.name), fold=shift == "after").astimezone(UTC)

    for _ in range(3):
        shown, offset = zone.placed(local, shift)
        assert shown - offset == theirs.replace(tzinfo=None)
        assert zone.shown(shown - offset) == (shown, offset)


@examples(400)
@given(somewhere, st.sampled_from(WORDS))
def test_what_is_cut_down_is_no_later_and_stays_where_it_is(drawn, unit):
    zone, utc = drawn
    begun, offset = truncation(unit)(*zone.shown(utc), zone)

    assert begun - offset <= utc
    assert zone.shown(begun - offset) == (begun, offset)
    assert truncation(unit)(begun, offset, zone) == (begun, offset)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "localtime",
        "posixrules",
        "Factory",
        "posix/Europe/Berlin",
        "right/Europe/Berlin",
        "Europe",
        "Europe/",
        "/etc/localtime",
        "../../etc/passwd",
        "Europe/../Europe/Berlin",
        "./UTC",
        "Europe/Berlin/",
        "Europe/Berlin\n",
        "Europe/Nowhere",
        "europe/berlin",
        "zone.tab",
        "leapseconds",
        "tzdata.zi",
        "+01:00",
        "CEST",
        "A" * 100_000,
        "UTC\0",
        "C:\\zone",
        "Europe//Berlin",
    ],
)
def test_only_names_of_the_list_are_zones(name):
    with pytest.raises(UnknownZone):
        Zone(name)


def test_every_name_of_the_list_is_a_zone():
    assert len(NAMES) > 400
    assert {"Europe/Berlin", "UTC", "Etc/GMT-1", "America/Argentina/Buenos_Aires"} <= {*NAMES}
    for name in NAMES:
        Zone(name)


def test_it_keeps_no_more_hours_than_it_may():
    zone = Zone("Europe/Berlin")
    for hour in range(MOST_HOURS * 2 + 1):
        local = clock("2026-01-01T00:00:00") + timedelta(hours=hour)
        for _ in range(3):
            zone.shown(local)
            zone.placed(local, "before")

    for kept in (zone._by_utc, zone._by_clock, zone._utc_asked, zone._clocks_asked):
        assert 0 < len(kept) <= MOST_HOURS


@pytest.mark.skipif(find_spec("tzdata") is None, reason="the package tzdata is not installed")
def test_without_tables_of_the_system_those_of_the_package_are_taken():
    said = subprocess.run(
        [
            sys.executable,
            "-c",
            "from headrace.compiler.times.zones import *\n"
            "print(Zone('Europe/Berlin').name, len(zone_names()) > 400)",
        ],
        env={**os.environ, "PYTHONTZPATH": ""},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert said == "Europe/Berlin True\n"
