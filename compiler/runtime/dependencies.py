"""What a pipeline was built on: the connections, buckets and files its components asked for.

Connections can be filed anew, buckets declared anew and files written while it runs. It keeps what it
read; this is how to tell later whether building it again would give something else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from headrace.compiler.buckets import Bucket, Buckets
from headrace.compiler.component.buildcontext import MOST_BYTES
from headrace.compiler.component.families import Connection
from headrace.compiler.component.pipelineconfig import is_same

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
