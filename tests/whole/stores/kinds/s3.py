"""S3: messages that are in objects of a bucket, one a line, and the store has them as files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.services.s3 import BUCKET, KEY, S3, SECRET
from tests.services.server import Service
from tests.whole.linking import kept
from tests.whole.stores.kinds.kind import Json, Look, Store


class S3Store(Store):
    """An object store."""

    name = "s3"
    keeps = True

    def server(self, folder: Path, **options: Any) -> Service:
        return S3(folder, **options)

    def connection(self, server: Any, **more: Any) -> Json:
        login = {"access_key_id": KEY, "secret_access_key": SECRET}
        where = {"bucket": BUCKET, "endpoint": server.url, "allow_http": True}
        return {"type": "s3", **where, **login, **more}

    def output(self, connection: str, place: str, **more: Any) -> Json:
        parts = {"connection": connection, "prefix": place, "rotate": {"max_rows": 20}}
        return {"type": "s3", **parts, **more}

    @asynccontextmanager
    async def dial(self, server: Any, place: str) -> AsyncIterator[Look]:
        async def look() -> list[int]:
            return kept(server.objects / place)

        yield look
