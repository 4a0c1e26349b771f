"""Inputs and outputs say of their servers that they are coming, up, down, and up again, and why."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.clients import HOST, PATIENCE, Gone
from tests.server import Server, serving
from tests.services.opcua import Opcua
from tests.services.server import Service, free_port
from tests.whole.brokers.kinds import every as brokers
from tests.whole.linking import linked
from tests.whole.stores.kinds import every as stores

pytestmark = pytest.mark.long

Json = dict[str, Any]
Links = dict[str, Json]
"""By pipeline and list, such as ``from kafka inputs``, what is told of the only one in it."""


class Taking(BaseHTTPRequestHandler):
    """Takes what is posted."""

    def do_POST(self) -> None:
        """Read it, and say so."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of it."""


@contextmanager
def taking(port: int) -> Iterator[None]:
    """Have a server of HTTP take what is posted, for as long as a block lasts."""
    server = HTTPServer((HOST, port), Taking)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def links(server: Server) -> Links:
    """Return what is told of every input and output."""
    told = server.get("/api/pipelines").value
    for each in told:
        states = {one["state"] for one in (*each["inputs"], *each["outputs"])}
        assert (each["health"] == "ok") == (states == {"up"})
    return {
        f"{each['id']} {family}": link
        for each in told
        for family in ("inputs", "outputs")
        for link in each[family]
    }


def wait_for(
    server: Server, wanted: Mapping[str, str], meanwhile: Callable[[], object] = lambda: None
) -> Links:
    """Ask until every one is in its state, and who is not up tells why; return all of them."""
    until = monotonic() + PATIENCE
    left = dict(wanted)
    seen: Links = {}
    while left:
        meanwhile()
        seen = links(server)
        for name, state in [*left.items()]:
            link = seen[name]
            if link["state"] == state and (state == "up" or link["why"]):
                del left[name]
        if monotonic() > until:
            raise Gone(f"{left} is not reached: { {name: seen[name] for name in left} }")
    return seen


def config(target: int) -> list[Json]:
    reading = {kind.name: kind.input(kind.name, "in") for kind in brokers.EVERY}
    reading["opcua"] = {
        "type": "opcua",
        "connection": "opcua",
        "nodes": [{"node_id": "ns=2;s=Temp"}],
    }
    writing = {kind.name: kind.output(kind.name, "out") for kind in (*brokers.EVERY, *stores.EVERY)}
    writing["target"] = {"type": "http", "url": f"http://{HOST}:{target}/", "timeout_seconds": 2}
    return [
        *({"id": f"from {name}", "inputs": [each]} for name, each in reading.items()),
        *(
            {"id": f"to {name}", "inputs": [{"type": "http"}], "outputs": [each]}
            for name, each in writing.items()
        ),
        {
            "id": "beside",
            "inputs": [{"type": "dummy", "duration": 3600}],
            "outputs": [{"type": "stdout"}],
        },
        {"id": "behind", "inputs": [{"type": "pipeline", "upstream": "beside"}]},
    ]


def test_every_kind_tells_of_its_server_that_it_comes_goes_and_comes_back(tmp_path: Path) -> None:
    kinds: list[Any] = [*brokers.EVERY, *stores.EVERY]
    servers: dict[str, Service] = {kind.name: kind.server(tmp_path / kind.name) for kind in kinds}
    for kind in brokers.EVERY:
        servers[kind.name] = kind.lasting(tmp_path / kind.name)
    servers["opcua"] = Opcua(tmp_path / "opcua")
    connections = {kind.name: kind.connection(servers[kind.name]) for kind in kinds}
    connections["opcua"] = {"type": "opcua", "endpoint": servers["opcua"].url}
    options, target = linked(tmp_path / "headrace", connections), free_port()
    sources = [f"from {name} inputs" for name in (*(each.name for each in brokers.EVERY), "opcua")]
    sinks = [f"to {kind.name} outputs" for kind in kinds]
    ways_in = [f"to {kind.name} inputs" for kind in kinds]
    idle = ["beside inputs", "beside outputs", "behind inputs", "to target inputs"]
    numbers = count()

    with (
        serving(tmp_path / "headrace", config(target), *options) as server,
        ExitStack() as running,
    ):

        def post() -> None:
            for name in (*(kind.name for kind in kinds), "target"):
                server.post(f"to {name}", {"n": next(numbers), "temp": 1.5})

        coming = wait_for(
            server,
            dict.fromkeys([*sources, *sinks], "coming")
            | dict.fromkeys([*idle, *ways_in, "to target outputs"], "up"),
        )
        assert all(each["why"] and "\n" not in each["why"] for each in map(coming.get, sources))

        for kind in kinds:
            running.enter_context(servers[kind.name])
            if hasattr(kind, "create"):
                kind.create(servers[kind.name], "in")
                kind.create(servers[kind.name], "out")
        running.enter_context(servers["opcua"])
        everything = [*sources, *sinks, *ways_in, *idle, "to target outputs"]
        with taking(target):
            wait_for(server, dict.fromkeys(everything, "up"), post)

        for each in servers.values():
            each.kill()
        down = wait_for(
            server, dict.fromkeys([*sources, *sinks, "to target outputs"], "down"), post
        )
        assert {name for name, each in down.items() if each["state"] == "up"} == {*ways_in, *idle}

        for each in servers.values():
            each.start()
        with taking(target):
            wait_for(server, dict.fromkeys(everything, "up"), post)
