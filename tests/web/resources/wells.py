"""A kind of connection, an input that uses it, and what is asked about both over the API."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.families import Connection, Input
from headrace.compiler.errors import Ended
from headrace.compiler.schema.fields import ConnectionName, Integer, SecretText, Text
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.secrets import Secret
from headrace.compiler.schema.structures import RecordOf
from tests.stand_ins import Told


class Well(Connection, kind="well"):
    """Where a bucket is let down."""

    host: str = option(Text(), "Where it is.")
    password: Secret = option(SecretText(), "What opens it.")
    depth: int = option(Integer(min=1, max=99), "How deep it is.", default=9)


class Rope(Record):
    """What a bucket hangs on."""

    well: str = option(ConnectionName("well"), "Where it is let down.")


class Bucket(Input, kind="bucket"):
    """Is let down into a well, and keeps what it read of it; ends at once if the well is dry."""

    rope: Rope = option(RecordOf(Rope), "What it hangs on.")

    def source(self, ctx: Context) -> Told:
        well = ctx.connection(Well, self.rope.well)
        LET_DOWN.append((ctx.resolve(well.password), well.depth))
        is_dry = well.depth == 1
        return Told(ctx.clock, [Ended("dry")] if is_dry else [])


LET_DOWN: list[tuple[str, int]] = []
YARD = {"id": "yard", "type": "well", "host": "a", "password": "x${YARD_PASS}"}
DISK = {"id": "disk", "type": "file", "root": "data"}


def drawing(id: str, well: str = "yard") -> dict[str, Any]:
    return {"id": id, "inputs": [{"type": "bucket", "rope": {"well": well}}]}


async def file(client: Any, connection: Any) -> Any:
    return await client.simulate_post("/api/connections", json=connection)


async def remove(client: Any, name: str) -> Any:
    return await client.simulate_delete(f"/api/connections/{quote(name, safe='')}")


async def listed(client: Any) -> Any:
    return (await client.simulate_get("/api/connections")).json


async def create(client: Any, config: Any) -> Any:
    return await client.simulate_post("/api/pipelines", json=config)
