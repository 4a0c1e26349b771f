"""A server that was started from files in a directory, and what tests do with both."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from headrace.compiler.clock import Clock
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.datadir import DataDir
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.schema.secrets import Secrets
from headrace.web.asgi import Asgi
from headrace.web.files.reading import Files, load
from headrace.web.service import Service
from tests.web.exchange import Exchange
from tests.web.jsonengine import JsonEngine

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
WIDE = {"type": "buffer", "size": 100, "seconds": 3600}


def ingest(id: str, *transforms: Any, **rest: Any) -> dict[str, Any]:
    return {"id": id, "inputs": [{"type": "http"}], "transforms": [*transforms], **rest}


class EventClient:
    """A client that follows `/events`, asked with a query."""

    def __init__(
        self, application: Asgi, query: str = "", headers: Mapping[str, str] = NO_HEADERS
    ) -> None:
        self._exchange = Exchange(
            application,
            "GET",
            "/events",
            headers=[(name.lower().encode(), text.encode()) for name, text in headers.items()],
            body=[b"", b""],
            query=query.encode(),
        )
        self._task = asyncio.ensure_future(self._exchange.run())
        self._frames: deque[tuple[str, Any]] = deque()

    async def begin(self) -> EventClient:
        """Wait until it listens: from here on nothing is missed."""
        while not self._frames and not (await self._exchange.next_body()).startswith(b":"):
            pass
        return self

    async def next(self) -> tuple[str, Any]:
        """Wait for the next event; return its name, and its data as decoded."""
        while not self._frames:
            for frame in (await self._exchange.next_body()).split(b"\n\n"):
                *named, data = frame.split(b"\n")
                if data.startswith(b"data: "):
                    name = b"".join(named).removeprefix(b"event: ").decode()
                    self._frames.append((name, json.loads(data.removeprefix(b"data: "))))
        return self._frames.popleft()

    async def leave(self) -> None:
        """Close the connection."""
        self._exchange.leave()
        await self._task


class Plant:
    """A server that was started from files in a directory, and what tests do with both."""

    def __init__(self, folder: Path, components: Catalogue) -> None:
        self.folder, self._components = folder, components
        self.config = folder / "plant.json"
        self.connections = folder / "plant.connections.json"
        self.service: Service
        self.client: Any

    def write(self, config: Any, connections: Any = None) -> None:
        self.config.write_text(config if isinstance(config, str) else json.dumps(config))
        if connections is not None:
            self.connections.write_text(json.dumps(connections))

    async def start(self, data_dir: DataDir | None = None) -> JsonEngine:
        loaded = load(Files(config=self.config), self._components)
        assert loaded.program is not None
        assert not loaded.is_refused, loaded.diagnostics
        inner = Engine(
            Clock(asyncio.get_running_loop()),
            connections=loaded.connections,
            secrets=Secrets({"WORD": "open-sesame"}, {}),
            data_dir=data_dir,
            base=loaded.base,
        )
        engine = JsonEngine(inner, self._components)
        await engine.load(loaded.program)
        self.service = Service(
            engine, self._components, engine.clock, is_ready=True, files=loaded.files
        )
        self.service.filing.loaded(loaded.layout)
        return engine

    async def revert(self) -> Any:
        return await self.client.simulate_post("/api/config/revert")

    async def plan(self) -> Any:
        return await self.client.simulate_get("/api/config/plan")

    async def post(self, id: str, value: Any) -> int:
        answer = await self.client.simulate_post(f"/api/pipelines/{id}/messages", json=value)
        return int(answer.status_code)

    def running(self) -> dict[str, Any]:
        return {id: config.dump(id) for id, config in self.service.engine.configs().items()}


FILE = {
    "state": {"seen": {"max_keys": 5}},
    "pipelines": [ingest("a", WIDE), ingest("b"), ingest("c")],
}
