"""What is used of uvicorn's HTTP protocol, which it does not document: this fails when that changes."""

from __future__ import annotations

import inspect
import re

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from headrace.web.process.boundedreading import BoundedReading
from headrace.web.process.connectionlimit import ConnectionLimit
from headrace.web.process.posts import Post
from headrace.web.process.protocol import Protocol
from tests.web.process.wires import HEAD, House

OVERRIDDEN = {
    "connection_made": "transport",
    "connection_lost": "exc",
    "data_received": "data",
    "eof_received": "",
    "on_message_begin": "",
    "on_header": "name value",
    "on_headers_complete": "",
    "on_body": "body",
    "on_message_complete": "",
    "on_response_complete": "",
    "timeout_keep_alive_handler": "",
}
"""Each of its methods that ours comes before or stands for, with its parameters."""
OF_A_CYCLE = {
    "body",
    "disconnected",
    "keep_alive",
    "message_event",
    "more_body",
    "response_complete",
    "run_asgi",
}
"""All that the protocol asks of what answers a request, or sets there."""
OF_A_PROTOCOL = {
    "app",
    "client",
    "connections",
    "cycle",
    "expect_100_continue",
    "flow",
    "headers",
    "loop",
    "parser",
    "pipeline",
    "scope",
    "server_state",
    "tasks",
    "timeout_keep_alive",
    "timeout_keep_alive_task",
    "transport",
    "url",
}
OF_THE_FLOW = {"drain", "pause_reading", "read_paused", "resume_reading", "write_paused"}
OF_THE_STATE = {"connections", "default_headers", "tasks", "total_requests"}


def test_it_is_the_version_that_has_been_read() -> None:
    assert uvicorn.__version__.startswith("0.54.")


def test_the_methods_that_are_overridden_are_there() -> None:
    theirs = {
        name: " ".join([*inspect.signature(getattr(HttpToolsProtocol, name)).parameters][1:])
        for name in OVERRIDDEN
    }
    ours = {
        name
        for name in {**vars(BoundedReading), **vars(Protocol)}
        if name in dir(HttpToolsProtocol)
    } - {
        *vars(object),
        "__module__",
        "__annotations__",
    }

    assert theirs == OVERRIDDEN
    assert ours == {*OVERRIDDEN}


def test_a_post_has_what_is_asked_of_a_cycle() -> None:
    asked = {
        *re.findall(r"cycle\.(\w+)", inspect.getsource(HttpToolsProtocol)),
    }
    assert asked == OF_A_CYCLE
    # A post takes its body itself: `Protocol.on_body`.
    assert {name for name in asked - {"body"} if not hasattr(Post, name)} == {"keep_alive"}


async def test_the_protocol_has_what_is_looked_at() -> None:
    connection = House(ConnectionLimit()).enter()
    connection.data_received(HEAD)

    assert missing(connection, OF_A_PROTOCOL) == set()
    assert missing(connection.flow, OF_THE_FLOW) == set()
    assert missing(connection.server_state, OF_THE_STATE) == set()
    assert "on_response()" in inspect.getsource(RequestResponseCycle.send)


def missing(there: object, names: set[str]) -> set[str]:
    return {name for name in names if not hasattr(there, name)}
