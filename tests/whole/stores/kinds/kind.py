"""What the tests know of one kind of store: its server, its configs, and what its client finds in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, ClassVar

from tests.services.server import Service
from tests.whole.stores.reference import Database

Json = dict[str, Any]
Look = Callable[[], Awaitable[list[int]]]
"""Asks for the numbers of all messages that are stored somewhere."""

COLUMNS: list[Json] = [
    {"name": "n", "type": "bigint", "nullable": False},
    {"name": "temp", "type": "float"},
]
"""A number that tells messages apart, and something that is measured."""


class Store(ABC):
    """One kind of store."""

    name: ClassVar[str]
    keeps: ClassVar[bool] = False
    """Whether an output keeps what it cannot write, so that an outage loses nothing."""
    lost: ClassVar[tuple[type[BaseException], ...]] = ()
    """What the driver raises when the server is gone."""

    @abstractmethod
    def server(self, folder: Path, **options: Any) -> Service:
        """Return a server; it is not started."""

    @abstractmethod
    def connection(self, server: Any, **more: Any) -> Json:
        """Return a connection to a server."""

    @abstractmethod
    def output(self, connection: str, place: str, **more: Any) -> Json:
        """Return an output that stores numbered messages in a place: a table, or a prefix."""

    @abstractmethod
    def dial(self, server: Any, place: str) -> AbstractAsyncContextManager[Look]:
        """Connect, to look what is stored in a place."""

    def __repr__(self) -> str:
        return self.name


class Table(Store):
    """One that has columns."""

    database: ClassVar[Database]

    @abstractmethod
    async def rows(
        self, server: Any, place: str, columns: Sequence[Json]
    ) -> list[Mapping[str, Any]]:
        """Return all rows of a table, each with its columns by name; JSON is text."""
