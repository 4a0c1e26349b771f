"""Whole servers side by side in this process, on one event loop: engine, service, application, socket.

    with hosting() as host:
        one, other = host.serve(tmp_path / "one"), host.serve(tmp_path / "other")
        one.post("p", {"n": 1})
        one.end()

They are made as `serve` makes the one of a process, without what is the process's: signals and the log.
The loop runs in a thread, so tests ask as those of a process do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

import uvloop

from headrace.authoring.configfiles import catalogue
from headrace.compiler.clock import Clock
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.datadir import DataDir
from headrace.compiler.runtime.engine import Engine
from headrace.web.app import Application
from headrace.web.auth.accountauth import opened
from headrace.web.commands.serve import bound
from headrace.web.files.reading import Files, load
from headrace.web.process.server import Server
from headrace.web.resources.ingest import Ingest
from headrace.web.service import Service
from tests.clients import HOST, PATIENCE, Reached

T = TypeVar("T")


class Hosted(Reached):
    """One server: the files are those in its directory, and it writes below that."""

    def __init__(self, host: Host, home: Path) -> None:
        super().__init__()
        self._host = host
        self.home = home
        self.is_running = False
        self._serving = asyncio.Event()

    async def start(self) -> None:
        """Load the files and serve."""
        settings, secrets = self.home / "server.json", self.home / "secrets.json"
        files = Files(
            self.home / "config.json",
            secrets=secrets if secrets.exists() else None,
            settings=settings if settings.exists() else None,
        )
        data = self.home / "data"
        data.mkdir()
        loaded = load(files, self._host.catalogue, data_dir=data, is_starting=True)
        assert loaded.program is not None, loaded.diagnostics
        assert not loaded.is_refused, loaded.diagnostics
        clock = Clock(asyncio.get_running_loop())
        self._authenticator = await opened(loaded.settings, loaded.secrets, clock)
        self._engine = Engine(
            clock,
            connections=loaded.connections,
            secrets=loaded.secrets,
            data_dir=DataDir(data),
            base=loaded.base,
            retention_seconds=loaded.settings.history.retention_secs,
        )
        service = Service(
            self._engine, self._host.catalogue, clock, self._authenticator, files=files
        )
        self._server = Server(
            Application(service),
            clock,
            on_ready=self._serving.set,
            on_stopping=self._engine.hush,
            ingest=Ingest(service),
        )
        await self._engine.load(loaded.program)
        service.filing.loaded(loaded.layout)
        listener = bound(HOST, 0)
        self.port = listener.getsockname()[1]
        self._task = asyncio.ensure_future(self._server.serve(sockets=[listener]))
        await self._serving.wait()
        self.is_running = True

    def end(self) -> None:
        """End it in order, as a signal does, and wait until everything is written."""
        if self.is_running:
            self.is_running = False
            self._host.ask(self._end())

    async def _end(self) -> None:
        self._server.stop()
        await self._task
        await self._engine.close()
        await self._authenticator.close()


class Host:
    """The loop that they run on, and the components that all of them know."""

    def __init__(self, loop: asyncio.AbstractEventLoop, components: Catalogue) -> None:
        self._loop, self.catalogue = loop, components
        self._hosted: list[Hosted] = []

    def ask(self, what: Coroutine[Any, Any, T]) -> T:
        """Return what comes of a coroutine on the loop."""
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(PATIENCE)

    def serve(self, home: Path) -> Hosted:
        """Start one more server."""
        hosted = Hosted(self, home)
        self._hosted.append(hosted)
        self.ask(hosted.start())
        return hosted

    def end(self) -> None:
        """End those that still run."""
        for hosted in self._hosted:
            hosted.leave()
            hosted.end()


@contextmanager
def hosting() -> Iterator[Host]:
    """Run a loop for servers, which end with the block."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        loop = runner.get_loop()
        thread = Thread(target=loop.run_forever, name="hosting", daemon=True)
        thread.start()
        host = Host(loop, catalogue())
        try:
            yield host
        finally:
            try:
                host.end()
            finally:
                loop.call_soon_threadsafe(loop.stop)
                thread.join(PATIENCE)
