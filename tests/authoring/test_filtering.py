"""A config as a filter: which pipelines run, what is fed, and when messages come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.authoring.filtering import NotAFilter, NotALine, filter_of, run_filter
from headrace.authoring.playing.playlength import PlayTooLong
from tests.authoring.playing.playing import program

DAYS = """
- id: days
  inputs: [{type: http}]
  transforms:
    - {type: buffer, seconds: 86400, max_messages: 1000}
    - {type: reducer, group_by: [site], aggregations: [{function: count, as: n}]}
"""
TWO = (
    DAYS
    + """
- id: many
  inputs: [{type: pipeline, upstream: days}]
  transforms:
    - {type: filter, Numeric: {field: n, operator: greater_than, value: 1}}
- id: aside
  inputs: [{type: mqtt, connection: c, topic: t}]
"""
)


def came(
    config: str, *lines: str, id: str | None = None, **options: Any
) -> list[tuple[float, Any]]:
    """Return what comes out of lines."""
    seen: list[tuple[float, Any]] = []
    texts = [line.encode() for line in lines]
    run_filter(
        filter_of(program(config), id), texts, lambda at, batch: seen.append((at, batch)), **options
    )
    return seen


def test_messages_come_at_once_and_what_is_held_at_the_end():
    [(_, batch)] = came(DAYS, '{"site": "a"}', '{"site": "a"}', "", '[{"site": "b"}]')

    assert batch == [{"site": "a", "n": 2}, {"site": "b", "n": 1}]


def test_messages_come_at_the_moments_that_a_field_tells():
    lines = [
        f'{{"site": "a", "at": {{"t": "2026-01-{day:02}T00:00:00Z"}}}}' for day in (1, 1, 2, 5)
    ]

    found = came(DAYS, *lines, time="at.t")

    assert [(at, batch[0]["n"]) for at, batch in found[:2]] == [(86_400, 2), (172_800, 1)]
    assert len(found) == 3


def test_a_time_may_be_seconds_and_never_turns_back():
    found = came(
        DAYS,
        '{"site": "a", "t": 100}',
        '{"site": "a", "t": 90000}',
        '{"site": "a", "t": 5}',
        time="t",
    )

    assert [batch[0]["n"] for _, batch in found] == [1, 2]


def test_a_line_is_read_when_all_before_it_is_through():
    seen: list[Any] = []

    def lines() -> Iterator[bytes]:
        for number in range(3):
            assert len(seen) == number
            yield b"%d" % number

    chosen = filter_of(program("- {id: a, inputs: [{type: http}]}"))
    run_filter(chosen, lines(), lambda at, batch: seen.append(batch))

    assert seen == [[0], [1], [2]]


def test_the_pipeline_that_nobody_reads_is_the_way_out():
    chosen = filter_of(program(TWO.partition("- id: aside")[0]))

    assert (chosen.fed, chosen.shown) == (("days", 0), "many")
    assert [each.id for each in chosen.program.pipelines] == ["days", "many"]


def test_a_pipeline_that_is_named_runs_with_what_it_reads_and_nothing_else():
    chosen = filter_of(program(TWO), "days")

    assert [each.id for each in chosen.program.pipelines] == ["days"]


@pytest.mark.parametrize(
    ("config", "id", "said"),
    [
        (TWO, None, "which pipeline is it whose messages come out? There is one of many, aside"),
        (TWO, "day", "there is no pipeline 'day' (did you mean 'days'?)"),
        (TWO, "hot", "there is no pipeline 'hot' (there is one of days, many, aside)"),
        (
            "- {inputs: [{type: http}]}",
            None,
            "which pipeline is it whose messages come out? There is none with an id",
        ),
        ("- {inputs: [{type: http}]}", "hot", "there is no pipeline 'hot' (there is none)"),
        (
            "- {id: a, inputs: [{type: dummy, duration: 1}]}",
            "a",
            "'a' has not one input that reads from outside: none",
        ),
        (
            "- {id: a, inputs: [{type: http}, {type: mqtt, connection: c, topic: t}]}",
            None,
            "'a' has not one input that reads from outside: a.inputs[0], a.inputs[1]",
        ),
    ],
)
def test_a_config_that_is_no_filter_says_why(config: str, id: str | None, said: str):
    with pytest.raises(NotAFilter) as raised:
        filter_of(program(config), id)

    assert str(raised.value) == said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nope", "line 2 is no message: JSON is malformed"),
        (
            '{"t": "soon"}',
            "line 2 tells no time: expected RFC 3339 or seconds since 1970 in 't', found 'soon'",
        ),
        (
            "{}",
            "line 2 tells no time: expected RFC 3339 or seconds since 1970 in 't', found nothing",
        ),
        ('{"t": 1e300}', "line 2 tells no time"),
        ('{"t": true}', "line 2 tells no time"),
    ],
)
def test_a_line_that_is_no_message_ends_it_with_its_number(line: str, said: str):
    with pytest.raises(NotALine) as raised:
        came(DAYS, '{"t": 1, "site": "a"}', line, time="t")

    assert str(raised.value).startswith(said)


def test_nothing_in_is_nothing_out():
    assert came(DAYS) == []


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("0001-01-01T00:00:00+14:00", "2026-01-01T00:00:00Z", "line 1 tells no time"),
        ("9999-12-31T23:59:59Z", "2026-01-01T00:00:00Z", "line 1 tells no time"),
        ("1970-01-01T00:00:00Z", "9800-01-01T00:00:00Z", "days after the first"),
    ],
)
def test_times_are_so_that_each_moment_has_a_wall(first: str, second: str, said: str):
    with pytest.raises(NotALine, match=said):
        came(DAYS, f'{{"t": "{first}"}}', f'{{"t": "{second}"}}', time="t")


def test_a_run_takes_as_many_moments_as_it_may():
    config = "- {id: p, inputs: [{type: http}, {type: dummy, duration: 1}]}\n"
    lines = [f'{{"at": {second}}}' for second in (0, 10**9)]

    with pytest.raises(PlayTooLong, match=r"'p' \(301 messages in"):
        came(config, *lines, time="at", max_moments=100)
