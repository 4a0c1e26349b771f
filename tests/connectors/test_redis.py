"""The `redis` connection: its url, its TLS, and servers that say no to either side."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator

import pytest

from headrace.compiler.errors import BuildRefused, HeadraceError, Unreachable
from headrace.connectors.redis import RedisConnection, RedisUrl
from headrace.connectors.redis.connection import Limits
from tests.connected import started
from tests.doubles import StubContext, refusals
from tests.redis_sides import context, sink, source, subscribed
from tests.services.authority import Authority
from tests.services.redis import Redis
from tests.services.server import free_port
from tests.stopwatch import Stopwatch

NO_CHANNEL = "NOPERM this user has no permissions to access one of the channels used as arguments"
ENCODED = (
    "it is of another form (in a user or a password, write %2F for '/', %23 for '#', %40 for '@')"
)


# The url


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("redis://host", (False, "", "", "host", 6379, 0)),
        ("REDISS://host:1/", (True, "", "", "host", 1, 0)),
        ("redis://:p%40:s@host/3", (False, "", "p@:s", "host", 6379, 3)),
        ("redis://us%2Fer@[::1]:65535/15", (False, "us/er", "", "::1", 65535, 15)),
        ("redis://user:p@ss@10.0.0.1:6380", (False, "user", "p@ss", "10.0.0.1", 6380, 0)),
        ("redis://a,b:6379", (False, "", "", "a,b", 6379, 0)),
    ],
)
def test_a_url_is_read_as_the_driver_reads_it(text, told):
    assert RedisUrl.of(text) == RedisUrl(*told)
    assert "p@" not in repr(RedisUrl.of(text))


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "it does not begin with redis:// or rediss://"),
        ("host:6379", "it does not begin with redis:// or rediss://"),
        ("unix:///run/redis.sock", "it does not begin with redis:// or rediss://"),
        ("redis://", ENCODED),
        ("redis:///0", ENCODED),
        ("redis://host:port", ENCODED),
        ("redis://host:0", "its port is not a number from 1 to 65535"),
        ("redis://host:65536", "its port is not a number from 1 to 65535"),
        ("redis://host/zero", ENCODED),
        ("redis://host/0/1", ENCODED),
        ("redis://host#0", ENCODED),
        ("redis://:s3/cret@host", ENCODED),
        (
            "redis://host?ssl_cert_reqs=none",
            "it holds a '?', and a url sets no options (in a password, write %3F)",
        ),
    ],
)
def test_what_is_no_url_of_redis_is_told_without_any_of_it(text, wrong):
    with pytest.raises(ValueError, match=f"^the url is not one of Redis: {re.escape(wrong)}$"):
        RedisUrl.of(text)


def test_a_url_without_references_is_checked_where_it_stands():
    assert refusals(RedisConnection, {"url": "http://user:s3cret@host"}) == [
        "url: the url is not one of Redis: it does not begin with redis:// or rediss://"
    ]
    assert refusals(RedisConnection, {"url": "${SCHEME}://host"}) == []


async def test_a_url_that_resolves_to_none_refuses_the_component():
    ctx = context("redis://:s3/cret@host")

    for build in (source, sink):
        with pytest.raises(BuildRefused) as refused:
            build("", "c", ctx)

        assert refused.value.fault.code == "not-a-url"
        assert refused.value.fault.path == ("connection",)
        assert "s3" not in str(refused.value)


@pytest.mark.parametrize(
    ("options", "wants"),
    [
        ({"url": "redis://host"}, False),
        ({"url": "redis://${HOST}", "tls": True}, True),
        ({"url": "rediss://${HOST}"}, True),
        ({"url": "${URL}"}, None),
        ({"url": "${SCHEME}://host", "tls": True}, True),
    ],
)
def test_tls_is_the_scheme_or_the_option(options, wants):
    assert RedisConnection.load(options).wants_tls is wants


def test_a_file_for_tls_needs_tls():
    [told] = refusals(RedisConnection, {"url": "redis://host", "ca_file": "ca.pem"})

    assert told == "ca_file: 'ca_file' means nothing without TLS"
    assert refusals(RedisConnection, {"url": "rediss://host", "ca_file": "ca.pem"}) == []


async def test_a_file_for_tls_is_not_ignored_when_the_url_turns_out_to_be_without():
    with pytest.raises(BuildRefused) as refused:
        source("", "c", context("redis://host", tls={"ca_file": "ca.pem"}))

    assert str(refused.value) == "'ca_file' means nothing without TLS"


# Servers that say no, and servers that say nothing

BOTH = pytest.mark.parametrize("side", ["input", "output"])


async def reached(
    side: str, ctx: StubContext, limits: Limits | None = None
) -> HeadraceError | None:
    """Connect one side; return what it raises."""
    try:
        if side == "input":
            async with subscribed(source("", "orders", ctx, limits)):
                return None
        async with started(sink("", "orders", ctx, limits)):
            return None
    except HeadraceError as raised:
        return raised


async def turned_away(side: str, ctx: StubContext) -> str:
    """Return the text with which one side is refused, which takes no longer than a build waits."""
    watch = Stopwatch()
    raised = await reached(side, ctx)

    assert isinstance(raised, BuildRefused), raised
    assert raised.fault.code == "turned-away"
    assert raised.fault.path == ("connection",)
    assert "s3cret" not in str(raised)
    assert watch.seconds < 5
    return str(raised)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory) -> Iterator[Redis]:
    """Give a server that wants a password; `few` may do little elsewhere."""
    few = "user few on >s3cret resetchannels &elsewhere +publish +subscribe +multi +discard"
    folder = tmp_path_factory.mktemp("guarded")
    with Redis(folder, password="s3cret-one", extra=[few]) as server:
        yield server


@BOTH
async def test_a_right_password_is_let_in(side, guarded: Redis):
    assert await reached(side, context(guarded)) is None


@BOTH
async def test_a_user_without_a_password_is_let_in(side, tmp_path):
    with Redis(tmp_path, extra=["user default off", "user open on nopass ~* &* +@all"]) as server:
        assert await reached(side, context(f"redis://open@{server.address}")) is None


@BOTH
@pytest.mark.parametrize(
    ("credentials", "words"),
    [
        ("", "NOAUTH Authentication required."),
        (":s3cret-two@", "WRONGPASS invalid username-password pair or user is disabled."),
        ("nobody:s3cret@", "WRONGPASS invalid username-password pair or user is disabled."),
        ("few:s3cret@", NO_CHANNEL),
    ],
)
async def test_a_credential_is_refused_in_the_words_of_redis(side, credentials, words, guarded):
    text = await turned_away(side, context(f"redis://{credentials}{guarded.address}"))

    assert text == f"{guarded.address} says '{words}'"


@BOTH
async def test_a_password_that_nobody_asked_for_is_refused(side, redis_server: Redis):
    text = await turned_away(side, context(f"redis://:s3cret@{redis_server.address}"))

    assert text.startswith(f"{redis_server.address} says 'ERR AUTH <password> called without any")


@BOTH
async def test_a_database_that_is_not_there_is_refused(side, redis_server: Redis):
    text = await turned_away(side, context(f"{redis_server.url}/99"))

    assert text == f"{redis_server.address} says 'ERR DB index is out of range'"


@pytest.fixture(scope="module")
def secured(tmp_path_factory, authority: Authority) -> Iterator[Redis]:
    """Give a server that speaks TLS alone."""
    with Redis(tmp_path_factory.mktemp("secured"), tls=authority) as server:
        yield server


@BOTH
async def test_tls_to_a_server_that_is_trusted_works(side, secured: Redis, authority: Authority):
    trusting = {"ca_file": str(authority.ca_file)}
    assert await reached(side, context(secured, tls=trusting)) is None
    plain = context(f"redis://{secured.address}", tls={"tls": True, **trusting})
    assert await reached(side, plain) is None


@BOTH
async def test_a_certificate_of_an_unknown_authority_is_refused(side, secured: Redis, tmp_path):
    other = Authority(tmp_path)

    text = await turned_away(side, context(secured, tls={"ca_file": str(other.ca_file)}))

    assert text.startswith(f"the certificate of {secured.address} is not trusted: ")


@BOTH
async def test_plaintext_to_a_server_with_tls_is_refused(side, secured: Redis):
    text = await turned_away(side, context(f"redis://:s3cret@{secured.address}"))

    assert text == f"{secured.address} speaks TLS, and the connection does not"


@pytest.mark.long
@BOTH
async def test_tls_to_a_server_without_is_refused(side, redis_server: Redis):
    text = await turned_away(side, context(f"rediss://:s3cret@{redis_server.address}"))

    assert text == f"{redis_server.address} does not speak TLS"


@BOTH
async def test_a_server_that_wants_a_certificate_is_shown_one(side, tmp_path, authority: Authority):
    trusting = {"ca_file": str(authority.ca_file)}
    own = {
        "cert_file": str(authority.client_cert_file),
        "key_file": str(authority.client_key_file),
    }
    with Redis(tmp_path, tls=authority, mutual=True) as server:
        assert await reached(side, context(server, tls=trusting | own)) is None
        text = await turned_away(side, context(server, tls=trusting))

    assert text.startswith(f"{server.address} refuses the TLS handshake: ")
    assert text.endswith("ask for a certificate that it trusts")


@BOTH
async def test_a_server_that_is_not_there_is_no_refusal(side):
    raised = await reached(side, context(f"redis://127.0.0.1:{(port := free_port())}"))

    assert isinstance(raised, Unreachable)
    assert str(raised) == f"127.0.0.1:{port} does not answer: connection refused"


@BOTH
@pytest.mark.parametrize("host", ["nowhere.invalid", "no..where"])
async def test_a_host_that_is_not_known_is_no_refusal(side, host):
    raised = await reached(side, context(f"redis://{host}"))

    assert isinstance(raised, Unreachable)
    assert str(raised) == f"{host}:6379 does not answer: the host name cannot be resolved"


@BOTH
async def test_a_server_that_is_full_is_no_refusal(side, tmp_path, authority: Authority):
    trusting = {"ca_file": str(authority.ca_file)}
    with Redis(tmp_path, tls=authority, extra=["maxclients 1"]) as server:
        async with subscribed(source("", "first", context(server, tls=trusting))):
            raised = await reached(side, context(server, tls=trusting))

    # Its reason is lost when it has hung up before it is asked anything.
    reasons = (
        "says 'ERR max number of clients reached'",
        "closed the connection",
        "does not answer",
    )
    assert isinstance(raised, Unreachable), raised
    assert str(raised).startswith(tuple(f"{server.address} {reason}" for reason in reasons))


@pytest.mark.long
@BOTH
@pytest.mark.parametrize("scheme", ["redis", "rediss"])
async def test_a_server_that_hangs_is_no_refusal(side, scheme, tmp_path):
    limits = Limits(reach_seconds=0.1)
    with Redis(tmp_path) as server, server.halted():
        raised = await reached(side, context(f"{scheme}://{server.address}"), limits)

    assert isinstance(raised, Unreachable), raised
    assert str(raised) == f"{server.address} does not answer"


@pytest.mark.parametrize("scheme", ["redis", "rediss"])
async def test_who_hangs_up_at_once_is_no_refusal(scheme):
    async def hangs_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hangs_up, "127.0.0.1", 0) as proxy:
        where = "{}:{}".format(*proxy.sockets[0].getsockname())
        raised = await reached("input", context(f"{scheme}://{where}"))

    assert isinstance(raised, Unreachable), raised
    assert str(raised).startswith(f"{where} ")


async def test_what_keeps_everybody_out_for_a_while_is_told_in_the_words_of_the_server():
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"-ERR max number of clients reached\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as full:
        where = "{}:{}".format(*full.sockets[0].getsockname())
        raised = await reached("input", context(f"redis://{where}"))

    assert isinstance(raised, Unreachable)
    assert str(raised) == f"{where} says 'ERR max number of clients reached'"


async def test_of_an_endless_complaint_only_the_beginning_is_told():
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"-ERR " + b"x" * 100_000 + b"\r\n" + b"-ERR y\r\n" * 3)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as other:
        where = "{}:{}".format(*other.sockets[0].getsockname())
        text = await turned_away("input", context(f"redis://:pass@{where}"))

    assert text == f"{where} says 'ERR {'x' * 496}...'"


async def test_who_speaks_something_else_is_a_refusal():
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as other:
        where = "{}:{}".format(*other.sockets[0].getsockname())
        text = await turned_away("input", context(f"redis://{where}"))

    assert text == f"{where} answers, and not as Redis does"
