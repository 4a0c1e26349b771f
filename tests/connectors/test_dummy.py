"""The `dummy` input."""

import math
import re
from datetime import UTC, datetime
from random import Random

import pytest

from headrace.connectors.dummy import DummyInput, sentence, sine
from tests.doubles import StubContext, refusals
from tests.virtual import virtual


async def messages(config: DummyInput, most: int) -> list:
    """Return the batches of the first arrivals, with the second at which each came."""
    ctx, seen = StubContext(), []
    async for arrivals in config.source(ctx).read():
        seen += [(ctx.clock.monotonic(), batch) for batch, _ in arrivals]
        if len(seen) == most:
            return seen
    return seen


@virtual(started_at=datetime(2026, 3, 1, 8, tzinfo=UTC))
async def test_each_interval_gives_one_message_and_the_first_comes_after_the_first_interval():
    config = DummyInput.load({"duration": 15})

    seen = await messages(config, 3)

    assert seen == [
        (15, [{"current_time": "2026-03-01T08:00:15.000000+00:00", "value": 1.0}]),
        (30, [{"current_time": "2026-03-01T08:00:30.000000+00:00", "value": pytest.approx(0)}]),
        (45, [{"current_time": "2026-03-01T08:00:45.000000+00:00", "value": -1.0}]),
    ]


@virtual
async def test_the_sine_turns_with_its_amplitude_and_period_from_when_the_input_was_built():
    config = DummyInput.load({"duration": 1, "amplitude": 2.5, "period": 8})

    seen = await messages(config, 4)

    assert [batch[0]["value"] for _, batch in seen] == [
        2.5 * math.sin(2 * math.pi * second / 8) for second in (1, 2, 3, 4)
    ]


@virtual
async def test_the_value_is_a_double_whatever_the_amplitude():
    config = DummyInput.load({"duration": 1, "amplitude": 0})

    [(_, [message])] = await messages(config, 1)

    assert type(message["value"]) is float


@pytest.mark.parametrize("period", [0, -1, -0.5])
def test_without_a_period_the_value_is_zero(period):
    assert repr(sine(3.0, 5, period)) == "0.0"


@pytest.mark.parametrize("period", [5e-324, 1e-300, 1e300])
def test_no_period_is_too_small_or_too_large(period):
    assert -1 <= sine(1e9, 1, period) <= 1


@virtual
async def test_a_text_payload_is_a_sentence():
    config = DummyInput.load({"duration": 1, "payload": "text"})

    seen = await messages(config, 3)

    assert all(re.fullmatch(r"[A-Z][a-z]*( [a-z]+)+\.", batch[0]["value"]) for _, batch in seen)


def test_sentences_differ():
    chance = Random(1)

    assert len({sentence(chance) for _ in range(20)}) > 10


def test_a_sentence_is_a_matter_of_chance_alone():
    assert sentence(Random(7)) == sentence(Random(7)) != sentence(Random(8))


@virtual
async def test_the_intervals_do_not_drift():
    ctx = StubContext()
    reader = DummyInput.load({"duration": 10}).source(ctx).read()

    times = []
    for _ in range(4):
        await anext(reader)
        times.append(ctx.clock.monotonic())
        await ctx.clock.sleep(3)  # a consumer that takes its time
    await reader.aclose()

    assert times == [10, 20, 30, 40]


@virtual
async def test_intervals_that_pass_during_a_stall_are_left_out():
    ctx = StubContext()
    reader = DummyInput.load({"duration": 10}).source(ctx).read()

    times = []
    for stall in (25, 10, 0):
        await anext(reader)
        times.append(ctx.clock.monotonic())
        await ctx.clock.sleep(stall)
    await anext(reader)
    times.append(ctx.clock.monotonic())
    await reader.aclose()

    # 10 and a stall to 35: 20 and 30 are gone. 40 and a stall to 50: that one is due at once.
    assert times == [10, 40, 50, 60]


@virtual
async def test_nothing_is_owed_when_it_is_to_stop():
    assert DummyInput.load({"duration": 1}).source(StubContext()).stop() is False


def test_its_messages_have_two_fields_and_travel_alone():
    config = DummyInput.load({"duration": 1})

    assert set(config.hands_on()) == {"current_time", "value"}
    assert not config.is_batching()


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        (
            {"duration": 0},
            "duration: expected an integer of at least 1 and of at most 1000000000, found 0",
        ),
        (
            {"duration": 1.0},
            "duration: expected an integer of at least 1 and of at most 1000000000, found 1.0",
        ),
        ({}, "duration: this key is required"),
        (
            {"duration": 1, "payload": "numbre"},
            'payload: expected one of number, text, found "numbre"',
        ),
        (
            {"duration": 1, "amplitude": -1e301},
            "amplitude: expected a number of at least -1e+300 and of at most 1e+300, found -1e+301",
        ),
        (
            {"duration": 1, "period": "60"},
            'period: expected a number of at most 1e+300, found "60"',
        ),
    ],
)
def test_what_it_refuses(options, refusal):
    assert refusals(DummyInput, options) == [refusal]


@virtual
async def test_an_interval_may_be_long():
    config = DummyInput.load({"duration": 10**9})

    [(second, _)] = await messages(config, 1)

    assert second == 10**9
