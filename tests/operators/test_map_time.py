"""The mapping `time`: a time is read, placed, moved, shown, cut down and written."""

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from time import thread_time
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.clock import stopwatch
from headrace.compiler.component.fieldflow import FieldUse
from headrace.compiler.decimals import Written
from headrace.compiler.delivery import SLOW_BATCH
from headrace.compiler.errors import BatchFailed
from headrace.compiler.lowering.chain import fuse
from headrace.operators.map import Map
from tests.compiler.lowering.sliced import longest_turn
from tests.doubles import StubContext, refusals
from tests.examples import examples
from tests.operators.mappings import a_map, literal
from tests.slowness import slowness

LOCAL = "%Y-%m-%d %H:%M:%S"
NGINX = "%d/%b/%Y:%H:%M:%S %z"
BERLIN = {"zone": "Europe/Berlin"}


def time(**options):
    named = {key.rstrip("_"): value for key, value in options.items()}
    return {"type": "time", "from": "at", **named}


def field(path):
    return {"type": "field", "field": path}


def seconds(count):
    return {"type": "value", "value": count}


@pytest.mark.parametrize(
    ("options", "value", "written"),
    [
        # In the usual form.
        ({}, "2026-11-22T12:00:00.1200+01:00", "2026-11-22T12:00:00.120+01:00"),
        ({}, "2026-11-22t12:00:00.123456789123z", "2026-11-22T12:00:00.123456789+00:00"),
        ({}, "2026-11-22", "2026-11-22T00:00:00+00:00"),
        ({}, 0, "1970-01-01T00:00:00+00:00"),
        ({}, 1.25, "1970-01-01T00:00:01.250+00:00"),
        ({}, -0.5, "1969-12-31T23:59:59.500+00:00"),
        ({}, Written("1.10"), "1970-01-01T00:00:01.100+00:00"),
        ({}, 9_000_000_000, "2255-03-14T16:00:00+00:00"),
        ({}, "2016-12-31T23:59:60.5Z", "2017-01-01T00:00:00.500+00:00"),
        ({}, "2017-01-01T05:29:60+05:30", "2017-01-01T05:30:00+05:30"),
        (BERLIN, "2026-11-22T12:00:00", "2026-11-22T12:00:00+01:00"),
        (BERLIN, "2026-07-22 12:00:00.5", "2026-07-22T12:00:00.500+02:00"),
        (BERLIN, "2026-07-22T12:00:00Z", "2026-07-22T12:00:00+00:00"),
        (BERLIN, "2026-07-22", "2026-07-22T00:00:00+02:00"),
        (BERLIN, 0, "1970-01-01T00:00:00+00:00"),
        # By formats.
        ({"format": NGINX}, "22/Nov/2026:12:00:00 +0100", "2026-11-22T12:00:00+01:00"),
        ({"format": [LOCAL, "%d.%m.%Y"], **BERLIN}, "22.11.2026", "2026-11-22T00:00:00+01:00"),
        (
            {"format": [LOCAL, "%d.%m.%Y"], **BERLIN},
            "2026-11-22 01:02:03",
            "2026-11-22T01:02:03+01:00",
        ),
        (
            {"format": LOCAL, **BERLIN, "to_zone": "UTC"},
            "2026-11-22 12:00:00",
            "2026-11-22T11:00:00+00:00",
        ),
        (
            {"format": LOCAL, **BERLIN, "to_zone": "UTC"},
            "2026-03-29 02:30:00",
            "2026-03-29T01:30:00+00:00",
        ),
        (
            {"format": LOCAL, **BERLIN, "to_zone": "UTC"},
            "2026-10-25 02:30:00",
            "2026-10-25T00:30:00+00:00",
        ),
        ({"format": LOCAL, **BERLIN}, "2026-03-29 02:30:00", "2026-03-29T03:30:00+02:00"),
        (
            {"format": LOCAL, **BERLIN, "at_shift": "after", "to_zone": "UTC"},
            "2026-03-29 02:30:00",
            "2026-03-29T00:30:00+00:00",
        ),
        (
            {"format": LOCAL, **BERLIN, "at_shift": "after", "to_zone": "UTC"},
            "2026-10-25 02:30:00",
            "2026-10-25T01:30:00+00:00",
        ),
        (
            {"format": LOCAL, **BERLIN, "to_zone": "Asia/Kolkata"},
            "2026-11-22 12:00:00",
            "2026-11-22T16:30:00+05:30",
        ),
        # As numbers.
        ({"format": "seconds"}, 1_795_350_896, "2026-11-22T12:34:56+00:00"),
        ({"format": "seconds"}, "1795350896.123456789", "2026-11-22T12:34:56.123456789+00:00"),
        ({"format": "seconds"}, "-0.5", "1969-12-31T23:59:59.500+00:00"),
        ({"format": "millis"}, 1_795_350_896_001, "2026-11-22T12:34:56.001+00:00"),
        ({"format": "millis"}, 1_795_350_896_001.5, "2026-11-22T12:34:56.001500+00:00"),
        ({"format": "millis"}, "1795350896001.5", "2026-11-22T12:34:56.001500+00:00"),
        ({"format": "micros"}, 1_795_350_896_000_001, "2026-11-22T12:34:56.000001+00:00"),
        ({"format": "nanos"}, 1_795_350_896_000_000_001, "2026-11-22T12:34:56.000000001+00:00"),
        ({"format": "nanos"}, "1795350896000000001", "2026-11-22T12:34:56.000000001+00:00"),
        ({"format": "nanos"}, 1_795_350_896_000_000_000.0, "2026-11-22T12:34:56+00:00"),
        ({"format": "nanos"}, -1, "1969-12-31T23:59:59.999999999+00:00"),
        ({"format": "millis", "to_zone": "Europe/Berlin"}, 0, "1970-01-01T01:00:00+01:00"),
        # Moved.
        ({"plus": seconds(3600)}, "2026-11-22T23:30:00+01:00", "2026-11-23T00:30:00+01:00"),
        ({"plus": seconds(-0.25)}, "2026-11-22T00:00:00Z", "2026-11-21T23:59:59.750+00:00"),
        ({"plus": seconds(0.75)}, "2026-11-22T00:00:00.5Z", "2026-11-22T00:00:01.250+00:00"),
        ({"plus": seconds(0)}, "2026-11-22T00:00:00Z", "2026-11-22T00:00:00+00:00"),
        ({"plus": seconds(86_400), **BERLIN}, "2026-03-28 12:00:00", "2026-03-29T13:00:00+02:00"),
        (
            {"plus": seconds(3600), "to_zone": "Europe/Berlin"},
            "2026-03-29T00:30:00Z",
            "2026-03-29T03:30:00+02:00",
        ),
        ({"plus": field("more")}, "2026-11-22T00:00:00Z", "2026-11-22T00:00:08+00:00"),
        # Cut down.
        ({"truncate": "second"}, "2026-11-22T12:34:56.9+01:00", "2026-11-22T12:34:56+01:00"),
        ({"truncate": "minute"}, "2026-11-22T12:34:56.9+01:00", "2026-11-22T12:34:00+01:00"),
        ({"truncate": "hour"}, "2026-11-22T12:34:56.9+05:30", "2026-11-22T12:00:00+05:30"),
        (
            {"truncate": "day", "to_zone": "America/New_York"},
            "2026-11-22T04:00:00Z",
            "2026-11-21T00:00:00-05:00",
        ),
        ({"truncate": "week"}, "2026-11-22T12:34:56Z", "2026-11-16T00:00:00+00:00"),
        (
            {"truncate": "month", "plus": seconds(864_000)},
            "2026-11-22T12:34:56Z",
            "2026-12-01T00:00:00+00:00",
        ),
        ({"truncate": "year", **BERLIN}, "2026-07-22 12:34:56", "2026-01-01T00:00:00+01:00"),
        # Written.
        ({"to": "date"}, "2026-11-22T23:30:00-05:00", "2026-11-22"),
        ({"to": "date", "to_zone": "Europe/Berlin"}, "2026-11-22T23:30:00Z", "2026-11-23"),
        ({"to": "seconds"}, "2026-11-22T12:34:56.999Z", 1_795_350_896),
        ({"to": "millis"}, "2026-11-22T12:34:56.9999Z", 1_795_350_896_999),
        ({"to": "micros"}, "1969-12-31T23:59:59.999999999Z", -1),
        ({"to": "nanos"}, "0001-01-01T00:00:00Z", -62_135_596_800_000_000_000),
        ({"to": "nanos"}, "9999-12-31T23:59:59.999999999Z", 253_402_300_799_999_999_999),
        (
            {"to_format": "%a %e %B %y, %I:%M:%S.%f %p %z %j %s %%"},
            "2026-03-02T00:34:56.5+05:30",
            "Mon  2 March 26, 12:34:56.500000000 AM +0530 061 1772391896 %",
        ),
        ({"to_format": '{"t": "%Y-%m-%d"}\\n'}, "2026-03-02T00:34:56Z", '{"t": "2026-03-02"}\\n'),
        ({"to_format": ""}, "2026-03-02T00:34:56Z", ""),
        ({"to_format": "%H:%M", "to_zone": "Australia/Lord_Howe"}, "2026-10-03T15:30:00Z", "02:30"),
    ],
)
def test_a_time_is_read_moved_and_written(mapped, options, value, written):
    message = {"at": value, "more": 8}

    assert mapped(a_map(time(**options)), message) == message | {"at": written}


USUAL = ": expected RFC 3339 with an offset, YYYY-MM-DD, or seconds since 1970 up to 9e9"
TWICE = "where the clock is changed then"


@pytest.mark.parametrize(
    ("options", "value", "failure"),
    [
        ({}, "yesterday", "'at' is no time" + USUAL),
        ({}, "2026-11-22T12:00:00", "'at' is no time" + USUAL),
        ({}, "2026-11-22T24:00:00Z", "'at' is no time" + USUAL),
        ({}, "2016-12-31T12:59:60Z", "'at' is no time" + USUAL),
        ({}, "", "'at' is no time" + USUAL),
        ({}, 9e9 + 1, "'at' is no time" + USUAL),
        ({}, 10**4_000, "'at' is no time" + USUAL),
        ({}, -1.7e308, "'at' is no time" + USUAL),
        ({}, True, "field 'at' is a boolean: expected a string or a number of seconds"),
        ({}, [1], "field 'at' is a list: expected a string or a number of seconds"),
        ({}, {}, "field 'at' is an object: expected a string or a number of seconds"),
        (
            BERLIN,
            "x",
            "'at' is no time: expected RFC 3339, YYYY-MM-DD, or seconds since 1970 up to 9e9",
        ),
        ({"format": "%d/%b/%Y", **BERLIN}, "22/11/2026", "'at' is no time of the form '%d/%b/%Y'"),
        ({"format": "%d/%b/%Y", **BERLIN}, 5, "field 'at' is a number: expected a string"),
        ({"format": "%d/%b/%Y", **BERLIN}, [], "field 'at' is a list: expected a string"),
        (
            {"format": ["%d/%b/%Y", "%s"], **BERLIN},
            "x",
            "'at' is no time of any of the forms '%d/%b/%Y', '%s'",
        ),
        (
            {"format": ["%d/%b/%Y", "%s"], **BERLIN},
            False,
            "field 'at' is a boolean: expected a string",
        ),
        (
            {"format": "millis"},
            9e12 + 1,
            "'at' is no time: expected millis since 1970, up to 9e9 seconds",
        ),
        (
            {"format": "millis"},
            "1e3",
            "'at' is no time: expected millis since 1970, up to 9e9 seconds",
        ),
        (
            {"format": "nanos"},
            10**4_000,
            "'at' is no time: expected nanos since 1970, up to 9e9 seconds",
        ),
        ({"format": "nanos"}, {}, "field 'at' is an object: expected a number, or one in a string"),
        (
            {**BERLIN, "at_shift": "refuse"},
            "2026-03-29 02:30:00",
            f"'at' never comes in Europe/Berlin, {TWICE}",
        ),
        (
            {**BERLIN, "at_shift": "refuse"},
            "2026-10-25 02:30:00",
            f"'at' comes twice in Europe/Berlin, {TWICE}",
        ),
        ({"to_zone": "UTC"}, "0001-01-01T00:00:00+01:00", "'at' leaves the years 1 to 9999"),
        ({"to": "seconds"}, "9999-12-31T23:00:00-01:00", "'at' leaves the years 1 to 9999"),
        ({"truncate": "week"}, "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+00:00"),
        (
            {"to_zone": "America/New_York"},
            "0001-01-01T00:00:00Z",
            "'at' leaves the years 1 to 9999",
        ),
        (
            {"zone": "Asia/Tokyo", "to_zone": "UTC"},
            "0001-01-01T00:00:00",
            "'at' leaves the years 1 to 9999",
        ),
        ({"plus": seconds(4e11)}, "2026-11-22", "'at' leaves the years 1 to 9999"),
        ({"plus": seconds(-1e300)}, "2026-11-22", "'at' leaves the years 1 to 9999"),
        ({"plus": seconds(10**400)}, "2026-11-22", "'at' leaves the years 1 to 9999"),
        ({"plus": field("list")}, "2026-11-22", "field 'list' is a list: expected a number"),
        ({"plus": field("list")}, None, "field 'list' is a list: expected a number"),
        ({"plus": field("flag")}, "2026-11-22", "field 'flag' is a boolean: expected a number"),
    ],
)
def test_what_is_no_time_fails_its_batch_and_says_what_was_expected(
    mapped, options, value, failure
):
    found = mapped(a_map(time(**options)), {"at": value, "list": [], "flag": True})

    if isinstance(found, dict):
        assert found["at"] == failure
    else:
        assert found == f"mapping 0 ('time'): {failure}"


@pytest.mark.parametrize("policy", ["omit", "null"])
@pytest.mark.parametrize(
    "message", [{"more": 1}, {"at": None, "more": 1}, {"at": "2026-11-22"}, {}]
)
def test_without_the_time_or_what_is_added_the_value_is_missing(mapped, policy, message):
    document = a_map(time(plus=field("more"), as_="out"), on_missing=policy)
    expected = {} if policy == "omit" else {"out": None}

    assert mapped(document, message) == message | expected
    with_default = a_map(time(plus=field("more"), as_="out", default=literal("never")))
    assert mapped(with_default, message) == message | {"out": "never"}


def test_a_missing_time_fails_by_default(mapped):
    assert mapped(a_map(time(plus=field("more"))), {"at": 1}) == (
        "mapping 0 ('time'): field 'more' is missing or null"
    )


@pytest.mark.parametrize(
    ("options", "reasons"),
    [
        (
            {"format": "%Y-%m-%d %Q", **BERLIN},
            ["format: \"%Y-%m-%d %Q\" is no format: '%Q' is no directive"],
        ),
        (
            {"format": "%Y-%m", **BERLIN},
            ["format: \"%Y-%m\" is no format: it has no day ('%d' or '%e')"],
        ),
        (
            {"format": LOCAL},
            [f"format: '{LOCAL}' has no offset, so nobody can tell where its clock stands"],
        ),
        (
            {"format": [NGINX, LOCAL]},
            [f"format[1]: '{LOCAL}' has no offset, so nobody can tell where its clock stands"],
        ),
        (
            {"format": [LOCAL, "millis"], **BERLIN},
            ["format[1]: 'millis' stands alone: a number is of one unit"],
        ),
        ({"format": []}, ["format: expected a list of at least one format, found an empty list"]),
        (
            {"format": [f"%Y-%m-%d {n}" for n in range(9)], **BERLIN},
            ["format: expected at most 8 formats, found a list of 9"],
        ),
        (
            {"format": 5},
            [
                "format: expected a format such as %Y-%m-%d %H:%M:%S, or one of seconds, millis, micros, "
                "nanos, or a list of at least one format, found 5"
            ],
        ),
        (
            {"format": NGINX, **BERLIN},
            ["zone: 'zone' decides nothing: the format says where its clock stands"],
        ),
        (
            {"format": "millis", **BERLIN},
            ["zone: 'zone' decides nothing: the format says where its clock stands"],
        ),
        ({"zone": "localtime"}, ['zone: there is no zone "localtime"']),
        ({"to_zone": "../UTC"}, ['to_zone: there is no zone "../UTC"']),
        ({"to_zone": "+01:00"}, ['to_zone: there is no zone "+01:00"']),
        ({"to_format": "%q"}, ["to_format: \"%q\" is no format: '%q' is no directive"]),
        ({"to_format": "%Y", "to": "date"}, ["to: 'to' and 'to_format' both say what is written"]),
        (
            {"truncate": "decade"},
            [
                'truncate: expected one of second, minute, hour, day, week, month, year, found "decade"'
            ],
        ),
        (
            {"plus": 5},
            ["plus: expected an object whose 'type' is one of field, value, found a number"],
        ),
    ],
)
def test_what_is_refused_at_load(options, reasons):
    expected = [f"mappings[0].{each}" for each in reasons]

    assert refusals(Map, a_map(time(**options))) == expected


def test_what_is_added_may_be_missing_for_a_demand_as_well():
    loaded = Map.load(a_map(time(plus=field("more"), as_="out")))

    assert loaded.field_use() == FieldUse.of(reads=["at", "more"], writes=["out"])
    assert [(each.path, each.place) for each in loaded.demands()] == [
        ("at", ("mappings", 0, "from")),
        ("more", ("mappings", 0, "plus", "field")),
    ]


def test_nothing_can_be_written_below_a_time():
    document = a_map(time(as_="out"), {"type": "copy", "from": "x", "as": "out.x"})

    assert refusals(Map, document) == [
        "mappings[1].as: cannot write 'out.x': mappings[0] (time) makes 'out' a value that is no object"
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"format": LOCAL, **BERLIN},
        {"format": [NGINX, "%s"], "to": "seconds"},
        {"to_format": "%Y"},
        {},
    ],
)
def test_the_echo_is_what_was_written(options):
    document = a_map(time(**options))

    assert Map.load(document).dump() == {"type": "map"} | document


# --- both forms


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({"format": LOCAL, **BERLIN, "to_zone": "UTC"}, "2026-11-22 12:00:00"),
        ({"plus": field("more"), "to": "millis"}, "2026-11-22T12:00:00Z"),
        ({"format": [NGINX, "%s"], "truncate": "day"}, "5"),
        ({"format": "millis", "to_format": "%Y"}, 5),
    ],
)
def test_the_generated_form_needs_no_help_with_ordinary_messages(ctx, options, value):
    transform = Map.load(a_map(time(**options)))
    loop = fuse([partial(transform.generate, ctx=ctx)], "p1 transforms[0]").loop
    batch = [{"at": value, "more": 1}] * 2

    assert [loop(batch)] == transform.step(ctx)(batch)


ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC"]
clocks = st.datetimes(datetime(1975, 1, 1), datetime(2037, 1, 1)).map(  # noqa: DTZ001
    lambda moment: moment.replace(microsecond=0)
)


@examples(200)
@given(clocks, st.sampled_from(ZONES), st.sampled_from(ZONES), st.sampled_from(["before", "after"]))
def test_it_tells_what_python_tells(clock, zone, to_zone, shift):
    theirs = clock.replace(tzinfo=ZoneInfo(zone), fold=shift == "after").astimezone(UTC)
    transform = Map.load(
        a_map(time(format=LOCAL, zone=zone, at_shift=shift, to_zone=to_zone, plus=seconds(90)))
    )
    ctx = StubContext(place="transforms[0]")
    loop = fuse([partial(transform.generate, ctx=ctx)], "p1 transforms[0]").loop
    batch = [{"at": clock.strftime(LOCAL)}]

    expected = (theirs + timedelta(seconds=90)).astimezone(ZoneInfo(to_zone)).isoformat()
    assert transform.step(ctx)(batch) == [[{"at": expected}]]
    assert loop(batch) == [{"at": expected}]


@pytest.mark.timed
@pytest.mark.parametrize(
    "value",
    ["1" * 10_000_000, "2026-11-22T00:00:00." + "1" * 10_000_000, 10**4_200],
    ids=["digits", "fraction", "integer"],
)
@pytest.mark.parametrize("options", [{}, {"format": "nanos"}, {"format": ["%s", NGINX]}])
def test_no_value_takes_long_however_long_it_is(ctx, options, value):
    transform = Map.load(a_map(time(**options)))
    loop = fuse([partial(transform.generate, ctx=ctx)], "p1 transforms[0]").loop
    batch, took = [{"at": value}], []

    for work in (loop, transform.step(ctx)) * 5:
        began = stopwatch()
        with pytest.raises((BatchFailed, ValueError, TypeError)):
            work(batch)
        took.append(stopwatch() - began)

    assert min(took[::2]) < 0.002
    assert min(took[1::2]) < 0.002


@pytest.mark.timed
def test_messages_of_all_times_in_zones_of_many_changes_hold_nobody_up(ctx):
    """The most that are worked on at once (`SLOW_BATCH`), with an hour that is new for each."""
    options = {"zone": "Europe/Berlin", "to_zone": "Australia/Lord_Howe", "truncate": "day"}
    chance, first = Random(1), datetime(1700, 1, 1)  # noqa: DTZ001
    moments = [first + timedelta(seconds=chance.randrange(10**10)) for _ in range(SLOW_BATCH)]
    batch = [{"at": each.isoformat()} for each in moments]
    transform = Map.load(a_map(time(**options)))
    loop = fuse([partial(transform.generate, ctx=ctx)], "p1 transforms[0]").loop
    took = []

    for _ in range(5):
        began = thread_time()
        loop(batch)
        took.append(thread_time() - began)

    assert transform.slow_parts == 1
    assert min(took) < 0.02 * slowness()


@pytest.mark.timed
@pytest.mark.parametrize("last", ["2026-11-22T00:00:00", "no time"])
@pytest.mark.parametrize(("mappings", "messages"), [(20, 120), (200, 20)])
def test_no_turn_is_long_however_many_mappings_read_times(mappings, messages, last):
    options = {"zone": "Europe/Berlin", "to_zone": "Australia/Lord_Howe", "truncate": "day"}
    chance, first = Random(1), datetime(1700, 1, 1)  # noqa: DTZ001
    names = [f"t{n}" for n in range(mappings)]
    transform = Map.load(a_map(*(time(**options) | {"from": each} for each in names)))
    batch = [
        {each: (first + timedelta(seconds=chance.randrange(10**10))).isoformat() for each in names}
        for _ in range(messages)
    ]
    batch[-1] = batch[-1] | {names[-1]: last}

    turns = [
        asyncio.run(longest_turn(transform, batch)) for _ in range(4)
    ]  # the first one compiles

    assert transform.slow_parts == mappings
    assert min(turns) < 0.02 * slowness()
