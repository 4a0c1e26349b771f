"""The outputs of a play, and the servers that transforms ask."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.authoring.playing.scenario import GivenArrival, Replies, ScriptedReply, ServerOutage
from headrace.compiler.delivery import Batch
from tests.authoring.playing.playing import at, played

KAFKA = """
- id: p
  inputs: [{type: http}]
  outputs: [{type: kafka, connection: c, topic: t}]
"""
REDIS = KAFKA.replace("type: kafka, connection: c, topic", "type: redis, connection: c, channel")
ENRICHED = """
- id: p
  inputs: [{type: http}]
  transforms: [{type: http, url: "http://127.0.0.1:9/enrich", verb: POST}]
"""
AT = ("p", "output", 0)


def given(*moments: float) -> list[GivenArrival]:
    """Return a number at each moment: that of the moment."""
    return [at(moment, "p", moment) for moment in moments]


def test_what_is_written_is_what_leaves_the_transforms():
    came = played(REDIS, *given(1, 2))

    assert came.written["p", 0] == came.handed_on["p"] == [(1, [1]), (2, [2])]


def test_a_server_that_nobody_waits_for_loses_what_comes_meanwhile():
    came = played(
        REDIS, *given(1, 10, 15, 30), until=40, outages={AT: [ServerOutage(10, 20, "down")]}
    )

    assert came.written["p", 0] == [(1, [1]), (30, [30])]
    assert [(each.at, each.place, each.text) for each in came.failures] == [
        (moment, "p.outputs[0]", "does not answer, as the test says") for moment in (10, 15)
    ]


def test_kafka_is_waited_for_half_a_minute():
    came = played(KAFKA, *given(10, 45), until=90, outages={AT: [ServerOutage(10, 60, "down")]})

    assert came.written["p", 0] == [(60, [45])]
    assert [each.at for each in came.failures] == [40]


def test_a_slow_server_keeps_the_order():
    came = played(
        REDIS, *given(1, 2), until=20, outages={AT: [ServerOutage(0, 20, "slow", seconds=5)]}
    )

    assert came.written["p", 0] == [(6, [1]), (11, [2])]
    assert not came.failures


def test_a_server_refuses_so_many_of_so_many():
    outage = ServerOutage(0, 20, "refuses", refused=1, of=3)

    came = played(REDIS, *given(1, 2, 3, 4), until=20, outages={AT: [outage]})

    assert came.written["p", 0] == [(2, [2]), (3, [3])]
    assert [(each.at, each.text) for each in came.failures] == [
        (1, "refused, as the test says"),
        (4, "refused, as the test says"),
    ]


def test_a_value_that_does_not_fit_its_column_fails_its_batch():
    config = """
- id: p
  inputs: [{type: http}]
  outputs:
    - {type: postgres, connection: c, table: t, columns: [{name: temp, type: integer}]}
"""

    came = played(config, at(1, "p", {"temp": 20}), at(2, "p", {"temp": "hot"}))

    assert came.written["p", 0] == [(1, [{"temp": 20}])]
    assert [each.text for each in came.failures] == [
        "column 'temp': expected an integer, found a string"
    ]


def answering(*answers: ScriptedReply | str) -> Replies:
    """Return what gives one answer after the other."""
    left = list(answers)
    return lambda batch: left.pop(0)


def asked(*answers: ScriptedReply | str, until: float = 60.0) -> Any:
    """Return what came of as many requests, one each second."""
    steps = given(*range(1, len(answers) + 1))
    return played(ENRICHED, *steps, until=until, replies={("p", 0): answering(*answers)})


def test_a_reply_is_the_batch_that_goes_on():
    came = asked(ScriptedReply(body=[{"n": 1}, {"n": 2}]), ScriptedReply(body=[]))

    assert came.handed_on["p"] == [(1, [{"n": 1}, {"n": 2}])]
    assert not came.failures


def test_a_reply_may_be_made_of_what_was_asked():
    def echo(batch: Batch) -> ScriptedReply:
        return ScriptedReply(body=[{**message, "site": "north"} for message in batch])

    came = played(ENRICHED, at(1, "p", {"n": 1}), replies={("p", 0): echo})

    assert came.handed_on["p"] == [(1, [{"n": 1, "site": "north"}])]


def test_the_time_until_a_reply_passes():
    came = asked(ScriptedReply(body=[1], after=5), ScriptedReply(body=[2]))

    assert came.handed_on["p"] == [(6, [1]), (6, [2])]


@pytest.mark.parametrize(
    ("answer", "moment", "text"),
    [
        (ScriptedReply(503), 1, "503 Service Unavailable"),
        (ScriptedReply(404, body="nothing here"), 1, '404 Not Found: "nothing here"'),
        (ScriptedReply(299, body={}), 1, "the reply is not an array"),
        (ScriptedReply(), 1, "the reply is not JSON"),
        (ScriptedReply(is_down=True), 1, "connection refused"),
        (ScriptedReply(after=45), 31, "no answer within 30 s"),
        ("nobody says what", 1, "nobody says what"),
    ],
)
def test_a_reply_that_is_none_fails_its_batch_in_the_words_of_production(
    answer: ScriptedReply | str, moment: float, text: str
):
    came = asked(answer)

    assert [(each.at, each.place, each.text) for each in came.failures] == [
        (moment, "p.transforms[0]", f"POST http://127.0.0.1:9/enrich: {text}")
    ]
    assert came.handed_on["p"] == []


def test_a_transform_without_replies_says_so():
    came = played(ENRICHED, at(1, "p", 1))

    assert [each.text for each in came.failures] == [
        "POST http://127.0.0.1:9/enrich: the test has no reply for it"
    ]


def test_what_leaves_a_transform_that_is_tapped_is_recorded():
    config = """
- id: p
  inputs: [{type: http}]
  transforms:
    - {type: filter, Numeric: {field: n, operator: greater_than, value: 1}}
    - {type: map, keep: mapped, mappings: [{type: copy, from: n, as: m}]}
    - {type: splitter, out_size: 1}
"""

    came = played(config, at(1, "p", {"n": 1}, {"n": 2}, {"n": 3}), tapped=[("p", 0), ("p", 1)])

    assert came.made == {
        ("p", 0): [(1, [{"n": 2}, {"n": 3}])],
        ("p", 1): [(1, [{"m": 2}, {"m": 3}])],
    }
    assert came.handed_on["p"] == [(1, [{"m": 2}]), (1, [{"m": 3}])]
