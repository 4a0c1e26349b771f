"""The plant config on real servers: what came out of every window, added up, is what went in."""

from __future__ import annotations

import asyncio
import json
import math
import shutil
import struct
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from headrace.authoring.configfiles import catalogue
from headrace.web.files.reading import Files, load
from specs.plant.machines import MACHINES, QUANTITIES, ROUNDS, Reading, one_round, readings, send
from tests.clients import PATIENCE
from tests.server import serving
from tests.services.postgres import Postgres
from tests.services.s3 import KEY, S3, SECRET
from tests.services.server import Service

HERE = Path(__file__).parent

VARIABLES = len(MACHINES) * len(QUANTITIES)

Row = dict[str, Any]
PRIMARY_KEY = itemgetter("machine", "quantity", "since")


class Plant(Service):
    """The server of the machines."""

    ready = "the plant is at"

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"opc.tcp://{self.address}/"

    def command(self) -> Sequence[str | Path]:
        return [sys.executable, HERE / "machines.py", "serve", str(self.port)]

    def prepare(self) -> None:
        pass

    def answers(self) -> bool:
        url = self.url.encode()
        hello = struct.pack("<5Ii", 0, 1 << 16, 1 << 16, 0, 0, len(url)) + url
        return self.talk(b"HELF" + struct.pack("<I", len(hello) + 8) + hello)[:3] == b"ACK"


@dataclass(frozen=True)
class Site:
    """The folder with the config, and the servers that it names."""

    folder: Path
    plant: Plant
    postgres: Postgres
    s3: S3

    @property
    def config(self) -> Path:
        return self.folder / "config.yaml"

    def archived(self) -> dict[Path, list[Row]]:
        """Return the lines of every object, by its key."""
        return {
            part.relative_to(self.s3.objects): [
                json.loads(line) for line in part.read_text().splitlines()
            ]
            for part in sorted(self.s3.objects.rglob("*.ndjson"))
        }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory with a copy of the config and its connections, whose secrets resolve."""
    for config in HERE.glob("*.yaml"):
        shutil.copy(config, tmp_path)
    monkeypatch.setenv("PLANT", "opc.tcp://127.0.0.1:4840/")
    monkeypatch.setenv("POSTGRES_PASSWORD", "open-sesame")
    monkeypatch.setenv("S3_KEY", "anybody")
    monkeypatch.setenv("S3_SECRET", "sesame-open")
    return tmp_path


@pytest.fixture
def site(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Give the servers, and have the connections lead to them."""
    with (
        Plant(folder / "plant") as plant,
        Postgres(folder / "postgres") as postgres,
        S3(folder / "s3") as s3,
    ):
        connections = folder / "config.connections.yaml"
        at_home = connections.read_text().replace("port: 5432", f"port: {postgres.port}")
        connections.write_text(at_home.replace("http://127.0.0.1:9000", s3.url))
        monkeypatch.setenv("PLANT", plant.url)
        monkeypatch.setenv("POSTGRES_PASSWORD", postgres.password)
        monkeypatch.setenv("S3_KEY", KEY)
        monkeypatch.setenv("S3_SECRET", SECRET)
        yield Site(folder, plant, postgres, s3)


@dataclass(frozen=True)
class Sums:
    """What is known of all readings of one quantity of a machine."""

    samples: int
    good: int
    low: Any
    high: Any
    total: Any
    mean: Any


def expected(all_readings: Iterable[Reading]) -> dict[tuple[str, str], Sums]:
    """Calculate from the readings alone; the last bit of a mean does not count."""
    of_each = defaultdict(list)
    for each in all_readings:
        of_each[each.machine, each.quantity].append(each.value)
    return {which: _sums(values) for which, values in of_each.items()}


def _sums(values: Sequence[float | None]) -> Sums:
    good = [value for value in values if value is not None]
    total = sum(good)
    mean = pytest.approx(total / len(good), rel=1e-12)
    return Sums(len(values), len(good), min(good), max(good), total, mean)


def put_together(rows: Iterable[Row]) -> dict[tuple[str, str], Sums]:
    """Return what windows that were cut somewhere say of each quantity."""
    of_each = defaultdict(list)
    for row in rows:
        of_each[row["machine"], row["quantity"]].append(row)
    return {which: _whole(rows) for which, rows in of_each.items()}


def _whole(rows: Sequence[Row]) -> Sums:
    good = [row for row in rows if row["good"]]
    count = sum(row["good"] for row in good)
    return Sums(
        samples=sum(row["samples"] for row in rows),
        good=count,
        low=min(row["low"] for row in good),
        high=max(row["high"] for row in good),
        total=sum(row["total"] for row in good),
        mean=math.fsum(row["mean"] * row["good"] for row in good) / count,
    )


@asynccontextmanager
async def table_of(postgres: Postgres) -> AsyncIterator[Table]:
    """Give the table of windows."""
    connection = await asyncpg.connect(postgres.url)
    try:
        yield Table(connection)
    finally:
        await connection.close()


class Table:
    """The table of windows, which tells whenever there are more rows in it."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self._news = asyncio.Event()

    async def listen(self) -> None:
        """Have the database tell."""
        await self._connection.execute("""
            CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN NOTIFY windows; RETURN NULL; END $$;
            CREATE TRIGGER tell AFTER INSERT ON windows EXECUTE FUNCTION tell();
        """)
        await self._connection.add_listener("windows", lambda *_: self._news.set())

    async def wait_for(self, samples: int) -> None:
        """Wait until the rows are of so many values."""
        async with asyncio.timeout(PATIENCE):
            while sum(row["samples"] for row in await self.rows()) < samples:
                await self._news.wait()
                self._news.clear()

    async def rows(self) -> list[Row]:
        """Return all of it, in the order of its key."""
        found = "SELECT * FROM windows ORDER BY machine, quantity, since"
        return [dict(row) for row in await self._connection.fetch(found)]


@pytest.mark.long
async def test_what_came_out_of_the_windows_is_what_went_in(site: Site) -> None:
    site.config.write_text(site.config.read_text().replace("seconds: 5", "seconds: 1"))
    sent = [*readings(ROUNDS)]
    half = ROUNDS // 2 * VARIABLES
    reported = [*one_round(0), *sent[:half]]
    began = datetime.now(UTC)

    async with table_of(site.postgres) as table:
        with serving(site.folder, site.config) as server:
            await table.listen()
            await send(sent[:half], site.plant.url)
            await table.wait_for(len(reported))
            assert await asyncio.to_thread(server.stop) == 0
        # Whoever subscribes is told what is there: the last values once more.
        reported += sent[half - VARIABLES :]
        with serving(site.folder, site.config) as server:
            await send(sent[half:], site.plant.url)
            await table.wait_for(len(reported))
            assert await asyncio.to_thread(server.stop) == 0
        rows = await table.rows()

    assert put_together(rows) == expected(reported)
    assert all(began <= row["since"] <= row["until"] <= datetime.now(UTC) for row in rows)
    archived = site.archived()
    assert sorted(map(as_stored, chain(*archived.values())), key=PRIMARY_KEY) == rows
    days = {f"windows/{day:year=%Y/month=%m/day=%d}" for day in (began, datetime.now(UTC))}
    assert len(archived) == 2  # one for each life of the server
    assert {str(part.parent) for part in archived} <= days


def as_stored(line: Row) -> Row:
    """Return a line of an object as the row that the database has of it."""
    return line | {end: datetime.fromisoformat(line[end]) for end in ("since", "until")}


def test_nothing_is_wrong_with_the_config(folder: Path) -> None:
    assert load(Files(folder / "config.yaml"), catalogue()).diagnostics == []
