"""The PostgreSQL of the tests, asked by its client."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.services.authority import Authority
from tests.services.postgres import Postgres


async def asked(server: Postgres, question: str = "select 1", **options: Any) -> Any:
    """Connect and ask something."""
    client = await asyncpg.connect(server.url, **{"ssl": False} | options)
    try:
        return await client.fetchval(question)
    finally:
        await client.close()


@pytest.mark.long
async def test_a_row_survives_a_killed_server(tmp_path: Path) -> None:
    with Postgres(tmp_path) as server:
        client = await asyncpg.connect(server.url, ssl=False)
        await client.execute("create table kept as select 7 as n")

        server.kill()
        server.start()

        assert await asked(server, "select n from kept") == 7
        client.terminate()


@pytest.mark.long
async def test_it_ends_in_order_while_somebody_is_connected(tmp_path: Path) -> None:
    with Postgres(tmp_path) as server:
        client = await asyncpg.connect(server.url, ssl=False)

        server.restart()

        assert await asked(server) == 1
        client.terminate()


@pytest.mark.long
async def test_whoever_knows_the_password_gets_in(tmp_path: Path) -> None:
    with Postgres(tmp_path, password="abracadabra") as server:
        assert await asked(server) == 1
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asked(server, password="open-sesame")


@pytest.mark.long
async def test_tls_is_for_whoever_trusts_the_authority(
    authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "stranger")
    with Postgres(tmp_path / "postgres", tls=authority) as server:
        assert await asked(server, ssl=trusting(authority)) == 1
        with pytest.raises(ssl.SSLCertVerificationError):
            await asked(server, ssl=trusting(stranger))
        with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError):
            await asked(server)


@pytest.mark.long
async def test_mutual_tls_wants_a_certificate_of_the_authority(
    authority: Authority, tmp_path: Path
) -> None:
    with Postgres(tmp_path, tls=authority, mutual=True) as server:
        assert await asked(server, ssl=server.trusting()) == 1
        with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError):
            await asked(server, ssl=trusting(authority))


@pytest.mark.long
async def test_lines_of_its_config_are_taken(tmp_path: Path) -> None:
    with Postgres(tmp_path, extra=["work_mem = 7MB"]) as server:
        assert await asked(server, "show work_mem") == "7MB"


def trusting(authority: Authority) -> ssl.SSLContext:
    """Return the context of a client that trusts one authority."""
    return ssl.create_default_context(cafile=authority.ca_file)
