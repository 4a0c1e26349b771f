"""The format of an input, as configs have it: what is refused, and what is known of its messages."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.compiler.component.payloadinput import PayloadInput
from headrace.connectors.http import HttpInput
from headrace.connectors.kafka import KafkaInput
from headrace.connectors.mqtt import MqttInput
from headrace.connectors.nats import NatsInput
from headrace.connectors.redis import RedisInput
from tests.doubles import refusals

HTTP: dict[str, Any] = {}


def refused(**options: Any) -> list[str]:
    return refusals(HttpInput, options)


def read(**options: Any) -> HttpInput:
    return HttpInput.load(options)


def test_the_inputs_that_are_given_bytes_have_one() -> None:
    for kind in (HttpInput, KafkaInput, MqttInput, NatsInput, RedisInput):
        assert issubclass(kind, PayloadInput)


def test_left_out_it_is_json_and_nothing_is_echoed() -> None:
    assert read().payload_format() is None
    assert read(format="json").payload_format() is None
    assert {"format", "encoding", "csv"}.isdisjoint(read().dump())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"format": "csv", "csv": {"header": False}},
            "without a 'header' nothing names the columns",
        ),
        ({"format": "lines", "csv": {}}, "'csv' says how rows are read, and the format is lines"),
        ({"csv": {}}, "'csv' says how rows are read, and the format is json"),
        ({"encoding": "latin-1"}, "json is UTF-8"),
        ({"format": "ndjson", "encoding": "utf-16"}, "ndjson is UTF-8"),
        (
            {"format": "csv", "csv": {"columns": ["a", "b", "a"]}},
            "'a' is the name of columns[0] already",
        ),
        (
            {"format": "csv", "csv": {"columns": [None]}},
            "'columns' has no name: every one is left out",
        ),
        (
            {"format": "csv", "csv": {"columns": ["a"], "types": {"b": "float"}}},
            'there is no column "b"',
        ),
        (
            {"format": "csv", "csv": {"separator": ";;"}},
            'expected one character that is no quote and ends no line, found ";;"',
        ),
        (
            {"format": "csv", "csv": {"separator": '"'}},
            'expected one character that is no quote and ends no line, found "\\""',
        ),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, Any], said: str) -> None:
    [told] = refused(**options)

    assert said in told


def test_other_names_are_answered_with_ours() -> None:
    [told] = refused(format="jsonl")

    assert "ndjson" in told


@pytest.mark.parametrize("columns", [1000, 1001])
def test_there_are_at_most_so_many_columns(columns: int) -> None:
    names = [f"c{number}" for number in range(columns)]

    assert len(refused(format="csv", csv={"columns": names})) == (columns > 1000)


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ({}, None),
        ({"format": "text"}, ["value"]),
        ({"format": "lines"}, ["value"]),
        ({"format": "lines", "envelope": {"type": "merge"}}, ["value"]),
        ({"format": "text", "envelope": {"type": "wrap"}}, []),
        ({"format": "ndjson"}, None),
        ({"format": "csv"}, None),
        ({"format": "csv", "csv": {"columns": ["a", None, "b"]}}, ["a", "b"]),
    ],
)
def test_what_is_known_of_its_messages(options: dict[str, Any], fields: list[str] | None) -> None:
    known = read(**options).hands_on()

    assert (None if known is None else [*known]) == fields


@pytest.mark.parametrize(
    ("format", "is_batching"), [("json", False), ("text", False), ("lines", True), ("csv", True)]
)
def test_a_payload_may_be_a_batch(format: str, is_batching: bool) -> None:
    told = {"connection": "c", "channel": "x", "format": format}

    assert RedisInput.load(told).is_batching() is is_batching
