"""ClickHouse: the engine behind our front, whose rows are read as JSON."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from http.client import HTTPException
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.services.clickhouse import ClickHouse, Refusal
from tests.services.server import Service
from tests.whole.stores.kinds.kind import COLUMNS, Json, Look, Table
from tests.whole.stores.reference import CLICKHOUSE

UNKNOWN_TABLE = "Code: 60"
READ: Mapping[str, Callable[[Any], Any]] = {
    "decimal": Decimal,
    "timestamp": lambda text: datetime.fromisoformat(text).replace(tzinfo=UTC),
    "date": date.fromisoformat,
    "uuid": UUID,
    "float": lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0],
}
"""How values are read that JSON has no type for."""


class ClickHouseStore(Table):
    """ClickHouse."""

    name = "clickhouse"
    database = CLICKHOUSE
    lost = (OSError, HTTPException)

    def server(self, folder: Path, **options: Any) -> Service:
        return ClickHouse(folder, user="alice", password="open-sesame", **options)

    def connection(self, server: Any, **more: Any) -> Json:
        login = {"user": server.user, "password": server.password, "database": "default"}
        return {"type": "clickhouse", "url": server.url, "allow_http": True, **login, **more}

    def output(self, connection: str, place: str, **more: Any) -> Json:
        table = {"connection": connection, "table": place, "columns": COLUMNS}
        return {"type": "clickhouse", **table, **more}

    @asynccontextmanager
    async def dial(self, server: Any, place: str) -> AsyncIterator[Look]:
        async def look() -> list[int]:
            try:
                asked = f'SELECT "n" FROM "{place}"'
                return [number for [number] in await asyncio.to_thread(server.access.rows, asked)]
            except Refusal as refusal:
                if UNKNOWN_TABLE not in str(refusal):
                    raise
                return []  # it is not made yet, or not any more

        yield look

    async def rows(
        self, server: Any, place: str, columns: Sequence[Json]
    ) -> list[Mapping[str, Any]]:
        names = ", ".join(map(_selected, columns))
        found = await asyncio.to_thread(server.access.rows, f'SELECT {names} FROM "{place}"')
        return [
            {
                each["name"]: _read(each["type"], value)
                for each, value in zip(columns, row, strict=True)
            }
            for row in found
        ]


def _selected(column: Json) -> str:
    name = f'"{column["name"]}"'
    # As text the engine gives some of them with another exponent than they have.
    return f"reinterpretAsUInt64({name})" if column["type"] == "float" else name


def _read(kind: str, value: Any) -> Any:
    return value if value is None or kind not in READ else READ[kind](value)
