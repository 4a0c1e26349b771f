"""The inputs of a play: what arrives is what production would make of it."""

from pathlib import Path

import pytest

from headrace.authoring.playing.scenario import Arriving, GivenArrival, ServerOutage
from tests.authoring.playing.playing import at, played

MQTT = "- id: p\n  inputs: [{type: mqtt, connection: c, topic: t, MORE}]\n"
KAFKA = "- id: p\n  inputs: [{type: kafka, connection: c, topic: t, group: g, MORE}]\n"
DOWN = {("p", "input", 0): [ServerOutage(10, 20, "down")]}


def reading(config: str, more: str = "max_batch: 100") -> str:
    return config.replace("MORE", more)


def test_messages_of_a_broker_arrive_one_by_one_and_are_put_together_up_to_max_batch():
    came = played(reading(MQTT, "max_batch: 2"), at(1, "p", 1, 2, 3))

    assert came.handed_on["p"] == [(1, [1, 2]), (1, [3])]


def test_a_batch_that_is_posted_stays_one():
    came = played("- id: p\n  inputs: [{type: http}]\n", at(1, "p", 1, 2, 3))

    assert came.handed_on["p"] == [(1, [1, 2, 3])]


def test_what_is_no_json_is_skipped_with_the_warning_of_production():
    came = played(reading(MQTT), GivenArrival(1, ("p", 0), Arriving(b"not json")), at(2, "p", 1))

    assert came.handed_on["p"] == [(2, [1])]
    [warning] = came.warnings
    assert (warning.at, warning.place) == (1, "p.inputs[0]")
    assert warning.text.startswith("skipped a payload that is not JSON")
    assert not came.failures


def test_an_envelope_tells_what_is_given_and_what_the_input_knows():
    envelope = "topic: a/+, envelope: {type: merge}"

    came = played(
        reading(MQTT.replace("topic: t, ", ""), envelope), at(1, "p", {"n": 1}, topic="a/b")
    )

    [(_, [message])] = came.handed_on["p"]
    assert message == {
        "n": 1,
        "_meta": {
            "pipeline": "p",
            "input": "mqtt",
            "connection": "c",
            "topic": "a/b",
            "qos": "at_most_once",
            "retain": False,
            "received_at": "2026-01-01T00:00:01.000000+00:00",
        },
    }


def test_an_envelope_of_a_post_has_its_method_its_peer_and_the_headers_that_are_passed_on():
    config = "- id: p\n  inputs: [{type: http, envelope: {type: merge}}]\n"

    came = played(
        config,
        at(1, "p", {}, remote_addr="10.0.0.1:5", headers={"X-Request-Id": "7", "Accept": "*/*"}),
    )

    [(_, [message])] = came.handed_on["p"]
    meta = message["_meta"]
    assert (meta["method"], meta["remote_addr"]) == ("POST", "10.0.0.1:5")
    assert meta["headers"] == {"x-request-id": "7"}


def test_no_credential_is_asked_for_or_looked_up():
    auth = "{type: bearer, token: '${NOBODY_HAS_IT}'}"

    came = played(f"- id: p\n  inputs: [{{type: http, auth: {auth}}}]\n", at(1, "p", 1))

    assert came.handed_on["p"] == [(1, [1])]


def test_a_full_queue_refuses_posts():
    config = """
- id: p
  inputs: [{type: http, capacity: 2}]
  outputs: [{type: mqtt, connection: c, topic: t, qos: exactly_once}]
"""
    many = [at(1, "p", n) for n in range(60)]

    came = played(
        config, *many, until=40, outages={("p", "output", 0): [ServerOutage(0, 20, "down")]}
    )

    # 16 batches are on their way, the next waits before the chain, 2 posts are in the queue.
    assert came.refused["p"] == 60 - 16 - 1 - 2
    assert len(came.written["p", 0]) == 16 + 1 + 2


@pytest.mark.parametrize(
    ("config", "is_kept"),
    [
        (reading(MQTT), False),
        (reading(MQTT, "max_batch: 100, qos: at_least_once, ack: on_delivery"), True),
        (reading(KAFKA), True),
    ],
    ids=["mqtt", "mqtt with a session", "kafka"],
)
def test_what_is_sent_while_the_broker_is_away_comes_afterwards_if_it_is_kept(
    config: str, is_kept: bool
):
    came = played(config, at(5, "p", 1), at(15, "p", 2), at(40, "p", 3), until=41, outages=DOWN)

    numbers = [message for _, batch in came.handed_on["p"] for message in batch]
    assert numbers == ([1, 2, 3] if is_kept else [1, 3])


def test_an_outage_is_a_failure_for_each_try():
    came = played(reading(MQTT), until=60, outages=DOWN)

    assert {(each.place, each.text) for each in came.failures} == {
        ("p.inputs[0]", "does not answer, as the test says")
    }
    # Lost at 10; tried after 0.25, 0.5, 1 and 2 s each time, without jitter; there again at 20.
    assert [each.at for each in came.failures] == [
        10,
        10.25,
        10.75,
        11.75,
        13.75,
        15.75,
        17.75,
        19.75,
    ]


def test_a_broker_that_is_away_at_the_start_is_waited_for():
    away = {("p", "input", 0): [ServerOutage(0, 20, "down")]}

    came = played(reading(KAFKA), at(5, "p", 1), until=60, outages=away)

    [(moment, batch)] = came.handed_on["p"]
    assert batch == [1]
    assert 20 < moment < 23


def test_a_connection_that_is_lost_is_made_again():
    came = played(
        reading(MQTT), at(1, "p", 1), GivenArrival(5, ("p", 0), None), at(5, "p", 2), at(6, "p", 3)
    )

    assert [(each.at, each.text) for each in came.failures] == [
        (5, "the connection is lost, as the test says")
    ]
    assert came.handed_on["p"] == [(1, [1]), (6, [3])]


def test_made_up_messages_are_the_same_for_the_same_seed():
    config = "- id: p\n  inputs: [{type: dummy, duration: 1, payload: text}]\n"

    one, same, other = (played(config, until=5, seed=seed).handed_on for seed in "aab")

    assert len(one["p"]) == 5
    assert one == same != other


def test_digits_are_kept_for_who_wants_them():
    config = """
- id: p
  inputs: [{type: http}]
  outputs:
    - type: postgres
      connection: c
      table: t
      columns: [{name: price, type: decimal}]
"""

    came = played(config, at(1, "p", {"price": 10**30}))

    assert [str(batch[0]["price"]) for _, batch in came.written["p", 0]] == [str(10**30)]


@pytest.mark.engine
def test_files_are_named_from_the_directory_of_the_config(tmp_path: Path):
    (tmp_path / "it.rhai").write_text("emit(msg);")
    script = "{type: script, source: {type: file, path: it.rhai}}"
    config = f"- id: p\n  inputs: [{{type: http}}]\n  transforms: [{script}]\n"

    came = played(config, at(1, "p", {"n": 1}), base=tmp_path)

    assert came.handed_on["p"] == [(1, [{"n": 1}])]


@pytest.mark.parametrize(
    ("ack", "acknowledged"),
    [("on_receipt", [(1, 0), (2, 1)]), ("on_delivery", [(60, 0), (60, 1)])],
)
def test_an_arrival_is_acknowledged_when_its_kind_does(ack: str, acknowledged: list):
    held = "\n  transforms: [{type: buffer, seconds: 59, max_messages: 10}]\n"

    came = played(
        reading(KAFKA, f"ack: {ack}").rstrip() + held, at(1, "p", 1), at(2, "p", 2), until=90
    )

    assert came.acknowledged["p", 0] == acknowledged


def test_arrivals_are_acknowledged_in_their_order():
    config = reading(KAFKA, "ack: on_delivery, buffer: {type: static, size: 2}")

    skipped = GivenArrival(2, ("p", 0), Arriving(b"not json"))
    came = played(config, at(1, "p", 1), skipped, at(3, "p", 2), until=9)

    assert came.acknowledged["p", 0] == [(3, 0), (3, 1), (3, 2)]


@pytest.mark.parametrize(
    ("kind", "key", "usual"),
    [
        (MQTT, "retain", False),
        (MQTT.replace("mqtt, connection: c, topic", "nats, connection: c, subject"), "headers", {}),
        (KAFKA, "key", None),
    ],
)
def test_metadata_that_nobody_gave_is_the_usual(kind: str, key: str, usual: object):
    came = played(reading(kind, "envelope: {type: merge}"), at(1, "p", {}), until=2)

    [(_, [message])] = came.handed_on["p"]
    assert message["_meta"][key] == usual


def test_every_input_can_be_fed_whatever_feeds_it_in_production():
    config = "- id: p\n  inputs: [{type: http}, {type: dummy, duration: 1}]\n"

    came = played(config, at(1, "p", 1, 2), at(2, "p", 3), until=3, feeds_all=True)

    assert came.handed_on["p"] == [(1, [1, 2]), (2, [3])]


def test_a_payload_in_another_format_is_read_in_it_and_messages_are_what_has_come_of_one():
    given = at(2, "p", {"value": "b"}, {"value": "c"})

    came = played(
        reading(MQTT, "format: lines, max_batch: 9"),
        GivenArrival(1, ("p", 0), Arriving(b"a\n21\n")),
        given,
    )

    assert came.handed_on["p"] == [
        (1, [{"value": "a"}, {"value": "21"}]),
        (2, [{"value": "b"}, {"value": "c"}]),
    ]


def test_a_post_in_another_format_may_be_given_as_it_is_sent():
    config = "- id: p\n  inputs: [{type: http, format: csv, csv: {types: {t: float}}}]\n"

    came = played(
        config,
        GivenArrival(1, ("p", 0), Arriving(b"m,t\npress,21.5\n")),
        GivenArrival(2, ("p", 0), Arriving(b"m,t\npress\n")),
        at(3, "p", {"m": "oven", "t": 20}),
    )

    assert came.handed_on["p"] == [
        (1, [{"m": "press", "t": 21.5}]),
        (3, [{"m": "oven", "t": 20}]),
    ]
    [warning] = came.warnings
    assert (warning.at, warning.text) == (2, "refused a post: row 2: 1 cell, the header has 2")
