"""`preset: syslog`: RFC 5424, RFC 3164 and lines of files; the year that is nearest to now."""

from datetime import UTC, datetime

import pytest

from headrace.compiler.clock import Clock
from tests.doubles import StubContext
from tests.operators.parsed import handed_on, handed_on_here, parse
from tests.virtual import virtual

NULLS = dict.fromkeys(
    ("facility", "severity", "severity_code", "at", "host", "app", "pid", "msgid", "data")
)


LINES = parse({"preset": "syslog"}, keep="parsed")


def read(text):
    return handed_on(LINES, {"value": text})[0]


async def read_here(text, ctx):
    return await handed_on_here(LINES, {"value": text}, ctx)


# --- RFC 5424


def test_a_line_of_rfc_5424_has_its_elements_as_objects():
    line = (
        "<165>1 2026-11-22T12:00:01.003Z host1 app 1234 ID47 "
        r'[ex@32473 iut="3" src="A \"]\" \\"][empty] An event'
    )

    assert read(line) == {
        "facility": "local4",
        "severity": "notice",
        "severity_code": 5,
        "at": "2026-11-22T12:00:01.003+00:00",
        "host": "host1",
        "app": "app",
        "pid": "1234",
        "msgid": "ID47",
        "data": {"ex@32473": {"iut": "3", "src": 'A "]" \\'}, "empty": {}},
        "message": "An event",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<0>1 - - - - - -", None),
        ("<0>1 - - - - - - ", ""),
        ("<0>1 - - - - - - \ufeffÄ\nb", "Ä\nb"),
    ],
)
def test_what_it_does_not_tell_is_null(text, message):
    known = {"facility": "kern", "severity": "emerg", "severity_code": 0, "message": message}

    assert read(text) == NULLS | known


@pytest.mark.parametrize(
    "text",
    [
        "<192>1 - - - - - -",
        "<1>1 2026-13-01T00:00:00Z - - - - -",
        "<1>1 2026-11-22 - - - - -",
        "<1>1 - - - - - [a",
        '<1>1 - - - - - [a b="c]',
        "<1>1 - - - - - [a b] x",
        "<1>1 - - - - - -x",
        "<1>1 - - - -",
        '<1>1 - - - - - [a b="' + '\\"' * 30_000,
        "<1>1 - - - - - " + "[a]" * 20_000,
    ],
)
def test_anything_else_with_that_version_does_not_fit(text):
    assert read(text) == "'value' does not fit syslog"


def test_more_than_a_thousand_parameters_are_not_taken():
    def line(count):
        return "<1>1 - - - - - [a" + "".join(f' k{n}="{n}"' for n in range(count)) + "]"

    assert len(read(line(1_000))["data"]["a"]) == 1_000
    assert read(line(1_001)) == "'value' does not fit syslog: more than 1,000 parameters"


# --- RFC 3164 and files


def at(year, month, day):
    return datetime(year, month, day, tzinfo=UTC)


@virtual(started_at=at(2026, 11, 27))
async def test_a_line_of_rfc_3164_may_have_a_tag_and_a_number():
    ctx = StubContext(place="transforms[0]")
    known = {"facility": "auth", "severity": "crit", "severity_code": 2}
    when = {"at": "2026-10-11T22:14:15+00:00", "host": "mymachine"}
    start = "<34>Oct 11 22:14:15 mymachine "

    assert await read_here(start + "su[230]: 'su root' failed", ctx) == (
        NULLS | known | when | {"app": "su", "pid": "230", "message": "'su root' failed"}
    )
    assert await read_here(start + "postfix/smtpd: a: b", ctx) == (
        NULLS | known | when | {"app": "postfix/smtpd", "message": "a: b"}
    )
    assert await read_here(start + "last message repeated", ctx) == (
        NULLS | known | when | {"message": "last message repeated"}
    )


@virtual(started_at=at(2026, 11, 27))
async def test_a_line_of_a_file_has_no_priority_and_may_have_a_whole_timestamp():
    ctx = StubContext(place="transforms[0]")

    assert await read_here("Nov  3 01:02:03 h kernel: [12.3] up", ctx) == NULLS | {
        "at": "2026-11-03T01:02:03+00:00",
        "host": "h",
        "app": "kernel",
        "message": "[12.3] up",
    }
    assert await read_here("2026-11-22T12:00:01.003456+01:00 h CRON[1]: a", ctx) == NULLS | {
        "at": "2026-11-22T12:00:01.003456+01:00",
        "host": "h",
        "app": "CRON",
        "pid": "1",
        "message": "a",
    }


@pytest.mark.parametrize(
    ("now", "text", "year"),
    [
        (at(2026, 1, 1), "Dec 31 23:59:59", 2025),
        (at(2026, 12, 31), "Jan  1 00:00:00", 2027),
        (at(2026, 6, 1), "Jun  1 00:00:00", 2026),
        (at(2026, 7, 20), "Jan 10 00:00:00", 2027),
        (at(2026, 7, 1), "Jan 10 00:00:00", 2026),
        (at(2025, 1, 1), "Feb 29 12:00:00", 2024),
    ],
)
def test_the_year_is_the_one_nearest_to_now(now, text, year):
    @virtual(started_at=now)
    async def reads():
        made = await read_here(f"{text} h x: y", StubContext(place="transforms[0]"))
        assert made["at"][:4] == str(year)

    reads()


@virtual(started_at=at(2026, 11, 27))
async def test_now_is_the_time_of_the_pipeline():
    ctx = StubContext(place="transforms[0]")
    assert isinstance(ctx.clock, Clock)
    before = (await read_here("Jul  1 00:00:00 h x: y", ctx))["at"]

    await ctx.clock.sleep(200 * 86_400)

    assert (before[:4], (await read_here("Jul  1 00:00:00 h x: y", ctx))["at"][:4]) == (
        "2026",
        "2027",
    )


@pytest.mark.parametrize(
    ("text", "at_"),
    [
        ("Nov 22 12:00:00", "2026-11-22T12:00:00+01:00"),
        ("Jul  1 12:00:00", "2026-07-01T12:00:00+02:00"),
        ("Oct 25 02:30:00", "2026-10-25T02:30:00+02:00"),  # comes twice
        ("Mar 28 02:30:00", "2027-03-28T03:30:00+02:00"),  # never comes
        ("2026-11-22T12:00:00Z", "2026-11-22T12:00:00+00:00"),
    ],
)
def test_a_time_without_a_zone_is_one_of_the_config(text, at_):
    @virtual(started_at=at(2026, 11, 27))
    async def reads():
        it = parse({"preset": "syslog"}, zone="Europe/Berlin")
        ctx = StubContext(place="transforms[0]")
        made = await handed_on_here(it, {"value": f"{text} h x: y"}, ctx)
        assert made["at"] == at_

    reads()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<34>",
        "<34>Feb 30 00:00:00 h x: y",
        "<34>Feb 29 00:00:00 h x: y",
        "<34>Foo 11 00:00:00 h x: y",
        "<34>Oct 11 24:00:00 h x: y",
        "<34>Oct 11 00:00:00",
        "<999>Oct 11 00:00:00 h x: y",
        "2026-11-22 h x: y",
        "Oct 11 00:00:00 " + "x[" * 30_000,
    ],
)
def test_anything_else_does_not_fit(text):
    @virtual(started_at=at(2026, 11, 27))
    async def reads():
        ctx = StubContext(place="transforms[0]")
        assert await read_here(text, ctx) == "'value' does not fit syslog"

    reads()
