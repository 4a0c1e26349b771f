"""How a pipeline ends whose output has a queue: nothing is written twice, and what is lost is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headrace.compiler.errors import Unreachable
from tests.compiler.runtime.durable import Gated, engine_on, post
from tests.compiler.runtime.test_outputqueue import entries, spooling
from tests.promises import promise
from tests.stand_ins import running
from tests.virtual import virtual


class Away(Gated):
    """Nobody is there until somebody says so."""

    is_away = True

    async def write(self, batch: Any) -> None:
        if self.is_away:
            raise Unreachable("it does not answer")
        await super().write(batch)

    def come_back(self) -> None:
        self.is_away = False


@promise("delivery.queue.stop")
@virtual
async def test_what_is_written_as_the_pipeline_ends_does_not_come_again(tmp_path: Path) -> None:
    away, out = Away(), Gated()
    async with engine_on(tmp_path, spooling(away)) as it:
        await post(it, 0)
        await it.clock.sleep(0.5)
        for n in range(1, 40):
            await post(it, n)
            await it.clock.sleep(0.2)
        await it.clock.sleep(4)
        away.come_back()
    first = [*away.messages]
    async with engine_on(tmp_path, spooling(out)) as it:
        await it.clock.sleep(5)
        left = await entries(it)

    assert first
    assert first + out.messages == [*range(40)]
    assert left == 0


@promise("delivery.queue.stop")
@virtual
async def test_nor_does_what_is_written_while_another_output_is_waited_for(tmp_path: Path) -> None:
    away, out, other = Away(), Gated(), Gated(is_open=False)
    async with engine_on(tmp_path, spooling(away, other)) as it:
        await post(it, 0)
        await it.clock.sleep(0.5)
        for n in range(1, 5):
            await post(it, n)
            await it.clock.sleep(0.2)
        await it.clock.sleep(4)
        it.clock.call_later(1.2, away.come_back)
        it.clock.call_later(2.8, other.gate.set)
    first = [*away.messages]
    async with engine_on(tmp_path, spooling(out)) as it:
        await it.clock.sleep(5)

    assert first
    assert first + out.messages == [*range(5)]


@virtual
async def test_an_exchange_in_an_outage_hands_on_all_that_was_not_written(tmp_path: Path) -> None:
    away, new = Away(), Gated()
    async with engine_on(tmp_path, spooling(away)) as it:
        for n in range(45):
            await post(it, n)
            await it.clock.sleep(0.1)
        it.clock.call_later(0.3, away.come_back)
        await it.exchange("p", spooling(new, queue={"max_bytes": 10**8}), None)
        for n in range(45, 50):
            await post(it, n)
        await it.clock.sleep(10)
        left = await entries(it)

    assert away.messages + new.messages == [*range(50)]
    assert left == 0


@virtual
async def test_what_is_not_on_the_disk_at_the_end_is_lost_and_counted(tmp_path: Path) -> None:
    stuck, out = Gated(is_open=False), Gated()
    async with engine_on(tmp_path, spooling(stuck, queue={"max_bytes": 1_500})) as it:
        for n in range(40):
            await post(it, f"{n:0100}")
        await it.clock.sleep(2)
        stored, it_is = await entries(it), running(it, "p")
    lost = sum(each.count for each in it_is.failures.losses)
    async with engine_on(tmp_path, spooling(out)) as it:
        await it.clock.sleep(5)

    assert 5 < stored < 20
    assert [int(each) for each in out.messages] == [*range(stored)]
    assert lost == 40 - stored
