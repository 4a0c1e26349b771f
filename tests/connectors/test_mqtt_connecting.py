"""Getting into an MQTT broker: who is let in, who is told why not, and that nobody waits for long."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import uvloop

from headrace.compiler.errors import BuildRefused, Unreachable
from tests.connected import subscribed
from tests.mqtt_sides import arrived, context, payloads, sink, somebody, source, unreachable
from tests.promises import promise
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


@promise("delivery.refused.qos")
async def test_there_is_no_on_delivery_where_nothing_is_acknowledged(tmp_path):
    with Mosquitto(tmp_path, extra=["max_qos 0"]) as server:
        reader = source(context(server), "t", qos="at_least_once", ack="on_delivery").read()
        with pytest.raises(BuildRefused) as refused:
            await anext(reader)

    assert str(refused.value) == (
        f"{server.address} grants 't' with at_most_once at most, so there is nothing to"
        " acknowledge later"
    )


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


@pytest.mark.long
async def test_a_broker_that_says_nothing_is_not_waited_for_long(mosquitto: Mosquitto):
    with mosquitto.halted():
        assert await unreachable(mosquitto) == "HOST does not answer: nothing came within 3 s"


@pytest.mark.long
async def test_a_broker_that_talks_tls_and_says_nothing_is_not_there(secured, authority):
    reader = source(context(secured, tls=True, ca_file=str(authority.ca_file)), "t").read()
    with secured.halted(), pytest.raises(Unreachable) as failed:
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

    with mosquitto.halted():
        watch = Stopwatch()
        await asyncio.gather(reader.aclose(), opened.finish())
        assert watch.seconds < 2
    await it.forget()
