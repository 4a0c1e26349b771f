"""Two servers in one process have nothing of each other, though their pipelines are called the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.clients import HOST, PATIENCE, Events, messages_of
from tests.redis_sides import client
from tests.server import stored
from tests.services.redis import Redis
from tests.web.auth.people import ADMIN, JSON, cookie, session_of
from tests.web.hosting import Hosted, hosting

Two = tuple[Hosted, Hosted]
NAMES = ("one", "other")


def mapped(name: str) -> Any:
    """Return the transform by which a message tells who it went through."""
    mapping = {"type": "constant", "as": "by", "value": {"type": "text", "value": name}}
    return {"type": "map", "mappings": [mapping]}


def config(name: str) -> Any:
    """Return the config of one of them: ids, connections and buckets are called the same in both."""
    opens = {"type": "string", "field": "mode", "operator": "equal_to", "value": name}
    gate = {
        "type": "buffer",
        "until": {"key": "m", "conditions": [opens]},
        "seconds": 3600,
        "max_messages": 500,
    }
    posted: list[Any] = [{"type": "http"}]
    state = {"bucket": "machines", "key": "machine"}
    remembered = {"type": "remember", "remember": [{"field": "mode", "as": "mode"}]}
    recalled = {"type": "recall", "recall": ["mode"], "on_missing": "null"}
    cast = {"type": "cast", "from": "n", "to": "integer", "as": "n"}
    door = {"type": "http", "auth": {"type": "bearer", "token": "${DOOR}"}}
    pipelines: dict[str, Any] = {
        "modes": {"inputs": posted, "state": state, "transforms": [remembered]},
        "gated": {"inputs": posted, "state": state, "transforms": [gate, recalled, mapped(name)]},
        "through": {"inputs": posted, "transforms": [mapped(name)]},
        "reader": {"inputs": [{"type": "pipeline", "upstream": "through"}]},
        "fails": {"inputs": posted, "transforms": [{"type": "map", "mappings": [cast]}]},
        "door": {"inputs": [door]},
    }
    return {
        "state": {"machines": {"max_keys": 10 + len(name)}},
        "pipelines": [
            {"id": id, **each, "outputs": [{"type": "file", "connection": "disk", "path": id}]}
            for id, each in pipelines.items()
        ],
    }


def files(folder: Path, name: str, config: Any, connections: Any = None, **more: Any) -> Path:
    """Return the directory of a server, with its files in it."""
    home = folder / name
    home.mkdir()
    disk = {"disk": {"type": "file", "root": str(home / "data")}}
    texts = {
        "config": config,
        "config.connections": disk | (connections or {}),
        "secrets": {"DOOR": f"the key of {name}"},
        **more,
    }
    for file, text in texts.items():
        (home / f"{file}.json").write_text(json.dumps(text))
    return home


@contextmanager
def side_by_side(folder: Path) -> Iterator[Two]:
    """Run two servers of the config, one in each directory."""
    with hosting() as host:
        one, other = (host.serve(files(folder, name, config(name))) for name in NAMES)
        yield one, other


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Two]:
    """Return two servers."""
    with side_by_side(tmp_path) as both:
        yield both


class Capture:
    """A capture of what is posted to `through`."""

    def __init__(self, server: Hosted) -> None:
        self._connection = HTTPConnection(HOST, server.port, timeout=PATIENCE)
        self._connection.request("GET", "/api/capture?pipeline=through")
        self._answer = self._connection.getresponse()
        assert self.next()["headrace"] == "capture"

    def next(self) -> Any:
        """Return the next line, as soon as it is there."""
        return json.loads(next(line for line in iter(self._answer.readline, b"") if line.strip()))

    def close(self) -> None:
        """Leave."""
        self._answer.close()
        self._connection.close()


@contextmanager
def captures(two: Two) -> Iterator[tuple[Capture, Capture]]:
    """Capture at both."""
    with closing(Capture(two[0])) as one, closing(Capture(two[1])) as other:
        yield one, other


def posts(server: Hosted, pipeline: str, *messages: Any) -> None:
    assert server.post(pipeline, [*messages]).status == 202


def told(events: Events, **wanted: Any) -> list[Any]:
    """Return the messages of the next event of that kind: the first pass of a pipeline is always told."""
    payload = events.next(**wanted)["payload"]
    return [json.loads(each) for each in payload["batch"]["messages"]]


def counted(server: Hosted, pipeline: str, stage: str) -> float:
    return server.metric("headrace_messages_total", pipeline=pipeline, stage=stage)


def held(server: Hosted) -> float:
    return server.metric("headrace_messages_held", pipeline="gated")


def remembered(server: Hosted) -> dict[str, Any]:
    """Return what the bucket holds."""
    entries = server.get("/api/state/machines").value["entries"]
    return {entry["key"]: entry["values"] for entry in entries}


def until(holds: Callable[[], bool]) -> None:
    """Ask until something holds."""
    gives_up = monotonic() + PATIENCE
    while not holds():
        assert monotonic() < gives_up, "it never happened"


def test_what_is_posted_to_one_is_told_and_counted_there_alone(two: Two) -> None:
    one, other = two
    streams = one.events(), other.events()

    posts(one, "through", {"n": 1}, {"n": 2}, {"n": 3})
    posts(other, "through", {"n": 4})

    came = [told(stream, pipeline_id="through", stage="input") for stream in streams]
    went = [told(stream, pipeline_id="reader", stage="output") for stream in streams]
    assert came == [[{"n": 1}, {"n": 2}, {"n": 3}], [{"n": 4}]]
    assert went[0] == [{"n": n, "by": "one"} for n in (1, 2, 3)]
    assert went[1] == [{"n": 4, "by": "other"}]
    assert [counted(each, "reader", "output") for each in two] == [3, 1]


def test_what_one_remembers_opens_no_gate_of_the_other(two: Two) -> None:
    one, other = two
    for each in two:
        posts(each, "gated", {"machine": "m", "n": 1})
        until(lambda each=each: held(each) == 1)

    posts(one, "modes", {"machine": "m", "mode": "one"})
    until(lambda: held(one) == 0)
    assert (held(other), remembered(other)) == (1, {})

    for each in two:  # which opens one of the gates
        posts(each, "modes", {"machine": "m", "mode": "other"})
    until(lambda: held(other) == 0)

    posts(one, "modes", {"machine": "another", "mode": "off"})
    until(lambda: len(remembered(one)) == 2)
    assert remembered(one) == {"another": {"mode": "off"}, "m": {"mode": "other"}}
    assert remembered(other) == {"m": {"mode": "other"}}
    assert [each.get("/api/state").value[0]["max_keys"] for each in two] == [13, 15]
    for each in two:
        each.end()
    assert [stored(each.home / "data" / "gated") for each in two] == [
        [{"machine": "m", "n": 1, "mode": "one", "by": "one"}],
        [{"machine": "m", "n": 1, "mode": "other", "by": "other"}],
    ]


def test_each_tells_a_failure_by_itself(two: Two, caplog: pytest.LogCaptureFixture) -> None:
    one, other = two
    streams = one.events(), other.events()

    posts(one, "fails", {"n": "x"})
    first = streams[0].next(pipeline_id="fails", stage="transform")
    failed = [
        each.metric("headrace_failures_total", pipeline="fails", stage="transform") for each in two
    ]
    posts(other, "fails", {"n": "x"})
    second = streams[1].next(pipeline_id="fails", stage="transform")

    assert failed == [1, 0]
    assert first["payload"] == second["payload"]
    said = [each for each in caplog.records if each.getMessage().startswith("pipeline 'fails' ")]
    assert [vars(each)["count"] for each in said] == [1, 1]  # and not the second as one more


def test_the_same_reference_stands_for_the_secret_of_each(two: Two) -> None:
    statuses = [
        server.request(
            "POST", messages_of("door"), b"1", {"Authorization": f"Bearer the key of {name}"}
        ).status
        for server in two
        for name in NAMES
    ]

    assert statuses == [202, 401, 401, 202]


def test_a_capture_and_a_sample_see_what_arrives_at_their_own(two: Two) -> None:
    one, other = two
    with captures(two) as (of_one, of_other):
        posts(other, "through", {"n": 4})
        posts(one, "through", {"n": 1})

        assert of_one.next()["batch"] == [{"n": 1}]
        assert of_other.next()["batch"] == [{"n": 4}]

    asked = {"input": {"type": "pipeline", "upstream": "through"}, "timeout_ms": 30000}
    body = json.dumps(asked | {"max_messages": 1}).encode()
    with ThreadPoolExecutor(1) as clients:
        sampling = clients.submit(one.request, "POST", "/api/inputs/sample", body, JSON)
        while not sampling.done():  # it sees what comes once it has begun
            posts(other, "through", {"n": 4})
            posts(one, "through", {"n": 1})
        sample = sampling.result().value
    assert sample["messages"] == [{"n": 1, "by": "one"}]


def test_what_is_changed_at_one_is_not_changed_at_the_other(two: Two) -> None:
    one, other = two
    before = [other.get(path).value for path in ("/api/settings", "/api/connections")]
    pipelines = [each["id"] for each in other.get("/api/pipelines").value]
    saved = (other.home / "config.json").read_bytes()
    new = {"id": "new", "inputs": [{"type": "http"}]}
    connection = {"id": "bus", "type": "redis", "url": "redis://127.0.0.1:1"}

    answers = [
        one.request("POST", "/api/pipelines", json.dumps(new).encode(), JSON),
        one.request("POST", "/api/connections", json.dumps(connection).encode(), JSON),
        one.request("DELETE", "/api/pipelines/door"),
    ]
    is_unsaved = one.get("/api/settings").value != before[0]
    answers.append(one.request("POST", "/api/config/save", b'{"name": "config.json"}', JSON))

    assert [each.status for each in answers] == [201, 201, 204, 200]
    assert is_unsaved
    assert [other.get(path).value for path in ("/api/settings", "/api/connections")] == before
    assert [each["id"] for each in other.get("/api/pipelines").value] == pipelines
    assert (other.home / "config.json").read_bytes() == saved
    assert other.post("new", 1).status == 404
    assert one.post("new", 1).status == 202


def test_who_is_signed_in_at_one_is_nobody_at_the_other(tmp_path: Path) -> None:
    passwords = {"one": "correct horse", "other": "battery staple"}
    with hosting() as host:
        one, other = (
            host.serve(
                files(
                    tmp_path,
                    name,
                    [],
                    server={
                        "auth": {
                            "type": "basic",
                            "users": {ADMIN: {"password": password, "role": "admin"}},
                        }
                    },
                )
            )
            for name, password in passwords.items()
        )
        body = json.dumps({"username": ADMIN, "password": passwords["one"]}).encode()
        answers = [each.request("POST", "/api/auth/login", body, JSON) for each in (one, other)]
        browser = cookie(session_of(answers[0].headers["set-cookie"]))

        assert [each.status for each in answers] == [200, 401]
        seen = [each.get("/api/pipelines", browser).status for each in (one, other)]
        assert seen == [200, 401]


def test_one_ends_in_order_while_the_other_goes_on(two: Two) -> None:
    one, other = two
    events = [each.events() for each in two]
    with captures(two) as (of_one, of_other):
        for each in two:
            posts(each, "gated", {"machine": "m", "n": 1})
            posts(each, "through", {"n": 1})
        assert of_one.next()["batch"] == of_other.next()["batch"] == [{"n": 1}]

        one.end()

        events[0].read_out()
        assert of_one.next()["end"] == "stopped"
        with pytest.raises(ConnectionRefusedError):
            one.get("/livez")
        assert held(other) == 1
        posts(other, "through", {"n": 2})
        assert of_other.next()["batch"] == [{"n": 2}]
        posts(other, "fails", {"n": "x"})
        events[1].next(pipeline_id="fails", stage="transform")
        other.end()

    written = {
        path: [stored(each.home / "data" / path) for each in two]
        for path in ("gated", "through", "reader")
    }
    through = [[{"n": 1, "by": "one"}], [{"n": n, "by": "other"} for n in (1, 2)]]
    assert written == {
        "gated": [[{"machine": "m", "n": 1, "mode": None, "by": name}] for name in NAMES],
        "through": through,
        "reader": through,
    }


def test_the_client_of_one_leaves_its_broker_and_that_of_the_other_stays(
    tmp_path: Path, redis_server: Redis
) -> None:
    bus = {"bus": {"type": "redis", "url": redis_server.url}}

    def hears(name: str) -> Any:
        subscribed = {"type": "redis", "connection": "bus", "channel": f"for {name}"}
        written = {"type": "file", "connection": "disk", "path": "heard"}
        return [{"id": "hears", "inputs": [subscribed], "outputs": [written]}]

    with hosting() as host, client(redis_server) as publisher:
        two = [host.serve(files(tmp_path, name, hears(name), bus)) for name in NAMES]
        heard = [publisher.publish(f"for {name}", b'{"n":1}') for name in NAMES]
        for each in two:
            until(lambda each=each: counted(each, "hears", "output") == 1)

        two[0].end()

        later = [publisher.publish(f"for {name}", b'{"n":2}') for name in NAMES]
        until(lambda: counted(two[1], "hears", "output") == 2)
        two[1].end()

    assert (heard, later) == ([1, 1], [0, 1])
    assert [stored(each.home / "data" / "heard") for each in two] == [
        [{"n": 1}],
        [{"n": 1}, {"n": 2}],
    ]
