"""The plan of a change tells what becomes of what is kept on disk, and that is what becomes of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.revert.plan import Plan
from tests.compiler.runtime.durable import Gated, engine_on, post
from tests.compiler.runtime.keeping import addressed, file_of, keeping, parts
from tests.compiler.runtime.test_outputqueue_endings import Away
from tests.stand_ins import run
from tests.virtual import virtual

Fate = tuple[str, str, int, str]
"""The pipeline, the target, how many entries, and what becomes of them."""


def fates(plan: Plan) -> list[Fate]:
    return [(each.pipeline_id, each.target, each.entries, each.becomes) for each in plan.stored]


async def filled(it: Engine, *configs: PipelineConfig) -> None:
    """Have pipelines run, of which each keeps three posts."""
    for config in configs:
        await run(it, config)
        for n in range(3):
            await post(it, n, str(config.id))
    await it.clock.sleep(1)


async def becomes_so(it: Engine, configs: Sequence[PipelineConfig], plan: Plan) -> None:
    """Do what was planned, and check that it has come as it was told."""
    await it.revert(file_of(*configs))
    is_left = {(pipeline, target): left for pipeline, target, _, left in await parts(it)}
    for each in plan.stored:
        place = each.pipeline_id, each.target
        assert is_left[place] is (each.becomes == "left_over"), each


@virtual
async def test_it_goes_on_is_left_over_or_is_taken_up(tmp_path: Path) -> None:
    def stuck() -> Gated:
        return Gated(is_open=False)

    async with engine_on(tmp_path) as it:
        await filled(
            it,
            keeping(stuck(), id="stays"),
            keeping(stuck(), id="changes"),
            keeping(addressed(Away()), id="queued", durable=None),
            keeping(stuck(), id="goes"),
        )
        first = [keeping(stuck(), id="stays")]
        first += [keeping(stuck(), id="changes", durable={"max_bytes": 10**6})]
        first += [keeping(addressed(Away(), "elsewhere"), id="queued", durable=None)]
        plan = await it.plan(file_of(*first))
        assert fates(plan) == [
            ("changes", "http", 3, "goes_on"),
            ("queued", "db", 3, "left_over"),
            ("goes", "http", 3, "left_over"),
        ]
        await becomes_so(it, first, plan)

        second = [keeping(stuck(), id="goes")]
        second += [keeping(addressed(Away()), id="queued", durable=None)]
        plan = await it.plan(file_of(*second))
        assert fates(plan) == [
            ("stays", "http", 3, "left_over"),
            ("changes", "http", 3, "left_over"),
            ("queued", "db", 3, "taken_up"),
            ("goes", "http", 3, "taken_up"),
        ]
        assert plan.pipelines.added == ("goes",)
        await becomes_so(it, second, plan)


@virtual
async def test_what_a_deleted_pipeline_left_is_no_part_of_it(tmp_path: Path) -> None:
    async with engine_on(tmp_path) as it:
        await filled(it, keeping(Gated(is_open=False)))
        await it.dispose("p")
        plan = await it.plan(file_of(keeping(Gated())))

        assert await parts(it) == [("p", "http", 3, True)]
        assert fates(plan) == []


@virtual
async def test_an_exchange_is_planned_as_well(tmp_path: Path) -> None:
    async with engine_on(tmp_path) as it:
        await filled(it, keeping(Gated(is_open=False)), keeping(Gated(is_open=False), id="other"))
        plan = await it.plan_exchange("p", keeping(Gated(), durable=None))

        assert fates(plan) == [("p", "http", 3, "left_over")]


@virtual
async def test_where_nothing_is_kept_nothing_is_told(tmp_path: Path) -> None:
    async with engine_on(tmp_path, keeping(Gated())) as it:
        await post(it, 1)
        await it.clock.sleep(1)
        assert fates(await it.plan(file_of())) == []
    (nothing := tmp_path / "nothing").mkdir()
    async with engine_on(nothing, keeping(Gated(), durable=None)) as it:
        assert fates(await it.plan(file_of())) == []
