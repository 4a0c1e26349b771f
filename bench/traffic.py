"""The outside of a route through a broker: floods the one end, and counts what comes out at the other.

A process of its own, so that it takes no time from what is measured: ``python -m bench.traffic KIND PORT``.
It says that it is ready. A line ``ROUTE COUNT`` has it make so many readings, which takes its time and is
answered when it is done; the next line has it publish them to ``ROUTE.in``, all at once, so that the broker
has always something to deliver, and is answered when as many have come out at ``ROUTE.out``.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat
from typing import Any, Protocol

from bench import messages
from bench.load import HOST

ROUTES = ("ours", "by-hand")
MARK = b'"machine"'
"""Is in every reading once."""
READ_BYTES = 1 << 18
DIFFERENT = 1000

Frame = Callable[[bytes, bytes], bytes]
"""What publishes one payload on a topic."""


class Traffic(Protocol):
    """Both ends of every route, at one broker."""

    async def open(self) -> None:
        """Listen to what comes out of every route."""

    def make(self, route: str, count: int) -> Any:
        """Return so many readings, made ready to be published."""

    async def flood(self, route: str, made: Any) -> None:
        """Publish them, and return when they are out again."""

    async def close(self) -> None:
        """Leave."""


@dataclass(frozen=True)
class Wire:
    """What a client sends in a protocol that is so plain that no library is needed."""

    opening: bytes
    subscribe: Callable[[bytes], bytes]
    confirmed: bytes
    """What the answer to that ends with."""
    publish: Frame


def _redis(channel: bytes, payload: bytes) -> bytes:
    sizes = len(channel), channel, len(payload), payload
    return b"*3\r\n$7\r\nPUBLISH\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n" % sizes


def _nats(subject: bytes, payload: bytes) -> bytes:
    return b"PUB %b %d\r\n%b\r\n" % (subject, len(payload), payload)


def _mqtt(qos: int) -> Frame:
    packet_id = b"\0\1" if qos else b""  # a broker does not mind that it is always the same
    return lambda topic, payload: _packet(0x30 | qos << 1, _text(topic) + packet_id + payload)


def _packet(kind: int, body: bytes) -> bytes:
    """Return an MQTT packet: its kind, its length seven bits at a time, its body."""
    left, length = len(body), bytearray()
    while left > 0x7F:
        length.append(0x80 | left & 0x7F)
        left >>= 7
    return bytes([kind, *length, left]) + body


def _text(text: bytes) -> bytes:
    return len(text).to_bytes(2, "big") + text


def _mqtt_wire(qos: int) -> Wire:
    opening = _packet(0x10, _text(b"MQTT") + b"\4\2\0\0" + _text(b""))  # 3.1.1, clean, for ever

    def subscribe(topic: bytes) -> bytes:
        return _packet(0x82, b"\0\1" + _text(topic) + b"\0")

    return Wire(opening, subscribe, b"\x90\3\0\1\0", _mqtt(qos))


WIRES: dict[str, Wire] = {
    "redis": Wire(b"", lambda channel: b"SUBSCRIBE %b\r\n" % channel, b":1\r\n", _redis),
    "nats": Wire(
        b'CONNECT {"verbose":false}\r\n',
        lambda subject: b"SUB %b 1\r\nPING\r\n" % subject,
        b"PONG\r\n",
        _nats,
    ),
    "mqtt0": _mqtt_wire(0),
    "mqtt1": _mqtt_wire(1),
}


class Sockets:
    """Traffic over bare sockets: one that listens for each route, a new one for each flood."""

    def __init__(self, wire: Wire, port: int) -> None:
        self._wire, self._port = wire, port
        self._payloads = _payloads()
        self._listening: dict[str, socket.socket] = {}

    async def open(self) -> None:
        """Subscribe to what comes out of every route."""
        for route in ROUTES:
            listening = self._listening[route] = socket.create_connection((HOST, self._port))
            listening.sendall(self._wire.opening + self._wire.subscribe(_out(route)))
            answered = b""
            while not answered.endswith(self._wire.confirmed):
                answered += _received(listening)

    def make(self, route: str, count: int) -> tuple[int, bytes]:
        """Return how many they are, and all that publishes them."""
        topic = f"{route}.in".encode()
        frames = [self._wire.publish(topic, payload) for payload in self._payloads]
        return count, self._wire.opening + b"".join(_so_many(frames, count))

    async def flood(self, route: str, made: tuple[int, bytes]) -> None:
        """Publish everything, then count. What comes out meanwhile waits at the broker."""
        count, text = made
        with socket.create_connection((HOST, self._port)) as publishing:
            publishing.sendall(text)
            publishing.shutdown(socket.SHUT_WR)
            while publishing.recv(READ_BYTES):
                pass  # confirmations, until the broker has read all of it
        self._count(self._listening[route], count)

    async def close(self) -> None:
        """Close what listens."""
        for listening in self._listening.values():
            listening.close()

    def _count(self, listening: socket.socket, count: int) -> None:
        seen, rest = 0, b""
        while seen < count:
            text = rest + _received(listening)
            seen += text.count(MARK)
            rest = text[-len(MARK) + 1 :]  # not as long as a mark: none is counted twice
        if seen > count:
            raise RuntimeError(f"{seen} messages came out of {count}")


class Kafka:
    """Traffic over the client library: record batches are made beforehand and sent as they are."""

    def __init__(self, port: int) -> None:
        from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

        self._address = f"{HOST}:{port}"
        self._producer = AIOKafkaProducer(bootstrap_servers=self._address, max_batch_size=1 << 18)
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=self._address, max_partition_fetch_bytes=1 << 22
        )
        self._outs = {route: TopicPartition(_out(route).decode(), 0) for route in ROUTES}

    async def open(self) -> None:
        """Stand at the end of what comes out of every route."""
        await self._producer.start()
        await self._consumer.start()
        self._consumer.assign([*self._outs.values()])
        await self._consumer.seek_to_end()
        for out in self._outs.values():
            await self._consumer.position(out)

    def make(self, route: str, count: int) -> tuple[int, Sequence[Any]]:
        """Return how many they are, and the batches of records with them."""
        return count, self._batches(count)

    async def flood(self, route: str, made: tuple[int, Sequence[Any]]) -> None:
        """Publish everything, and count what comes out."""
        count, batches = made
        for batch in batches:
            await self._producer.send_batch(batch, f"{route}.in", partition=0)
        seen = 0
        while seen < count:
            came = await self._consumer.getmany(timeout_ms=1000)
            seen += sum(map(len, came.values()))
        if seen > count:
            raise RuntimeError(f"{seen} messages came out of {count}")

    async def close(self) -> None:
        """Close both clients."""
        await self._producer.stop()
        await self._consumer.stop()

    def _batches(self, count: int) -> Sequence[Any]:
        batches = []
        batch = self._producer.create_batch()
        for payload in _so_many(_payloads(), count):
            if batch.append(key=None, value=payload, timestamp=None) is None:
                batches.append(batch)
                batch = self._producer.create_batch()
                batch.append(key=None, value=payload, timestamp=None)
        return [*batches, batch]


def _payloads() -> list[bytes]:
    return list(chain.from_iterable(messages.payloads(DIFFERENT, 1)))


def _so_many(of: list[bytes], count: int) -> list[bytes]:
    return list(islice(chain.from_iterable(repeat(of)), count))


def _out(route: str) -> bytes:
    return f"{route}.out".encode()


def _received(connection: socket.socket) -> bytes:
    received = connection.recv(READ_BYTES)
    if not received:
        raise RuntimeError("the broker has closed the connection")
    return received


async def _run(traffic: Traffic) -> None:
    await traffic.open()
    print("ready", flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        route, count = line.split()
        made = traffic.make(route, int(count))
        print("made", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        await traffic.flood(route, made)
        print("done", flush=True)
    await traffic.close()


def main(kind: str, port: str) -> None:
    """Carry out what is asked for until nobody asks any more."""

    async def run() -> None:
        await _run(Kafka(int(port)) if kind == "kafka" else Sockets(WIRES[kind], int(port)))

    asyncio.run(run())


if __name__ == "__main__":
    main(*sys.argv[1:])
