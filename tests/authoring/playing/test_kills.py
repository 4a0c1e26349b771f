"""Kills in a play: what is committed comes again, and what only the process had is gone."""

from __future__ import annotations

import math
from typing import Any

import pytest

from headrace.authoring.playing.played import Played, PlayedLetter
from headrace.authoring.playing.scenario import (
    BucketLook,
    GivenArrival,
    GivenState,
    ProcessKill,
    ServerOutage,
)
from tests.authoring.playing.playing import at, played

DURABLE = """
- id: p
  inputs: [{type: http, durable: true}]
  transforms: [{type: buffer, seconds: 10, max_messages: 1000}]
  outputs: [{type: redis, connection: c, channel: t}]
"""
PLAIN = DURABLE.replace("{type: http, durable: true}", "{type: http}")
OUT = ("p", "output", 0)


def of(*numbers: float) -> list[dict[str, float]]:
    """Return a message for each number."""
    return [{"n": number} for number in numbers]


def posts(*moments: float) -> list[GivenArrival]:
    """Return a post at each moment, with that moment in it."""
    return [at(moment, "p", *of(moment)) for moment in moments]


def killed(config: str, *kills: ProcessKill, until: float = 40, **options: Any) -> Played:
    """Return what comes of posts at 1 s to 7 s."""
    return played(config, *posts(*range(1, 8)), until=until, kills=kills, **options)


def written(came: Played) -> list[tuple[float, Any]]:
    """Return what was written, the numbers of each batch at its moment."""
    return [(moment, [each["n"] for each in batch]) for moment, batch in came.written["p", 0]]


def test_what_a_durable_input_has_is_read_again():
    came = killed(DURABLE, ProcessKill(5, 5))

    assert written(came) == [(15, [1, 2, 3, 4, 5, 6, 7])]
    assert not came.unanswered


def test_what_only_the_process_has_is_gone():
    came = killed(PLAIN, ProcessKill(5, 5))

    assert written(came) == [(15, [5, 6, 7])]
    assert not came.failures
    assert not came.lost


def test_a_kill_is_behind_what_is_due_and_before_what_is_given():
    came = played(PLAIN, *posts(1, 11), until=40, kills=[ProcessKill(11, 11)])

    assert written(came) == [(11, [1]), (21, [11])]


def test_nothing_is_answered_while_there_is_no_process():
    came = killed(DURABLE, ProcessKill(3, 5))

    assert written(came) == [(15, [1, 2, 5, 6, 7])]
    assert came.unanswered == {"p": 2}


def test_a_process_that_is_killed_for_good_lets_go_of_nothing():
    came = killed(DURABLE, ProcessKill(5, math.inf))

    assert written(came) == []
    assert came.unanswered == {"p": 3}


@pytest.mark.parametrize(("is_committed", "again"), [(False, [6]), (True, [5, 6])])
def test_a_kill_at_a_commit_leaves_what_is_committed_and_answers_nobody(
    is_committed: bool, again: list[float]
):
    came = killed(DURABLE, ProcessKill(5, 5, 1, is_committed))

    assert written(came) == [(15, [1, 2, 3, 4, *again, 7])]
    assert came.unanswered == {"p": 1}


def test_a_kill_at_a_commit_that_never_comes_is_told():
    kill = ProcessKill(5, 5, 1_000)

    came = killed(DURABLE, kill)

    assert written(came) == [(11, [1, 2, 3, 4, 5, 6, 7])]
    assert came.survived == [kill]


def test_what_is_put_down_counts_as_one_kill_each_until_the_time_of_another():
    came = killed(DURABLE, ProcessKill(2, 2, 1), ProcessKill(4, 4, 1, True))

    numbers = [number for _, batch in written(came) for number in batch]
    assert sorted(numbers) == [1, 3, 4, 5, 6, 7]
    assert came.unanswered == {"p": 2}


def test_a_process_can_be_killed_as_it_starts():
    """The first commit is that of the new process, which counts what was under way when it was killed."""
    came = killed(DURABLE, ProcessKill(5, 5, 1), ProcessKill(5, 5, 2), ProcessKill(5, 5))

    assert sorted(number for _, batch in written(came) for number in batch) == [*range(1, 8)]
    assert not came.survived


def test_a_process_can_be_killed_as_it_stops():
    """What the stop had written, and is not known to be, comes again: to the next process, which stops."""
    came = played(DURABLE, *posts(1), until=5, kills=[ProcessKill(5, 5, 1)])

    assert written(came) == [(math.inf, [1])] * 2
    assert came.survived == []


def test_what_ends_the_process_three_times_becomes_a_letter():
    config = DURABLE.replace("- id: p", "- id: p\n  dead_letters: true")

    came = played(
        config, *posts(1), until=60, kills=[ProcessKill(moment, moment) for moment in (2, 3, 4)]
    )

    [letter] = came.letters
    assert (letter.place, letter.stage, letter.messages) == ("p.inputs[0]", "process", of(1))
    assert "the process ended 3 times while it was under way" in letter.text
    assert written(came) == []


def test_what_was_under_way_for_long_is_not_blamed():
    config = DURABLE.replace("seconds: 10", "seconds: 1000")
    kills = [ProcessKill(moment, moment) for moment in (20, 40, 60, 80)]

    came = played(config, *posts(1), until=2000, kills=kills)

    assert written(came) == [(1080, [1])]


MQTT = DURABLE.replace(
    "{type: http, durable: true}", "{type: mqtt, connection: m, topic: t, qos: at_least_once, MORE}"
)


def test_a_broker_gives_again_what_was_not_acknowledged():
    came = killed(MQTT.replace("MORE", "ack: on_delivery"), ProcessKill(5, 6.5))

    assert written(came) == [(16.5, [1, 2, 3, 4, 5, 6, 7])]
    assert came.acknowledged["p", 0] == [(16.5, number) for number in range(7)]


def test_a_broker_gives_nothing_again_that_is_on_the_disk():
    came = killed(MQTT.replace("MORE", "durable: true"), ProcessKill(5, 6.5))

    assert written(came) == [(16.5, [1, 2, 3, 4, 5, 6, 7])]
    acknowledged = [number for _, number in came.acknowledged["p", 0]]
    assert acknowledged == [*range(7)]


def test_a_broker_that_keeps_nothing_gives_nothing_again():
    came = killed(MQTT.replace(", MORE", ""), ProcessKill(5, 6.5))

    assert written(came) == [(17, [7])]
    assert not came.unanswered


def test_a_topic_keeps_what_nobody_reads():
    kafka = "{type: kafka, connection: m, topic: t, group: g}"
    config = DURABLE.replace("{type: http, durable: true}", kafka)

    came = killed(config, ProcessKill(5, 6.5))

    # What was acknowledged as it arrived, and was held, is gone.
    assert written(came) == [(16.5, [5, 6, 7])]


def test_what_is_queued_goes_on_in_its_order():
    config = DURABLE.replace("seconds: 10", "seconds: 1").replace(
        "channel: t", "channel: t, queue: {}"
    )
    away = {OUT: [ServerOutage(0, 30, "down")]}

    came = killed(config, ProcessKill(6.5, 6.5), until=60, outages=away)

    numbers = [number for _, batch in written(came) for number in batch]
    assert list(dict.fromkeys(numbers)) == [1, 2, 3, 4, 5, 6, 7]
    assert min(moment for moment, _ in written(came)) >= 30


def test_letters_stay_and_losses_are_counted_over_all_lives():
    config = """
- id: p
  dead_letters: true
  inputs: [{type: http}]
  outputs: [{type: redis, connection: c, channel: t}]
- id: q
  inputs: [{type: http}]
  outputs: [{type: redis, connection: c, channel: t}]
"""
    refused = ServerOutage(0, 60, "refuses", failure="invalid", says="no")
    steps = [at(moment, id, moment) for moment in (1, 11) for id in "pq"]

    came = played(
        config,
        *steps,
        until=20,
        kills=[ProcessKill(5, 5)],
        outages={(id, "output", 0): [refused] for id in "pq"},
    )

    assert came.letters == [
        PlayedLetter("p.outputs[0]", "output", "invalid", "no", [number]) for number in (1, 11)
    ]
    assert came.lost == {(("q", "output", 0), "batch"): 2}


def test_buckets_in_memory_are_empty_after_a_kill():
    config = (
        "state: {last: {}}\npipelines: [{id: p, inputs: [{type: http}],"
        " state: {bucket: last, key: n}, transforms: [{type: recall, recall: [a]}]}]"
    )
    steps = [GivenState(1, "last", {"a": {"n": 1}})]
    looks = [BucketLook(moment, "last") for moment in (2, 5, math.inf)]

    came = played(config, *steps, *looks, until=9, kills=[ProcessKill(5, 5)])

    assert came.states == {("last", 2): {"a": {"n": 1}}, ("last", 5): {}, ("last", math.inf): {}}


def test_a_full_disk_answers_503_until_there_is_room():
    came = killed(DURABLE, ProcessKill(4, 4), full=[(2, 6)])

    assert came.refused == {"p": 5}  # also the one at 6 s: it is tried once a second
    assert written(came) == [(14, [1, 7])]


def test_two_plays_with_kills_are_the_same():
    kills = ProcessKill(2, 2, 1), ProcessKill(5, 6)

    assert killed(DURABLE, *kills) == killed(DURABLE, *kills)
