"""The mapping `now`: the time of the pipeline's clock, once a batch."""

import asyncio
from datetime import UTC, datetime
from functools import partial

import pytest
from reactivex.subject import Subject

from headrace.compiler.clock import Clock, run_virtual
from headrace.compiler.component.fieldflow import FieldUse
from headrace.compiler.delivery import LARGE_BATCH
from headrace.compiler.lowering.chain import fuse, lower, plainly
from headrace.operators.map import Map
from tests.doubles import StubContext
from tests.marbles import over_lists
from tests.operators.mappings import a_map, copy

NOW = {"type": "now", "as": "seen.at"}
STARTED = datetime(2026, 11, 22, 12, tzinfo=UTC)


class Ticking(Clock):
    """A clock that is a microsecond later each time somebody asks."""

    def __init__(self):
        super().__init__(asyncio.get_running_loop(), started_at=STARTED)
        self.asked = 0

    def timestamp(self):
        self.asked += 1
        return f"2026-11-22T12:00:00.{self.asked:06}+00:00"


@pytest.mark.parametrize("lowered", [plainly, lower], ids=["plain", "generated"])
def test_it_is_that_of_the_clock_and_moves_with_it(lowered):
    async def seen():
        clock = Clock(asyncio.get_running_loop(), started_at=STARTED)
        ctx = StubContext(place="transforms[0]", clock=clock)
        seen, source = [], Subject()
        [operator] = lowered([(Map.load(a_map(NOW)), ctx)], [])
        source.pipe(over_lists(operator)).subscribe(seen.append)
        source.on_next([{"n": 1}, {"seen": {"by": 2}}])
        await clock.sleep(90)
        source.on_next([{}])
        return seen

    assert run_virtual(seen) == [
        [
            {"n": 1, "seen": {"at": "2026-11-22T12:00:00.000000+00:00"}},
            {"seen": {"by": 2, "at": "2026-11-22T12:00:00.000000+00:00"}},
        ],
        [{"seen": {"at": "2026-11-22T12:01:30.000000+00:00"}}],
    ]


@pytest.mark.parametrize("count", [100, LARGE_BATCH + 1])
@pytest.mark.parametrize("lowered", [plainly, lower], ids=["plain", "generated"])
def test_it_is_asked_once_a_batch_whose_messages_may_fail_alone(lowered, count):
    async def asked():
        clock = Ticking()
        ctx = StubContext(place="transforms[0]", clock=clock)
        ctx.index = 0
        seen, source = [], Subject()
        transform = Map.load(a_map(NOW, copy("n", "m"), on_error="skip"))
        [operator] = lowered([(transform, ctx)], [])
        source.pipe(over_lists(operator)).subscribe(seen.append)
        source.on_next([*({"n": n} for n in range(count)), {}])
        while ctx.pacing.slices.paused:
            await clock.sleep(0)
        [batch] = seen
        return len(batch), len({each["seen"]["at"] for each in batch}), ctx.lost.total()

    assert run_virtual(asked) == (count, 1, 1)


@pytest.mark.parametrize("form", ["plain", "paced", "generated", "generated in slices"])
def test_it_is_asked_once_a_batch(form):
    async def asked():
        clock = Ticking()
        ctx = StubContext(place="transforms[0]", clock=clock)
        transform = Map.load(a_map(NOW, copy("seen.at", "again")))
        made = fuse([partial(transform.generate, ctx=ctx)], "p1 transforms[0]")
        batch = [{"n": n} for n in range(100)]
        slices = {"paced": transform.paced(ctx), "generated in slices": made.paced}
        if form in slices:
            [written] = [each for each in slices[form](batch) if each]
        else:
            written = transform.step(ctx)(batch)[0] if form == "plain" else made.loop(batch)
        return len(written), {each["again"] for each in written}, clock.asked

    assert run_virtual(asked) == (100, {"2026-11-22T12:00:00.000001+00:00"}, 1)


def test_it_reads_nothing():
    assert Map.load(a_map(NOW)).field_use() == FieldUse.of(
        reads=["seen.at", "seen"], writes=["seen.at"], asks=[]
    )
    assert [*Map.load(a_map(NOW)).demands()] == []
