"""Getting into an MQTT broker: who is let in, who is told why not, and that nobody waits for long."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from time import monotonic, process_time

import pytest
import uvloop

from headrace.compiler.errors import BuildRefused, Unreachable
from headrace.connectors.mqtt import MqttConnection
from headrace.connectors.mqtt.access import NONSENSE
from headrace.connectors.mqtt.connection import Link
from tests.clients import PATIENCE
from tests.mqtt_sides import arrived, context, halted, payloads, sink, somebody, source, subscribed
from tests.services.authority import Authority
from tests.services.mosquitto import Mosquitto
from tests.stopwatch import Stopwatch

USER = {"username": "${USER}", "password": "${PASSWORD}"}
PLUGIN = next(Path("/usr/lib").glob("*/mosquitto_dynamic_security.so"), None)


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    """Give a broker with one user."""
    with Mosquitto(tmp_path_factory.mktemp("closed"), user="me", password="s3cret") as server:
        yield server


@pytest.fixture(scope="module")
def secured(tmp_path_factory, authority):
    """Give a broker that talks TLS."""
    with Mosquitto(tmp_path_factory.mktemp("secured"), tls=authority) as server:
        yield server


@pytest.fixture(scope="module")
def mutual(tmp_path_factory, authority):
    """Give a broker that wants a certificate of its clients."""
    with Mosquitto(tmp_path_factory.mktemp("mutual"), tls=authority, mutual=True) as server:
        yield server


async def outcome(ctx, *, is_input: bool) -> str:
    """Return what becomes of connecting one side, within the time that a build has."""
    watch = Stopwatch()
    said = "connected"
    try:
        await (_reads(ctx) if is_input else _writes(ctx))
    except BuildRefused as refused:
        said = f"{refused.fault.code}: {refused}"
    assert watch.seconds < 5
    return said.removeprefix("turned-away: ")


async def _reads(ctx) -> None:
    reader = source(ctx, "t").read()
    try:
        assert await anext(reader) == ()
    finally:
        await reader.aclose()


async def _writes(ctx) -> None:
    opened = sink(ctx, "t")
    await opened.start()
    await opened.finish()


SIDES = pytest.mark.parametrize("is_input", [True, False], ids=["input", "output"])


@SIDES
async def test_the_right_credential_opens(closed: Mosquitto, is_input):
    ctx = context(closed, secrets={"USER": "me", "PASSWORD": "s3cret"}, **USER)

    assert await outcome(ctx, is_input=is_input) == "connected"


@SIDES
@pytest.mark.parametrize("credential", [{"USER": "me", "PASSWORD": "wr0ng"}, None])
async def test_a_wrong_or_missing_one_is_turned_away(closed: Mosquitto, is_input, credential):
    ctx = context(closed, secrets=credential, **(USER if credential else {}))

    said = await outcome(ctx, is_input=is_input)

    assert said == f"{closed.address} does not let the client in: not authorized"


@SIDES
async def test_tls_with_the_right_authority_opens(secured: Mosquitto, authority, is_input):
    ctx = context(secured, tls=True, ca_file=str(authority.ca_file))

    assert await outcome(ctx, is_input=is_input) == "connected"


def test_tls_goes_over_the_loop_that_the_server_runs_on(secured: Mosquitto, authority):
    async def exchanged() -> list[bytes]:
        ctx = context(secured, tls=True, ca_file=str(authority.ca_file))
        reader, opened = source(ctx, "t", qos="at_least_once").read(), sink(ctx, "t")
        await anext(reader)
        await opened.start()
        await opened.write([*range(5)])
        seen = payloads(await arrived(reader, 5))
        await opened.finish()
        await reader.aclose()
        return seen

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(exchanged()) == [b"0", b"1", b"2", b"3", b"4"]


@SIDES
async def test_tls_with_another_authority_is_refused(secured: Mosquitto, tmp_path, is_input):
    other = Authority(tmp_path)
    ctx = context(secured, tls=True, ca_file=str(other.ca_file))

    said = await outcome(ctx, is_input=is_input)

    assert said.startswith(f"the certificate of {secured.address} is not trusted")


@SIDES
async def test_plaintext_against_tls_is_refused(secured: Mosquitto, is_input):
    said = await outcome(context(secured), is_input=is_input)

    assert said == f"{secured.address} speaks TLS, and the connection does not"


@SIDES
async def test_tls_against_plaintext_is_refused(mosquitto: Mosquitto, authority, is_input):
    ctx = context(mosquitto, tls=True, ca_file=str(authority.ca_file))

    assert await outcome(ctx, is_input=is_input) == f"{mosquitto.address} does not speak TLS"


@SIDES
async def test_a_broker_that_wants_a_certificate_is_shown_one(
    mutual: Mosquitto, authority: Authority, is_input
):
    files = {
        "ca_file": str(authority.ca_file),
        "cert_file": str(authority.client_cert_file),
        "key_file": str(authority.client_key_file),
    }

    assert await outcome(context(mutual, tls=True, **files), is_input=is_input) == "connected"


@SIDES
async def test_who_shows_none_is_turned_away(mutual: Mosquitto, authority: Authority, is_input):
    ctx = context(mutual, tls=True, ca_file=str(authority.ca_file))

    said = await outcome(ctx, is_input=is_input)

    assert said.startswith(mutual.address)
    assert "a certificate that it trusts" in said


def guarded(folder: Path, **access: bool) -> Mosquitto:
    """Return a broker that lets everybody in and says what they may do there."""
    folder.mkdir(exist_ok=True)
    may = {"publishClientSend": True, "publishClientReceive": True, "subscribe": True}
    rules = folder / "rules.json"
    rules.write_text(json.dumps({"defaultACLAccess": may | {"unsubscribe": True} | access}))
    return Mosquitto(folder, extra=[f"plugin {PLUGIN}", f"plugin_opt_config_file {rules}"])


@pytest.mark.skipif(PLUGIN is None, reason="there is no 'mosquitto_dynamic_security.so'")
async def test_a_topic_that_may_not_be_read_is_turned_away(tmp_path):
    with guarded(tmp_path, subscribe=False) as server:
        said = await outcome(context(server), is_input=True)

    assert said == f"{server.address} refuses a subscription to 't'"


async def test_a_filter_is_read_from_a_broker_whose_acl_has_patterns(tmp_path):
    """To that, an id with a wildcard in it would be somebody who may do nothing."""
    credential = {"username": "me", "password": "s3cret"}
    acl = "pattern readwrite %u/#"
    with Mosquitto(tmp_path, user="me", password="s3cret", acl=acl) as server:
        it = source(context(server, **credential), "me/+/#")
        async with subscribed(it) as reader, somebody(server, **credential) as client:
            await client.publish("me/a/b", b"1", 1)

            assert payloads(await arrived(reader, 1)) == [b"1"]


async def test_a_qos_that_is_not_granted_is_told(tmp_path):
    with Mosquitto(tmp_path, extra=["max_qos 1"]) as server:
        ctx = context(server)
        reader = source(ctx, "t", qos="exactly_once").read()
        await anext(reader)
        await reader.aclose()

    assert ctx.warnings == [f"{server.address} grants 't' with at_least_once at most"]


async def test_there_is_no_on_delivery_where_nothing_is_acknowledged(tmp_path):
    with Mosquitto(tmp_path, extra=["max_qos 0"]) as server:
        reader = source(context(server), "t", qos="at_least_once", ack="on_delivery").read()
        with pytest.raises(BuildRefused) as refused:
            await anext(reader)

    assert str(refused.value) == (
        f"{server.address} grants 't' with at_most_once at most, so there is nothing to"
        " acknowledge on_delivery"
    )


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

    async with await asyncio.start_server(talk, "127.0.0.1", 0, limit=1) as peer:
        it.port = peer.sockets[0].getsockname()[1]
        peer.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
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


CONNACK = b"\x20\x02\x00"
SUBACK = b"\x90\x03\x00\x01\x00"
CUT_OFF = "closed the connection: another client with the id 'headrace-p1-t' may have taken it over"


async def unreachable(server) -> str:
    """Return why a broker counts as not there."""
    watch = Stopwatch()
    reader = source(context(server), "t").read()
    with pytest.raises(Unreachable) as failed:
        await anext(reader)
    assert watch.seconds < 5
    return str(failed.value).replace(f"127.0.0.1:{server.port}", "HOST")


async def test_a_broker_that_is_busy_is_asked_again():
    async with saying(CONNACK + b"\x03") as peer:
        assert await unreachable(peer) == "HOST does not answer: server unavailable"


async def test_who_speaks_first_is_no_broker():
    async with saying(b"INFO {}\r\n" * 10, is_quick=True) as peer:
        assert await unreachable(peer) == f"HOST {NONSENSE}"


@pytest.mark.parametrize(
    "answer",
    [
        b"\x20\x00",
        b"\x20\x01\x00",
        b"\x20\x03\x00\x00\x00",
        CONNACK + b"\x06",
        CONNACK + b"\xff",
        b"\x20\xff\xff\xff\xff\xff",
        b"\x90\x03\x00\x01\x00",
        b"\x30\x04\x00\x01a1",
        b"\xd0\x00",
    ],
)
async def test_a_broker_begins_with_a_connack_as_it_is_written(answer):
    async with saying(answer) as peer:
        assert await unreachable(peer) == f"HOST {NONSENSE}"


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
        said = await outcome(context(peer), is_input=True)

    assert said == f"127.0.0.1:{peer.port} does not let the client in: {why}"


@pytest.mark.parametrize(
    "answer",
    [
        b"\x90\x00",
        b"\x90\x01\x00",
        b"\x90\x02\x00\x01",
        b"\x90\x03\xee\xee\x00",
        b"\x90\x03\x00\x01\x03",
        b"\x90\x03\x00\x01\x7f",
        b"\x90\x04\x00\x01\x00\x00",
        b"\xb0\x02\x00\x01",
    ],
)
async def test_a_subscription_is_confirmed_as_it_is_written(answer):
    async with saying(CONNACK + b"\x00", answer) as peer:
        assert await unreachable(peer) == f"HOST {NONSENSE}"


NOTHING_FOR_US = {
    "CONNECT": b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x05\x00\x01r",
    "a second CONNACK": CONNACK + b"\x00",
    "PUBLISH without a topic": b"\x30\x00",
    "PUBLISH with half a length": b"\x30\x01\x00",
    "PUBLISH with less than its topic": b"\x30\x04\xff\xff{}",
    "PUBLISH without a packet id": b"\x32\x03\x00\x01a",
    "PUBLISH with half a packet id": b"\x32\x04\x00\x01a\x00",
    "PUBLISH with the packet id 0": b"\x32\x07\x00\x01a\x00\x00{}",
    "PUBLISH with QoS 3": b"\x36\x07\x00\x01a\x00\x01{}",
    "PUBACK without a packet id": b"\x40\x00",
    "PUBACK with half a packet id": b"\x40\x01\x00",
    "PUBACK of what was not published": b"\x40\x02\x00\x07",
    "PUBREC without a packet id": b"\x50\x00",
    "PUBREC of what was not published": b"\x50\x02\x00\x07",
    "PUBREL without a packet id": b"\x62\x00",
    "PUBREL with half a packet id": b"\x62\x01\x00",
    "PUBCOMP without a packet id": b"\x70\x00",
    "PUBCOMP of what was not published": b"\x70\x02\x00\x07",
    "SUBACK of nothing": b"\x90\x03\x00\x01\x00",
    "UNSUBACK": b"\xb0\x02\x00\x01",
    "PINGREQ": b"\xc0\x00",
    "PINGRESP with something in it": b"\xd0\x01\x00",
    "DISCONNECT": b"\xe0\x00",
    "no packet": b"\x00\x00",
    "no packet either": b"\xf0\x00",
    "a length without end": b"\x30\xff\xff\xff\xff\x7f",
}


@pytest.mark.parametrize("nonsense", NOTHING_FOR_US.values(), ids=NOTHING_FOR_US)
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

    what = "announced a packet of more than 64 MiB" if mib > 64 else CUT_OFF
    assert str(lost.value).removeprefix(f"127.0.0.1:{peer.port} ") == what


FLOODS = {
    "PINGRESP": b"\xd0\x00",
    "PUBREL": b"\x62\x02\x00\x07",
    "PUBLISH": b"\x30\x03\x00\x01t",
}


@pytest.mark.parametrize("packet", FLOODS.values(), ids=FLOODS)
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_who_floods_it_with_small_packets_does_not_stop_the_others(packet, loop):
    async def longest_turn() -> float:
        async with saying(CONNACK + b"\x00", SUBACK + packet * 1_000_000) as peer:
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
    try:
        with asyncio.Runner(loop_factory=loop) as runner:
            assert runner.run(longest_turn()) < 1.0
    finally:
        gc.unfreeze()


async def test_who_takes_no_answers_is_not_listened_to():
    """It would have us keep the answers to all that it sends."""
    flood = SUBACK + b"\x62\x02\x00\x07" * 1_000_000
    async with saying(CONNACK + b"\x00", flood, stays=True) as peer:
        ctx = context(peer)
        link = Link(ctx.connection(MqttConnection, "bus").access(ctx), "us")
        link.on_message(lambda payload, origin: None)
        await link.open()
        link._pipe._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        await link.subscribe("t", 1)
        async with asyncio.timeout(PATIENCE):
            while not link.is_full:  # noqa: ASYNC110
                await asyncio.sleep(0)
        taken = []
        for _ in range(20):
            await asyncio.sleep(0)
            taken.append((len(link._pipe._news), link._pipe._at))
        await link.close()

    assert len({*taken[1:]}) == 1


async def test_two_that_have_one_client_id_are_told_so(mosquitto: Mosquitto):
    one = source(context(mosquitto), "double")
    other = source(context(mosquitto, host="localhost"), "double")
    async with subscribed(one) as reader, subscribed(other):
        with pytest.raises(Unreachable) as lost:
            await anext(reader)

    assert str(lost.value) == (
        f"{mosquitto.address} closed the connection: another client with the id"
        " 'headrace-p1-double' may have taken it over"
    )


async def test_a_broker_that_hangs_up_instead_of_an_answer_is_lost():
    async with saying(CONNACK + b"\x00", b"") as peer:
        assert await unreachable(peer) == f"HOST {CUT_OFF}"


async def test_a_broker_that_says_nothing_is_not_waited_for_long(mosquitto: Mosquitto):
    with halted(mosquitto):
        assert await unreachable(mosquitto) == "HOST does not answer: nothing came within 3 s"


async def test_a_broker_that_talks_tls_and_says_nothing_is_not_there(secured, authority):
    reader = source(context(secured, tls=True, ca_file=str(authority.ca_file)), "t").read()
    with halted(secured), pytest.raises(Unreachable) as failed:
        await anext(reader)

    assert str(failed.value) == f"{secured.address} does not answer: nothing came within 3 s"


@pytest.mark.parametrize("host", ["broker.invalid", "a..b", "a" * 64])
async def test_a_host_that_is_not_known_is_not_there(mosquitto: Mosquitto, host: str):
    ctx = context(mosquitto, host=host)
    with pytest.raises(Unreachable) as failed:
        await anext(source(ctx, "t").read())

    assert str(failed.value) == (
        f"{host}:{mosquitto.port} does not answer: the host name cannot be resolved"
    )


async def test_letting_go_of_a_broker_that_is_gone_takes_no_time(mosquitto: Mosquitto):
    it = source(context(mosquitto), "gone", qos="at_least_once", ack="on_delivery")
    reader, opened = it.read(), sink(context(mosquitto), "gone")
    await anext(reader)
    await opened.start()

    with halted(mosquitto):
        watch = Stopwatch()
        await asyncio.gather(reader.aclose(), opened.finish())
        assert watch.seconds < 2
    await it.forget()
