"""Servers in a directory of their own, with files and without."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import falcon.testing
import pytest
import pytest_asyncio

from headrace.compiler.clock import Clock
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.datadir import DataDir
from headrace.compiler.runtime.engine import Engine
from headrace.web.app import Application
from headrace.web.files.reading import Files, load
from headrace.web.service import Service
from tests.web.conftest import waited_for
from tests.web.files.servers import Server
from tests.web.jsonengine import JsonEngine


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a directory of its own."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def server(folder: Path, client: Any, service: Service) -> Server:
    """Return a server without files."""
    return Server(client, service)


@pytest_asyncio.fixture
async def started(folder: Path, components: Catalogue) -> Any:
    """Return what starts a server with files."""
    engines, conductors = [], []

    async def start(config: Path | str | None = None, **files: Any) -> Server:
        named = Files(None if config is None else Path(config), **files)
        loaded = load(named, components)
        assert loaded.program is not None, loaded.diagnostics
        assert not loaded.is_refused, loaded.diagnostics
        clock = Clock(asyncio.get_running_loop())
        inner = Engine(
            clock, connections=loaded.connections, data_dir=DataDir(folder), base=loaded.base
        )
        engine = JsonEngine(inner, components)
        engines.append(engine)
        service = Service(engine, components, clock, is_ready=True, files=named)
        await engine.load(loaded.program)
        service.filing.loaded(loaded.layout)
        conductor = falcon.testing.ASGIConductor(waited_for(Application(service)))
        conductors.append(conductor)
        return Server(await conductor.__aenter__(), service)

    yield start
    for conductor in conductors:
        await conductor.__aexit__(None, None, None)
    for engine in engines:
        await engine.close()
