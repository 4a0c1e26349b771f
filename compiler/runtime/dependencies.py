"""What a pipeline is built on: drivers, and the connections, buckets and files its components ask for.

What takes long is there before a build, and not by work on the loop: to import a driver may take half a
second, and so does what is made of a file of authorities of 1 MiB.

Connections can be filed anew, buckets declared anew and files written while it runs. It keeps what it
read; this is how to tell later whether building it again would give something else.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any

from headrace.compiler.buckets import Bucket, Buckets
from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import MOST_BYTES, Reading
from headrace.compiler.component.families import Connection
from headrace.compiler.component.pipelineconfig import PipelineConfig, is_same
from headrace.compiler.errors import BuildRefused
from headrace.compiler.text.diagnostics import Fault

Digest = Callable[[Path], str]
"""Tells what is in a file, in few characters."""


@dataclass(slots=True)
class Dependencies:
    """By name; files as a config names them, each with where it is and the digest of what it held."""

    connections: dict[str, Connection] = field(default_factory=dict)
    buckets: dict[str, Bucket] = field(default_factory=dict)
    files: dict[str, tuple[Path, str]] = field(default_factory=dict)

    def read(self, name: str, path: Path) -> None:
        """Note that a file is about to be read. What is written to it from now on is a difference."""
        self.files[name] = path, digest(path)

    def changes(
        self, connections: Mapping[str, Connection], buckets: Buckets, digest: Digest
    ) -> Iterator[str]:
        """Yield what is something else by now, in words."""
        for name, connection in self.connections.items():
            if not is_same(connection, connections.get(name)):
                yield f"connection '{name}'"
        for name, bucket in self.buckets.items():
            if buckets.get(name) is not bucket:
                yield f"bucket '{name}'"
        for name, (path, held) in self.files.items():
            if digest(path) != held:
                yield f"file '{name}'"


def digest(path: Path) -> str:
    """Return what tells the content of a file from any other; empty if it cannot be read.

    Of a file that is larger than any that is used, the beginning and the size count.
    """
    try:
        if not path.is_file():  # never a pipe: to open one is to wait for its other end
            return ""
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES)
            told = blake2b(
                content, digest_size=16, key=str(os.fstat(file.fileno()).st_size).encode()
            )
            return told.hexdigest()
    except OSError:
        return ""


@dataclass(frozen=True, slots=True)
class Read:
    """What a reading made, or why it was refused; and each file with the digest of what it held."""

    made: Any
    refused: Fault | None
    files: Mapping[str, tuple[Path, str]]


Readings = Mapping[Reading[Any], Read]


async def prepare(
    configs: Iterable[PipelineConfig],
    connections: Mapping[str, Connection],
    base: Path | None,
    clock: Clock,
) -> Readings:
    """Import the drivers of some pipelines, and return what their connections read, in a thread."""
    configs = [*configs]
    drivers = dict.fromkeys(
        name for each in configs for part in each.components() for name in part.drivers
    )
    named = {name for config in configs for _, _, name in config.namings()} if connections else ()
    found = [connections[name] for name in sorted(named) if name in connections]
    wanted = list(dict.fromkeys(reading for each in found for reading in each.readings()))

    def work() -> Readings:
        for name in drivers:
            import_module(name)
        return {each: read_now(each, base or Path()) for each in wanted}

    if not wanted and drivers.keys() <= sys.modules.keys():
        return {}
    with clock.outside():
        return await asyncio.to_thread(work)


def read_now(reading: Reading[Any], base: Path) -> Read:
    """Read at once. What is written to a file from now on is a difference."""
    files = {name: (base / name, digest(base / name)) for name in reading.files}
    try:
        return Read(reading.made(base), None, files)
    except BuildRefused as cause:
        return Read(None, cause.fault, files)
