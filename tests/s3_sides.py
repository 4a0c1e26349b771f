"""An object store and the output that fills it, as parts of a test: built, asked, looked into."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Self

from aiobotocore.config import AioConfig
from aiobotocore.session import get_session

from headrace.compiler.clock import Clock
from headrace.compiler.edges import AwaitingSink
from headrace.compiler.errors import Unreachable
from headrace.connectors.s3 import S3Connection, S3Output
from headrace.connectors.s3.objectkeys import BucketNumbers, PartNumbers
from headrace.connectors.s3.objectpart import Declined, ObjectPart, Taken
from headrace.connectors.s3.sink import S3Sink
from tests.clients import HOST
from tests.doubles import StubContext
from tests.services.authority import Authority
from tests.services.s3 import BUCKET, KEY, S3, SECRET

ROTATE = {"max_rows": 1}


@asynccontextmanager
async def asking(
    server: S3,
    *,
    key: str | None = None,
    secret: str | None = None,
    trusts: Authority | None = None,
) -> AsyncIterator[Any]:
    """Give a client of the library, as another program would make it."""
    authority = trusts or server.tls
    async with get_session().create_client(
        "s3",
        region_name="us-east-1",
        endpoint_url=server.url,
        aws_access_key_id=key or KEY,
        aws_secret_access_key=secret or SECRET,
        verify=None if authority is None else str(authority.ca_file),
        config=AioConfig(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
    ) as client:
        yield client


def connection(server: S3 | str, **options: Any) -> S3Connection:
    """Return the connection to a server, or to a url."""
    url = server if isinstance(server, str) else server.url
    document = {
        "bucket": BUCKET,
        "access_key_id": "${KEY}",
        "secret_access_key": "${SECRET}",
        "endpoint": url,
        "allow_http": True,
    }
    return S3Connection.load(document | options)


def context(server: S3 | str, **options: Any) -> StubContext:
    """Return a context whose connection `lake` is the bucket of that server."""
    secrets = {"KEY": KEY, "SECRET": SECRET} | options.pop("secrets", {})
    lake = connection(server, **options.pop("connection", {}))
    return StubContext(connections={"lake": lake}, secrets=secrets, **options)


def output(**options: Any) -> S3Output:
    """Return an output to `lake`; without options each batch is a part."""
    return S3Output.load({"connection": "lake", "prefix": "", "rotate": ROTATE} | options)


UNDER_WAY = ".rclone_temp_put_"
"""How rclone names what it has not got whole yet."""


def sink(ctx: StubContext, **options: Any) -> S3Sink:
    """Return what an output writes to, which has asked for nothing yet."""
    made: AwaitingSink = output(**options).open(ctx)
    assert isinstance(made, S3Sink)
    return made


def objects(server: S3, prefix: str = "") -> dict[str, bytes]:
    """Return what lies below a prefix: keys in order, with their bytes."""
    root = server.objects
    files = sorted(path for path in (root / prefix).rglob("*") if path.is_file())
    whole = [path for path in files if not path.name.startswith(UNDER_WAY)]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in whole}


class Shop:
    """A store in memory: keeps parts, and does what it is told to before.

    It says what `faults` say first; while it is `closed`, uploads hang; each takes `seconds`. Those
    under `refused` keys it refuses until somebody acts, and those under `faulty` ones for what they are.
    With those under `broken` ones it has troubles of its own.
    """

    def __init__(self, clock: Clock, *, seconds: float = 0.0) -> None:
        self._clock = clock
        self.seconds = seconds
        self.faults: list[Exception] = []
        self.closed: asyncio.Event | None = None
        self.is_down = False
        self.prefix: str | None = None
        self.objects: dict[str, bytes] = {}
        self.taken: set[str] = set()
        self.refused: set[str] = set()
        self.faulty: set[str] = set()
        self.is_certain = True
        """Whether it is told that others would not be refused so."""
        self.broken: set[str] = set()
        self.parts: list[ObjectPart] = []
        self.times: list[float] = []
        self.tried: list[tuple[float, str]] = []
        self.under_way = self.most_under_way = 0
        self.is_open = False

    async def open(self, prefix: str) -> None:
        self.prefix, self.is_open = prefix, True

    async def send(self, part: ObjectPart) -> None:
        self.tried.append((self._clock.monotonic(), part.key))
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await self._clock.sleep(self.seconds)
            if self.closed is not None:
                await self.closed.wait()
        finally:
            self.under_way -= 1
        if self.faults:
            raise self.faults.pop(0)
        if part.key in self.refused:
            raise Declined("the shop refuses this one", "misconfigured")
        if part.key in self.faulty:
            raise Declined("the shop refuses this one", is_certain=self.is_certain)
        if self.is_down or part.key in self.broken:
            raise Unreachable("the shop does not answer")
        if part.key in self.taken:
            raise Taken
        assert part.content is not None
        assert part.content.packing == "none"
        self.taken.add(part.key)
        self.objects[part.key] = part.content.body
        self.parts.append(part)
        self.times.append(self._clock.monotonic())

    async def close(self) -> None:
        self.is_open = False


def shopping(
    ctx: StubContext, shop: Shop, given: BucketNumbers | None = None, **options: Any
) -> S3Sink:
    """Return a sink that writes to a shop; the only one there, or one of those with these numbers."""
    made = sink(ctx, **options)
    numbers = PartNumbers(BucketNumbers() if given is None else given)
    return S3Sink(made._config, ctx, shop, made._uploads._folder, ctx.parts_keep(), numbers)


class Wire:
    """What stands between an output and its store: lets so many bytes of requests through.

    Then it hangs, or cuts the connection. `mend` lets everything through again.
    """

    def __init__(self, server: S3) -> None:
        self._server = server
        self._listener: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.left: float = math.inf
        self.cuts = False
        self.reached = asyncio.Event()
        self._mended = asyncio.Event()

    @property
    def url(self) -> str:
        """Where it listens."""
        assert self._listener is not None
        return f"http://{HOST}:{self._listener.sockets[0].getsockname()[1]}"

    def limit(self, size: int, *, cuts: bool) -> None:
        """From now on, let no more than so many bytes through."""
        self.left, self.cuts = size, cuts
        self.reached.clear()
        self._mended.clear()

    def mend(self) -> None:
        """Let everything through."""
        self.left = math.inf
        self._mended.set()

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_server(self._joined, HOST, 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._listener is not None
        self._listener.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        theirs, ours = await asyncio.open_connection(HOST, self._server.port)
        back = asyncio.ensure_future(_copied(theirs, writer))
        try:
            await self._pass_on(reader, ours)
        finally:
            back.cancel()
            self._tasks.discard(task)
            for each in (writer, ours):
                each.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, ours: asyncio.StreamWriter) -> None:
        while text := await reader.read(64 * 1024):
            self.left -= len(text)
            if self.left < 0:
                self.reached.set()
                if self.cuts:
                    return
                await self._mended.wait()
            ours.write(text)
            await ours.drain()


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while text := await reader.read(64 * 1024):
            writer.write(text)
            await writer.drain()
