"""The packets of MQTT 3.1.1, as a client writes and reads them.

Source: https://docs.oasis-open.org/mqtt/mqtt/v3.1.1/os/mqtt-v3.1.1-os.html, sections 2 and 3.
"""

from __future__ import annotations

CONNECT, CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBSCRIBE, SUBACK = range(1, 10)
PINGRESP = 13
"""Kinds of packets: the upper half of their first byte. The lower half has flags."""

PING, GOODBYE = b"\xc0\x00", b"\xe0\x00"
"""PINGREQ and DISCONNECT, which are always the same."""

REFUSED = 128
"""The code of a subscription that is refused; else it is the QoS that is granted."""

PACKET_IDS = 65_535
"""Messages that can be on their way at all: each has a packet id, from 1."""

LONGEST = 64 << 20
"""Bytes of a packet that is read, at most."""
MOST = (1 << 28) - 1
"""Bytes that a packet may have behind its length."""

LONG = 1 << 16
"""Bytes of a packet that is put together as it comes."""


class MalformedPacket(Exception):
    """What came is not MQTT 3.1.1."""


class PacketTooLong(Exception):
    """A packet is announced that is longer than `LONGEST`."""


def connect(
    identifier: str, username: str | None, password: str | None, *, is_clean: bool, keepalive: int
) -> bytes:
    """Ask to be let in. Units: ``keepalive`` is in seconds; 0 is for ever."""
    credential = [each.encode() for each in (username, password) if each is not None]
    flags = is_clean << 1 | (password is not None) << 6 | (username is not None) << 7
    head = _text(b"MQTT") + bytes([4, flags]) + keepalive.to_bytes(2, "big")
    return _packet(CONNECT, 0, head, *map(_text, [identifier.encode(), *credential]))


def subscribe(packet: int, topic: str, qos: int) -> bytes:
    """Ask for what is published to a topic."""
    return _packet(SUBSCRIBE, 2, packet.to_bytes(2, "big"), _text(topic.encode()), bytes([qos]))


def publish(topic: bytes, payload: bytes, qos: int, *, retain: bool, packet: int) -> bytes:
    """Publish a message. With QoS 0 it has no packet id."""
    number = packet.to_bytes(2, "big") if qos else b""
    return _packet(PUBLISH, qos << 1 | retain, _text(topic), number, payload)


def confirm(kind: int, packet: int) -> bytes:
    """Say with a PUBACK, PUBREC, PUBREL or PUBCOMP how far a message is."""
    return _packet(kind, 2 if kind == PUBREL else 0, packet.to_bytes(2, "big"))


def _packet(kind: int, flags: int, *parts: bytes) -> bytes:
    length, size = sum(map(len, parts)), bytearray()
    if length > MOST:
        raise ValueError(f"a packet of {length:,} bytes is too long for MQTT: at most {MOST:,}")
    while length > 127:
        size.append(length & 127 | 128)
        length >>= 7
    size.append(length)
    return b"".join((bytes([kind << 4 | flags]), size, *parts))


def _text(text: bytes) -> bytes:
    return len(text).to_bytes(2, "big") + text


def number(body: memoryview, at: int = 0) -> int:
    """Return the number of two bytes that stands there: a packet id, or a length."""
    if len(body) < at + 2:
        raise MalformedPacket
    return body[at] << 8 | body[at + 1]


def published(flags: int, body: memoryview) -> tuple[bytes, int, int, bytes, bool]:
    """Return of a PUBLISH payload, packet id or 0, QoS, topic, and whether it was retained."""
    qos, packet = flags >> 1 & 3, 0
    start = 2 + number(body)
    topic = bytes(body[2:start])
    if qos:
        packet = number(body, start)
        start += 2
    if qos == 3 or start > len(body):
        raise MalformedPacket
    return bytes(body[start:]), packet, qos, topic, bool(flags & 1)


class Packets:
    """Cuts what comes into packets. A long one is put together as it comes: all at once takes too long."""

    __slots__ = ("_at", "_data", "_filled", "_first", "_long")

    def __init__(self) -> None:
        self._data, self._at = b"", 0
        self._long: bytearray | None = None
        self._first = self._filled = 0

    def add(self, data: bytes) -> None:
        """Add what has come."""
        if self._long is not None:
            data = self._fill(self._long, data)
        self._data = self._data[self._at :] + data if self._at < len(self._data) else data
        self._at = 0

    def _fill(self, body: bytearray, data: bytes) -> bytes:
        """Put into a long packet what belongs to it, and return the rest."""
        start = self._filled
        self._filled = min(start + len(data), len(body))
        taken = self._filled - start
        body[start : self._filled] = data[:taken]
        return data[taken:]

    def next(self) -> tuple[int, memoryview] | None:
        """Return the first byte and the body of the next packet; None until all of it has come.

        Raises:
            MalformedPacket: it is announced with more bytes than a length may have.
            PacketTooLong: it is announced with more than `LONGEST`.
        """
        if self._long is not None:
            if self._filled < len(self._long):
                return None
            body, self._long = memoryview(self._long), None
            return self._first, body
        data, at = self._data, self._at
        start, length = at + 1, 0
        for shift in range(0, 28, 7):
            if start >= len(data):
                return None
            byte = data[start]
            start += 1
            length |= (byte & 127) << shift
            if byte < 128:
                break
        else:
            raise MalformedPacket
        if length > LONGEST:
            raise PacketTooLong
        end = start + length
        if end <= len(data):
            self._at = end
            return data[at], memoryview(data)[start:end]
        if length > LONG:
            self._first, self._long, self._filled = data[at], bytearray(length), 0
            self._data, self._at = self._fill(self._long, data[start:]), 0
        return None
