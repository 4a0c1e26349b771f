"""Records the store that an engine of today leaves behind it, which every later one takes up.

    python -m tests.compiler.runtime.leaving FILE

Of everything that an engine keeps there is something in it. It is in virtual time, so each recording is the
same, but for the token of the part and the id of the store.
"""

from __future__ import annotations

import asyncio
import lzma
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from headrace.compiler.clock import Clock, run_virtual
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.component.states import BucketDeclaration, PipelineState
from headrace.compiler.config.program import Program
from headrace.compiler.config.storesettings import StoreSettings
from headrace.compiler.datadir import DataDir
from headrace.compiler.edges import AwaitingSink
from headrace.compiler.runtime.engine import Engine
from headrace.connectors.http import HttpInput
from headrace.connectors.s3 import S3Output
from headrace.connectors.s3.objectkeys import BucketNumbers, PartNumbers
from headrace.connectors.s3.sink import S3Sink
from headrace.operators.remember import Remember
from tests.compiler.runtime.durable import Gated, durable, post
from tests.compiler.runtime.keeping import Addressed
from tests.compiler.runtime.lasting import Batched, Described, lasting
from tests.compiler.runtime.lettered import lettered
from tests.compiler.runtime.test_deadletters import Refusing, casts
from tests.s3_sides import Shop, connection
from tests.stand_ins import pipeline, reads, takes, with_attribute

POSTED = (b'{"amount": 12.50, "code": 12345678901234567890123}', b'[{"n": 1}, {"n": "\xc3\xbc"}]')
"""What a durable input has taken, and nothing has written."""
QUEUED = b'[{"amount": 12.50}, {"n": "\xc3\xbc"}]'
"""What waits for an output."""
SENT = (b"no json", b'{"n": "one", "amount": 12.50}', b'{"n": 2}')
"""What a broker has sent: an input, a transform and an output of the pipeline each fail on one of them."""
FILED = (b'{"n": 1}', b'{"n": 2}')
"""What is in a part that could not be uploaded."""
REMEMBERED = {"m1": {"n": 21.5}, "größe": {"n": "läuft"}}
"""What a bucket has, by key."""
STORED = [{"n": 1}, {"n": 2}]
"""What a durable input has taken of a broker whose payloads are batches, as one of them."""
COUNTED = {"posts": (3, 3, 0), "queued": (2, 2, 0), "letters": (2, 1, 2), "p": (2, 2, 0)}
"""What was counted of some pipelines: messages in and out, and failures."""

WRAPPED = {"type": "wrap"}
KEYS = {"access_key_id": "any", "secret_access_key": "any"}


class Shelving(S3Output, kind="shelving"):
    """An output that is kept as the one of S3, and uploads to the shop it is given."""

    def kept_as(self) -> str:
        return "s3 lake p"

    def open(self, ctx: Context) -> AwaitingSink:
        shop: Shop = self.shop  # type: ignore[attr-defined]
        numbers = PartNumbers(BucketNumbers())
        return S3Sink(self, ctx, shop, None, ctx.parts_keep(), numbers)


class Exact(Addressed, kind="exact"):
    """An output with a queue, which keeps the digits of numbers."""

    def keeps_digits(self) -> bool:
        return True


class Left:
    """The pipelines of a recording, and what their outputs write to."""

    def __init__(self, clock: Clock, *, is_open: bool) -> None:
        """Take whether outputs write: of a recording they do not, and refuse what they are to refuse."""
        self.posts, self.queue = Gated(is_open=is_open), Gated(is_open=is_open)
        self.refusing = Refusing(*(() if is_open else ({"n": 2},)), says="no such press")
        self.broker, self.batched = Described(clock), Batched(clock)
        self.batches = Gated(is_open=is_open)
        self.shop = Shop(clock)
        self.shop.is_down = not is_open

    def configs(self) -> Sequence[PipelineConfig]:
        """Return them."""
        posted = HttpInput.load({})
        exact = Exact.load({"queue": True, "address": "redis bus out"})
        shelf = Shelving.load({"connection": "lake", "prefix": "p", "rotate": {"max_rows": 2}})
        remember = Remember.load({"remember": [{"field": "n", "as": "n"}]})
        remembering = pipeline("remembering", [posted], [remember], [takes(Gated())])
        return (
            durable(self.posts, id="posts", envelope=WRAPPED),
            pipeline("queued", [posted], [], [with_attribute(exact, "made", self.queue)]),
            lasting(self.batched, to=self.batches),
            lettered([takes(self.refusing)], [casts()], [reads(self.broker)], id="letters"),
            pipeline("lake", [posted], [], [with_attribute(shelf, "shop", self.shop)]),
            replace(remembering, state=PipelineState(bucket="machines", key="m")),
        )


@asynccontextmanager
async def engine_of(folder: Path, left: Left, clock: Clock) -> AsyncIterator[Engine]:
    """Give an engine that has the store of a folder and runs these pipelines; it ends in order."""
    settings = StoreSettings.load({"sync": "process", "keep_free_bytes": 0})
    it = Engine(
        clock,
        connections={"lake": connection("http://127.0.0.1:1", **KEYS)},
        data_dir=DataDir(folder),
        store=settings,
        is_history_durable=True,
    )
    try:
        await it.load(Program(left.configs(), {"machines": BucketDeclaration(durable=True)}))
        yield it
    finally:
        await it.close()


async def leave(folder: Path) -> None:
    """Have an engine leave a store in a folder."""
    clock = Clock(asyncio.get_running_loop())
    left = Left(clock, is_open=False)
    async with engine_of(folder, left, clock) as it:
        for id, bodies in (("posts", POSTED), ("queued", [QUEUED]), ("lake", FILED)):
            for body in bodies:
                await post(it, body, id)
        for key, values in REMEMBERED.items():
            await post(it, {"m": key, **values}, "remembering")
        left.broker.send(*SENT)
        left.batched.send(STORED)
        await clock.sleep(10)


def recorded() -> bytes:
    """Return the file of such a store."""
    with tempfile.TemporaryDirectory() as folder:
        run_virtual(partial(leave, Path(folder)))
        return Path(folder, "store", "0", "store.db").read_bytes()


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(lzma.compress(recorded(), preset=9))
