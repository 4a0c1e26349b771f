"""The few requests in Kafka's protocol that a test server needs, each over a connection of its own.

Source: https://kafka.apache.org/protocol
"""

from __future__ import annotations

import socket
import struct
from time import monotonic

from tests.clients import PATIENCE, Gone

_API_VERSIONS, _METADATA, _CREATE_TOPICS, _CREATE_ACLS = 18, 3, 19, 30
_TOPIC, _LITERAL, _DESCRIBE, _ALLOW = 2, 3, 8, 3


def answers(host: str, port: int) -> bool:
    """Say whether a broker tells which requests it knows."""
    return _asked(host, port, _API_VERSIONS, 0, b"")[:2] == b"\0\0"


def create_topic(host: str, port: int, name: str, partitions: int) -> None:
    """Create a topic and wait until clients find it."""
    topic = _text(name) + struct.pack(">ihii", partitions, 1, 0, 0)
    body = struct.pack(">i", 1) + topic + struct.pack(">i?", int(PATIENCE * 1000), False)
    answer = _asked(host, port, _CREATE_TOPICS, 2, body)
    # How long it was throttled, one topic: its name, an error code.
    code = struct.unpack_from(">h", answer, 4 + 4 + len(_text(name)))[0]
    if code:
        raise Gone(f"the topic '{name}' was not created: Kafka's error {code}")
    _wait_until_led(host, port, name)


def allow_to_describe(host: str, port: int, topic: str, user: str) -> None:
    """Let a user see a topic."""
    where = struct.pack(">b", _TOPIC) + _text(topic) + struct.pack(">b", _LITERAL)
    who = _text(f"User:{user}") + _text("*")
    body = struct.pack(">i", 1) + where + who + struct.pack(">bb", _DESCRIBE, _ALLOW)
    # How long it was throttled, one rule: an error code.
    code = struct.unpack_from(">h", _asked(host, port, _CREATE_ACLS, 1, body), 4 + 4)[0]
    if code:
        raise Gone(f"'{user}' was not allowed to see the topic '{topic}': Kafka's error {code}")


def _wait_until_led(host: str, port: int, name: str) -> None:
    """Ask until the broker has heard of a topic from its controller."""
    until = monotonic() + PATIENCE
    while _topic_error(host, port, name):
        if monotonic() > until:
            raise Gone(f"nobody leads the topic '{name}'")


def _topic_error(host: str, port: int, name: str) -> int:
    """Return the error code in what a broker says of a topic; 0 is none."""
    body = struct.pack(">i", 1) + _text(name) + struct.pack(">?", False)
    answer = _asked(host, port, _METADATA, 4, body)
    # The answer ends with the topics, so the code is found from the name: it stands before it.
    return int.from_bytes(answer[(at := answer.rindex(_text(name))) - 2 : at], "big")


def _asked(host: str, port: int, key: int, version: int, body: bytes) -> bytes:
    """Send a request and return the body of its answer."""
    request = struct.pack(">hhi", key, version, 1) + _text("tests") + body
    with socket.create_connection((host, port), PATIENCE) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as stream:
            [size] = struct.unpack(">i", stream.read(4))
            return stream.read(size)[4:]


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()
