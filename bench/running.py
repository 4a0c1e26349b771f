"""What scenarios with servers of others share: the other core, a pipeline here, a process to talk to."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from bench import servers
from bench.measuring import cores
from headrace.authoring.configfiles import catalogue
from headrace.compiler.clock import Clock
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.config.storesettings import StoreSettings
from headrace.compiler.datadir import DataDir
from headrace.compiler.runtime.engine import Engine
from headrace.web.files.reading import Files, load

Config = dict[str, Any]
Ask = Callable[[str, str], Awaitable[None]]
"""Says a line to another process, and waits until it answers with another."""

ELSEWHERE = cores()[1]
"""The core of everything that is not measured, as long as this process may still use both."""


@contextmanager
def service(kind: type[Any], **options: Any) -> Iterator[Any]:
    """Run a server on the core of everything else."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {ELSEWHERE})  # who is started is where its starter is
    with tempfile.TemporaryDirectory() as folder, kind(Path(folder), **options) as server:
        os.sched_setaffinity(0, allowed)
        yield server


@asynccontextmanager
async def pipeline(
    config: Config,
    connections: Config,
    components: Catalogue | None = None,
    sync: str | None = None,
) -> AsyncIterator[None]:
    """Run a config as the server does, in this process; with ``sync`` it has a store."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config.json"
        file.write_text(json.dumps([config]))
        file.with_name("config.connections.json").write_text(json.dumps(connections))
        loaded = load(Files(file), components or catalogue())
        if loaded.program is None or loaded.is_refused:
            raise ValueError("; ".join(each.message for each in loaded.diagnostics))
        kept: dict[str, Any] = {}
        if sync is not None:
            store = StoreSettings.load({"sync": sync, "keep_free_bytes": 0})
            kept = {"data_dir": DataDir(Path(folder)), "store": store}
        engine = Engine(Clock(asyncio.get_running_loop()), connections=loaded.connections, **kept)
        await engine.load(loaded.program)
        try:
            yield
        finally:
            await engine.close()


@asynccontextmanager
async def talking(module: str, *arguments: object) -> AsyncIterator[Ask]:
    """Run a module that says when it is ready and does as it is told, on the core of everything else."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *map(str, arguments)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=servers.root(),
        preexec_fn=lambda: os.sched_setaffinity(0, {ELSEWHERE}),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    told, asking = process.stdout, process.stdin

    async def answered(answer: str) -> None:
        if await told.readline() != answer.encode() + b"\n":
            raise RuntimeError(f"'{module}' has ended")

    async def ask(what: str, answer: str) -> None:
        asking.write(what.encode() + b"\n")
        await answered(answer)

    try:
        await answered("ready")
        yield ask
    finally:
        asking.close()
        await process.wait()
