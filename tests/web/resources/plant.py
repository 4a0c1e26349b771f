"""A server that was started from files in a directory, and what tests do with both."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from headrace.compiler.clock import Clock
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.datadir import DataDir
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.schema.secrets import Secrets
from headrace.web.files.reading import Files, load
from headrace.web.service import Service
from tests.web.jsonengine import JsonEngine

WIDE = {"type": "buffer", "size": 100, "seconds": 3600}


def ingest(id: str, *transforms: Any, **rest: Any) -> dict[str, Any]:
    return {"id": id, "inputs": [{"type": "http"}], "transforms": [*transforms], **rest}


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
