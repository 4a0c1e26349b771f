"""Payloads that are lines and tables, of every kind of broker and in posts: what fits of them arrives."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.server import Server, serving
from tests.whole.arrived import Printed
from tests.whole.aside import Aside
from tests.whole.brokers.kinds.every import EVERY, KAFKA, MQTT
from tests.whole.brokers.kinds.kind import Json, Kind
from tests.whole.linking import linked, statuses

pytestmark = pytest.mark.long

PATIENT = 60.0
"""Seconds: Kafka waits for a dead member of a group until it gives it up."""
TYPED = {"types": {"n": "integer"}}
PARSED = {"type": "parse", "from": "value", "csv": {"columns": ["n"]}, **TYPED}

FORMATS: dict[str, tuple[Json, list[bytes], int, Sequence[int]]] = {
    "csv": (
        {"format": "csv", "csv": TYPED},
        [b"n,t\n0,x\n1,\n", b"\n", b"n,n\n9,9\n", b"n,t\r\n2,x\r\nodd,x\r\n9\r\n3,x\r\n"],
        4,
        range(4),
    ),
    "lines": ({"format": "lines"}, [b"0\n1\n", b"", b"\n\n", b"2\r\n3"], 0, range(4)),
    "ndjson": (
        {"format": "ndjson"},
        [b'{"n": 0}\n{"n": 1}\n', b"odd", b"", b'{"n": 2}\n{"n": \n\n{"n": 3}'],
        2,
        range(4),
    ),
}
"""Options of an input, what is sent to it, how much of that is left out, and the numbers in the rest."""


def named(source: Any, format: str) -> str:
    return f"{source}-{format}"


def reading(source: Any, format: str, input: Json) -> Json:
    return {
        "id": named(source, format),
        "inputs": [input],
        "transforms": [PARSED] if format == "lines" else [],
        "outputs": [{"type": "stdout"}],
    }


async def publish(kind: Kind, broker: Any, place: str, payloads: Sequence[bytes]) -> None:
    """Publish some payloads."""
    async with kind.dial(broker, place) as channel:
        await channel.send(payloads)


def test_what_fits_arrives_and_the_rest_is_counted(tmp_path: Path) -> None:
    config = [
        reading(kind, format, kind.input(kind.name, named(kind, format), **options))
        for kind in EVERY
        for format, (options, *_) in FORMATS.items()
    ]
    with ExitStack() as running:
        brokers = {kind: running.enter_context(kind.server(tmp_path / kind.name)) for kind in EVERY}
        connections = {kind.name: kind.connection(broker) for kind, broker in brokers.items()}
        options = linked(tmp_path / "headrace", connections)
        for kind, broker in brokers.items():
            for format in FORMATS:
                kind.create(broker, named(kind, format))
        aside = running.enter_context(Aside())
        server = running.enter_context(serving(tmp_path / "headrace", config, *options))
        printed = Printed(server.out)
        for kind, broker in brokers.items():
            for format, (_, payloads, left_out, numbers) in FORMATS.items():
                id = named(kind, format)
                aside.do(publish(kind, broker, id, payloads))

                printed[id].wait_for(numbers)
                skipped = server.metric("headrace_messages_skipped_total", pipeline=id)
                assert skipped == left_out, id
                assert [printed[id].counts[number] for number in numbers] == [1] * len(numbers)
        assert set(statuses(server).values()) == {"running"}


REFUSED = {
    "csv": [
        (b"n,n\n9,9\n", "cell 2 of the header is a name that stood before"),
        (b"n,t\n9,x\nodd,x\n", "row 3: column 'n': cannot read a string as an integer"),
        (b"n,t\n9\n", "row 2: 1 cell, the header has 2"),
    ],
    "lines": [],
    "ndjson": [(b'{"n": 9}\nodd\n', "row 2: not JSON: JSON is malformed")],
}


def test_a_post_that_does_not_fit_is_refused_and_nothing_of_it_arrives(tmp_path: Path) -> None:
    config = [
        reading("http", format, {"type": "http", **options})
        for format, (options, *_) in FORMATS.items()
    ]
    with serving(tmp_path, config) as server:
        printed = Printed(server.out)
        for format, refused in REFUSED.items():
            id = named("http", format)
            for body, said in refused:
                answer = posted(server, id, body)
                assert answer.status == 400
                assert answer.value["error"].startswith(said)
            good = b"n,t\n0,x\n1,x\n" if format == "csv" else b""
            good = good or (b"0\n1\n" if format == "lines" else b'{"n": 0}\n{"n": 1}\n')

            assert posted(server, id, good).value == {"accepted": 2}
            printed[id].wait_for([0, 1])
            assert printed[id].counts[9] == 0


def posted(server: Server, id: str, body: bytes) -> Any:
    return server.request("POST", f"/api/pipelines/{id}/messages", body)


@pytest.mark.parametrize("kind", [KAFKA, MQTT], ids=str)
def test_a_payload_comes_again_unless_all_its_messages_have_left(
    tmp_path: Path, kind: Kind
) -> None:
    """Of the second payload one message was written, and two were held, when the server was killed."""
    with kind.lasting(tmp_path / "broker") as broker, Aside() as aside:
        options = linked(tmp_path / "headrace", {"broker": kind.connection(broker)})
        kind.create(broker, "p")
        pipeline = reading("p", "csv", kind.input("broker", "p", **FORMATS["csv"][0]))
        held = {**pipeline, "transforms": [{"type": "buffer", "size": 4}]}
        with serving(tmp_path / "headrace", [held], *options) as server:
            tables = [b"n\n0\n1\n2\n", b"n\n3\nodd\n4\n5\n"]
            aside.do(publish(kind, broker, "p", tables))
            Printed(server.out)["p-csv"].wait_for(range(4))
            # What is lost is what the broker takes for done: it knows by now whatever is.
            assert server.metric("headrace_messages_skipped_total", pipeline="p-csv") == 1
            aside.do(kind.told_of(broker, "p"))
            server.signal(signal.SIGKILL)
            server.ended()

        with serving(tmp_path / "headrace", [pipeline], *options) as server:
            again = Printed(server.out)["p-csv"]
            again.wait_for([3, 4, 5], PATIENT)
            assert again.duplicates == 0
