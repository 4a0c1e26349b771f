"""What earlier runs have left is told where no config names the store, and nothing of it is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.store.journal import Journal
from headrace.compiler.store.leftovers import holds_something
from headrace.compiler.store.letterrecords import Records
from headrace.connectors.http import HttpInput
from tests.compiler.runtime.durable import Gated, durable, engine_on, post
from tests.compiler.runtime.lettered import lettered, put_down
from tests.compiler.runtime.test_deadletters import Refusing
from tests.compiler.store.killed import kill
from tests.compiler.store.letters import ROOM, opened
from tests.compiler.store.letters import put_down as put
from tests.stand_ins import pipeline, run, takes
from tests.virtual import virtual

TOLD = "holds what an earlier run has kept, or another server keeps"


def state(folder: Path) -> list[tuple[str, int, int]]:
    """Return the files of a folder, each with its size and when it was written."""
    paths = sorted(each for each in folder.rglob("*") if each.is_file())
    return [(each.name, each.stat().st_size, each.stat().st_mtime_ns) for each in paths]


def plain(id: str) -> PipelineConfig:
    """Return a pipeline of which nothing is kept."""
    return pipeline(id, [HttpInput.load({})], [], [takes(Gated())])


@virtual
async def test_letters_that_no_config_names_are_told_at_the_start_and_not_touched(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with engine_on(tmp_path, lettered([takes(Refusing(1))])) as it:
        await post(it, [1])
    before = state(tmp_path)
    async with engine_on(tmp_path, plain("p")) as it:
        await run(it, plain("q"))
        assert await it.stored() is None
    assert state(tmp_path) == before
    assert [each.levelname for each in caplog.records if TOLD in each.message] == ["WARNING"]

    async with engine_on(tmp_path, lettered([takes(Gated())], id="another")) as it:
        assert [each.content for each in await put_down(it, "p")] == [[1]]
        [told] = await it.letter_signatures()
        assert told.pipeline == "p"


@pytest.mark.parametrize("folder", ["none", "empty", "named"])
@virtual
async def test_where_nothing_is_left_or_a_config_names_it_nothing_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, folder: str
) -> None:
    if folder != "none":
        async with engine_on(tmp_path, durable(Gated())) as it:
            await it.clock.sleep(1)
    config = durable(Gated()) if folder == "named" else plain("p")
    async with engine_on(tmp_path, config):
        pass

    assert TOLD not in caplog.text


@virtual
async def test_whether_a_store_holds_something_is_seen_without_opening_it(tmp_path: Path) -> None:
    assert not holds_something(tmp_path)
    store = await opened(tmp_path)
    await store.close()
    assert not holds_something(tmp_path)

    store = await opened(tmp_path)
    journal = await Journal.open(store, "p", "http", "journal", ROOM)
    await journal.append(b"1").stored()
    await journal.close()
    await store.close()
    assert holds_something(tmp_path)


@virtual
async def test_of_a_store_that_was_killed_it_is_said_that_there_may_be(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    await put(Records(store), b"1")
    kill(store)

    assert holds_something(tmp_path)


def test_so_it_is_of_one_that_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"no database" * 1_000)

    assert holds_something(tmp_path)
