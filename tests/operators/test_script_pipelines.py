"""Scripts in pipelines that run: state they share, long runs beside others, the end of a pipeline."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reactivex.subject import Subject

from headrace.authoring.configfiles import catalogue
from headrace.compiler.buckets import Bounds
from headrace.compiler.clock import Clock
from headrace.compiler.component.families import Transform
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.component.states import PipelineState
from headrace.compiler.config.program import load_program
from headrace.compiler.delivery import Delivery, Window
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.text.documents import read
from headrace.operators.buffer import Buffer
from tests.doubles import StubContext
from tests.operators.scripted import script
from tests.stand_ins import Kept, Told, batches, reads, running, takes
from tests.virtual import virtual

# Some fifty milliseconds of work: a slice is two of them.
LONG = "let n = 0;\nwhile n < 300_000 { n += 1; }\nemit(msg);"


def engine(**buckets: Bounds) -> Engine:
    it = Engine(Clock(asyncio.get_running_loop()))
    it.state.declare(buckets)
    return it


def config(
    it: Engine, id: str, told: list[Any], *transforms: Transform, bucket: str | None = None
) -> tuple[PipelineConfig, Kept]:
    """Return a pipeline that is told something, and what keeps what leaves it."""
    kept = Kept(it.clock)
    state = None if bucket is None else PipelineState(bucket=bucket)
    source = reads(Told(it.clock, told))
    return PipelineConfig(
        id=id, inputs=(source,), transforms=transforms, outputs=(takes(kept),), state=state
    ), kept


def long(**options: Any) -> Transform:
    return script(LONG, max_operations=10**9, **options)


async def turns(it: Engine, until: Mapping[str, Any] | list[Any]) -> int:
    """Give turns until something is there; return how many it took. A run that fails brings nothing."""
    count = 0
    while not until:
        await it.clock.sleep(0)
        count += 1
        assert not any(running(it, id).failures.table.latest() for id in it.names())
    return count


@virtual
async def test_one_pipeline_recalls_what_another_remembers() -> None:
    it = engine(b=Bounds())
    writes, _ = config(
        it,
        "w",
        [batches(["auto"]), 5, batches(["manual"])],
        script('remember("m", #{ mode: msg })'),
        bucket="b",
    )
    looks, kept = config(
        it, "r", [1, batches([1]), 5, batches([2])], script('emit(recall("m"))'), bucket="b"
    )

    await it.compile(writes)
    await it.compile(looks)
    await it.clock.sleep(10)

    assert kept.batches == [[{"mode": "auto"}], [{"mode": "manual"}]]


@virtual
async def test_pipelines_with_buckets_of_their_own_share_nothing() -> None:
    it = engine(a=Bounds(), b=Bounds())
    code = 'emit(recall("k")); remember("k", #{ by: msg })'
    one, kept = config(it, "a", [batches(["a"], ["a"])], script(code), bucket="a")
    two, other = config(it, "b", [batches(["b"], ["b"])], script(code), bucket="b")

    await it.compile(one)
    await it.compile(two)
    await it.clock.sleep(1)

    assert kept.batches == [[None], [{"by": "a"}]]
    assert other.batches == [[None], [{"by": "b"}]]


@virtual
async def test_what_expires_by_the_clock_is_not_recalled() -> None:
    it = engine(b=Bounds(idle_seconds=60))
    code = 'emit(recall("k") == ()); remember("k", #{ n: 1 })'
    asks, kept = config(
        it, "p", [batches([0]), 59, batches([0]), 60, batches([0])], script(code), bucket="b"
    )

    await it.compile(asks)
    await it.clock.sleep(200)

    assert kept.batches == [[True], [False], [True]]


@virtual
async def test_others_go_on_during_a_long_run_and_no_time_passes() -> None:
    it = engine()
    slow, waited_for = config(it, "slow", [batches([1])], long())
    quick, passed = config(it, "quick", [each for n in range(10) for each in (batches([n]), 0)])
    began = it.clock.monotonic()

    await it.compile(slow)
    await it.compile(quick)
    await turns(it, passed.batches)
    assert waited_for.batches == []  # it has begun, and needs many slices more
    count = await turns(it, waited_for.batches)

    assert count >= 5
    assert len(passed.batches) == 10
    assert waited_for.batches == [[1]]
    assert it.clock.monotonic() == began


@virtual
async def test_batches_stay_in_order_behind_a_long_one_and_the_window_bounds_them() -> None:
    it = engine()
    code = "let n = 0; if msg == 0 { while n < 200_000 { n += 1; } } emit(msg);"
    told = [batches(*[[n] for n in range(40)])]
    slow, kept = config(it, "p", told, script(code, max_operations=10**9))

    await it.compile(slow)
    await it.clock.sleep(0)
    await it.clock.sleep(0)
    assert running(it, "p").in_flight == 16
    await turns(it, kept.batches)
    await it.clock.sleep(1)

    assert kept.batches == [[n] for n in range(40)]


@virtual
async def test_a_long_run_that_fails_fails_its_batch_and_later_ones_go_on() -> None:
    it = engine()
    code = LONG + "\nif msg == 1 { throw `no ${msg}` }"
    slow, kept = config(it, "p", [batches([1], [2])], script(code, max_operations=10**9))

    await it.compile(slow)
    await it.clock.sleep(1)

    [failure] = running(it, "p").failures.table.latest()
    assert (failure.stage, failure.component, failure.message, failure.count) == (
        "transform",
        0,
        "script line 4, column 15: no 1",
        1,
    )
    assert kept.batches == [[2]]


@virtual
async def test_a_pipeline_that_is_stopped_finishes_what_it_has_begun() -> None:
    it = engine()
    slow, kept = config(it, "p", [batches([1], [2])], long(), Buffer(size=10))

    await it.compile(slow)
    await it.clock.sleep(0)
    await it.clock.sleep(0)
    await it.dispose("p")

    assert (kept.batches, kept.finished) == ([[1, 2]], 1)


@virtual
async def test_a_run_without_end_holds_nobody_up() -> None:
    it = engine()
    endless, kept = config(it, "p", [batches([1])], script("loop { }", max_operations=10**15))
    quick, passed = config(it, "quick", [batches([0])])

    await it.compile(endless)
    await it.compile(quick)
    await turns(it, passed.batches)
    while not running(it, "p").failures.table.latest():
        await it.clock.sleep(0)

    [failure] = running(it, "p").failures.table.latest()
    assert failure.message == "script line 1: stopped after 1 s: no run may take longer"
    assert kept.batches == []


@virtual
async def test_disposal_gives_up_what_is_paused() -> None:
    ctx, source, out = StubContext(), Subject(), []
    window = Window()
    endless = script("loop { }", max_operations=10**15)
    subscription = endless.operator(ctx)(source).subscribe(out.append)

    source.on_next(Delivery([1], window))
    await ctx.clock.sleep(0)
    await ctx.clock.sleep(0)
    subscription.dispose()
    await ctx.clock.sleep(1)

    assert (out, ctx.failures) == ([], [])
    assert asyncio.all_tasks() == {asyncio.current_task()}


@virtual
async def test_a_config_is_built_with_the_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "units.rhai").write_text("fn twice(x) { x * 2 }")
    (tmp_path / "double.rhai").write_text(
        'import "lib/units" as u; for n in 0..u::twice(2) { emit(n) }'
    )
    text = """\
- id: p
  inputs: [{type: dummy, duration: 1}]
  transforms: [{type: script, source: {type: file, path: double.rhai}}]
"""
    document = read(text, "a.yaml", "yaml")
    program, said = load_program(document, catalogue(), base=tmp_path)
    it = Engine(Clock(asyncio.get_running_loop()), base=tmp_path)

    assert said == []
    assert program is not None
    await it.load(program)
    await it.clock.sleep(1.5)

    view = running(it, "p")
    assert view.failures.table.latest() == []
    assert view.counters.outbound == 4 * view.counters.inbound > 0
    await it.close()
