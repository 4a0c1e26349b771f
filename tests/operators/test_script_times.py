"""The functions of scripts that read and write times."""

import gc
import linecache

import pytest

from headrace.operators.script.refusing import CallRefused
from headrace.operators.script.scripttimes import KEPT, format_time, parse_time
from tests.operators.scripted import outcome

LOCAL = "%Y-%m-%d %H:%M:%S"
MIDDAY = 1_795_347_296_000


@pytest.mark.parametrize(
    ("value", "pattern", "zone", "millis"),
    [
        ("2026-11-22T12:34:56.0019+01:00", None, None, MIDDAY + 1),
        ("2026-11-22 12:34:56", LOCAL, "Europe/Berlin", MIDDAY),
        ("2026-11-22T12:34:56Z", None, "Europe/Berlin", MIDDAY + 3_600_000),
        ("2026-03-29 02:30:00", LOCAL, "Europe/Berlin", 1_774_747_800_000),
        (MIDDAY // 1_000, None, None, MIDDAY),
        (MIDDAY, "millis", None, MIDDAY),
        ("1795347296.5", "%s.%f", None, MIDDAY + 500),
        ("1969-12-31T23:59:59.9999Z", None, None, -1),
    ],
)
def test_a_time_is_read(value, pattern, zone, millis):
    assert parse_time(value, pattern, zone) == millis


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("soon", None, None), "'parse_time' was given what is no time of that form"),
        ((True, None, None), "'parse_time' takes a string or a number of seconds, not a bool"),
        ((None, None, None), "'parse_time' takes a string or a number of seconds, not ()"),
        ((5, LOCAL, "UTC"), "'parse_time' takes a string, not an int"),
        (("x", 5, None), "'parse_time' takes a string or () as its format, not an int"),
        (("x", None, []), "'parse_time' takes a string or () as its zone, not an array"),
        (("x", "%Q", None), "'parse_time' cannot do that format: '%Q' is no directive"),
        (
            ("x", LOCAL, None),
            "'parse_time' cannot do that format: without an offset in the format, a zone has to be named",
        ),
        (
            ("x", None, "localtime"),
            "'parse_time' knows no such zone: it takes names of the IANA list",
        ),
        (
            ("x", None, "A" * 1_000_000),
            "'parse_time' knows no such zone: it takes names of the IANA list",
        ),
        (
            ("0001-01-01T00:00:00+01:00", None, None),
            "'parse_time' was given a time that leaves the years 1 to 9999",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_and_not_told(arguments, said):
    with pytest.raises(CallRefused) as refused:
        parse_time(*arguments)

    assert str(refused.value) == said


@pytest.mark.parametrize(
    ("millis", "pattern", "zone", "text"),
    [
        (MIDDAY, None, None, "2026-11-22T11:34:56+00:00"),
        (MIDDAY + 1, None, "Asia/Kolkata", "2026-11-22T17:04:56.001+05:30"),
        (MIDDAY, LOCAL, "Europe/Berlin", "2026-11-22 12:34:56"),
        (MIDDAY + 0.5, "%f", None, "000500000"),
        (-1, "%Y", None, "1969"),
    ],
)
def test_a_time_is_written(millis, pattern, zone, text):
    assert format_time(millis, pattern, zone) == text


@pytest.mark.parametrize(
    ("millis", "said"),
    [
        ("0", "'format_time' takes milliseconds since 1970, not a string"),
        (False, "'format_time' takes milliseconds since 1970, not a bool"),
        (9e12 + 1, "'format_time' was given what is no time of that form"),
        (float("inf"), "'format_time' was given what is no time of that form"),
        (float("nan"), "'format_time' was given what is no time of that form"),
    ],
)
def test_what_cannot_be_written_is_refused(millis, said):
    with pytest.raises(CallRefused) as refused:
        format_time(millis, None, None)

    assert str(refused.value) == said


def test_a_script_may_catch_what_is_no_time():
    code = 'try { msg = parse_time(msg, (), ()); } catch (error) { msg = "never"; } emit(msg);'

    assert outcome(code, ["1970-01-01", "soon"]).messages == [0, "never"]
    assert outcome("emit(parse_time(msg, (), ()))", ["soon"]).failure == (
        "script line 1, column 6: 'parse_time' was given what is no time of that form"
    )


def test_what_messages_choose_is_kept_up_to_a_bound():
    for n in range(3 * KEPT):
        parse_time(f"2026-11-22 {n}", f"%Y-%m-%d {n}", "UTC")
        format_time(0, f"%Y {n}", None)
    gc.collect()

    kept = [each for each in linecache.cache if each.startswith("<headrace format %Y")]
    assert 0 < len(kept) <= 3 * KEPT
