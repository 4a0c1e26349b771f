"""Configs of the tests: connections beside them, and what is on the disk afterwards."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any

from tests.clients import PATIENCE, Answer, Gone
from tests.server import Server

Json = dict[str, Any]


def linked(
    folder: Path, connections: Mapping[str, Json], secrets: Mapping[str, str] | None = None
) -> list[str]:
    """Put a connections file beside a config, with a directory `disk` in it; return the options."""
    folder.mkdir(exist_ok=True)
    filed = {**connections, "disk": {"type": "file", "root": "data"}}
    (folder / "config.connections.json").write_text(json.dumps(filed))
    (folder / "secrets.json").write_text(json.dumps(secrets or {}))
    return ["--data-dir", "data", "--secrets", "secrets.json"]


def filing(path: str) -> Json:
    """Return an output that writes files."""
    return {"type": "file", "connection": "disk", "path": path}


def kept(folder: Path, parts: str = "*.ndjson") -> list[int]:
    """Return the numbers in all ndjson parts. A line that a kill has cut short is none."""
    return [
        json.loads(line)["n"]
        for part in sorted(folder.glob(parts))
        for line in part.read_bytes().splitlines(keepends=True)
        if line.endswith(b"\n")
    ]


def create(server: Server, pipeline: Json) -> Answer:
    """Create a pipeline."""
    return server.request("POST", "/api/pipelines", json.dumps(pipeline).encode())


def delete(server: Server, pipeline: str) -> Answer:
    """Delete a pipeline."""
    return server.request("DELETE", f"/api/pipelines/{pipeline.replace(' ', '%20')}")


def statuses(server: Server) -> dict[str, str]:
    """Return the status of every pipeline."""
    return {each["id"]: each["status"] for each in server.get("/api/pipelines").value}


def wait_for_status(server: Server, pipeline: str, wanted: str) -> None:
    """Ask until a pipeline has a status."""
    until = monotonic() + PATIENCE
    while (found := statuses(server)[pipeline]) != wanted:
        if monotonic() > until:
            raise Gone(f"pipeline '{pipeline}' is '{found}', not '{wanted}'")
