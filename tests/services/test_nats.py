"""The NATS of the tests, asked by its client."""

from __future__ import annotations

import asyncio
import gc
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.errors import Error

from tests.clients import PATIENCE
from tests.services.authority import Authority
from tests.services.nats import Nats

# The driver leaves the socket of a refused connection to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Have it collected before the next test, which might not expect it."""
    yield
    gc.collect()


async def asked(url: str, **options: Any) -> bool:
    """Connect and ask for a sign of life, once."""
    once = {"allow_reconnect": False, "max_reconnect_attempts": 1, "error_cb": unheard}
    async with asyncio.timeout(PATIENCE):
        client = await nats.connect(url, **once, **options)
        await client.flush()
        await client.close()
    return True


async def unheard(_: Exception) -> None:
    """Take what would be logged; it is raised as well."""


def trusting(authority: Authority, own: Authority | None = None) -> ssl.SSLContext:
    """Return the context of a client that trusts one authority and has the certificate of one."""
    context = ssl.create_default_context(cafile=authority.ca_file)
    if own is not None:
        context.load_cert_chain(own.client_cert_file, own.client_key_file)
    return context


async def test_a_stream_survives_a_killed_server(tmp_path: Path) -> None:
    with Nats(tmp_path) as server:
        client = await nats.connect(server.url)
        await client.jetstream().add_stream(name="kept", subjects=["kept"])
        await client.jetstream().publish("kept", b"a")
        await client.close()

        server.kill()
        server.restart()

        client = await nats.connect(server.url)
        reader = await client.jetstream().subscribe("kept")
        assert (await reader.next_msg()).data == b"a"
        await client.close()


async def test_a_user_gets_in_and_nobody_else(tmp_path: Path) -> None:
    with Nats(tmp_path, user="alice", password="open-sesame") as server:
        assert await asked(server.url)
        for url in (f"nats://{server.address}", f"nats://alice:wrong@{server.address}"):
            with pytest.raises(Error):
                await asked(url)


async def test_whoever_has_the_token_gets_in(tmp_path: Path) -> None:
    with Nats(tmp_path, token="open-sesame") as server:
        assert await asked(server.url)
        for url in (f"nats://{server.address}", f"nats://wrong@{server.address}"):
            with pytest.raises(Error):
                await asked(url)


async def test_tls_is_for_whoever_trusts_the_authority(
    authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "stranger")
    with Nats(tmp_path / "nats", tls=authority) as server:
        assert await asked(server.url, tls=trusting(authority))
        with pytest.raises((Error, OSError)):
            await asked(server.url, tls=trusting(stranger))


async def test_mutual_tls_wants_a_certificate_of_the_authority(
    authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "stranger")
    with Nats(tmp_path / "nats", tls=authority, mutual=True) as server:
        assert await asked(server.url, tls=trusting(authority, authority))
        for context in (trusting(authority), trusting(authority, stranger)):
            with pytest.raises((Error, OSError)):
                await asked(server.url, tls=context)


async def test_lines_of_its_config_are_taken(tmp_path: Path) -> None:
    with Nats(tmp_path, extra=["max_payload: 65536"]) as server:
        client = await nats.connect(server.url)
        assert client.max_payload == 65536
        await client.close()
