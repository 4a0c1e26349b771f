"""The `file` output as a part of a test: open, and what it has written."""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headrace.compiler.errors import BatchFailed
from headrace.connectors.file import FileConnection, FileOutput, FileSink
from tests.doubles import StubContext

MORNING = datetime(2026, 3, 1, 8, tzinfo=UTC)
FIRST = "2026-03-01T08-00-00Z-000001.ndjson"


def context(data_dir: Path | None, root: str | Path | None = None) -> StubContext:
    """Return a context with one connection, `disk`, that names the data directory itself."""
    connection = FileConnection.load({"root": str(root or data_dir)})
    return StubContext(data_dir=data_dir, connections={"disk": connection})


def opened(data_dir: Path, **options) -> FileSink:
    """Return a sink that writes to `readings` under the data directory."""
    config = FileOutput.load({"connection": "disk", "path": "readings", **options})
    sink = config.open(context(data_dir))
    assert isinstance(sink, FileSink)
    return sink


def parts(data_dir: Path, path: str = "readings") -> dict[str, bytes]:
    """Return what lies there: names in order, with their bytes."""
    return {file.name: file.read_bytes() for file in sorted((data_dir / path).iterdir())}


async def lost(sink: FileSink, batch: list) -> str:
    """Return what is said of a batch that cannot be written."""
    return str(await failure(sink, batch))


async def failure(sink: FileSink, batch: list) -> BatchFailed:
    """Return what is raised for a batch that cannot be written."""
    with pytest.raises(BatchFailed) as failed:
        await sink.write(batch)
    return failed.value


@contextmanager
def tmpfs(folder: Path, kilobytes: int) -> Iterator[None]:
    """Mount a small file system of its own."""
    folder.mkdir()
    size = f"size={kilobytes}k"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a file system needs privileges")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def make_read_only(folder: Path) -> None:
    """Have a file system that is mounted there take nothing more."""
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let no file grow beyond ``size``: what is written ends in the middle, as on a full disk."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


@contextmanager
def forbidden(folder: Path) -> Iterator[None]:
    """Make a directory one that may not be written to, also where the tests run as root."""
    folder.chmod(0o500)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o700)
