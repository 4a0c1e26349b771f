"""Files for what may be secret: who else is on the machine may not read them."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import click

from headrace.compiler.text.diagnostics import printable


@contextmanager
def own_file(file: Path) -> Iterator[BinaryIO]:
    """Give what is to become a file that only its owner may read; a link is followed.

    It is written beside the file, and takes its place at the end. Where something fails, the file is as it
    was. What is no regular file, such as a pipe or a device, is written to as it is.

    Raises:
        click.ClickException: it cannot be written; it says which.
    """
    try:
        with _replacing(Path(os.path.realpath(file))) if _is_replaced(file) else _open(file) as out:
            yield out
    except BrokenPipeError:
        raise
    except OSError as cause:
        raise click.ClickException(
            printable(f"{file} cannot be written: {cause.strerror}")
        ) from cause


def _is_replaced(file: Path) -> bool:
    """Tell whether another file takes its place. Raises OSError where it may not be written."""
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        return True
    if not stat.S_ISREG(mode):
        return False
    os.close(os.open(file, os.O_WRONLY | os.O_CLOEXEC))
    return True


def _open(file: Path) -> BinaryIO:
    return open(os.open(file, os.O_WRONLY | os.O_CLOEXEC), "wb")


@contextmanager
def _replacing(file: Path) -> Iterator[BinaryIO]:
    beside = file.with_name(f".headrace-export-{secrets.token_hex(8)}.tmp")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as out:
            yield out
            out.flush()
            os.fsync(descriptor)
        beside.replace(file)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
