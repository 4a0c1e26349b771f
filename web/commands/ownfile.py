"""Files for what may be secret: who else is on the machine may not read them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def own_file(file: Path) -> Iterator[BinaryIO]:
    """Open a file to write, which only its owner may read if it is made here."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as out:
        yield out
