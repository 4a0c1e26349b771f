"""Files that connections name are read ahead of a build, off the loop.

What is made of them may take most of a second: a file of authorities of 1 MiB does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Reading
from headrace.compiler.component.families import Connection
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.errors import BuildRefused
from headrace.compiler.runtime.dependencies import digest
from headrace.compiler.text.diagnostics import Fault


@dataclass(frozen=True, slots=True)
class Read:
    """What a reading made, or why it was refused; and each file with the digest of what it held."""

    made: Any
    refused: Fault | None
    files: Mapping[str, tuple[Path, str]]


Readings = Mapping[Reading[Any], Read]


async def read_ahead(
    configs: Iterable[PipelineConfig],
    connections: Mapping[str, Connection],
    base: Path | None,
    clock: Clock,
) -> Readings:
    """Return what the connections of some pipelines are going to read, read in a thread."""
    named = {name for config in configs for _, _, name in config.namings()}
    found = [connections[name] for name in sorted(named) if name in connections]
    wanted = list(dict.fromkeys(reading for each in found for reading in each.readings()))
    if not wanted:
        return {}
    with clock.outside():
        return await asyncio.to_thread(_all, wanted, base or Path())


def read_now(reading: Reading[Any], base: Path) -> Read:
    """Read at once. What is written to a file from now on is a difference."""
    files = {name: (base / name, digest(base / name)) for name in reading.files}
    try:
        return Read(reading.made(base), None, files)
    except BuildRefused as cause:
        return Read(None, cause.fault, files)


def _all(wanted: Iterable[Reading[Any]], base: Path) -> Readings:
    return {each: read_now(each, base) for each in wanted}
