"""Durable buckets of a running engine: what is let go of, and what a restart or a revert does."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.component.deadletteroptions import DeadLetterOptions
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.component.states import BucketDeclaration, PipelineState
from headrace.compiler.config.program import Program
from headrace.compiler.config.storesettings import StoreSettings
from headrace.compiler.datadir import DataDir
from headrace.compiler.delivery import Batch
from headrace.compiler.durablebucket import BucketFill
from headrace.compiler.errors import Refused, StoredInUse
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.revert.reverting import NotReverted, Target
from headrace.compiler.store import buckettables
from headrace.compiler.store.database import Database
from headrace.compiler.store.storedrows import Changes
from headrace.connectors.http import HttpInput
from headrace.operators.remember import Remember
from tests.compiler.runtime.durable import Gated, kept, post
from tests.compiler.runtime.lettered import put_down
from tests.compiler.runtime.test_letterreplay import Replaying
from tests.promises import promise
from tests.stand_ins import Given, Told, batches, does, pipeline, takes, with_attribute
from tests.virtual import virtual

DURABLE = BucketDeclaration(durable=True)
REMEMBER = Remember.load({"remember": [{"field": "n", "as": "n"}]})


def remembering(*sinks: Gated, id: str = "p", durable: bool = True) -> PipelineConfig:
    """Return a pipeline that remembers `n` of each message by its machine."""
    source = HttpInput.load({"durable": durable} if durable else {})
    config = pipeline(id, [source], [REMEMBER], [takes(sink) for sink in sinks])
    return replace(config, state=PipelineState(bucket="machines", key="m"))


@asynccontextmanager
async def engine_with(
    folder: Path | None, *pipelines: PipelineConfig, **buckets: BucketDeclaration
) -> AsyncIterator[Engine]:
    """Give an engine with buckets and pipelines; it ends in order."""
    settings = StoreSettings.load({"sync": "process", "keep_free_bytes": 0})
    data_dir = None if folder is None else DataDir(folder)
    it = Engine(Clock(asyncio.get_running_loop()), data_dir=data_dir, store=settings)
    try:
        await it.load(Program(pipelines, buckets))
        yield it
    finally:
        await it.close()


def failing(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Have commits fail that remember something, while the one item of what is returned is true."""
    commit, fails = Database.commit, [True]

    def fail(self: Database, changes: Changes) -> None:
        if fails[0] and changes.remembered:
            raise sqlite3.OperationalError("disk I/O error")
        commit(self, changes)

    monkeypatch.setattr(Database, "commit", fail)
    return fails


def held(it: Engine, name: str = "machines") -> dict[str, Any]:
    bucket = it.state.get(name)
    assert bucket is not None
    return {key: dict(entry.values) for key, entry in bucket.entries.items()}


@promise("delivery.bucket.restart")
@virtual
async def test_what_is_remembered_is_there_after_a_restart(tmp_path: Path) -> None:
    async with engine_with(tmp_path, remembering(), machines=DURABLE) as it:
        await post(it, [{"m": "a", "n": 1}, {"m": "b", "n": 2}])
        await post(it, {"m": "a", "n": 3})
        await it.clock.sleep(1)
    async with engine_with(tmp_path, remembering(), machines=DURABLE) as it:
        assert held(it) == {"b": {"n": 2}, "a": {"n": 3}}


@virtual
async def test_without_durable_nothing_is_on_the_disk(tmp_path: Path) -> None:
    config = remembering(durable=False)
    async with engine_with(tmp_path, config, machines=BucketDeclaration()) as it:
        await post(it, {"m": "a", "n": 1})
        await it.clock.sleep(1)
        assert await it.stored() is None
    assert os.listdir(tmp_path) == []


@promise("delivery.bucket.custody")
@virtual
async def test_a_post_is_let_go_of_when_what_it_wrote_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = Gated()
    async with engine_with(tmp_path, remembering(out), machines=DURABLE) as it:
        fails = failing(monkeypatch)
        await post(it, {"m": "a", "n": 1})
        await it.clock.sleep(3)
        before = await kept(it)
        written = [*out.messages]
        fails[0] = False
        await it.clock.sleep(3)
        after = await kept(it)

    assert written == [{"m": "a", "n": 1}]
    assert (before["p", False], after["p", False]) == (1, 0)


@promise("delivery.bucket.twice")
@virtual
async def test_what_is_not_on_the_disk_at_the_end_is_written_again_by_its_post(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, again = Gated(), Gated()
    async with engine_with(tmp_path, remembering(out), machines=DURABLE) as it:
        fails = failing(monkeypatch)
        await post(it, {"m": "a", "n": 1})
        await it.clock.sleep(3)
    fails[0] = False
    async with engine_with(tmp_path, remembering(again), machines=DURABLE) as it:
        await it.clock.sleep(3)
        assert held(it) == {"a": {"n": 1}}
        assert await kept(it) == {("", False): 1, ("p", False): 0}
    assert out.messages == again.messages == [{"m": "a", "n": 1}]


class Late(Given, kind="late"):
    """An input whose broker is told when all has left the outputs."""

    acknowledges = is_acknowledged_late = True


class AtOnce(Given, kind="at-once"):
    """An input whose broker is told as soon as something has come."""

    acknowledges = True


@promise("delivery.bucket.custody")
@pytest.mark.parametrize(("kind", "told"), [(Late, [0, 1]), (AtOnce, [1, 1])])
@virtual
async def test_a_broker_is_told_when_what_was_written_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Given], told: list[int]
) -> None:
    source = Told(Clock(asyncio.get_running_loop()), [1, batches([{"m": "a", "n": 1}])])
    config = pipeline("p", [with_attribute(kind(), "made", source)], [REMEMBER], [])
    config = replace(config, state=PipelineState(bucket="machines", key="m"))
    async with engine_with(tmp_path, config, machines=DURABLE) as it:
        fails = failing(monkeypatch)
        await it.clock.sleep(3)
        before = len(source.acknowledged)
        fails[0] = False
        await it.clock.sleep(3)

        assert [before, len(source.acknowledged)] == told


@promise("delivery.bucket.failing")
@virtual
async def test_others_go_on_while_the_disk_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, other = Gated(), Gated()
    plain = pipeline("plain", [HttpInput.load({})], [], [takes(other)])
    async with engine_with(tmp_path, remembering(out), plain, machines=DURABLE) as it:
        fails = failing(monkeypatch)
        await post(it, {"m": "a", "n": 1})
        await it.clock.sleep(1)
        await post(it, "on", "plain")
        await it.clock.sleep(1)
        assert (out.messages, other.messages) == ([{"m": "a", "n": 1}], ["on"])
        fails[0] = False


@virtual
async def test_without_a_directory_it_is_refused_where_it_stands() -> None:
    with pytest.raises(Refused) as refused:
        async with engine_with(None, machines=DURABLE, other=BucketDeclaration()):
            pass
    [said] = refused.value.diagnostics
    assert (said.code, said.path) == ("no-data-dir", "state.machines.durable")
    assert said.message == "nothing can be kept without --data-dir"
    assert said.expected == "--data-dir DIRECTORY on the command line, or no 'durable'"


@virtual
async def test_all_that_cannot_be_kept_without_a_directory_is_told_at_once() -> None:
    lettered = replace(remembering(), dead_letters=DeadLetterOptions())
    plain = remembering(id="q", durable=False)
    said = ["state.machines.durable", "dead_letters", "inputs[0].durable"]

    with pytest.raises(Refused) as refused:
        async with engine_with(None, lettered, plain, machines=DURABLE):
            pass
    assert [each.path for each in refused.value.diagnostics] == said

    async with engine_with(None, plain, machines=BucketDeclaration()) as it:
        buckets = {"machines": DURABLE}
        with pytest.raises(NotReverted) as left:
            await it.revert(Target(Program((lettered, plain), buckets), {}))
        assert [each.path for each in left.value.diagnostics] == said
        assert [*it.configs()] == ["q"]
        assert not it.declarations["machines"].durable


@promise("delivery.bucket.gone")
@virtual
async def test_one_that_is_gone_is_left_over_until_it_is_declared_again(tmp_path: Path) -> None:
    async with engine_with(tmp_path, remembering(), machines=DURABLE) as it:
        await post(it, {"m": "a", "n": 1})
        await it.revert(Target(Program(()), {}))
        left = await kept(it)
        await it.revert(Target(Program((remembering(),), {"machines": DURABLE}), {}))
        again = held(it)
    async with engine_with(tmp_path, machines=DURABLE) as it:
        assert held(it) == again == {"a": {"n": 1}}
    assert left["", True] == 1


@virtual
async def test_one_that_is_left_over_is_counted_once_and_again_when_it_was_taken_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []
    fill = buckettables.fill

    def counting(run: sqlite3.Connection, bucket: int) -> BucketFill:
        counted.append(bucket)
        return fill(run, bucket)

    monkeypatch.setattr(buckettables, "fill", counting)
    gone, back = (
        Target(Program(()), {}),
        Target(Program((remembering(),), {"machines": DURABLE}), {}),
    )
    async with engine_with(tmp_path, remembering(), machines=DURABLE) as it:
        await post(it, {"m": "a", "n": 1})
        await it.revert(gone)
        first = (await kept(it))["", True]
        await it.revert(Target(Program((pipeline("other", [HttpInput.load({})], [], []),), {}), {}))
        again = (await kept(it))["", True], len(counted)
        await it.revert(back)
        await post(it, {"m": "b", "n": 1})
        await it.revert(gone)
        last = (await kept(it))["", True]

    assert (first, again, last, len(counted)) == (1, (1, 1), 2, 2)


@promise("delivery.bucket.gone")
@virtual
async def test_one_that_is_declared_in_another_way_begins_empty(tmp_path: Path) -> None:
    more = BucketDeclaration(durable=True, max_keys=7)
    async with engine_with(tmp_path, remembering(), machines=DURABLE) as it:
        await post(it, {"m": "a", "n": 1})
        await it.clock.sleep(1)
        plan = await it.revert(Target(Program((remembering(),), {"machines": more}), {}))
        assert [(each.name, each.keys) for each in plan.buckets.changed] == [("machines", 1)]
        assert held(it) == {}
        await post(it, {"m": "b", "n": 2})
        await it.clock.sleep(1)
        figures = await kept(it)
    async with engine_with(tmp_path, remembering(), machines=more) as it:
        assert held(it) == {"b": {"n": 2}}
    assert (figures["", True], figures["", False]) == (1, 1)


@virtual
async def test_the_same_declaration_goes_on(tmp_path: Path) -> None:
    async with engine_with(tmp_path, remembering(), machines=DURABLE) as it:
        await post(it, {"m": "a", "n": 1})
        await it.clock.sleep(1)
        bucket = it.state.get("machines")
        await it.revert(Target(Program((remembering(Gated()),), {"machines": DURABLE}), {}))
        assert it.state.get("machines") is bucket
        await post(it, {"m": "b", "n": 2})
    async with engine_with(tmp_path, machines=DURABLE) as it:
        assert held(it) == {"a": {"n": 1}, "b": {"n": 2}}


@virtual
async def test_what_a_pipeline_writes_as_it_ends_for_a_revert_is_kept(tmp_path: Path) -> None:
    async with engine_with(tmp_path, remembering(), machines=DURABLE) as it:
        for n in range(50):
            await post(it, {"m": f"{n}", "n": n})
        await it.revert(Target(Program(()), {}))
    async with engine_with(tmp_path, machines=DURABLE) as it:
        assert len(held(it)) == 50


@virtual
async def test_a_revert_to_one_is_refused_without_a_directory() -> None:
    async with engine_with(None) as it:
        with pytest.raises(NotReverted, match="nothing was changed"):
            await it.revert(Target(Program((), {"machines": DURABLE}), {}))


@virtual
async def test_what_is_left_over_can_be_discarded_and_what_is_declared_cannot(
    tmp_path: Path,
) -> None:
    async with engine_with(tmp_path, remembering(), machines=DURABLE) as it:
        await post(it, {"m": "a", "n": 1})
        await it.clock.sleep(1)
        figures = await it.stored()
        assert figures is not None
        [part] = [each for each in figures.parts if each.part == "bucket"]
        assert (part.pipeline, part.target, part.entries) == ("", "machines", 1)
        assert (part.state, part.left_over, part.bytes) == ("open", False, len('{"n":1}'))
        assert part.oldest is not None
        with pytest.raises(StoredInUse, match="is in use by bucket 'machines'"):
            await it.discard_stored(part.id)
        await it.revert(Target(Program(()), {}))
        await it.discard_stored(part.id)
        assert ("", True) not in await kept(it)
    async with engine_with(tmp_path, machines=DURABLE) as it:
        assert held(it) == {}


@virtual
async def test_a_letter_that_is_replayed_is_gone_when_what_it_wrote_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuses = [True]

    def refuse(batch: Batch) -> list[Batch]:
        if refuses[0]:
            raise ValueError("not now")
        return [batch]

    config = remembering()
    config = replace(
        config, transforms=(does(refuse), *config.transforms), dead_letters=DeadLetterOptions()
    )
    async with engine_with(tmp_path, config, machines=DURABLE) as it:
        await post(it, {"m": "a", "n": 1})
        await it.clock.sleep(1)
        refuses[0] = False
        fails = failing(monkeypatch)
        replaying = Replaying(it)
        await replaying.begin()
        await it.clock.sleep(3)
        before = len(await put_down(it))
        fails[0] = False
        await it.clock.sleep(3)

        assert (before, len(await put_down(it)), held(it)) == (1, 0, {"a": {"n": 1}})


@virtual
async def test_a_load_that_is_refused_leaves_what_is_stored(tmp_path: Path) -> None:
    async with engine_with(tmp_path, remembering(), machines=DURABLE) as it:
        await post(it, {"m": "a", "n": 1})
    twice = remembering(), remembering()
    with pytest.raises(Exception, match="p"):
        async with engine_with(tmp_path, *twice, machines=DURABLE):
            pass
    async with engine_with(tmp_path, machines=DURABLE) as it:
        assert held(it) == {"a": {"n": 1}}
