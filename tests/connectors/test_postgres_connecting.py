"""Getting into PostgreSQL: whoever is let in, whoever is refused and in which words, and how soon."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from headrace.compiler.errors import BuildRefused, Unreachable
from headrace.connectors.postgres.connection import Limits
from tests.clients import HOST
from tests.connected import started
from tests.doubles import StubContext
from tests.postgres_sides import column, context, done, found, operator, sink, unused
from tests.services.authority import Authority
from tests.services.postgres import Postgres
from tests.services.server import free_port
from tests.stopwatch import Stopwatch

ENVIRONMENT = {
    "PGSSLMODE": "verify-full",
    "PGSSLNEGOTIATION": "direct",
    "PGHOST": "192.0.2.1",
    "PGPORT": "1",
    "PGUSER": "nobody",
    "PGPASSWORD": "wr0ng",
    "PGDATABASE": "nowhere",
    "PGPASSFILE": "/nowhere",
    "PGSERVICE": "none",
    "PGTARGETSESSIONATTRS": "standby",
    "PGGSSLIB": "none",
    "PGOPTIONS": "-c work_mem=64kB",
    "PGAPPNAME": "somebody else",
}
"""What other clients of PostgreSQL would listen to, each of it wrong."""

SIGN_IN_SECONDS = 6.0
"""By when a pipeline is told that it is not let in."""


async def refused(ctx: StubContext) -> str:
    """Return in which words the build is refused, with which it is soon."""
    watch = Stopwatch()
    with pytest.raises(BuildRefused) as refusal:
        await sink(ctx, "t").start()
    assert watch.seconds < SIGN_IN_SECONDS
    assert (refusal.value.fault.code, refusal.value.fault.path) == ("turned-away", ("connection",))
    return str(refusal.value)


async def unreachable(ctx: StubContext, limits: Limits | None = None) -> str:
    """Return in which words the server is not reached, with which that is soon told."""
    watch = Stopwatch()
    with pytest.raises(Unreachable) as failed:
        await sink(ctx, "t", limits=limits).start()
    assert watch.seconds < SIGN_IN_SECONDS
    return str(failed.value)


@pytest.mark.long
async def test_a_wrong_password_refuses_the_build(postgres: Postgres):
    said = await refused(context(postgres, password="s3cret"))

    assert said == (
        f"""{postgres.address} says 'password authentication failed for user "postgres"'"""
    )


async def test_a_password_that_is_also_the_name_of_the_user_is_not_shown(postgres: Postgres):
    said = await refused(context(postgres, password="mallory", connection={"user": "mallory"}))

    assert (
        said
        == f"""{postgres.address} says 'password authentication failed for user "${{PASSWORD}}"'"""
    )


async def test_a_user_who_is_not_there_refuses_the_build(postgres: Postgres):
    said = await refused(context(postgres, connection={"user": "mallory"}))

    assert said == (
        f"""{postgres.address} says 'password authentication failed for user "mallory"'"""
    )


async def test_a_database_that_is_not_there_refuses_the_build(postgres: Postgres):
    said = await refused(context(postgres, connection={"database": "nowhere"}))

    assert said == f"""{postgres.address} says 'database "nowhere" does not exist'"""


async def test_a_user_who_may_not_connect_refuses_the_build(postgres: Postgres):
    await done(postgres, "create role resting nologin password 'open-sesame'")

    said = await refused(context(postgres, connection={"user": "resting"}))

    assert said == f"""{postgres.address} says 'role "resting" is not permitted to log in'"""


async def test_nothing_of_the_environment_counts(postgres: Postgres, monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    table = unused()

    async with started(sink(context(postgres, pipeline="mine"), table)) as it:
        await it.write([1])

        assert "headrace-mine" in await found(
            postgres, "select application_name from pg_stat_activity"
        )


async def test_a_session_keeps_its_time_in_utc_and_bounds_its_statements(tmp_path):
    with Postgres(tmp_path, extra=["timezone = 'Asia/Tokyo'"]) as server:
        await done(server, "create table t (payload jsonb, at text default localtimestamp::text)")
        await done(
            server,
            "create table now (payload jsonb, most text default current_setting('statement_timeout'))",
        )
        async with started(sink(server, "t")) as it, started(sink(server, "now")) as other:
            await it.write([1])
            await other.write([1])

        [is_near] = await found(
            server,
            "select abs(extract(epoch from now() at time zone 'UTC' - at::timestamp)) < 60 from t",
        )
        assert is_near
        assert await found(server, "select most from now") == ["25s"]


@pytest.mark.long
async def test_a_closer_bound_of_the_server_stays(tmp_path):
    with Postgres(tmp_path, extra=["statement_timeout = '7s'"]) as server:
        await done(
            server,
            "create table t (payload jsonb, most text default current_setting('statement_timeout'))",
        )
        async with started(sink(server, "t")) as it:
            await it.write([1])

        assert await found(server, "select most from t") == ["7s"]


async def test_nobody_there_is_unreachable():
    with_nobody = context_at(HOST, port := free_port())

    assert await unreachable(with_nobody) == f"{HOST}:{port} does not answer: connection refused"


async def test_a_host_without_an_address_is_unreachable():
    said = await unreachable(context_at("nowhere.invalid", 5432))
    long = await unreachable(context_at("x" * 64, 5432))

    assert said == "nowhere.invalid:5432 does not answer: the host name cannot be resolved"
    assert long.endswith("x:5432 does not answer: the host name cannot be resolved")


async def test_port_0_is_nobody_s(monkeypatch):
    monkeypatch.setenv("PGPORT", "5432")

    assert (await unreachable(context_at(HOST, 0))).startswith(f"{HOST}:0 does not answer: ")


async def test_an_address_of_version_6_is_told_with_its_brackets():
    said = await unreachable(context_at("::1", port := free_port()))

    assert said.startswith(f"[::1]:{port} does not answer: ")


@asynccontextmanager
async def stranger(says: bytes | None) -> AsyncIterator[tuple[str, int]]:
    """Give the address of somebody who says one thing and hangs up, or nothing and does not."""
    is_over = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4)
        if says is None:
            await reader.read()
        else:
            writer.write(says)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        is_over.set()

    server = await asyncio.start_server(answer, HOST)
    try:
        yield server.sockets[0].getsockname()
        await is_over.wait()
    finally:
        server.close()


async def test_a_server_that_says_nothing_is_unreachable():
    async with stranger(None) as (host, port):
        said = await unreachable(context_at(host, port), Limits(connect_seconds=0.2))

    assert said == f"{HOST}:{port} does not answer"


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"-ERR unknown command\r\n",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
    ],
    ids=["nobody", "redis", "http", "ssh"],
)
async def test_who_hangs_up_is_unreachable_whatever_it_says_before(sent: bytes):
    async with stranger(sent) as (host, port):
        said = await unreachable(context_at(host, port))

    assert said == f"{HOST}:{port} closed the connection"


async def test_a_server_that_wants_to_be_signed_in_to_otherwise_refuses_the_build():
    by_kerberos_5 = b"R" + (8).to_bytes(4) + (2).to_bytes(4)
    async with stranger(by_kerberos_5) as (host, port):
        said = await refused(context_at(host, port))

    assert said == (
        f"{HOST}:{port}: unsupported authentication method requested by the server: 'kerberosv5'"
    )


@pytest.mark.long
async def test_a_server_without_room_is_tried_again(tmp_path):
    with Postgres(
        tmp_path, extra=["max_connections = 4", "superuser_reserved_connections = 0"]
    ) as server:
        ctx = context(server)
        async with operator(server), operator(server), operator(server), operator(server):
            said = await unreachable(ctx)

    assert said == f"{server.address} says 'sorry, too many clients already'"


@pytest.fixture(scope="module")
def secured(authority: Authority, tmp_path_factory):
    """Give a server that lets nobody in without TLS."""
    with Postgres(tmp_path_factory.mktemp("secured"), tls=authority) as server:
        yield server


def secure(trusted: Authority, **options: Any) -> dict[str, Any]:
    """Return the options of a connection that trusts an authority."""
    return {"tls": True, "ca_file": str(trusted.ca_file), **options}


def shown(own: Authority) -> dict[str, str]:
    """Return the options of a connection that presents a certificate."""
    return {"cert_file": str(own.client_cert_file), "key_file": str(own.client_key_file)}


async def test_rows_are_written_over_tls(secured: Postgres, authority: Authority):
    async with started(sink(context(secured, connection=secure(authority)), "t")) as it:
        await it.write([1])

        query = "select ssl from pg_stat_ssl join pg_stat_activity using (pid)"
        own = f"{query} where application_name = 'headrace-p1'"
        assert await found(secured, own) == [True]


async def test_a_server_that_nobody_vouches_for_refuses_the_build(secured: Postgres, tmp_path):
    said = await refused(context(secured, connection=secure(Authority(tmp_path))))

    assert said == (
        f"the certificate of {secured.address} is not trusted:"
        " self-signed certificate in certificate chain"
    )


async def test_a_server_that_wants_tls_refuses_a_build_without(secured: Postgres):
    said = await refused(context(secured))

    assert said == (
        f"""{secured.address} says 'no pg_hba.conf entry for host "127.0.0.1", user "postgres","""
        """ database "postgres", no encryption'"""
    )


async def test_a_server_without_tls_refuses_a_build_that_wants_it(postgres, authority):
    said = await refused(context(postgres, connection=secure(authority)))

    assert said == f"{postgres.address} does not speak TLS"


@pytest.mark.long
async def test_a_server_may_ask_for_a_certificate(authority: Authority, tmp_path):
    stranger = Authority(tmp_path / "stranger")
    with Postgres(tmp_path / "mutual", tls=authority, mutual=True) as server:
        known = context(server, connection=secure(authority, **shown(authority)))
        async with started(sink(known, "t", [column("a", "text")])) as it:
            await it.write([{"a": "x"}])
        without = await refused(context(server, connection=secure(authority)))
        unknown = await refused(context(server, connection=secure(authority, **shown(stranger))))

    assert without == f"{server.address} says 'connection requires a valid client certificate'"
    assert unknown == f"{server.address} refuses the TLS handshake: TLSV1_ALERT_UNKNOWN_CA"


def context_at(host: str, port: int) -> StubContext:
    """Return a context whose connection leads somewhere."""
    nobody = Postgres.__new__(Postgres)
    nobody.port, nobody.password = port, "open-sesame"
    return context(nobody, connection={"host": host})
