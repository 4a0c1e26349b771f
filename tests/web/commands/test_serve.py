"""The order in which a server begins and ends, as far as it shows without a process."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import socket
from pathlib import Path
from time import time
from typing import Any, cast

import falcon.testing
import pytest

from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.datadir import DataDir
from headrace.compiler.errors import Refused
from headrace.compiler.runtime.storage import FOLDER
from headrace.compiler.store.folder import StoreFolder
from headrace.compiler.store.openqueues import OpenQueues
from headrace.compiler.store.storedrows import StoredQueue
from headrace.compiler.store.storeerrors import StoreFailed
from headrace.web.auth.accountauth import Authentication
from headrace.web.commands import serve
from headrace.web.commands.serve import StartReport
from headrace.web.files.reading import Files, load
from headrace.web.service import Service
from tests.clients import PATIENCE
from tests.web.auth.people import Issued, guarded


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

    async def opened(settings: Any, secrets: Any, clock: Any) -> Authentication:
        return guarded(clock, tokens=tokens)

    monkeypatch.setattr(serve, "opened", opened)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        starting = serve._run(loaded, loaded.program, components, listener, None, cast(Any, None))
        with pytest.raises(Refused):
            async with asyncio.timeout(PATIENCE):
                await starting

    assert tokens.is_closed


async def test_a_signal_ends_a_start_that_waits_for_a_store_that_cannot_be_read(
    tmp_path: Path, components: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_waited_for = asyncio.Event()

    async def unreadable(self: OpenQueues, pipeline: str, target: str, kind: str) -> StoredQueue:
        is_waited_for.set()
        raise StoreFailed("it cannot be read")

    monkeypatch.setattr(OpenQueues, "open", unreadable)
    config = tmp_path / "plant.json"
    buckets = {"machines": {"durable": True, "max_keys": 10}}
    config.write_text(json.dumps({"state": buckets, "pipelines": []}))
    data = tmp_path / "data"
    data.mkdir()
    loaded = load(Files(config=config), components, data_dir=data, is_starting=True)
    assert loaded.program is not None, loaded.diagnostics
    with socket.create_server(("127.0.0.1", 0)) as listener:
        starting = asyncio.ensure_future(
            serve._run(loaded, loaded.program, components, listener, DataDir(data), cast(Any, None))
        )
        async with asyncio.timeout(PATIENCE):
            await is_waited_for.wait()
            assert not starting.done()
            os.kill(os.getpid(), signal.SIGTERM)

            await starting
    StoreFolder(data.joinpath(*FOLDER), time).close()  # others may have it


@pytest.mark.parametrize(
    ("host", "tried"),
    [
        (
            "127.0.0.1",
            ["curl -N http://127.0.0.1:1/events", "curl http://127.0.0.1:1/api/pipelines"],
        ),
        ("0.0.0.0", ["curl -N http://127.0.0.1:1/events", "curl http://127.0.0.1:1/api/pipelines"]),
        (
            "192.0.2.1",
            ["curl -N http://192.0.2.1:1/events", "curl http://192.0.2.1:1/api/pipelines"],
        ),
        ("::", ["curl -N 'http://[::1]:1/events'", "curl 'http://[::1]:1/api/pipelines'"]),
        ("fe80::1%eth0", []),
    ],
)
async def test_what_is_said_to_try_can_be_reached(
    service: Service, host: str, tried: list[str]
) -> None:
    assert list(serve._to_try(service, host, 1)) == tried


async def test_nobody_is_told_to_try_what_they_have_to_sign_in_for(
    service: Service, client: falcon.testing.ASGIConductor
) -> None:
    table = {"id": "a", "inputs": [{"type": "http", "format": "csv"}]}  # which that JSON is none
    for config in (table, {"id": "p", "inputs": [{"type": "http"}]}):
        assert (await client.simulate_post("/api/pipelines", json=config)).status_code == 201
    service.authenticator = guarded(service.clock)

    opened = list(serve._to_try(service, "127.0.0.1", 1))
    await service.engine.dispose("p")
    closed = list(serve._to_try(service, "127.0.0.1", 1))

    post = """curl -d '{"value": 42}' http://127.0.0.1:1/api/pipelines/p/messages"""
    assert (closed, opened) == (["curl http://127.0.0.1:1/"], [post, "curl http://127.0.0.1:1/"])


@pytest.mark.parametrize(("to_try", "said"), [([], "it runs\n"), (["a"], "it runs, try:\n  a\n")])
def test_nothing_to_try_is_not_announced(to_try: list[str], said: str) -> None:
    errors = io.StringIO()

    StartReport(cast(Any, errors), "text").runs("it runs", to_try)

    assert errors.getvalue() == said
