"""Recipes of the page against real servers: nothing of a config is changed but the addresses in it."""

from __future__ import annotations

import asyncio
import gzip
import hmac
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic
from typing import Any

import asyncpg
import pytest

from tests.clients import HOST, PATIENCE, Gone, messages_of
from tests.mqtt_sides import somebody
from tests.nats_sides import peer
from tests.postgres_sides import done
from tests.recipes import CONFIG, CONNECTIONS, RECIPES
from tests.server import Server, serving, stored
from tests.services.mosquitto import Mosquitto
from tests.services.nats import Nats
from tests.services.postgres import Postgres
from tests.whole.linking import wait_for_status

pytestmark = pytest.mark.long

HOOK = "https://ops.example.org/hook"


@contextmanager
def following(
    title: str, folder: Path, addresses: Mapping[tuple[str, str], str] | None = None
) -> Iterator[Server]:
    """Serve a recipe, with other words in place of some in its files."""
    folder.mkdir(exist_ok=True)
    config = RECIPES[title].file(folder)
    for (name, at_home), here in (addresses or {}).items():
        text = (folder / name).read_text()
        assert at_home in text
        (folder / name).write_text(text.replace(at_home, here))
    with serving(folder, config, "--data-dir", "data") as server:
        yield server


def until(holds: Callable[[], bool], what: str) -> None:
    """Ask until something holds."""
    ends = monotonic() + PATIENCE
    while not holds():
        if monotonic() > ends:
            raise Gone(f"{what}: not in time")


def taken(server: Server, pipeline: str) -> float:
    """Return how many messages have come into a pipeline."""
    return server.metric("headrace_messages_total", pipeline=pipeline, stage="input")


def lost(server: Server, pipeline: str) -> float:
    """Return how many messages the transforms of a pipeline could not do."""
    where = {"pipeline": pipeline, "stage": "transform"}
    return server.metric("headrace_messages_lost_total", **where, reason="error")


def printed(server: Server) -> list[Any]:
    """Return all messages that a server that has ended has printed."""
    return [message for line in server.out.all() for message in json.loads(line)["batch"]]


class Hook(ThreadingHTTPServer):
    """A webhook that keeps what is posted to it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__((HOST, 0), _Keeping)
        self.kept: list[Any] = []
        self.news = threading.Condition()

    @property
    def url(self) -> str:
        """Where to post."""
        return f"http://{HOST}:{self.server_address[1]}/hook"

    def wait(self, count: int) -> list[Any]:
        """Return what was posted, as soon as there is so much."""
        with self.news:
            self.news.wait_for(lambda: len(self.kept) >= count, PATIENCE)
            return [*self.kept]


class _Keeping(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.news:
            self.server.kept.append(body)
            self.server.news.notify_all()
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture
def hook() -> Iterator[Hook]:
    """Give a webhook."""
    with Hook() as hook:
        serving = threading.Thread(target=hook.serve_forever, daemon=True)
        serving.start()
        yield hook
        hook.shutdown()
        serving.join(PATIENCE)


async def published(broker: Mosquitto, *told: tuple[str, str]) -> None:
    """Publish payloads to topics."""
    async with somebody(broker) as client:
        for topic, payload in told:
            await client.publish(topic, payload, qos=1)


async def rows_of(url: str) -> list[dict[str, Any]]:
    """Return what is in the table."""
    client = await asyncpg.connect(url)
    try:
        return [dict(row) for row in await client.fetch("select * from means order by machine")]
    finally:
        client.terminate()


def test_sensors_are_means_in_a_table(
    tmp_path: Path, mosquitto: Mosquitto, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DB_PASSWORD", "s3same/open")
    made = "create role headrace login password 's3same/open'"
    asyncio.run(done(postgres, made, "create database plant owner headrace"))
    addresses = {
        (CONNECTIONS, "type: mqtt, host"): f"type: mqtt, port: {mosquitto.port}, host",
        (CONNECTIONS, "type: postgres, host"): f"type: postgres, port: {postgres.port}, host",
    }
    told = [
        ("factory/m1/temp", "20.5"),
        ("factory/m2/temp", "90"),
        ("factory/m1/temp", "warm"),
        ("factory/m1/temp", "21.5"),
        ("factory/m1/pressure", "1"),
    ]
    with following("Write the means of sensors to a table", tmp_path / "h", addresses) as server:
        wait_for_status(server, "sensors", "running")
        asyncio.run(published(mosquitto, *told))
        until(lambda: taken(server, "sensors") == 4, "all that is published")
        until(lambda: lost(server, "sensors") == 1, "what is no number")
        # It ends in order, and hands on what its ten seconds hold.

    rows = asyncio.run(rows_of(postgres.url.rpartition("/")[0] + "/plant"))
    assert [(row["machine"], row["mean"], row["readings"]) for row in rows] == [
        ("m1", 21.0, 2),
        ("m2", 90.0, 1),
    ]
    assert all(row["from"] <= row["until"] for row in rows)


def test_the_lines_of_an_order_are_published(
    tmp_path: Path, nats_server: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_TOKEN", "only-the-shop-knows")
    order = {
        "order": {"id": 7, "lines": [{"sku": "a", "price": 1.5}, {"sku": "b"}]},
        "customer": {"id": "c1"},
    }
    without, wrong = {"order": {"id": 8}}, {"order": {"id": 9, "lines": "two"}}
    address = {(CONNECTIONS, "nats://127.0.0.1:4222"): nats_server.url}

    async def heard(server: Server) -> list[tuple[str, Any]]:
        async with peer(nats_server) as listener:
            await listener.subscribe("orders.>")
            body = json.dumps([without, wrong, order]).encode()
            signed = {"Authorization": "Bearer only-the-shop-knows"}
            path = messages_of("orders")
            assert (await asyncio.to_thread(server.request, "POST", path, body)).status == 401
            answer = await asyncio.to_thread(server.request, "POST", path, body, signed)
            assert answer.status == 202
            came = [await listener.next() for _ in range(2)]
            await asyncio.to_thread(until, lambda: lost(server, "orders") == 1, "what is no order")
            return came

    with following("Make a message of each line of an order", tmp_path, address) as server:
        came = asyncio.run(heard(server))

    assert came == [
        ("orders.lines", {"sku": "a", "price": 1.5, "order_id": 7, "customer": "c1"}),
        ("orders.lines", {"sku": "b", "order_id": 7, "customer": "c1"}),
    ]


def test_readings_get_what_a_table_knows(tmp_path: Path) -> None:
    machines = messages_of("machines")
    with following("Add what a table knows", tmp_path) as server:
        wrong = server.request("POST", machines, b"id,name,hall,max_temp\nm1,Oven,A,80\nm2,,,hot\n")
        right = server.request("POST", machines, b"id,name,hall,max_temp\r\nm2,Press,B,250.5\r\n")
        server.post("readings", [{"machine": "m1", "n": 1}, {"machine": "m2", "n": 2}])

    assert (wrong.status, right.status) == (400, 202)
    assert wrong.value["error"].startswith("row 3: column 'max_temp': cannot read a string")
    assert printed(server) == [
        {"machine": "m1", "n": 1, "name": None, "hall": None, "max_temp": None},
        {"machine": "m2", "n": 2, "name": "Press", "hall": "B", "max_temp": 250.5},
    ]


def test_an_alarm_is_told_when_it_changes(tmp_path: Path, hook: Hook) -> None:
    address = {(CONFIG, HOOK): hook.url}
    with following("Raise an alarm with hysteresis", tmp_path, address) as server:
        server.post("alarms", [{"machine": "press", "temp": temp} for temp in (70, 81, 77, 90, 74)])
        for temp in (76, 80.5):
            server.post("alarms", {"machine": "press", "temp": temp})
        came = hook.wait(3)

    assert came == [
        {"text": "press is hot"},
        {"text": "press is fine"},
        {"text": "press is hot"},
    ]


def test_a_machine_that_is_silent_is_told_of_once(tmp_path: Path, hook: Hook) -> None:
    """It ticks each second here, and nothing was ever heard of one of them."""
    address = {(CONFIG, HOOK): hook.url, (CONFIG, "duration: 10 }"): "duration: 1 }"}
    with following("Notice that nothing comes any more", tmp_path, address) as server:
        server.post("readings", {"machine": "oven", "temp": 200})
        hook.wait(1)
        until(lambda: taken(server, "silences") > 3, "ticks")

    assert hook.kept == [{"machine": "press", "last_heard": "never"}]


def test_events_are_counted_once_a_minute(tmp_path: Path) -> None:
    events = [
        {"id": 1, "at": "2026-01-01T00:00:00Z"},
        {"id": 2, "at": "2026-01-01T01:00:59.5+01:00"},
        {"id": 1, "at": "2026-01-01T00:00:00Z"},
        {"id": 3, "at": "2026-01-01T00:01:01Z"},
    ]
    with following("Aggregate by minutes of event time", tmp_path) as server:
        server.post("minutes", events)
        server.post("minutes", events[1])

    assert printed(server) == [
        {"minute": "2026-01-01T00:00:00+00:00", "count": 2},
        {"minute": "2026-01-01T00:01:00+00:00", "count": 1},
    ]


def test_rows_that_do_not_fit_are_kept_elsewhere(tmp_path: Path, mosquitto: Mosquitto) -> None:
    address = {
        (CONNECTIONS, "type: mqtt, host"): f"type: mqtt, port: {mosquitto.port}, host",
    }
    table = "machine;temp;n\nm1;21,5;007\nm2;warm;8\nm3;;\n"
    with following("Read and write CSV", tmp_path, address) as server:
        wait_for_status(server, "table", "running")
        asyncio.run(published(mosquitto, ("tables", table)))
        until(lambda: taken(server, "left-out") == 1, "what does not fit")
        until(lambda: taken(server, "table") == 2, "what fits")

    [part] = (tmp_path / "data" / "table").iterdir()
    assert part.read_text() == "machine,temp\nm1,21.5\nm3,\n"
    [failure] = stored(tmp_path / "data" / "left-out")
    assert (failure["pipeline_id"], failure["stage"]) == ("table", "input")
    assert failure["payload"] == "m2;warm;8"


def test_an_access_log_is_kept(tmp_path: Path) -> None:
    lines = [
        f'10.0.0.{n % 250} - - [10/Oct/2026:13:55:{n % 60:02} +0200] "GET /a/{n}?q=1 HTTP/1.1"'
        f' 200 {n} "https://x.example/?q" "Mozilla/5.0 (X11; Linux)"\n'
        for n in range(20_000)
    ]
    lines[7] = "nonsense\n"
    body = gzip.compress("".join(lines).encode())
    with following("Keep an access log", tmp_path) as server:
        path, coding = messages_of("access"), {"Content-Encoding": "gzip"}
        answer = server.request("POST", path, body, coding)
        assert (answer.status, answer.value) == (202, {"accepted": 20_000})

    [part] = (tmp_path / "data" / "access").iterdir()
    assert part.name.endswith(".ndjson.gz")
    records = [json.loads(line) for line in gzip.decompress(part.read_bytes()).splitlines()]
    assert [each["bytes"] for each in records] == [n for n in range(20_000) if n != 7]
    assert records[61] == {
        "ip": "10.0.0.62",
        "user": None,
        "at": "2026-10-10T13:55:02+02:00",
        "method": "GET",
        "path": "/a/62",
        "protocol": "HTTP/1.1",
        "status": 200,
        "bytes": 62,
        "referer": "https://x.example/?q",
        "agent": "Mozilla/5.0 (X11; Linux)",
    }


def test_a_record_is_cleaned_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    salt = "sixteen letters or more"
    monkeypatch.setenv("SALT", salt)
    record = {"mc": "m1", "f02": 2, "mail": "ann@example.org", "tags": "a, b", "id": 4711, "tf": 32}
    wrong = {"mc": "m2", "at": "yesterday"}
    with following("Clean up a record", tmp_path) as server:
        server.post("clean", [wrong, {**record, "at": "2026-12-22T04:30:00", "secret": "x"}])
        until(lambda: lost(server, "clean") == 1, "what is no record")

    assert printed(server) == [
        {
            "machine": "m1",
            "field_two": 2,
            "unit": "C",
            "mail": "a***@example.org",
            "tags": ["a", "b"],
            "id": hmac.digest(salt.encode(), b"4711", "sha256").hex(),
            "at": "2026-12-22T03:30:00+00:00",
            "celsius": 0.0,
            "level": "cold",
        }
    ]


def test_what_cannot_be_processed_is_kept(tmp_path: Path) -> None:
    with following("Keep what cannot be processed", tmp_path) as server:
        server.post("parsed", [{"temp": "21.5"}, {"temp": "warm"}])
        until(lambda: taken(server, "failed") == 1, "what failed")

    assert printed(server) == [{"temp": 21.5}]
    [failure] = stored(tmp_path / "data" / "failed")
    assert failure["message"] == {"temp": "warm"}
    assert (failure["pipeline_id"], failure["kind"]) == ("parsed", "map")
