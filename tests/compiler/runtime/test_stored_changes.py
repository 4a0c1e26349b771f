"""What becomes of what is kept on the disk when configs change."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.component.queuedoutput import QueuedOutput
from headrace.compiler.runtime.wayin import NoRoom
from tests.compiler.runtime.durable import Gated, engine_on, post
from tests.compiler.runtime.keeping import addressed, file_of, keeping, parts
from tests.compiler.runtime.test_outputqueue_endings import Away
from tests.promises import promise
from tests.stand_ins import does, run
from tests.virtual import virtual

LONGEST_SECONDS = 4.6
"""How long a change takes where an output does not answer: 3.5 s, and a second for it to finish."""


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what was said of what is left over."""
    return [
        each.message
        for each in caplog.records
        if each.levelno == logging.WARNING and "left over in the store" in each.message
    ]


@virtual
async def test_other_transforms_have_what_is_in_a_journal(tmp_path: Path) -> None:
    stuck, out = Gated(is_open=False), Gated()
    doubled = does(lambda batch: [[2 * message for message in batch]])
    async with engine_on(tmp_path, keeping(stuck)) as it:
        for n in range(40):
            await post(it, n)
        await it.exchange("p", keeping(out, transforms=[doubled]), None)
        await it.clock.sleep(5)
        left = await parts(it)

    assert out.messages == [2 * n for n in range(40)]
    assert left == []


@promise("delivery.queue.changed")
@virtual
async def test_another_output_of_the_same_target_writes_what_is_in_a_queue(tmp_path: Path) -> None:
    away, out, other = Away(), Gated(), Gated()
    async with engine_on(tmp_path, keeping(addressed(away), durable=None)) as it:
        for n in range(40):
            await post(it, n)
        await it.clock.sleep(1)
        changed = keeping(addressed(other, "elsewhere"), addressed(out), durable=None)
        await it.exchange("p", changed, None)
        await it.clock.sleep(5)
        left = await parts(it)

    assert (out.messages, other.messages) == ([*range(40)], [])
    assert left == []


@pytest.mark.parametrize("is_removed", [False, True], ids=["field removed", "pipeline removed"])
@virtual
async def test_what_is_not_kept_any_more_is_written_first_where_the_output_answers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, is_removed: bool
) -> None:
    out, later = Gated(is_open=False), Gated()
    async with engine_on(tmp_path, keeping(out)) as it:
        for n in range(40):
            await post(it, n)
        it.clock.call_later(2.0, out.gate.set)
        if is_removed:
            await it.revert(file_of())
        else:
            await it.exchange("p", keeping(later, durable=None), None)
        left = await parts(it)

    assert out.messages == [*range(40)]
    assert (left, warnings(caplog)) == ([], [])


@promise("delivery.queue.changed")
@pytest.mark.parametrize(
    ("output", "target"),
    [(None, "http"), ("queue", "db")],
    ids=["durable", "queue"],
)
@pytest.mark.parametrize("is_removed", [False, True], ids=["field removed", "pipeline removed"])
@virtual
async def test_the_rest_is_left_over_told_and_taken_up_when_it_is_kept_again(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    output: str | None,
    target: str,
    is_removed: bool,
) -> None:
    away, meanwhile, out = Away(), Gated(), Gated()

    def kept(sink: Gated) -> Any:
        if output is None:
            return keeping(sink if sink is out else Gated(is_open=False))
        return keeping(addressed(sink), durable=None)

    without = file_of() if is_removed else file_of(keeping(meanwhile, durable=None))
    async with engine_on(tmp_path, kept(away)) as it:
        for n in range(40):
            await post(it, n)
        await it.clock.sleep(1)
        began = it.clock.monotonic()
        await it.revert(without)
        took = it.clock.monotonic() - began
        left = await parts(it)
        figures = await it.stored()
        assert figures is not None
        [part] = [each for each in figures.parts if each.left_over]
        await it.revert(file_of(kept(out)))
        await it.clock.sleep(5)
        after = await parts(it)

    assert 3.4 < took < LONGEST_SECONDS
    assert left == [("p", target, 40, True)]
    assert not part.ended
    [told] = warnings(caplog)
    assert f"left over in the store: entries: 40 ({part.bytes:,} bytes)" in told
    assert out.messages == [*range(40)]
    assert after == []


@virtual
async def test_what_is_left_over_is_taken_up_after_a_restart_as_well(tmp_path: Path) -> None:
    stuck, out = Gated(is_open=False), Gated()
    async with engine_on(tmp_path, keeping(stuck)) as it:
        for n in range(10):
            await post(it, n)
        await it.revert(file_of())
    async with engine_on(tmp_path, keeping(Gated(), id="other")) as it:
        left = await parts(it)
    async with engine_on(tmp_path, keeping(out)) as it:
        await it.clock.sleep(5)

    assert left == [("p", "http", 10, True)]
    assert out.messages == [*range(10)]


@virtual
async def test_what_a_deleted_pipeline_left_is_not_taken_up_by_a_revert(tmp_path: Path) -> None:
    stuck, out = Gated(is_open=False), Gated()
    async with engine_on(tmp_path, keeping(stuck)) as it:
        for n in range(10):
            await post(it, n)
        await it.dispose("p")
        await it.revert(file_of(keeping(out)))
        await it.clock.sleep(5)
        figures = await it.stored()
        assert figures is not None
        [part] = [each for each in figures.parts if each.left_over]

    assert out.messages == []
    assert (part.entries, part.ended) == (10, True)


@virtual
async def test_nor_is_what_it_had_left_over_before(tmp_path: Path) -> None:
    stuck, out = Gated(is_open=False), Gated()
    async with engine_on(tmp_path, keeping(Gated(), id="other"), keeping(stuck)) as it:
        for n in range(10):
            await post(it, n)
        await it.exchange("p", keeping(Gated(), durable=None), None)
        await it.dispose("p")
        figures = await it.stored()
        assert figures is not None
        [part] = [each for each in figures.parts if each.left_over]
        await run(it, keeping(out))
        await it.clock.sleep(5)

    assert (part.entries, part.ended) == (10, True)
    assert out.messages == []


@virtual
async def test_a_smaller_bound_of_a_journal_drops_nothing_and_takes_more_when_it_fits(
    tmp_path: Path,
) -> None:
    stuck, out = Gated(is_open=False), Gated(is_open=False)
    async with engine_on(tmp_path, keeping(stuck)) as it:
        for n in range(40):
            await post(it, f"{n:0100}")
        await it.exchange("p", keeping(out, durable={"max_bytes": 2_000}), None)
        before = await parts(it)
        with pytest.raises(NoRoom, match=r"of 2,000 bytes are in use \(max_bytes\)"):
            await post(it, "x")
        figures = await it.stored()
        assert figures is not None
        out.gate.set()
        await it.clock.sleep(2)
        taken = await post(it, "41")
        await it.clock.sleep(1)

    assert before == [("p", "http", 40, False)]
    assert [each.state for each in figures.parts] == ["full"]
    assert taken == 1
    assert [int(each) for each in out.messages] == [*range(40), 41]


@promise("delivery.queue.changed")
@virtual
async def test_a_smaller_bound_of_a_queue_drops_nothing_and_has_others_wait(tmp_path: Path) -> None:
    away, back = Away(), Away()

    def spooling(sink: Gated, queue: Any) -> QueuedOutput:
        return addressed(sink, queue=queue)

    async with engine_on(tmp_path, keeping(spooling(away, True), durable=None)) as it:
        for n in range(40):
            await post(it, f"{n:0100}")
        await it.clock.sleep(1)
        changed = keeping(spooling(back, {"max_bytes": 2_000}), durable=None)
        await it.exchange("p", changed, None)
        before = await parts(it)
        await post(it, "40")
        await it.clock.sleep(1)
        meanwhile = await parts(it)
        back.come_back()
        await it.clock.sleep(60)
        left = await parts(it)

    assert before == meanwhile == [("p", "db", 40, False)]
    assert [int(each) for each in back.messages] == [*range(41)]
    assert left == []


@virtual
async def test_outputs_of_one_address_have_a_queue_each_in_their_order(tmp_path: Path) -> None:
    first, second = Away(), Gated()
    async with engine_on(
        tmp_path, keeping(addressed(first), addressed(second), durable=None)
    ) as it:
        for n in range(5):
            await post(it, n)
        await it.clock.sleep(1)
        before = await parts(it)
        out = Gated()
        again = addressed(out, queue={"max_bytes": 10**8})
        await it.exchange("p", keeping(again, addressed(second), durable=None), None)
        await it.clock.sleep(5)

    assert before == [("p", "db", 5, False)]
    assert out.messages == second.messages == [*range(5)]


@virtual
async def test_a_pipeline_beside_it_has_none_of_it(tmp_path: Path) -> None:
    stuck, out = Gated(is_open=False), Gated()
    async with engine_on(tmp_path, keeping(stuck)) as it:
        await post(it, 1)
        await it.revert(file_of(keeping(out, id="q")))
        await post(it, 2, "q")
        await it.clock.sleep(1)
        left = await parts(it)
        await asyncio.gather(run(it, keeping(Gated(), id="r")))

    assert out.messages == [2]
    assert left == [("p", "http", 1, True)]
