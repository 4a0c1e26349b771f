"""Clients that come in thousands and say nothing, or next to nothing: everybody else is served."""

from __future__ import annotations

import json
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from statistics import median
from time import monotonic

import pytest

from tests.clients import HOST, PATIENCE
from tests.server import Server, serving, settled
from tests.web.auth.people import ADMIN, PASSWORDS
from tests.whole.attacks.wires import statuses
from tests.whole.figures import Figure
from tests.whole.memory import MIB, resident

CONFIG = [{"id": "p", "inputs": [{"type": "http"}]}]
POST = b"POST /api/pipelines/p/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n["


@pytest.fixture(autouse=True)
def files() -> Iterator[None]:
    """Let this process open as many files as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def opening(most: int) -> Callable[[], None]:
    """Return what lets a server open so many files."""
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def crowd(server: Server, stack: ExitStack, count: int, *said: bytes) -> list[socket.socket]:
    """Open connections; those in turn say one thing after the other, and nothing more."""
    connections = []
    for number in range(count):
        connection = stack.enter_context(closing(socket.create_connection((HOST, server.port))))
        connection.settimeout(PATIENCE)
        with suppress(ConnectionResetError, BrokenPipeError):
            connection.sendall(said[number % len(said)])
        connections.append(connection)
    return connections


def served(server: Server, figure: Figure) -> None:
    """See that others are served, soon."""
    took = []
    for number in range(20):
        began = monotonic()
        assert server.post("p", {"n": number}).status == 202
        assert server.get("/api/pipelines").status == 200
        took.append(monotonic() - began)
    figure("milliseconds for a post and a get", round(median(took) * 1000, 1))
    assert median(took) < 1


@pytest.mark.long
def test_a_thousand_half_open_and_a_thousand_idle_clients_keep_nobody_out(
    tmp_path: Path, figure: Figure
) -> None:
    with serving(tmp_path, CONFIG, setup=opening(4096)) as server, ExitStack() as stack:
        before = resident(server)
        crowd(server, stack, 2000, b"", b"GET /livez HTTP/1.1\r\nX: " + b"x" * 1000)

        served(server, figure)

        figure("MiB for 2,000 connections", (resident(server) - before) // MIB)
        assert resident(server) - before < 100 * MIB


@pytest.mark.parametrize("most", [48, 256])
def test_where_no_more_files_can_be_opened_those_who_say_nothing_go(
    tmp_path: Path, most: int, figure: Figure
) -> None:
    with serving(tmp_path, CONFIG, setup=opening(most)) as server, ExitStack() as stack:
        crowd(server, stack, 1000, b"", b"GET / HT", b"GET /livez HTTP/1.1\r\n\r\n", POST)
        wait_until_served(server)  # they come faster than they go

        served(server, figure)

        assert len(list(Path(f"/proc/{server.process.pid}/fd").iterdir())) < most
        assert "Too many open files" not in str(server.err)


def test_a_server_that_can_open_nothing_at_all_goes_on_when_it_can(tmp_path: Path) -> None:
    with serving(tmp_path, CONFIG, setup=opening(20)) as server:
        with ExitStack() as stack:
            for _ in range(200):
                with suppress(ConnectionResetError):
                    stack.enter_context(socket.create_connection((HOST, server.port)))
        wait_until_served(server)


def wait_until_served(server: Server) -> None:
    """Post until it is accepted."""
    until = monotonic() + PATIENCE
    while not is_served(server):
        assert monotonic() < until


def is_served(server: Server) -> bool:
    """Whether a connection is taken on and answered."""
    try:
        return server.post("p", {}).status == 202
    except OSError:
        return False


def test_clients_that_send_a_byte_now_and_again_keep_nobody_out(
    tmp_path: Path, figure: Figure
) -> None:
    with serving(tmp_path, CONFIG) as server, ExitStack() as stack:
        slow = crowd(server, stack, 300, POST, b"GET /livez HTTP/1.1\r\nX: ")
        for _ in range(5):
            for connection in slow:
                connection.sendall(b"1")
            served(server, figure)


@pytest.mark.long
def test_clients_that_do_not_read_their_answers_keep_nobody_out(
    tmp_path: Path, figure: Figure
) -> None:
    asked = b"GET /api/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 50
    with serving(tmp_path, CONFIG) as server, ExitStack() as stack:
        size = len(server.get("/api/openapi.json").body)
        before = resident(server)
        deaf = crowd(server, stack, 200, asked)

        served(server, figure)

        figure("MiB for 200 who do not read", (resident(server) - before) // MIB)
        assert resident(server) - before < 100 * MIB
        heard = b""
        while len(heard) < 50 * size:  # nothing of it is lost
            heard += deaf[0].recv(1 << 20)
        assert statuses(heard) == [200] * 50


def test_a_flood_of_large_sign_ins_keeps_nobody_from_signing_in(
    tmp_path: Path, figure: Figure
) -> None:
    users = {ADMIN: {"password": PASSWORDS[ADMIN], "role": "admin"}}
    login = json.dumps({"username": ADMIN, "password": PASSWORDS[ADMIN]}).encode()
    head = b"POST /api/auth/login HTTP/1.1\r\nHost: x\r\n"
    size = 2 * MIB
    announced = head + b"Content-Length: %d\r\n\r\n" % size + b"\n" * size
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % size + b"\n" * size
    settings = settled(tmp_path, auth={"type": "basic", "users": users})
    with serving(tmp_path, [], *settings) as server, ExitStack() as stack:
        before = resident(server)
        flood = crowd(server, stack, 200, announced, chunked)

        assert server.request("POST", "/api/auth/login", login).status == 200

        figure("MiB for 200 of 2 MiB", (resident(server) - before) // MIB)
        assert resident(server) - before < 50 * MIB
        # All of it was sent before anything was read, and the answer is there.
        assert {each.recv(65536)[:13] for each in flood} == {b"HTTP/1.1 413 "}
        assert server.request("POST", "/api/auth/login", login).status == 200
