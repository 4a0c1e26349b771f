"""Clients of a running server, as plain as they come: a kept connection, and an event stream."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from time import monotonic
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

HOST = "127.0.0.1"
PATIENCE = 30.0
"""Seconds after which something that should have happened is given up: generous, as a busy machine
is slow and a test that passes never waits for it."""


class Gone(AssertionError):
    """What was waited for can no longer come, or has not come in time."""


@dataclass(frozen=True)
class Answer:
    """What a request was answered with."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes

    @classmethod
    def of(cls, response: HTTPResponse) -> Answer:
        """Read a response to its end."""
        body = response.read()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return cls(response.status, headers, body)

    @property
    def value(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Client:
    """One connection that is kept; every request of it goes over the same socket."""

    def __init__(self, port: int, seconds: float = PATIENCE) -> None:
        self._connection = HTTPConnection(HOST, port, timeout=seconds)

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request and read its answer. A connection that was closed is not opened again."""
        if self._connection.sock is None:
            self._connection.connect()
        self._connection.auto_open = 0
        # A body that is refused is read no further: the answer is there before all of it is sent.
        with suppress(BrokenPipeError, ConnectionResetError):
            self._connection.request(method, path, body, dict(headers or {}))
        return Answer.of(self._connection.getresponse())

    def post(self, pipeline: str, value: Any) -> Answer:
        """Post a message, or a list of them."""
        return self.request("POST", messages_of(pipeline), json.dumps(value).encode())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def messages_of(pipeline: str) -> str:
    """Return the path that messages for a pipeline are posted to."""
    return f"/api/pipelines/{quote(pipeline, safe='')}/messages"


class Events:
    """An open `/events` stream, read as it comes."""

    def __init__(
        self,
        port: int,
        seconds: float = PATIENCE,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._connection = HTTPConnection(HOST, port, timeout=seconds)
        self._connection.request("GET", "/events", headers=dict(headers))
        self._socket = self._connection.sock
        self._response = self._connection.getresponse()
        assert self._response.status == 200
        self._response.readline()  # the first comment: from here on nothing is missed

    def lines(self, seconds: float = PATIENCE) -> Iterator[bytes]:
        """Yield the lines that are sent, until the server ends the stream."""
        until = monotonic() + seconds
        while True:
            # The comments that keep it alive would keep a wait alive as well.
            self._socket.settimeout(max(until - monotonic(), 0.001))
            try:
                line = self._response.readline()
            except TimeoutError:
                raise Gone(f"the event stream went on without it for {seconds} s") from None
            if not line:
                return
            yield line.rstrip()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield events until the server ends the stream."""
        for line in self.lines():
            if line.startswith(b"data: {"):
                yield json.loads(line.removeprefix(b"data: "))

    def next(self, **wanted: Any) -> dict[str, Any]:
        """Return the next event with these fields."""
        for event in self:
            if wanted.items() <= event.items():
                return event
        raise Gone(f"the stream ended without an event that has {wanted}")

    def read_out(self) -> list[dict[str, Any]]:
        """Return what else comes until the server ends the stream."""
        return list(self)

    def close(self) -> None:
        """Leave."""
        self._connection.close()


class Reached:
    """A server on a port, for whoever asks it this and that."""

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self._clients: list[Client | Events] = []

    def client(self) -> Client:
        """Return a connection of its own."""
        client = Client(self.port)
        self._clients.append(client)
        return client

    def events(self, headers: Mapping[str, str] = MappingProxyType({})) -> Events:
        """Return an open event stream."""
        events = Events(self.port, headers=headers)
        self._clients.append(events)
        return events

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Answer:
        """Send one request over a connection of its own."""
        client = Client(self.port)
        try:
            return client.request(method, path, body, headers)
        finally:
            client.close()

    def get(self, path: str, headers: Mapping[str, str] = MappingProxyType({})) -> Answer:
        """Ask for something."""
        return self.request("GET", path, headers=headers)

    def post(self, pipeline: str, value: Any) -> Answer:
        """Post a message, or a list of them."""
        return self.request("POST", messages_of(pipeline), json.dumps(value).encode())

    def metric(self, name: str, **labels: str) -> float:
        """Return one figure of `/metrics`; 0 where it is not told."""
        wanted = {f'{key}="{value}"' for key, value in labels.items()}
        for line in self.get("/metrics").body.decode().splitlines():
            said, _, figure = line.rpartition(" ")
            family, _, described = said.partition("{")
            if family == name and wanted <= set(described.removesuffix("}").split(",")):
                return float(figure)
        return 0.0

    def leave(self) -> None:
        """Close every connection that is kept."""
        for client in self._clients:
            client.close()
