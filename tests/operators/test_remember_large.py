"""The `remember` transform on large batches: some keys at a time, and the same in the end."""

import asyncio

import pytest
from reactivex.subject import Subject

from headrace.compiler.buckets import Bounds, Bucket
from headrace.compiler.clock import Clock
from headrace.compiler.component.states import PipelineState
from headrace.compiler.delivery import LARGE_BATCH, PART, Delivery, Window
from headrace.compiler.lowering.chain import lower
from headrace.operators.remember import Remember
from tests.doubles import StubContext
from tests.virtual import virtual


class Told:
    """A `remember` with a bucket of its own, one key of which is watched."""

    def __init__(self, max_keys):
        self.clock = Clock(asyncio.get_running_loop())
        self.bucket = Bucket("machines", Bounds(max_keys), self.clock, warn=lambda text: None)
        self.told = 0
        self.bucket.watch("7", self._tell)
        state = PipelineState(bucket="machines", key="id")
        self.ctx = StubContext(state=state, buckets={"machines": self.bucket}, clock=self.clock)
        self.source, refusals = Subject(), []
        kept = Remember.load(
            {"remember": [{"field": "mode", "as": "m"}, {"field": "rate", "as": "r"}]}
        )
        self.source.pipe(*lower([(kept, self.ctx)], refusals)).subscribe(lambda each: each.done())

    def _tell(self):
        self.told += 1

    async def takes(self, messages):
        self.source.on_next(Delivery(messages, Window()))
        while self.ctx.pacing.slices.paused:
            await self.clock.sleep(0)

    @property
    def content(self):
        return [(key, entry.values) for key, entry in self.bucket.entries.items()]


@pytest.mark.parametrize("max_keys", [10, 1500, 10_000])
@pytest.mark.parametrize("missing", [False, True])
@virtual
async def test_a_large_batch_comes_to_the_same_as_its_messages_one_by_one(max_keys, missing):
    at_once, one_by_one = (Told(max_keys) for _ in range(2))
    messages = [
        {"id": f"{n * 7919 % 2000}", "mode": n, "rate": -n} for n in range(LARGE_BATCH + 500)
    ]
    if missing:
        del messages[-3]["rate"], messages[5]["id"]

    await at_once.takes(messages)
    for message in messages:
        await one_by_one.takes([message])

    assert at_once.content == one_by_one.content
    assert at_once.bucket.evictions == one_by_one.bucket.evictions
    assert at_once.told == 1


@virtual
async def test_a_large_batch_is_written_some_keys_at_a_time():
    it = Told(10_000)

    writing = it.bucket.merging([(f"{n}", {"mode": n}) for n in range(3 * PART)])
    seen = [len(it.bucket) for _ in writing]

    assert seen == [PART, 2 * PART, 3 * PART]
    assert it.told == 1
