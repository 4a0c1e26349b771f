"""The `nats` connection: what urls say, and what becomes of a connection, against real servers."""

from __future__ import annotations

import asyncio
import logging

import pytest

from headrace.compiler.errors import BuildRefused, Unreachable
from headrace.compiler.text.diagnostics import Fault
from headrace.connectors.nats import NatsConnection, NatsServer, servers_in
from headrace.connectors.nats.connection import Limits
from tests.connected import subscribed
from tests.doubles import StubContext, refusals
from tests.nats_sides import context, listening, peer, sink, source
from tests.services.authority import Authority
from tests.services.nats import Nats
from tests.stopwatch import Stopwatch

PASSWORD = "p@ss/w:rd, 100%"
NO_TLS = "does not ask for TLS, and the connection is not made without"
ENCODED = "p%40ss%2Fw%3Ard%2C%20100%25"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    with Nats(tmp_path_factory.mktemp("guarded"), user="press", password=PASSWORD) as server:
        yield server


@pytest.fixture(scope="module")
def tokened(tmp_path_factory):
    with Nats(tmp_path_factory.mktemp("tokened"), token="t0ken/of:mine") as server:
        yield server


@pytest.fixture(scope="module")
def secure(tmp_path_factory, authority):
    with Nats(tmp_path_factory.mktemp("secure"), tls=authority) as server:
        yield server


@pytest.fixture(scope="module")
def mutual(tmp_path_factory, authority):
    with Nats(tmp_path_factory.mktemp("mutual"), tls=authority, mutual=True) as server:
        yield server


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """Give an authority that nobody has heard of."""
    return Authority(tmp_path_factory.mktemp("other"))


def trusting(authority, *, presents=None):
    """Return the options of a connection that trusts an authority."""
    files = {"ca_file": str(authority.ca_file)}
    if presents is not None:
        files["cert_file"] = str(presents.client_cert_file)
        files["key_file"] = str(presents.client_key_file)
    return files


async def refusal(urls, **options):
    """Return why a connection is refused, within the time that there is for it."""
    watch = Stopwatch()
    with pytest.raises(BuildRefused) as refused:
        async with sink(context(urls, **options), "a"):
            pass
    assert watch.seconds < 5
    assert refused.value.fault.path == ("connection",)
    return refused.value.fault


async def silence(urls, limits=None):
    """Return how it is told that nobody answers."""
    with pytest.raises(Unreachable) as told:
        async with sink(context(urls), "a", limits):
            pass
    return str(told.value)


async def works(urls, **options):
    """Write over a connection and read what was written."""
    ctx = context(urls, **options)
    async with subscribed(source(ctx, "both.ways")) as reader, sink(ctx, "both.ways") as output:
        await output.write([{"n": 1}])
        [(payload, _)] = await anext(reader)
    assert (payload, ctx.failures, ctx.warnings) == (b'{"n":1}', [], [])
    return True


@pytest.mark.parametrize(
    ("urls", "servers"),
    [
        ("nats://host", [NatsServer("host", 4222, False)]),
        ("host", [NatsServer("host", 4222, False)]),
        ("host:1234/", [NatsServer("host", 1234, False)]),
        ("TLS://host:1", [NatsServer("host", 1, True)]),
        ("nats://[::1]:5", [NatsServer("::1", 5, False)]),
        ("nats://u:p@host", [NatsServer("host", 4222, False, "u", "p")]),
        ("nats://u:@host", [NatsServer("host", 4222, False, "u", "")]),
        (f"u%20v:{ENCODED}@host", [NatsServer("host", 4222, False, "u v", PASSWORD)]),
        ("nats://u:p@ss@host", [NatsServer("host", 4222, False, "u", "p@ss")]),
        ("nats://to%3Aken@host", [NatsServer("host", 4222, False, token="to:ken")]),
        (
            "nats://a:1 , tls://x@b,c",
            [
                NatsServer("a", 1, False),
                NatsServer("b", 4222, True, token="x"),
                NatsServer("c", 4222, False),
            ],
        ),
    ],
)
def test_urls_name_servers_and_who_we_are_there(urls, servers):
    assert servers_in(urls, tls=False) == servers


def test_with_tls_every_server_is_reached_over_it():
    assert servers_in("a,tls://b", tls=True) == [
        NatsServer("a", 4222, True),
        NatsServer("b", 4222, True),
    ]


@pytest.mark.parametrize(
    ("urls", "objection"),
    [
        ("", "this is no url of a NATS server: it names no host"),
        ("a,", "url 2 of 2 is no url of a NATS server: it names no host"),
        ("http://s3cret", "this is no url of a NATS server: its scheme is neither nats nor tls"),
        ("nats://u:s3cret@", "this is no url of a NATS server: it names no host"),
        (
            "u:s3cret@h:0",
            "this is no url of a NATS server: its port is not a number from 1 to 65535",
        ),
        ("u:s3cret@h:99999", "this is no url of a NATS server: its host or its port is malformed"),
        ("u:s3cret@h:x", "this is no url of a NATS server: its host or its port is malformed"),
        ("u:s3cret@[::1", "this is no url of a NATS server: its host or its port is malformed"),
        ("u:s3cret@a b", "this is no url of a NATS server: its host or its port is malformed"),
        ("u:s3cret@h/x", "this is no url of a NATS server: nothing may follow the port"),
        ("a,u:s3cret@h?x,c", "url 2 of 3 is no url of a NATS server: nothing may follow the port"),
    ],
)
def test_urls_that_name_no_server_are_refused_and_not_quoted(urls, objection):
    found = servers_in(urls, tls=False)

    assert isinstance(found, Fault)
    assert (found.code, found.message, found.found) == ("not-a-url", objection, None)
    assert refusals(NatsConnection, {"urls": urls}) == [f"urls: {objection}"]


async def test_urls_that_only_a_reference_tells_are_refused_when_they_are_read():
    connection = NatsConnection.load({"urls": "${URLS}"})
    ctx = StubContext(connections={"bus": connection}, secrets={"URLS": "ws://u:s3cret@h"})

    with pytest.raises(BuildRefused, match="scheme is neither nats nor tls") as refused:
        source(ctx, "a")

    assert refused.value.fault.path == ("connection",)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"urls": "nats://a,b"}, False),
        ({"urls": "nats://a,tls://b"}, True),
        ({"urls": "a", "tls": True}, True),
        ({"urls": "nats://${USER}:${PASSWORD}@a"}, False),
        ({"urls": "tls://${TOKEN}@a"}, True),
        ({"urls": "${URLS}"}, None),
        ({"urls": "${USER}:${PASSWORD}@a"}, None),
    ],
)
def test_whether_tls_is_wanted_shows_unless_a_reference_hides_the_scheme(options, wanted):
    assert NatsConnection.load(options).wants_tls is wanted


async def test_files_for_tls_are_refused_when_a_reference_turns_out_to_be_without():
    connection = NatsConnection.load({"urls": "${URLS}", "ca_file": "ca.pem"})
    ctx = StubContext(connections={"bus": connection}, secrets={"URLS": "nats://h"})

    with pytest.raises(
        BuildRefused, match="the files for TLS mean nothing to a connection without"
    ):
        source(ctx, "a")


async def test_the_scheme_and_the_port_may_be_left_to_their_defaults(nats_server):
    assert await works(nats_server.address)


async def test_a_user_signs_in_with_a_password_of_any_characters(guarded):
    assert await works(f"nats://press:{ENCODED}@{guarded.address}")


async def test_a_token_signs_in(tokened):
    assert await works(f"nats://t0ken%2Fof%3Amine@{tokened.address}")


@pytest.mark.parametrize("credentials", ["press:wrong@", "nobody:wrong@", "wrong@", ""])
async def test_a_wrong_or_missing_credential_is_refused_with_the_words_of_the_server(
    guarded, tokened, credentials, caplog
):
    for server in (guarded, tokened):
        fault = await refusal(f"nats://{credentials}{server.address}")

        assert fault.code == "turned-away"
        assert fault.message == (
            f"{server.address} turns the connection away: Authorization Violation"
        )
    assert caplog.records == []


async def test_an_input_is_refused_as_an_output_is(guarded):
    with pytest.raises(BuildRefused, match="Authorization Violation"):
        await anext(source(context(guarded.address), "a").read())


async def test_tls_works_by_scheme_and_by_option(secure, authority, caplog):
    caplog.set_level(logging.WARNING)

    assert await works(f"tls://{secure.address}", **trusting(authority))
    assert await works(secure.address, tls=True, **trusting(authority))

    assert drivers(caplog) == []


async def test_a_server_with_tls_that_dies_is_nothing_to_log(tmp_path, authority, caplog):
    caplog.set_level(logging.WARNING)
    with Nats(tmp_path, tls=authority) as server:
        ctx = context(server, **trusting(authority))
        async with subscribed(source(ctx, "a")) as reader:
            server.kill()
            with pytest.raises(Unreachable, match="lost the connection"):
                await anext(reader)

    assert drivers(caplog) == []


def drivers(caplog):
    """Return what was logged, without what only asyncio's own loop says of TLS that ends."""
    return [entry for entry in caplog.records if "eof_received" not in entry.getMessage()]


async def test_a_certificate_by_another_authority_is_refused(secure, other):
    fault = await refusal(secure, **trusting(other))

    assert fault.message == (
        f"the certificate of {secure.address} is not trusted: unable to get local issuer certificate"
    )


async def test_without_tls_a_server_that_asks_for_it_is_refused(secure):
    fault = await refusal(f"nats://{secure.address}")

    assert fault.message == f"{secure.address} asks for TLS, and the connection is without"


@pytest.mark.parametrize("credentials", ["user:password@", "token@", ""])
async def test_with_tls_nothing_is_told_to_a_server_without(credentials):
    heard = bytearray()

    async def plain(reader, writer):
        writer.write(b'INFO {"max_payload":1048576,"auth_required":true}\r\n')
        heard.extend(await reader.read())

    async with listening(plain) as where:
        fault = await refusal(f"tls://{credentials}{where}")

    assert fault.message == f"{where} {NO_TLS}"
    assert heard == b""


async def test_with_tls_a_plain_server_is_refused(nats_server):
    fault = await refusal(f"tls://{nats_server.address}")

    assert fault.message == f"{nats_server.address} {NO_TLS}"


async def test_a_server_that_leaves_the_choice_is_reached_without_tls_alone(tmp_path, authority):
    tls = f'tls {{ cert_file: "{authority.server_cert_file}", key_file: "{authority.server_key_file}" }}'

    with Nats(tmp_path, extra=[tls, "allow_non_tls: true"]) as server:
        assert await works(f"nats://{server.address}")
        fault = await refusal(f"tls://{server.address}", **trusting(authority))

    assert fault.message == f"{server.address} {NO_TLS}"


async def test_a_client_certificate_that_the_server_trusts_lets_in(mutual, authority):
    assert await works(mutual.url, **trusting(authority, presents=authority))


@pytest.mark.parametrize("presents", [None, "other"])
async def test_without_a_certificate_that_the_server_trusts_it_is_refused(
    mutual, authority, other, presents
):
    shown = other if presents else None

    fault = await refusal(mutual, **trusting(authority, presents=shown))

    assert fault.message.startswith(
        # Which of them is a race that the driver does not decide.
        (
            f"{mutual.address} hangs up after the TLS handshake: it may ask for a certificate",
            f"{mutual.address} refuses the TLS handshake: ",
        )
    )


async def test_nobody_at_the_port_is_told_with_host_and_port(caplog):
    assert await silence("nats://u:s3cret@127.0.0.1:1") == (
        "127.0.0.1:1 does not answer: connection refused"
    )
    assert await silence("localhost:1,127.0.0.1:1") == (
        "localhost:1 does not answer: connection refused;"
        " 127.0.0.1:1 does not answer: connection refused"
    )
    assert await silence("nowhere.invalid") == (
        "nowhere.invalid:4222 does not answer: the host name cannot be resolved"
    )
    assert (
        await silence("no..where")
        == "no..where:4222 does not answer: the host name cannot be resolved"
    )
    assert caplog.records == []


async def test_somebody_else_at_the_port_is_told():
    limits = Limits(connect_seconds=0.2)

    async def mute(reader, writer):
        await reader.read()

    async def hasty(reader, writer):
        pass

    async def chatty(reader, writer):
        writer.write(b"220 mail.example.org\r\n")

    async def leaving(reader, writer):
        writer.write(b'INFO {"max_payload":1048576}\r\n')
        await reader.readline()

    async def full(reader, writer):
        writer.write(b'INFO {"max_payload":1048576}\r\n')
        await reader.readline()
        writer.write(b"-ERR 'maximum connections exceeded'\r\n")

    told = []
    for serve in (mute, hasty, chatty, leaving, full):
        async with listening(serve) as where:
            told.append((await silence(where, limits)).replace(where, "it"))

    assert told == [
        "it does not answer: nothing within 0.2 s",
        "it does not answer as a NATS server does",
        "it does not answer as a NATS server does",
        "it does not answer: it hung up",
        "it does not take the connection: maximum connections exceeded",
    ]


@pytest.mark.parametrize(
    "said",
    [
        b'INFO {"connect_urls":5}',
        b"INFO " + b"x" * 70_000,
        b'INFO {"connect_urls":["[::1"]}',
        b"INFO {}\r\n-ERR '\xff'",
    ],
    ids=lambda said: said[:24].decode(errors="replace"),
)
async def test_nonsense_at_the_port_is_told_in_our_words(said):
    async def odd(reader, writer):
        writer.write(said + b"\r\n")
        await reader.read()

    async with listening(odd) as where:
        assert await silence(where) == f"{where} does not answer as a NATS server does"


async def test_of_several_servers_the_next_one_is_used(nats_server, guarded):
    assert await works(f"127.0.0.1:1,{guarded.address},{nats_server.address}")


async def test_that_a_server_was_passed_over_does_not_end_the_subscription_at_the_next(
    nats_server, guarded
):
    urls = f"127.0.0.1:1,{guarded.address},{nats_server.address}"
    async with subscribed(source(context(urls), "next.one")) as reader, peer(nats_server) as other:
        for number in range(2):
            reading = asyncio.ensure_future(anext(reader))
            await other.settle()  # it waits, with nothing there
            other.publish("next.one", number)
            [(payload, _)] = await reading
            assert payload == b"%d" % number


async def test_a_refusal_by_one_of_several_outweighs_the_silence_of_the_others(guarded):
    fault = await refusal(f"127.0.0.1:1,{guarded.address}")

    assert fault.message == f"{guarded.address} turns the connection away: Authorization Violation"
