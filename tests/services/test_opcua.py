"""The OPC UA servers of the tests, asked by the client of asyncua."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from asyncua import Client, ua

from tests.services import node_packages
from tests.services.opcua import NodeOpcua, Opcua
from tests.services.programs import Missing


@pytest.mark.long
async def test_a_server_does_what_it_is_told(opcua_server: Opcua) -> None:
    opcua_server.tell("add('Told', 1.5)")
    opcua_server.tell("write('Told', 2.5)")

    async with Client(opcua_server.url) as client:
        assert await client.get_node("ns=2;s=Told").read_value() == 2.5


@pytest.mark.long
async def test_a_user_gets_in_and_nobody_else(tmp_path: Path) -> None:
    with Opcua(tmp_path, users={"alice": "open-sesame"}) as server:
        for password in ("open-sesame", "wrong"):
            client = Client(server.url)
            client.set_user("alice")
            client.set_password(password)
            if password == "wrong":
                with pytest.raises(ua.UaError):
                    await client.connect()
            else:
                await client.connect()
                await client.disconnect()


@pytest.mark.long
def test_a_server_comes_back_at_its_address(tmp_path: Path) -> None:
    with Opcua(tmp_path) as server:
        server.tell("add('Gone', 1)")
        server.kill()
        assert not server.is_running

        server.start()
        assert server.answers()
        assert server.tell("plant.added") == ["Speed", "Temp", "Deep"]


@pytest.mark.long
async def test_the_other_server_has_numbers_that_grow(tmp_path: Path) -> None:
    with NodeOpcua(tmp_path) as server:
        async with Client(server.url) as client:
            assert await client.get_node("ns=1;s=Ramp").read_value() >= 20


def test_a_machine_without_node_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    with pytest.raises(Missing, match=r"install Node.js 18 or newer"):
        NodeOpcua(tmp_path).start()
    with pytest.raises(Missing, match=r"install Node.js 18 or newer, with npm"):
        node_packages.modules("node-opcua")
