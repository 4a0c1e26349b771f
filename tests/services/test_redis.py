"""The Redis of the tests, asked by its client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis as Client
from redis.exceptions import AuthenticationError, ConnectionError

from tests.services.authority import Authority
from tests.services.redis import Redis


async def asked(url: str, **options: Any) -> Any:
    """Connect and ask for a sign of life."""
    async with Client.from_url(url, **options) as client:
        return await client.ping()


async def test_a_value_survives_a_killed_server(tmp_path: Path) -> None:
    with Redis(tmp_path) as server:
        async with Client.from_url(server.url) as client:
            await client.set("kept", "a")

        server.kill()
        server.restart()

        async with Client.from_url(server.url) as client:
            assert await client.get("kept") == b"a"


async def test_whoever_knows_the_password_gets_in(tmp_path: Path) -> None:
    with Redis(tmp_path, password="open-sesame") as server:
        assert await asked(server.url)
        assert await asked(f"redis://:open-sesame@{server.address}")
        for url in (f"redis://{server.address}", f"redis://:wrong@{server.address}"):
            with pytest.raises(AuthenticationError):
                await asked(url)


async def test_a_user_gets_in_and_nobody_else(tmp_path: Path) -> None:
    with Redis(tmp_path, user="alice", password="open-sesame") as server:
        assert await asked(server.url)
        for url in (f"redis://{server.address}", f"redis://:open-sesame@{server.address}"):
            with pytest.raises(AuthenticationError):
                await asked(url)


async def test_tls_is_for_whoever_trusts_the_authority(
    authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "stranger")
    with Redis(tmp_path / "redis", tls=authority) as server:
        assert await asked(server.url, ssl_ca_certs=str(authority.ca_file))
        with pytest.raises(ConnectionError, match="CERTIFICATE_VERIFY_FAILED"):
            await asked(server.url, ssl_ca_certs=str(stranger.ca_file))
        with pytest.raises(ConnectionError):
            await asked(f"redis://{server.address}")


async def test_mutual_tls_wants_a_certificate_of_the_authority(
    authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "stranger")
    with Redis(tmp_path / "redis", tls=authority, mutual=True) as server:
        assert await asked(server.url, **shown(authority, authority))
        for options in ({"ssl_ca_certs": str(authority.ca_file)}, shown(authority, stranger)):
            with pytest.raises(ConnectionError):
                await asked(server.url, **options)


async def test_lines_of_its_config_are_taken(tmp_path: Path) -> None:
    with Redis(tmp_path, extra=["maxclients 17"]) as server:
        async with Client.from_url(server.url) as client:
            assert await client.config_get("maxclients") == {"maxclients": "17"}


def shown(trusted: Authority, own: Authority) -> dict[str, str]:
    """Return the options of a client that trusts one authority and has the certificate of one."""
    return {
        "ssl_ca_certs": str(trusted.ca_file),
        "ssl_certfile": str(own.client_cert_file),
        "ssl_keyfile": str(own.client_key_file),
    }
