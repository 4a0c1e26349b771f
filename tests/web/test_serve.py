"""The order in which a server begins and ends, as far as it shows without a process."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.compiler.errors import Refused
from headrace.compiler.language.catalogue import Catalogue
from headrace.web import serve
from headrace.web.reading import Files, load
from headrace.web.signin.doors import Guarded
from tests.web.signin.people import Issued, guarded


async def test_a_config_that_a_build_refuses_leaves_nothing_open_to_the_provider(
    tmp_path: Path, components: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("URL", "no address")
    config = tmp_path / "plant.json"
    reading = {"type": "redis", "connection": "r", "channel": "a"}
    config.write_text(json.dumps([{"id": "p", "inputs": [reading]}]))
    filed = {"r": {"type": "redis", "url": "${URL}"}}
    (tmp_path / "plant.connections.json").write_text(json.dumps(filed))
    loaded = load(Files(config=config), components, is_starting=True)
    assert loaded.program is not None, loaded.diagnostics
    assert not loaded.is_refused
    tokens = Issued({})

    async def opened(settings: Any, secrets: Any, clock: Any) -> Guarded:
        return guarded(clock, tokens=tokens)

    monkeypatch.setattr(serve, "opened", opened)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        starting = serve._run(loaded, loaded.program, components, listener, None, cast(Any, None))
        with pytest.raises(Refused):
            async with asyncio.timeout(10):
                await starting

    assert tokens.is_closed
