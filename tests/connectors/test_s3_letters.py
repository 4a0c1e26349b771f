"""What an object store refuses for ever becomes dead letters of its pipeline, against a store that runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.config.storesettings import StoreSettings
from headrace.compiler.datadir import DataDir
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.schema.secrets import Secrets
from headrace.connectors.http import HttpInput
from headrace.connectors.s3 import S3Output
from headrace.connectors.s3.objectkeys import PartNumbers
from tests.compiler.runtime.durable import kept, post
from tests.compiler.runtime.lettered import lettered, lost, put_down
from tests.compiler.runtime.test_letterreplay import Replaying
from tests.promises import promise
from tests.s3_sides import connection, objects, output
from tests.services.s3 import KEY, S3, SECRET
from tests.stand_ins import pipeline, run
from tests.waiting import until

TOO_LONG = "x" * 1_100
HOUR = 3_600


@asynccontextmanager
async def engine_with(server: S3 | str, folder: Path) -> AsyncIterator[Engine]:
    """Give an engine with the connection `lake` to a store, which keeps things below a folder."""
    it = Engine(
        Clock(asyncio.get_running_loop()),
        connections={"lake": connection(server)},
        secrets=Secrets({"KEY": KEY, "SECRET": SECRET}, {}),
        data_dir=DataDir(folder),
        store=StoreSettings.load({"sync": "process", "keep_free_bytes": 0}),
    )
    try:
        yield it
    finally:
        await it.close()


def without_letters(out: S3Output) -> PipelineConfig:
    """Return a pipeline that keeps no letters, with a durable input."""
    return pipeline("p", [HttpInput.load({"durable": True})], [], [out])


@pytest.fixture
def long_keys(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Have parts with these numbers get keys that a store refuses; the numbers that are in it."""
    wrong: list[int] = []
    numbered = PartNumbers.numbered

    def longer(self: PartNumbers, name: str) -> str:
        wrong.append(1)
        key = numbered(self, name)
        return key if len(wrong) % 2 else key.replace("p/", f"p/{TOO_LONG}/", 1)

    monkeypatch.setattr(PartNumbers, "numbered", longer)
    return wrong


def landed(server: S3, prefix: str) -> list[object]:
    """Return the messages of all objects below a prefix."""
    found = [json.loads(line) for body in objects(server, prefix).values() for line in body.split()]
    return sorted(found)


@promise("delivery.parts.refused")
async def test_a_part_that_is_refused_alone_becomes_a_letter_which_is_replayed_into_its_output(
    tmp_path: Path, object_store: S3, long_keys: list[int], monkeypatch: pytest.MonkeyPatch
):
    out = output(prefix="letters/p", rotate={"max_rows": 2, "interval_secs": HOUR})
    async with engine_with(object_store, tmp_path) as it:
        config = lettered([out], inputs=[HttpInput.load({"durable": True})])
        await run(it, config)
        for n in range(1, 7):
            await post(it, n)
        letters = []
        while not letters or len(landed(object_store, "letters")) < 4:
            await it.clock.sleep(0.01)
            letters = await put_down(it)
        entries = await kept(it)
        monkeypatch.undo()
        figures = await Replaying(it).to_its_end(edited=[7])  # of which no part would be full

        [letter] = letters
        assert (letter.place, letter.failure, letter.content) == ("output[0]", "invalid", [3, 4])
        assert "says 'KeyTooLongError" in letter.message
        assert landed(object_store, "letters") == [1, 2, 5, 6, 7]
        assert (figures.done, figures.failed, figures.state) == (1, 0, "done")
        assert await put_down(it) == []
        assert set(entries.values()) == {0}  # neither the input nor the output has it still
        assert lost(it) == {}


@promise("delivery.parts.refused")
async def test_without_letters_it_is_counted_as_lost_and_not_held(
    tmp_path: Path, object_store: S3, long_keys: list[int]
):
    out = output(prefix="lost/p", rotate={"max_rows": 2})
    async with engine_with(object_store, tmp_path) as it:
        await run(it, without_letters(out))
        for n in range(1, 7):
            await post(it, n)
        await until(lambda: landed(object_store, "lost") == [1, 2, 5, 6] and bool(lost(it)))

        assert lost(it) == {("output[0]", "batch"): 2}
        while any((await kept(it)).values()):
            await it.clock.sleep(0.01)
