"""Servers of a play that refuse batches as a class, refuse some messages, or do not answer."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.authoring.playing.played import Played
from headrace.authoring.playing.scenario import ServerOutage
from tests.authoring.playing.playing import at, played

CONFIG = """
- id: p
  MORE
  inputs: [{type: http}]
  outputs: [{TYPE, retry: {}}]
"""
POSTGRES = "type: postgres, connection: c, table: t"
REDIS = "type: redis, connection: c, channel: t"
FILE = "type: file, connection: c, path: x.ndjson"
HTTP = "type: http, url: 'http://127.0.0.1:9/'"


def refused(outage: ServerOutage, kind: str = POSTGRES, *, keeps: bool = True) -> Played:
    """Return what comes of four messages that are posted at 1 s."""
    more = "dead_letters: true" if keeps else ""
    config = CONFIG.replace("TYPE", kind).replace("MORE", more)
    return played(config, at(1, "p", 1, 2, 3, 4), until=100, outages={("p", "output", 0): [outage]})


def outage(**options: Any) -> ServerOutage:
    return ServerOutage(0, 5, "refuses", **options)


def written(came: Played) -> list[Any]:
    return [message for _, batch in came.written["p", 0] for message in batch]


def lettered(came: Played) -> list[Any]:
    return [each.messages for each in came.letters]


ONE = {"is_selective": True, "like": 2, "failure": "invalid", "says": "not two"}


@pytest.mark.parametrize(
    ("kind", "are_written", "are_letters"),
    [
        (POSTGRES, [1, 3, 4], [[2]]),  # halves are tried
        (REDIS, [1, 3, 4], [[2]]),  # it says which
        (FILE, [], [[1, 2, 3, 4]]),
        (HTTP, [], [[1, 2, 3, 4]]),
        (HTTP + ", bisect: true", [1, 3, 4], [[2]]),
        (HTTP + ", body: message", [1, 3, 4], [[2]]),
    ],
)
def test_messages_that_are_refused_are_told_apart_as_the_kind_does(
    kind: str, are_written: list[int], are_letters: list[list[int]]
):
    came = refused(outage(**ONE), kind)

    assert written(came) == are_written
    assert lettered(came) == are_letters
    assert {each.text for each in came.failures} == {"not two"}


def test_without_dead_letters_the_batch_is_lost():
    came = refused(outage(**ONE), keeps=False)

    assert written(came) == []
    assert came.lost == {(("p", "output", 0), "batch"): 4}


@pytest.mark.parametrize(
    ("failure", "moment"), [("unavailable", 6.75), ("misconfigured", 31.0), ("unclear", 6.75)]
)
def test_a_refusal_that_is_none_of_the_content_is_waited_out(failure: Any, moment: float):
    came = refused(outage(failure=failure))

    assert written(came) == [1, 2, 3, 4]
    assert {at for at, _ in came.written["p", 0]} == {moment}
    assert {each.text for each in came.failures} == {f"refused as {failure}, as the test says"}
    assert came.letters == []


def test_what_was_taken_and_not_answered_may_come_twice():
    came = refused(ServerOutage(0, 2, "unanswered"))

    assert written(came) == [1, 2, 3, 4] * len(came.written["p", 0])
    assert len(came.written["p", 0]) > 1
    assert {each.text for each in came.failures} == {"took it and did not answer, as the test says"}


def test_a_value_that_does_not_fit_is_the_only_one_that_is_not_written():
    config = CONFIG.replace("TYPE", POSTGRES + ", columns: [{name: n, type: integer}]")

    came = played(
        config.replace("MORE", "dead_letters: true"), at(1, "p", {"n": 1}, {"n": "x"}, {"n": 3})
    )

    assert written(came) == [{"n": 1}, {"n": 3}]
    assert lettered(came) == [[{"n": "x"}]]


def test_of_what_is_wrong_at_once_a_server_that_is_down_comes_first_and_what_it_never_takes_next():
    config = CONFIG.replace("TYPE", POSTGRES).replace("MORE", "dead_letters: true")
    wrong = [
        ServerOutage(0, 30, "slow", seconds=1),
        ServerOutage(0, 100, **ONE, kind="refuses"),
        ServerOutage(0, 10, "down"),
    ]

    came = played(config, at(1, "p", 1, 2), until=100, outages={("p", "output", 0): wrong})

    assert lettered(came) == [[2]]
    assert [message for _, message in came.written["p", 0]] == [[1]]
    assert came.written["p", 0][0][0] > 10
