"""`when` of outputs and of readers: who is handed which messages, and what becomes of all others."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.component.conditions import all_hold
from headrace.compiler.config.program import Program
from headrace.compiler.delivery import LARGE_BATCH
from headrace.compiler.edges import INBOX_BATCHES
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.monitoring.losses import ComponentLoss
from headrace.connectors.pipelineinput import PipelineInput
from tests.compiler.component.conditions.asked import conditions, exists, numeric, of
from tests.compiler.lowering.chains import Hurrying
from tests.compiler.lowering.drawn import alike, other, whens
from tests.compiler.runtime.reverts import target
from tests.examples import examples
from tests.stand_ins import (
    Kept,
    Slow,
    Told,
    batches,
    engine,
    pipeline,
    reads,
    run,
    running,
    takes,
)
from tests.virtual import virtual

HOT = conditions(numeric("at_least", 80, "temp"))
COLD = conditions(of("not", numeric("at_least", 80, "temp")))


def temps(*each: int | None) -> list[dict[str, int | None]]:
    return [{"temp": temp} for temp in each]


def wanting(sink, *documents):
    return takes(sink, when=conditions(*documents))


@virtual
async def test_an_output_is_handed_the_messages_for_which_all_conditions_hold() -> None:
    it, hot, cold, every, both = engine(), Kept(), Kept(), Kept(), Kept()
    script = [batches(temps(90, 10, 81, None), temps(1, 2), temps(99))]
    outputs = [
        takes(hot, when=HOT),
        takes(cold, when=COLD),
        takes(every),
        wanting(both, numeric("at_least", 80, "temp"), numeric("less_than", 90, "temp")),
    ]
    await run(it, pipeline("p", [reads(Told(it.clock, script))], [], outputs))

    assert hot.batches == [temps(90, 81), temps(99)]
    assert cold.batches == [temps(10, None), temps(1, 2)]
    assert every.batches == [temps(90, 10, 81, None), temps(1, 2), temps(99)]
    assert both.batches == [temps(81)]
    await it.close()


@virtual
async def test_what_nobody_wants_is_done_and_acknowledged() -> None:
    it, hot, never = engine(), Kept(), Kept()
    source = Told(it.clock, [batches(temps(1), temps(90), temps(2, 3))])
    given = reads(source, acknowledges=True, ack="on_delivery")
    outputs = [takes(hot, when=HOT), wanting(never, exists("nothing"))]
    await run(it, pipeline("p", [given], [], outputs))

    assert (hot.batches, never.batches) == ([temps(90)], [])
    assert source.acknowledged == [0, 1, 2]
    assert running(it, "p").in_flight == 0
    await it.close()


@virtual
async def test_an_output_that_waits_is_owed_only_what_it_wants() -> None:
    it = engine()
    slow = Slow(it.clock, 10.0)
    source = Told(it.clock, [batches(temps(90), *([each] for each in temps(*range(60))))])
    given = reads(source, acknowledges=True, ack="on_delivery")
    await run(it, pipeline("p", [given], [], [takes(slow, when=HOT)]))

    # Of a window of 16 only one is taken, however many come behind.
    assert (running(it, "p").in_flight, running(it, "p").counters.inbound) == (1, 61)
    assert source.acknowledged == [*range(1, 61)]
    await it.clock.sleep(11)
    assert (slow.batches, source.acknowledged[-1]) == ([temps(90)], 0)
    await it.close()


@virtual
async def test_messages_that_are_no_objects_are_looked_at_as_well() -> None:
    it, hot, cold = engine(), Kept(), Kept()
    script = [batches([1, {"temp": 90}, "x", [], None, {"temp": "90"}])]
    outputs = [takes(hot, when=HOT), takes(cold, when=COLD)]
    await run(it, pipeline("p", [reads(Told(it.clock, script))], [], outputs))

    assert hot.batches == [[{"temp": 90}]]
    assert cold.batches == [[1, "x", [], None, {"temp": "90"}]]
    assert running(it, "p").failures.total == 0
    await it.close()


@virtual
async def test_the_counters_of_the_pipeline_count_what_leaves_the_transforms() -> None:
    it = engine()
    script = [batches(temps(90, 1), temps(2))]
    await run(it, pipeline("p", [reads(Told(it.clock, script))], [], [takes(Kept(), when=HOT)]))

    counters = running(it, "p").counters
    assert (counters.inbound, counters.outbound, counters.skipped) == (3, 3, 0)
    await it.close()


@virtual
async def test_a_write_that_fails_costs_what_was_wanted_alone() -> None:
    it = engine()
    failing = Kept(fails=True)
    source = Told(it.clock, [batches(temps(1), temps(90))])
    given = reads(source, acknowledges=True, ack="on_delivery")
    await run(it, pipeline("p", [given], [], [takes(failing, when=HOT)]))

    assert running(it, "p").failures.by_stage["output"] == 1
    assert source.acknowledged == [0, 1]
    await it.close()


@virtual
async def test_what_an_output_has_not_looked_at_when_the_time_is_over_is_lost_by_that() -> None:
    it, kept = Engine(Hurrying()), Kept()
    large = temps(*[90, 1] * LARGE_BATCH)
    source = Told(it.clock, [batches(large, temps(2))])
    await it.compile(pipeline("p", [reads(source)], [], [takes(kept, when=HOT)]))
    ended = running(it, "p")
    for _ in range(5):  # it looks at some of them
        await asyncio.sleep(0)

    await ended.stop(0)

    # Nobody knows which of them it wanted: all that had come to it counts, as at any other step.
    [loss] = [each for each in ended.failures.losses if each.count]
    assert loss == ComponentLoss("output", 0, "stopped", ended.lost)
    assert ended.lost == ended.counters.outbound - 2 * sum(map(len, kept.batches)) > 0
    await it.close()


@virtual
async def test_a_reader_is_handed_the_messages_that_it_wants_and_counts_those() -> None:
    it, hot, every = engine(), Kept(), Kept()
    await run(it, pipeline("up", [reads(Told(it.clock, [0.5, batches(temps(1, 90), temps(2))]))]))
    wants = PipelineInput(upstream="up", when=HOT)
    await run(it, pipeline("hot", [wants], [], [takes(hot)]))
    await run(it, pipeline("all", [PipelineInput(upstream="up")], [], [takes(every)]))
    await it.clock.sleep(1)

    assert (hot.batches, every.batches) == ([temps(90)], [temps(1, 90), temps(2)])
    assert running(it, "hot").counters.inbound == 1
    assert running(it, "up").counters.outbound == 3
    await it.close()


@virtual
async def test_what_a_reader_does_not_want_takes_no_place_in_its_inbox() -> None:
    it = engine()
    unwanted = [temps(1)] * (3 * INBOX_BATCHES)
    source = Told(it.clock, [0.5, batches(temps(90), *unwanted, temps(91))])
    await run(it, pipeline("up", [reads(source)]))
    slow = Slow(it.clock, 1e6)
    await run(it, pipeline("down", [PipelineInput(upstream="up", when=HOT)], [], [takes(slow)]))
    await it.clock.sleep(10)

    assert running(it, "up").in_flight == 0
    assert running(it, "down").counters.inbound == 2
    await it.close()


@virtual
async def test_a_reader_that_wants_much_still_makes_its_upstream_wait() -> None:
    it = engine()
    source = Told(it.clock, [0.5, batches(*(temps(90, 1) for _ in range(500)))])
    await run(it, pipeline("up", [reads(source)]))
    slow = Slow(it.clock, 1.0)
    wants = PipelineInput(upstream="up", when=HOT)
    await run(it, pipeline("down", [wants], [], [takes(slow)]))

    await it.clock.sleep(10)
    taken = running(it, "up").counters.inbound // 2
    await it.clock.sleep(600)

    assert taken <= 10 + 16 + 16 + 100 + 16  # written, two windows, the inbox, one chunk
    assert slow.batches == [temps(90)] * 500
    await it.close()


@virtual
async def test_an_exchange_has_the_new_conditions_from_then_on() -> None:
    it, old, new = engine(), Kept(), Kept()
    script = [0.5, batches(temps(90, 1)), 10, batches(temps(91, 2))]
    up = pipeline("up", [reads(Told(it.clock, script))])
    before = pipeline("down", [PipelineInput(upstream="up", when=HOT)], [], [takes(old)])
    after = pipeline("down", [PipelineInput(upstream="up", when=COLD)], [], [takes(new)])
    await it.load(Program((up, before)))
    await it.clock.sleep(1)

    await it.revert(target(up, after))
    await it.clock.sleep(20)

    assert (old.batches, new.batches) == ([temps(90)], [temps(2)])
    await it.close()


@examples(100)
@given(whens.filter(bool), st.lists(alike | other, min_size=1, max_size=6))
def test_what_an_output_is_handed_is_what_the_conditions_say(documents, batch) -> None:
    wanted = conditions(*documents)

    @virtual
    async def main() -> None:
        it, kept = engine(), Kept()
        config = pipeline(
            "p",
            [reads(Told(it.clock, [batches(batch)]))],
            [],
            [takes(kept, when=wanted)],
        )
        await run(it, config)
        await it.close()
        holds = all_hold(wanted)
        expected = [message for message in batch if holds(message)]
        assert kept.batches == ([expected] if expected else [])

    main()
