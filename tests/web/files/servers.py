"""What tests of saves work with: a server that is asked to, and what runs on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headrace.web.service import Service

IDLE = {"id": "idle", "inputs": [{"type": "dummy", "duration": 3600}], "outputs": []}
POST = {"id": "post", "inputs": [{"type": "http"}], "outputs": []}
DISK = {"id": "disk", "type": "file", "root": "data"}
LAKE = {
    "id": "lake",
    "type": "s3",
    "bucket": "readings",
    "access_key_id": "${KEY_ID}",
    "secret_access_key": "${KEY}",
}
WRITES = {
    "id": "writes",
    "inputs": [{"type": "dummy", "duration": 3600}],
    "transforms": [],
    "outputs": [{"type": "file", "connection": "disk", "path": "out"}],
}


class Server:
    """A server that was started with files, with what they say running."""

    def __init__(self, client: Any, service: Service) -> None:
        self.client, self.service = client, service

    async def saves(self, name: str, status: int = 200, **rest: Any) -> Any:
        answer = await self.client.simulate_post("/api/config/save", json={"name": name, **rest})
        assert answer.status_code == status, answer.text
        return answer.json.get("path", answer.json.get("error"))

    async def settings(self) -> Any:
        return (await self.client.simulate_get("/api/settings")).json

    async def runs(self, *configs: Any) -> None:
        for config in configs:
            answer = await self.client.simulate_post("/api/pipelines", json=config)
            assert answer.status_code == 201, answer.text

    async def files(self, *connections: Any) -> None:
        for connection in connections:
            answer = await self.client.simulate_post("/api/connections", json=connection)
            assert answer.status_code == 201, answer.text


def held(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def written(file: Path, value: Any) -> Path:
    file.write_text(json.dumps(value))
    return file
