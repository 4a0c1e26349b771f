"""What goes over the wire to an MQTT broker and back: our packets, and peers that answer with theirs."""

from __future__ import annotations

import asyncio
import gc
from contextlib import asynccontextmanager
from itertools import pairwise
from time import monotonic, process_time

import pytest
import uvloop

from headrace.compiler.errors import BuildRefused, Unreachable
from headrace.connectors.mqtt import packets
from headrace.connectors.mqtt.connection import NONSENSE
from tests.clients import PATIENCE
from tests.mqtt_sides import arrived, context, payloads, source, unreachable

CONNACK = b"\x20\x02\x00"
SUBACK = b"\x90\x03\x00\x01\x00"
CUT_OFF = "closed the connection: another client with the id 'headrace-p1-t' may have taken it over"


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (
            packets.connect("me", None, None, is_clean=True, keepalive=20),
            b"\x10\x0e\x00\x04MQTT\x04\x02\x00\x14\x00\x02me",
        ),
        (
            packets.connect("me", "ann", "ü", is_clean=False, keepalive=300),
            b"\x10\x17\x00\x04MQTT\x04\xc0\x01\x2c\x00\x02me\x00\x03ann\x00\x02\xc3\xbc",
        ),
        (packets.subscribe(1, "a/+", 2), b"\x82\x08\x00\x01\x00\x03a/+\x02"),
        (packets.publish(b"a", b"{}", 0, retain=False, packet=0), b"\x30\x05\x00\x01a{}"),
        (packets.publish(b"a", b"{}", 2, retain=True, packet=258), b"\x35\x07\x00\x01a\x01\x02{}"),
        (packets.confirm(packets.PUBACK, 65_535), b"\x40\x02\xff\xff"),
        (packets.confirm(packets.PUBREC, 1), b"\x50\x02\x00\x01"),
        (packets.confirm(packets.PUBREL, 1), b"\x62\x02\x00\x01"),
        (packets.confirm(packets.PUBCOMP, 1), b"\x70\x02\x00\x01"),
    ],
)
def test_a_packet_is_written_as_mqtt_has_it(given, written):
    assert given == written


def test_a_packet_that_mqtt_has_no_room_for_is_not_written():
    with pytest.raises(ValueError, match="a packet of 268,435,459 bytes is too long for MQTT"):
        packets.publish(b"t", bytes(1 << 28), 0, retain=False, packet=0)


@pytest.mark.parametrize("size", [0, 120, 121, 127, 128, 16_379, 16_380, 2_097_147, 2_097_148])
@pytest.mark.parametrize("step", [1, 7, 65_536])
def test_a_packet_is_read_as_it_was_written_however_it_comes(size, step):
    payload = b"x" * size
    both = packets.publish(b"t", payload, 1, retain=True, packet=9) + packets.PING
    coming, came = packets.Packets(), []
    cuts = [*range(0, min(20, len(both)), step), *range(20, len(both), max(step, len(both) // 50))]

    for start, end in pairwise([*cuts, len(both)]):
        coming.add(both[start:end])
        while (packet := coming.next()) is not None:
            came.append((packet[0], bytes(packet[1])))

    (first, body), ping = came
    assert packets.published(first & 15, memoryview(body)) == (payload, 9, 1, b"t", True)
    assert ping == (0xC0, b"")


@asynccontextmanager
async def saying(*answers: bytes, is_quick: bool = False, stays: bool = False):
    """Give a peer on some port that answers packets in turn, whatever they are, and then hangs up, or
    ``stays`` until it is not needed any more."""
    it = _Peer()

    async def talk(reader, writer):
        try:
            for answer in answers:
                if not is_quick:
                    await reader.read(1000)
                writer.write(answer)
            it.reader = reader
            if stays:
                await it.is_over.wait()
            await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as peer:
        it.port = peer.sockets[0].getsockname()[1]
        try:
            yield it
        finally:
            it.is_over.set()


class _Peer:
    """What is needed of a server to make a connection of it."""

    host = "127.0.0.1"
    port: int
    reader: asyncio.StreamReader

    def __init__(self) -> None:
        self.is_over = asyncio.Event()

    async def heard(self, packet: bytes) -> bool:
        """Return whether this comes next."""
        async with asyncio.timeout(PATIENCE):
            return await self.reader.readexactly(len(packet)) == packet


async def test_a_broker_that_is_busy_is_asked_again():
    async with saying(CONNACK + b"\x03") as peer:
        assert await unreachable(peer) == "HOST does not answer: server unavailable"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (b"\x01", "unsupported protocol version"),
        (b"\x02", "client identifier not valid"),
        (b"\x04", "bad user name or password"),
        (b"\x05", "not authorized"),
    ],
)
async def test_a_refusal_is_told_in_words(code, why):
    async with saying(CONNACK + code) as peer:
        with pytest.raises(BuildRefused) as refused:
            await anext(source(context(peer), "t").read())

    assert str(refused.value) == f"127.0.0.1:{peer.port} does not let the client in: {why}"


async def test_who_speaks_first_is_no_broker():
    async with saying(b"INFO {}\r\n" * 10, is_quick=True) as peer:
        assert await unreachable(peer) == f"HOST {NONSENSE}"


@pytest.mark.parametrize("answer", [b"\x20\x00", CONNACK + b"\x06", SUBACK])
async def test_a_broker_begins_with_a_connack(answer):
    async with saying(answer) as peer:
        assert await unreachable(peer) == f"HOST {NONSENSE}"


async def test_a_broker_that_hangs_up_instead_of_an_answer_is_lost():
    async with saying(CONNACK + b"\x00", b"") as peer:
        assert await unreachable(peer) == f"HOST {CUT_OFF}"


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\x30\x04\xff\xff{}",
        b"\x36\x07\x00\x01a\x00\x01{}",
        b"\xf0\x00",
        b"\x30\xff\xff\xff\xff\x7f",
    ],
    ids=["less than its topic", "QoS 3", "no packet", "a length without end"],
)
async def test_a_broker_that_talks_nonsense_is_lost(nonsense, caplog):
    async with saying(CONNACK + b"\x00", SUBACK + nonsense) as peer:
        reader = source(context(peer), "t").read()
        await anext(reader)
        with pytest.raises(Unreachable) as lost:
            await anext(reader)

    assert str(lost.value) == f"127.0.0.1:{peer.port} {NONSENSE}"
    assert caplog.records == []


async def test_what_a_broker_repeats_of_an_earlier_connection_is_answered():
    async with saying(CONNACK + b"\x00", SUBACK + b"\x62\x02\x00\x07", stays=True) as peer:
        reader = source(context(peer), "t").read()
        await anext(reader)
        assert await peer.heard(b"\x70\x02\x00\x07")
        await reader.aclose()


@pytest.mark.parametrize("mib", [63, 65])
async def test_a_packet_that_is_too_long_is_not_waited_for(mib):
    length = mib << 20
    announced = bytes(
        [0x30, length & 127 | 128, length >> 7 & 127 | 128, length >> 14 & 127 | 128, length >> 21]
    )
    rest = b"\x00\x01t" + b"7" * (length - 3) if mib < 64 else b"\x00\x01t7"
    async with saying(CONNACK + b"\x00", SUBACK + announced + rest) as peer:
        reader = source(context(peer), "t").read()
        await anext(reader)
        if mib < 64:
            assert [len(each) for each in payloads(await arrived(reader, 1))] == [length - 3]
        with pytest.raises(Unreachable) as lost:
            await anext(reader)

    what = "announced a packet of more than 64 MiB" if mib > 64 else "closed the connection"
    assert str(lost.value).startswith(f"127.0.0.1:{peer.port} {what}")


@pytest.mark.long
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_who_floods_it_with_small_messages_does_not_stop_the_others(loop):
    async def longest_turn() -> float:
        flood = SUBACK + b"\x30\x03\x00\x01t" * 1_000_000
        async with saying(CONNACK + b"\x00", flood) as peer:
            reader = source(context(peer), "t").read()
            reading = asyncio.ensure_future(arrived(reader, 10**9))
            turns, ends = [process_time()], monotonic() + 0.7
            while monotonic() < ends:
                await asyncio.sleep(0)
                turns.append(process_time())
            reading.cancel()
            await asyncio.wait([reading])
            await reader.aclose()
        return max(after - before for before, after in pairwise(turns))

    gc.collect()
    gc.freeze()  # what other tests have left behind is not looked through meanwhile
    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(longest_turn()) < 1.0
