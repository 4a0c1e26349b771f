"""Samples of inputs, over the runtime alone: when one is over, what it tells, and what is left of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.edges import Source
from headrace.compiler.errors import BuildRefused, Ended, Unreachable
from headrace.compiler.language.context import Context
from headrace.compiler.language.diagnostics import Fault
from headrace.compiler.language.envelopes import Merge, Wrap
from headrace.compiler.language.families import Input
from headrace.compiler.language.inputbuffers import Static
from headrace.compiler.language.secrets import Secret, Secrets
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.inbox import CAPACITY
from headrace.compiler.runtime.sampling import taking
from headrace.compiler.runtime.sampling.samples import AT_ONCE, CLOSE_SECONDS, TooManySamples
from headrace.compiler.runtime.sampling.taking import (
    MOST_BYTES,
    SHUTTING_DOWN,
    UNBUFFERED,
    Sample,
    Unbuilt,
    Unread,
)
from headrace.connectors.pipeline import PipelineInput
from tests.stand_ins import (
    Kept,
    RawTold,
    Told,
    batches,
    engine,
    pipeline,
    reads,
    run,
    running,
    takes,
    with_attribute,
)
from tests.virtual import virtual

DOWN = Unreachable("broker:1 does not answer: connection refused")
NO = BuildRefused(Fault("turned-away", "broker:1 refuses the credential", path=("connection",)))


class Broker(Source):
    """A source that connects. Each life is a script as `Told` has it, and stays to the end of time.

    An error as a script is a life that does not begin. ``closes_in`` seconds it takes to close.
    """

    connects = True

    def __init__(self, clock: Any, *lives: Any, closes_in: float = 0.0) -> None:
        self._clock, self._lives, self._closes_in = clock, list(lives), closes_in
        self.acknowledged: list[Any] = []
        self.began = self.ended = 0
        self.is_closed = False

    async def read(self) -> Any:
        life = self._lives.pop(0) if len(self._lives) > 1 else self._lives[0]
        self.began += 1
        try:
            if isinstance(life, BaseException):
                raise life
            if isinstance(life, float):
                await self._clock.sleep(life)
                life = []
            yield ()
            for line in life:
                if isinstance(line, BaseException):
                    raise line
                if isinstance(line, int | float):
                    await self._clock.sleep(line)
                else:
                    yield [(payload, None) for payload in line]
            await self._clock.sleep(1e9)
        finally:
            await self._clock.sleep(self._closes_in)
            self.ended += 1

    def acknowledge(self, origins: Sequence[Any]) -> None:
        self.acknowledged += origins

    def close(self) -> int:
        self.is_closed = True
        return 0


async def taken(
    it: Engine,
    source: Source,
    *,
    most: int = 5,
    seconds: float = 5.0,
    most_bytes: int = MOST_BYTES,
    **options: Any,
) -> Any:
    """Return what becomes of a sample of a source."""
    given = reads(source, **options)
    return await it.samples.take(given, most=most, seconds=seconds, most_bytes=most_bytes)


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

    monkeypatch.setattr(taking, "encode", lambda each: sized.append(turns) or b"")
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


# What cannot be read.


@virtual
async def test_a_broker_that_does_not_answer_is_tried_until_the_time_is_over():
    it = engine()
    source = Broker(it.clock, DOWN)

    assert await taken(it, source) == Unread(str(DOWN), [])
    assert source.began == source.ended > 4


@virtual
async def test_the_last_of_several_reasons_is_the_one_that_counts():
    it = engine()
    starting = Unreachable("broker:1 says 'LOADING'")

    assert await taken(it, Broker(it.clock, DOWN, starting)) == Unread(str(starting), [str(DOWN)])


@virtual
async def test_a_broker_that_comes_back_in_time_is_read():
    it = engine()

    said = await taken(it, Broker(it.clock, DOWN, DOWN, [[b"1"]]), most=1)

    assert (said.messages, said.notes) == ([1], [str(DOWN)])


@virtual
async def test_a_broker_that_came_back_and_has_nothing_is_an_empty_sample():
    it = engine()

    assert await taken(it, Broker(it.clock, DOWN, [])) == Sample([], [str(DOWN)], 5.0)


@virtual
async def test_a_broker_that_was_there_and_is_gone_is_a_failure():
    it = engine()
    lost = Unreachable("lost the connection to broker:1")

    assert await taken(it, Broker(it.clock, [1.0, lost], lost)) == Unread(str(lost), [])


@virtual
async def test_a_broker_that_says_no_is_not_tried_again():
    it = engine()
    source = Broker(it.clock, NO)
    began = it.clock.monotonic()

    assert await taken(it, source) == Unread(str(NO), [])
    assert (source.began, it.clock.monotonic()) == (1, began)
    assert source.is_closed


@virtual
async def test_a_broker_that_comes_up_and_says_no_is_not_tried_again():
    it = engine()
    source = Broker(it.clock, DOWN, NO)

    assert await taken(it, source) == Unread(str(NO), [str(DOWN)])
    assert (source.began, it.clock.monotonic() < 1) == (2, True)


@virtual
async def test_a_broker_that_says_nothing_at_all_is_told_of():
    it = engine()
    source = Broker(it.clock, 60.0)

    assert await taken(it, source) == Unread(
        "nothing that speaks 'given' has answered after 5.0 s", []
    )
    assert source.ended == 1


@virtual
async def test_what_was_read_before_an_error_is_kept_and_ends_it():
    it = engine()
    source = Broker(it.clock, [[b"1", b"2"], 1.0, DOWN], [[b"1", b"2"]])

    assert await taken(it, source) == Sample([1, 2], [str(DOWN)], 1.0)
    assert source.began == 1


@virtual
async def test_an_input_that_is_gone_for_good_is_not_waited_for():
    it = engine()

    said = await taken(it, Told(it.clock, [1.0, Ended("the topic was deleted")]))

    assert (said, it.clock.monotonic()) == (Unread("the topic was deleted", []), 1.0)


@virtual
async def test_a_fault_of_ours_is_told_by_its_class():
    it = engine()

    said = await taken(it, Broker(it.clock, [[b"1"], ZeroDivisionError("by zero")]), seconds=1)

    assert (said.messages, said.notes) == ([1], ["ZeroDivisionError: by zero"])


class Refusing(Input, kind="refusing"):
    """An input that cannot be built, once it has claimed something."""

    def source(self, ctx: Context) -> Source:
        ctx.claim("the only place")
        raise NO


@virtual
async def test_an_input_that_cannot_be_built_gives_back_what_it_claimed():
    it = engine()

    for _ in range(2):
        said = await it.samples.take(Refusing(), most=1, seconds=1)
        assert said == Unbuilt([NO.fault], [])


class Telling(Input, kind="telling"):
    """An input whose other side tells its password: when it is built, and when it is read."""

    def source(self, ctx: Context) -> Source:
        password = ctx.resolve(Secret("${PASSWORD}"))
        if self.buffer is not None:
            raise BuildRefused(Fault("turned-away", f"no '{password}'", f'"{password}"'))
        ctx.warn(f"it takes '{password}'")
        return Broker(ctx.clock, Unreachable(f"'{password}' is wrong"))


@virtual
async def test_no_secret_is_told(caplog: pytest.LogCaptureFixture):
    clock = Clock(asyncio.get_running_loop())
    it = Engine(clock, secrets=Secrets({"PASSWORD": "open-sesame"}, {}))

    unread = await it.samples.take(Telling(), most=1, seconds=1)
    unbuilt = await it.samples.take(Telling(buffer=Static(size=1)), most=1, seconds=1)

    assert unread == Unread("'${PASSWORD}' is wrong", ["it takes '${PASSWORD}'"])
    assert unbuilt.faults == [Fault("turned-away", "no '${PASSWORD}'", '"${PASSWORD}"')]
    assert "open-sesame" not in caplog.text


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


# A sample of a running pipeline.


def peeking(**options: Any) -> Input:
    return PipelineInput.load({"upstream": "above", **options})


@virtual
async def test_a_sample_of_a_pipeline_sees_what_it_hands_on_from_now_on():
    it = engine()
    source = Told(it.clock, [batches(["before"]), 1.0, batches([1], [2, 3]), 1.0, batches([4])])
    await run(it, pipeline("above", [reads(source)]))
    await it.clock.sleep(0.5)

    said = await it.samples.take(peeking(), most=4, seconds=5)

    assert said.messages == [1, 2, 3, 4]
    await it.close()


@virtual
async def test_metadata_of_a_sampled_pipeline_is_added_to():
    it = engine()
    source = Told(it.clock, [1.0, batches([{"_meta": {"line": 1}}])])
    await run(it, pipeline("above", [reads(source)]))

    said = await it.samples.take(peeking(envelope={"type": "merge"}), most=1, seconds=5)

    assert said.messages[0]["_meta"]["line"] == 1
    assert said.messages[0]["_meta"]["upstream"] == "above"
    await it.close()


class Stuck(PipelineInput, kind="stuck"):
    """A sample that reads nothing of what it attaches to."""

    def source(self, ctx: Context) -> Source:
        inbox = super().source(ctx)
        return with_attribute(Deaf(), "inbox", inbox)


class Deaf(Source):
    """Has an inbox and reads nothing of it."""

    async def read(self) -> Any:
        await asyncio.get_running_loop().create_future()
        yield ()

    def close(self) -> int:
        return self.inbox.close()  # type: ignore[attr-defined]


@virtual
async def test_a_sample_holds_up_neither_the_pipeline_nor_its_acknowledgements(
    caplog: pytest.LogCaptureFixture,
):
    it, kept = engine(), Kept()
    many = CAPACITY + 500
    source = Told(it.clock, [0.5, batches(*([n] for n in range(many)))])
    given = reads(source, acknowledges=True, ack="on_delivery")
    await run(it, pipeline("above", [given], [], [takes(kept)]))

    asking = asyncio.ensure_future(
        it.samples.take(Stuck.load({"upstream": "above"}), most=5, seconds=5)
    )
    await it.clock.sleep(1)

    assert len(kept.batches) == len(source.acknowledged) == many
    assert running(it, "above").in_flight == 0
    assert (await asking).messages == []
    assert caplog.records == []  # what it did not read is no loss
    await it.close()


@virtual
async def test_a_sample_that_ends_while_it_takes_large_messages_gives_back_what_it_has(
    monkeypatch: pytest.MonkeyPatch,
):
    it, large = engine(), ["x" * 600_000] * 10
    source = Told(it.clock, [0.5, batches(*[large] * 3)])
    given = reads(source, acknowledges=True, ack="on_delivery")
    await run(it, pipeline("above", [given]))
    sampling: list[asyncio.Future[Any]] = []
    monkeypatch.setattr(taking, "encode", lambda _: sampling[0].cancel() or b"")

    sampling.append(asyncio.ensure_future(it.samples.take(peeking(), most=100, seconds=5)))
    await asyncio.wait(sampling)
    await it.clock.sleep(1)

    assert sampling[0].cancelled()
    assert len(source.acknowledged) == 3
    assert running(it, "above").in_flight == 0
    await it.close()


@virtual
async def test_a_pipeline_with_a_slow_reader_is_sampled_at_the_readers_pace_and_loses_nothing():
    it, kept = engine(), Kept()
    source = Told(it.clock, [n for k in range(20) for n in (0.1, batches([k]))])
    await run(it, pipeline("above", [reads(source)]))
    below = PipelineInput.load({"upstream": "above"})
    await run(it, pipeline("below", [below], [], [takes(kept)]))

    said = await it.samples.take(peeking(), most=5, seconds=5)
    await it.clock.sleep(5)

    assert len(said.messages) == 5
    assert kept.batches == [[k] for k in range(20)]
    await it.close()


@virtual
async def test_nothing_is_attached_to_a_pipeline_after_its_sample():
    it = engine()
    await run(it, pipeline("above", [reads(Told(it.clock, []))]))
    for seconds in (0.0, 1.0):
        await it.samples.take(peeking(), most=5, seconds=seconds)

    assert not it.graph.outlets["above"].is_observed
    await it.close()


@virtual
async def test_a_pipeline_that_is_not_there_cannot_be_sampled():
    it = engine()

    said = await it.samples.take(peeking(), most=5, seconds=1)

    assert [fault.code for fault in said.faults] == ["missing-upstream"]


@virtual
async def test_a_pipeline_that_is_deleted_meanwhile_is_waited_for_in_vain():
    it = engine()
    await run(it, pipeline("above", [reads(Told(it.clock, []))]))
    asking = asyncio.ensure_future(it.samples.take(peeking(), most=5, seconds=3))
    await it.clock.sleep(1)

    await it.dispose("above")

    assert await asking == Sample([], [], 3.0)
    assert "above" not in it.graph.outlets
