"""Texts are read by formats: the whole text has to fit, and nothing is guessed."""

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.clock import stopwatch
from headrace.compiler.times.directives import FormatRefused
from headrace.compiler.times.timereading import LEAP, has_offset, reader
from headrace.compiler.times.timewriting import writer
from tests.examples import examples

HOUR = timedelta(hours=1)
NO_DAY = "it has no year ('%Y' or '%y') and no month ('%m', '%b' or '%B') and no day ('%d' or '%e')"


def clock(text):
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("pattern", "text", "read", "nanos", "offset"),
    [
        ("%Y-%m-%d %H:%M:%S", "2026-11-22 12:34:56", "2026-11-22T12:34:56", 0, None),
        ("%Y-%m-%d %H:%M:%S", "2026-1-2 3:4:5", "2026-01-02T03:04:05", 0, None),
        ("%d/%b/%Y:%H:%M:%S %z", "22/Nov/2026:12:34:56 +0100", "2026-11-22T12:34:56", 0, HOUR),
        ("%d-%b-%y", "22-NOV-26", "2026-11-22T00:00:00", 0, None),
        ("%d-%b-%y", "22-nOv-69", "1969-11-22T00:00:00", 0, None),
        ("%e. %B %Y", " 3. march 2026", "2026-03-03T00:00:00", 0, None),
        ("%e. %B %Y", "3. March 2026", "2026-03-03T00:00:00", 0, None),
        ("%e. %B %Y", "13. May 2026", "2026-05-13T00:00:00", 0, None),
        ("%Y%m%d%H%M%S", "20261122123456", "2026-11-22T12:34:56", 0, None),
        ("%Y%j", "2024366", "2024-12-31T00:00:00", 0, None),
        ("%Y-%j", "2026-1", "2026-01-01T00:00:00", 0, None),
        ("%Y-%m-%d %I:%M %p", "2026-11-22 12:05 AM", "2026-11-22T00:05:00", 0, None),
        ("%Y-%m-%d %I:%M %p", "2026-11-22 12:05 pm", "2026-11-22T12:05:00", 0, None),
        ("%Y-%m-%d %I%p", "2026-11-22 1PM", "2026-11-22T13:00:00", 0, None),
        (
            "%a, %d %b %Y %H:%M:%S %z",
            "Sun, 22 Nov 2026 12:34:56 Z",
            "2026-11-22T12:34:56",
            0,
            0 * HOUR,
        ),
        ("%A %Y-%m-%d%z", "sunday 2026-11-22-05:30", "2026-11-22T00:00:00", 0, -5.5 * HOUR),
        ("%Y-%m-%d %H%z", "2026-11-22 12+01", "2026-11-22T12:00:00", 0, HOUR),
        ("%Y-%m-%d %H:%M:%S.%f", "2026-11-22 12:34:56.5", "2026-11-22T12:34:56", 500_000_000, None),
        (
            "%Y-%m-%d %H:%M:%S,%f",
            "2026-11-22 12:34:56,1234567899",
            "2026-11-22T12:34:56",
            123_456_789,
            None,
        ),
        ("%Y-%m-%d %H:%M:%S", "2016-12-31 23:59:60", "2016-12-31T23:59:59", LEAP, None),
        ("%s", "0", "1970-01-01T00:00:00", 0, 0 * HOUR),
        ("%s.%f", "1795350896.25", "2026-11-22T12:34:56", 250_000_000, 0 * HOUR),
        ("%s.%f", "-0.25", "1969-12-31T23:59:59", 750_000_000, 0 * HOUR),
        (
            '100%% {x} "%Y" \\ é\n%m.%d',
            '100% {x} "2026" \\ é\n11.22',
            "2026-11-22T00:00:00",
            0,
            None,
        ),
        ("%Y年%m月%d日", "2026年11月22日", "2026-11-22T00:00:00", 0, None),
        ("%Y-%m-%d", "0001-01-01", "0001-01-01T00:00:00", 0, None),
    ],
)
def test_a_text_is_read_by_its_format(pattern, text, read, nanos, offset):
    assert reader(pattern)(text) == (clock(read), nanos, offset)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("%Y-%m-%d", "2026-11-22 "),
        ("%Y-%m-%d", " 2026-11-22"),
        ("%Y-%m-%d", "2026-11-22\n"),
        ("%Y-%m-%d", "26-11-22"),
        ("%Y-%m-%d", "2026-02-29"),
        ("%Y-%m-%d", "2026-13-01"),
        ("%Y-%m-%d", "2026-00-01"),
        ("%Y-%m-%d", "0000-01-01"),
        ("%Y-%m-%d", "\uff12026-11-22"),
        ("%Y%m%d", "2026112"),
        ("%Y-%j", "2026-366"),
        ("%Y-%j", "2026-0"),
        ("%Y-%m-%d %H", "2026-11-22 24"),
        ("%Y-%m-%d %H:%M", "2026-11-22 12:60"),
        ("%Y-%m-%d %H:%M:%S", "2026-11-22 12:00:61"),
        ("%Y-%m-%d %I %p", "2026-11-22 0 AM"),
        ("%Y-%m-%d %I %p", "2026-11-22 13 AM"),
        ("%d %b %Y", "22 Nop 2026"),
        ("%Y-%m-%d%z", "2026-11-22+24:00"),
        ("%Y-%m-%d%z", "2026-11-22+01:60"),
        ("%Y-%m-%d%z", "2026-11-22"),
        ("%Y-%m-%d %H:%M:%S.%f", "2026-11-22 12:00:00."),
        ("%Y-%m-%d %H:%M:%S.%f", "2026-11-22 12:00:00." + "1" * 31),
        ("%s", "1e9"),
        ("%s", "9000000001"),
        ("%s", ""),
    ],
)
def test_what_does_not_fit_whole_or_is_in_no_calendar_is_no_time(pattern, text):
    with pytest.raises(ValueError):  # noqa: PT011 - it has no text: who reads says what was expected
        reader(pattern)(text)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("", NO_DAY),
        ("%H:%M", NO_DAY),
        ("%Y-%m", "it has no day ('%d' or '%e')"),
        ("%j", "it has no year ('%Y' or '%y')"),
        ("%Y-%j-%d", "'%j' and '%d' both tell the day"),
        ("%Y-%m-%d %Y", "'%Y' and '%Y' both tell the year"),
        ("%Y-%m-%d %b", "'%m' and '%b' both tell the month"),
        ("%Y-%m-%d %I", "'%I' and '%p' go together: '%H' is the hour of the whole day"),
        ("%Y-%m-%d %H %p", "'%I' and '%p' go together: '%H' is the hour of the whole day"),
        ("%Y-%m-%d %M", "'%M' without a directive for the hour"),
        ("%Y-%m-%d %H %S", "'%S' without a directive for the minute"),
        ("%Y-%m-%d .%f", "'%f' without a directive for the second"),
        ("%s %Y", "'%s' is the whole time: '%Y' cannot be beside it"),
        ("%Y-%m-%d %H%z1", "nobody can tell where '%z' ends: a digit may follow it"),
        ("%s%f", "nobody can tell where '%s' ends: a digit may follow it"),
        ("%Y-%m-%d %Q", "'%Q' is no directive"),
        ("%Y-%m-%d %é", "'%é' is no directive"),
        ("%Y-%m-%d %", "a '%' at its end: '%%' is a percent sign"),
        ("%Y-%m-%d" + "x" * 200, "a format of 208 characters is too long"),
    ],
)
def test_a_format_that_tells_no_moment_or_leaves_something_to_guess_is_refused(pattern, why):
    with pytest.raises(FormatRefused) as refused:
        reader(pattern)

    assert str(refused.value) == why


def test_a_format_tells_whether_its_texts_say_their_offset():
    assert has_offset("%Y-%m-%d %H%z")
    assert has_offset("%s")
    assert not has_offset("%Y-%m-%d %%z")


# --- beside Python's own

SEPARATORS = st.sampled_from([" ", "/", "-", "T", ":", ", ", "%%", "(", "."])
KNOWN_TO_BOTH = [
    ["%Y", "%m", "%d"],
    ["%d", "%b", "%Y"],
    ["%B", "%d", "%y"],
    ["%Y", "%j"],
    ["%a", "%d", "%b", "%Y", "%H", "%M", "%S"],
    ["%A", "%m", "%d", "%Y", "%I", "%M", "%S", "%p"],
    ["%Y", "%m", "%d", "%H", "%M", "%S", "%f"],
    ["%Y", "%m", "%d", "%H", "%M", "%S", "%z"],
    ["%H", "%M", "%S", "%f", "%z", "%d", "%m", "%Y"],
]


@st.composite
def formats(draw):
    parts = draw(st.sampled_from(KNOWN_TO_BOTH))
    return "".join(part + draw(SEPARATORS) for part in parts)


offsets = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(datetime(1969, 1, 1), datetime(2068, 12, 31), timezones=offsets)  # noqa: DTZ001


@examples(300)
@given(formats(), moments)
def test_what_python_writes_is_read_as_python_reads_it(pattern, moment):
    text = moment.strftime(pattern)
    theirs = datetime.strptime(text, pattern)  # noqa: DTZ007

    read, nanos, offset = reader(pattern)(text)

    assert read + timedelta(microseconds=nanos // 1_000) == theirs.replace(tzinfo=None)
    assert offset == theirs.utcoffset()


@examples(300)
@given(formats(), st.text("0123456789 /-T:,.(%+ZNovAPMSun", max_size=30))
def test_what_is_read_python_reads_as_well(pattern, text):
    try:
        read, nanos, offset = reader(pattern)(text)
    except ValueError:
        return
    theirs = datetime.strptime(text, pattern)  # noqa: DTZ007

    assert read + timedelta(microseconds=nanos // 1_000) == theirs.replace(tzinfo=None)
    assert offset == theirs.utcoffset()


@examples(200)
@given(formats(), moments)
def test_what_is_written_is_what_python_writes(pattern, moment):
    clock = moment.replace(tzinfo=None, microsecond=0)

    ours = writer(pattern)(clock, moment.microsecond * 1_000, moment.utcoffset())

    assert ours == moment.strftime(pattern.replace("%f", f"{moment.microsecond:06}000"))


# --- bounds


@pytest.mark.timed
@pytest.mark.parametrize(
    "text",
    [
        "1" * 16_000_000,
        "2026-11-22 12:00:00." + "1" * 16_000_000,
        " " * 16_000_000,
        "-" * 1_000_000,
    ],
    ids=["digits", "fraction", "blanks", "dashes"],
)
@pytest.mark.parametrize("pattern", ["%Y-%m-%d %H:%M:%S.%f", "%e%b%Y%z", "%s", "%B%A%d%Y"])
def test_no_text_takes_long_however_long_it_is(pattern, text):
    read, took = reader(pattern), []

    for _ in range(5):
        began = stopwatch()
        with pytest.raises(ValueError):  # noqa: PT011
            read(text)
        took.append(stopwatch() - began)

    assert min(took) < 0.001
