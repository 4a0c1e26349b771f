"""PostgreSQL: rows that are in a table, or are not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg

from tests.services.postgres import Postgres
from tests.services.server import Service
from tests.whole.stores.kinds.kind import COLUMNS, Json, Look, Table
from tests.whole.stores.reference import POSTGRES


class PostgresStore(Table):
    """PostgreSQL."""

    name = "postgres"
    database = POSTGRES
    lost = (
        OSError,
        asyncpg.PostgresConnectionError,
        asyncpg.CannotConnectNowError,
        asyncpg.InterfaceError,
        asyncpg.InternalClientError,
    )

    def server(self, folder: Path, **options: Any) -> Service:
        return Postgres(folder, **options)

    def connection(self, server: Any, **more: Any) -> Json:
        where = {"host": server.host, "port": server.port, "database": "postgres"}
        login = {"user": server.user, "password": server.password}
        return {"type": "postgres", **where, **login, **more}

    def output(self, connection: str, place: str, **more: Any) -> Json:
        table = {"connection": connection, "table": place, "columns": COLUMNS}
        return {"type": "postgres", **table, **more}

    @asynccontextmanager
    async def dial(self, server: Any, place: str) -> AsyncIterator[Look]:
        client = await asyncpg.connect(server.url)

        async def look() -> list[int]:
            try:
                return [row["n"] for row in await client.fetch(f'select n from "{place}"')]
            except asyncpg.UndefinedTableError:
                return []  # it is not made yet, or not any more

        try:
            yield look
        finally:
            client.terminate()

    async def rows(
        self, server: Any, place: str, columns: Sequence[Json]
    ) -> list[Mapping[str, Any]]:
        client = await asyncpg.connect(server.url)
        names = ", ".join(f'"{column["name"]}"' for column in columns)
        try:
            return [dict(row) for row in await client.fetch(f'select {names} from "{place}"')]
        finally:
            client.terminate()
