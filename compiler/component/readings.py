"""Readings: what a component makes of files while it is built, and what takes its time.

A build happens on the loop. Files are read, and turned into what is made of them, before it, in a
thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Generic, TypeVar

_T = TypeVar("_T")

MOST_BYTES = 1024 * 1024
"""Size of a file that is read. All authorities that a browser trusts take a quarter of it."""


class Reading(ABC, Generic[_T]):
    """What is to be made of some files. Two that are equal make the same; it can be hashed."""

    @property
    @abstractmethod
    def files(self) -> tuple[str, ...]:
        """The files, as the config names them."""

    @abstractmethod
    def made(self, base: Path) -> _T:
        """Read them, from a directory, and return what they make.

        Raises:
            BuildRefused: a file cannot be read, is too large, or holds something else.
        """
