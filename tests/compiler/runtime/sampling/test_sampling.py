"""Samples of inputs, over the runtime alone: when one is over, what it tells, and what is left of it."""

from __future__ import annotations

import asyncio
import logging

import pytest

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.envelopes import Merge, Wrap
from headrace.compiler.component.families import Input
from headrace.compiler.component.inputbuffers import Static
from headrace.compiler.edges import Source
from headrace.compiler.runtime import sampling as sampling_module
from headrace.compiler.runtime.sampling import (
    AT_ONCE,
    CLOSE_SECONDS,
    SHUTTING_DOWN,
    UNBUFFERED,
    Sample,
    TooManySamples,
)
from tests.compiler.runtime.sampled import DOWN, Broker, taken
from tests.stand_ins import (
    RawTold,
    Told,
    batches,
    engine,
)
from tests.virtual import virtual

# When it is over.


@virtual
async def test_it_is_over_as_soon_as_there_is_enough():
    it = engine()
    source = Told(it.clock, [1.0, batches([1], [2]), 1.0, batches([3]), 1.0, batches([4])])

    assert await taken(it, source, most=3) == Sample([1, 2, 3], [], 2.0)
    assert source.is_closed


@virtual
async def test_of_a_larger_batch_no_more_is_shown_than_was_wanted():
    it = engine()

    said = await taken(it, Told(it.clock, [batches([1, 2, 3, 4], [5])]), most=3)

    assert said.messages == [1, 2, 3]


@virtual
async def test_many_small_batches_are_read_without_a_pause():
    it = engine()
    source = Told(it.clock, [batches(*([n] for n in range(50)))])

    assert await taken(it, source, most=50) == Sample([*range(50)], [], 0.0)


@virtual
async def test_when_the_time_is_over_there_is_what_there_is():
    it = engine()

    said = await taken(it, Told(it.clock, [1.0, batches([1]), 9.0, batches([2])]))

    assert said == Sample([1], [], 5.0)


@virtual
async def test_an_input_without_traffic_is_an_empty_sample():
    it = engine()

    assert await taken(it, Broker(it.clock, [])) == Sample([], [], 5.0)


@virtual
async def test_an_input_that_ends_by_itself_is_not_waited_for():
    it = engine()

    said = await taken(it, Told(it.clock, [batches([1]), 1.0], stays=False))

    assert said == Sample([1], [], 1.0)


@virtual
async def test_of_large_messages_one_is_taken_in_each_turn(monkeypatch: pytest.MonkeyPatch):
    it, turns, sized = engine(), 0, []
    large = ["x" * 600_000, *(["y" * 600_000] * 4)]

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(sampling_module, "encode", lambda each: sized.append(turns) or b"")
    counting = asyncio.ensure_future(others())
    said = await taken(it, Told(it.clock, [batches(large, [6])], stays=False), most=6)
    counting.cancel()

    assert said.messages == [*large, 6]
    assert len(set(sized)) == len(sized) == 6


@virtual
async def test_what_arrives_while_it_is_closed_is_not_shown():
    it = engine()
    source = Broker(it.clock, [[b"1"]], closes_in=1.0)

    said = await taken(it, source, most=1)

    assert (said.messages, said.seconds, source.ended) == ([1], 0.0, 1)


# What it tells.


@virtual
async def test_messages_come_as_a_pipeline_would_get_them_under_a_name_of_its_own():
    it = engine()

    said = await taken(it, Told(it.clock, [batches([1])]), most=1, envelope=Wrap())

    about = said.messages[0]["_meta"]
    assert said.messages[0]["value"] == 1
    assert about["pipeline"].startswith("sample-")
    assert about["pipeline"].count("-") == 3
    assert about["input"] == "given"


@virtual
async def test_two_samples_have_different_names():
    it = engine()
    said = [
        await taken(it, Told(it.clock, [batches([1])]), most=1, envelope=Wrap()) for _ in range(2)
    ]

    assert len({one.messages[0]["_meta"]["pipeline"] for one in said}) == 2


@virtual
async def test_a_buffer_is_ignored_and_that_is_told():
    it = engine()

    said = await taken(it, Told(it.clock, [batches([1])]), most=1, buffer=Static(size=3))

    assert said == Sample([1], [UNBUFFERED], 0.0)


@virtual
async def test_nothing_is_acknowledged():
    it = engine()
    source = RawTold(it.clock, [[(b"1", "a"), (b"x", "b"), (b"2", "c")]])
    for ack in ("on_receipt", "on_delivery"):
        source._script = [[(b"1", "a"), (b"x", "b"), (b"2", "c")]]
        await taken(it, source, most=2, acknowledges=True, ack=ack)

    assert source.acknowledged == []


@virtual
async def test_what_is_no_json_is_skipped_and_counted():
    it = engine()

    said = await taken(it, Broker(it.clock, [[b"1", b"{", b"2", b"["]]), seconds=1)

    assert said.messages == [1, 2]
    assert said.notes[0] == "skipped 2 of what arrived"
    assert said.notes[1].startswith("skipped a payload that is not JSON: ")


@virtual
async def test_messages_that_no_envelope_fits_are_skipped_and_counted():
    it = engine()

    said = await taken(it, Told(it.clock, [batches([1, {}])]), envelope=Merge(), seconds=1)

    assert len(said.messages) == 1
    assert said.notes == [
        "skipped 1 of what arrived",
        "envelope: skipped a message that is not an object: merge needs one",
    ]


@virtual
async def test_an_answer_has_room_for_so_much_and_no_more():
    it = engine()
    large = "x" * (600 << 10)

    source = Told(it.clock, [batches([large], [large], ["small"])])
    said = await taken(it, source, most=3, most_bytes=1 << 20)

    assert [len(each) for each in said.messages] == [600 << 10, 5]
    assert said.notes == ["left out 1 of what was read: 1 MiB are the most"]
    assert said.seconds == 0.0


# What is left of it.


@virtual
async def test_it_is_no_pipeline_and_its_failures_are_nobodys(caplog: pytest.LogCaptureFixture):
    it = engine()
    listener = it.observe()
    with caplog.at_level(logging.WARNING):
        await taken(it, Broker(it.clock, DOWN))

    assert [*it.names()] == []
    it.hush()
    assert [event async for event in listener] == []
    assert [record.getMessage().partition("' ")[2] for record in caplog.records] == [
        f"inputs: {DOWN}"
    ]
    assert caplog.records[0].getMessage().startswith("pipeline 'sample-")


@virtual
async def test_a_claim_is_free_again():
    class Claiming(Input, kind="claiming"):
        """An input that is alone."""

        def source(self, ctx: Context) -> Source:
            ctx.claim("the only place")
            return Told(it.clock, [batches([1])])

    it = engine()
    for _ in range(2):
        assert (await it.samples.take(Claiming(), most=1, seconds=1)).messages == [1]


@virtual
async def test_a_sample_that_is_given_up_is_closed():
    it = engine()
    source = Broker(it.clock, [], closes_in=1.0)
    asking = asyncio.ensure_future(taken(it, source))
    await it.clock.sleep(0.5)

    asking.cancel()
    await asyncio.wait([asking])

    assert asking.cancelled()
    assert source.ended == 1


@virtual
async def test_a_sample_that_is_given_up_while_it_connects_is_closed():
    it = engine()
    source = Broker(it.clock, 60.0)
    asking = asyncio.ensure_future(taken(it, source))
    await it.clock.sleep(0.5)

    asking.cancel()
    await asyncio.wait([asking])

    assert (source.began, source.ended) == (1, 1)


@virtual
async def test_an_answer_waits_no_longer_for_what_is_slow_to_close():
    it = engine()
    source = Broker(it.clock, [[b"1"]], closes_in=10.0)

    said = await taken(it, source, most=1)

    assert (said.messages, it.clock.monotonic(), source.ended) == ([1], CLOSE_SECONDS, 0)
    await it.clock.sleep(10)
    assert source.ended == 1


@virtual
async def test_so_many_are_taken_at_once_and_no_more():
    it = engine()
    asking = [
        asyncio.ensure_future(taken(it, Broker(it.clock, [], closes_in=10.0), seconds=1))
        for _ in range(AT_ONCE)
    ]
    await it.clock.sleep(0.5)
    with pytest.raises(TooManySamples, match="8 samples are being taken already"):
        await taken(it, Told(it.clock, []))

    await asyncio.wait(asking)
    with pytest.raises(TooManySamples):  # those that are being closed count
        await taken(it, Told(it.clock, []))
    await it.clock.sleep(10)
    assert isinstance(await taken(it, Told(it.clock, [])), Sample)


@virtual
async def test_a_shutdown_ends_it_with_what_there_is():
    it = engine()
    asking = asyncio.ensure_future(taken(it, Broker(it.clock, [[b"1"]])))
    await it.clock.sleep(0.5)

    it.hush()

    assert await asking == Sample([1], [SHUTTING_DOWN], 0.5)


@virtual
async def test_a_closed_engine_has_closed_its_samples():
    it = engine()
    source = Broker(it.clock, [], closes_in=1.0)
    asking = asyncio.ensure_future(taken(it, source))
    await it.clock.sleep(0.5)
    it.hush()
    await it.clock.sleep(0.01)

    await it.close()

    assert source.ended == 1
    assert (await asking).notes == [SHUTTING_DOWN]
