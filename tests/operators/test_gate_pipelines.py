"""Gates in pipelines that run: one writes, another waits, and each stays what it is."""

from dataclasses import replace

import pytest

from headrace.compiler.buckets import WHOLE, Bounds
from headrace.compiler.component.states import PipelineState
from headrace.compiler.runtime.monitoring.figures import figures_of
from headrace.operators.buffer import Buffer
from headrace.operators.remember import Remember
from tests.operators.gated import breaks, gated
from tests.promises import promise
from tests.stand_ins import (
    Awaiting,
    Kept,
    Slow,
    Told,
    batches,
    does,
    engine,
    pipeline,
    reads,
    run,
    running,
    takes,
    with_attribute,
)
from tests.virtual import virtual


def plant(idle_seconds=None):
    """Return an engine that has one bucket, and the bucket."""
    it = engine()
    it.state.declare({"machines": Bounds(idle_seconds=idle_seconds)})
    return it, it.state.get("machines")


def waits(**options):
    """Return a buffer that waits for the mode `auto` of the bucket."""
    return gated(bucket="machines", **options)


REMEMBERS = Remember.load({"remember": [{"field": "mode", "as": "mode"}]})


def over_machines(*arguments):
    """Return a config of components that are there already, with the bucket as its state."""
    return replace(pipeline(*arguments), state=PipelineState(bucket="machines"))


def writer(it, *words_and_seconds, outputs=()):
    """Return a pipeline that remembers modes as they come."""
    source = reads(Told(it.clock, modes(*words_and_seconds)))
    return over_machines("modes", [source], [REMEMBERS], outputs)


def modes(*words_and_seconds):
    """Return a script of batches with one mode each, and of seconds between."""
    return [
        batches([{"mode": each}]) if isinstance(each, str) else each for each in words_and_seconds
    ]


def broken():
    """Return a transform with a fault of its own, which no step reports."""
    transform = Buffer(size=1)
    return with_attribute(transform, "operator", lambda ctx: breaks)


@virtual
async def test_what_one_pipeline_writes_releases_at_once_what_another_holds():
    it, _ = plant()
    kept = Kept(it.clock)
    press = Told(it.clock, [1, batches([1], [2]), 1, batches([3]), 10, batches([4])])
    await run(it, pipeline("press", [reads(press)], [waits(max_messages=9)], [takes(kept)]))
    await run(it, writer(it, 5, "manual", 0.5, "auto"))

    await it.clock.sleep(20)

    assert kept.batches == [[1, 2, 3], [4]]
    assert kept.times == [5.501, 12]
    assert running(it, "press").parts.held == 0
    await it.close()


@virtual
async def test_the_bucket_of_the_pipeline_is_watched_unless_the_gate_names_another():
    it, bucket = plant()
    kept = Kept(it.clock)
    press = reads(Told(it.clock, [batches([1])]))
    await run(it, over_machines("press", [press], [gated(max_messages=9)], [takes(kept)]))

    bucket.merge({WHOLE: {"mode": "auto"}})

    assert kept.batches == [[1]]
    await it.close()


@virtual
async def test_an_hour_of_a_gate_that_opens_expires_and_opens_again():
    # A message every ten seconds; the mode counts for fifteen minutes after it was told.
    it, _ = plant(idle_seconds=900)
    kept = Kept(it.clock)
    script = [line for number in range(359) for line in (10, batches([number]))]
    press = pipeline(
        "press", [reads(Told(it.clock, script))], [waits(max_messages=1000)], [takes(kept)]
    )
    await run(it, writer(it, 605, "auto", 1800, "auto", 100, "manual", 600, "auto"))
    await run(it, press)

    await it.clock.sleep(3600)
    await it.close()

    assert [message for batch in kept.batches for message in batch] == [*range(359)]
    sizes = {round(at): len(each) for at, each in zip(kept.times, kept.batches, strict=True)}
    assert {at: size for at, size in sizes.items() if size > 1} == {605: 60, 2405: 90, 3105: 60}
    alone = [at for at, size in sizes.items() if size == 1]
    assert alone == [*range(610, 1505, 10), *range(2410, 2505, 10), *range(3110, 3600, 10)]


@virtual
async def test_what_is_held_when_a_pipeline_ends_goes_through_though_the_gate_is_closed():
    it, bucket = plant()
    kept = Kept()
    press = reads(Told(it.clock, [batches([1], [2])]))
    await run(it, pipeline("press", [press], [waits(max_messages=9)], [takes(kept)]))

    await it.dispose("press")

    assert (kept.batches, kept.finished) == ([[1, 2]], 1)
    assert bucket._watchers == {}
    await it.close()


@virtual
async def test_a_pipeline_that_is_created_again_watches_again():
    it, bucket = plant()
    kept = Kept()
    for number in range(3):
        press = reads(Told(it.clock, [batches([number])]))
        await run(it, pipeline("press", [press], [waits(max_messages=9)], [takes(kept)]))
        bucket.merge({WHOLE: {"mode": "auto"}})
        bucket.merge({WHOLE: {"mode": "manual"}})
        await it.dispose("press")

    assert kept.batches == [[0], [1], [2]]
    assert bucket._watchers == {}
    await it.close()


@virtual
async def test_a_pipeline_that_is_built_and_never_runs_watches_nothing():
    it, bucket = plant()
    sink = Slow(it.clock, 0.0)

    async def start():
        raise OSError("nobody answers")

    sink.start = start
    await it.compile(pipeline("press", [reads(Told(it.clock, []))], [waits(size=2)], [takes(sink)]))

    assert running(it, "press").status == "starting"
    assert bucket._watchers == {}
    await it.close()


# --- custody and flow


def acknowledging(it, script):
    source = Told(it.clock, script)
    return source, reads(source, acknowledges=True, ack="on_delivery")


@promise("delivery.ack.gate")
@virtual
async def test_a_message_is_acknowledged_when_what_the_gate_released_has_been_written():
    it, bucket = plant()
    source, given = acknowledging(it, [batches([1], [2])])
    await run(
        it, pipeline("p", [given], [waits(max_messages=9)], [takes(Slow(it.clock, seconds=10))])
    )

    await it.clock.sleep(100)
    held = list(source.acknowledged)
    bucket.merge({WHOLE: {"mode": "auto"}})
    await it.clock.sleep(9.9)
    released = list(source.acknowledged)
    await it.clock.sleep(0.2)

    assert (held, released, source.acknowledged) == ([], [], [0, 1])
    await it.close()


@virtual
async def test_a_batch_that_was_cut_is_acknowledged_with_the_rest_that_the_gate_let_go():
    it, bucket = plant()
    source, given = acknowledging(it, [batches([1, 2, 3])])
    await run(it, pipeline("p", [given], [waits(size=2)], [takes(Kept())]))
    cut = list(source.acknowledged)

    bucket.merge({WHOLE: {"mode": "auto"}})

    assert (cut, source.acknowledged) == ([], [0])
    await it.close()


@virtual
async def test_what_breaks_behind_a_release_is_not_acknowledged():
    it, bucket = plant()
    source, given = acknowledging(it, [batches([1])])
    await run(it, pipeline("p", [given], [waits(max_messages=9), broken()], [takes(Kept())]))

    bucket.merge({WHOLE: {"mode": "auto"}})
    await it.clock.sleep(1)

    assert source.acknowledged == []
    await it.close()


@virtual
async def test_a_release_is_charged_to_its_input_and_an_output_that_blocks_stops_the_pump():
    it, bucket = plant()
    source = Told(it.clock, [line for number in range(100) for line in (1, batches([number]))])
    blocked = Slow(it.clock, seconds=1e6)
    await run(it, pipeline("p", [reads(source)], [waits(max_messages=999)], [takes(blocked)]))
    await it.clock.sleep(10.5)
    held = figures_of(running(it, "p"))

    bucket.merge({WHOLE: {"mode": "auto"}})
    released = figures_of(running(it, "p"))
    await it.clock.sleep(100)
    full = figures_of(running(it, "p"))

    assert (held.held, held.in_flight) == (10, 0)
    assert (released.held, released.in_flight) == (0, 1)
    assert (full.held, full.in_flight) == (0, 16)
    assert full.inbound == 10 + 15
    await it.close()


# --- whose fault it is


@virtual
async def test_a_fault_behind_a_release_ends_the_pipeline_that_held_and_not_the_one_that_wrote():
    it, bucket = plant()
    written = Kept()
    press = reads(Told(it.clock, [batches([1])]))
    await run(it, pipeline("press", [press], [waits(max_messages=9), broken()], [takes(Kept())]))
    await run(it, writer(it, 1, "auto", 1, "auto", outputs=[takes(written)]))

    await it.clock.sleep(5)

    assert written.batches == [[{"mode": "auto"}]] * 2
    assert (running(it, "modes").status, running(it, "modes").failures.total) == ("running", 0)
    press = running(it, "press")
    assert (press.status, press.parts.held) == ("failed", 0)
    assert [(each.stage, each.message) for each in press.failures.table.latest()] == [
        ("transform", "RuntimeError: an operator is broken")
    ]
    assert bucket._watchers == {}
    await it.close()


@virtual
async def test_a_fault_behind_a_release_by_the_clock_ends_the_pipeline_as_well():
    it, _ = plant()
    press = reads(Told(it.clock, [batches([1])]))
    buffer = Buffer(seconds=10, max_messages=9)
    await run(it, pipeline("press", [press], [buffer, broken()], [takes(Kept())]))

    await it.clock.sleep(11)

    press = running(it, "press")
    assert (press.status, press.failures.total) == ("failed", 1)
    await it.close()


@virtual
async def test_a_batch_that_fails_behind_a_release_is_told_of_the_pipeline_that_held_it():
    def fails(_):
        raise ValueError("no such machine")

    it, _ = plant()
    press = reads(Told(it.clock, [batches([1])]))
    await run(it, pipeline("press", [press], [waits(max_messages=9), does(fails)]))
    await run(it, writer(it, 1, "auto"))

    await it.clock.sleep(5)

    press, wrote = running(it, "press"), running(it, "modes")
    assert (press.status, wrote.status) == ("running", "running")
    assert [(each.component, each.message) for each in press.failures.table.latest()] == [
        (1, "ValueError: no such machine")
    ]
    assert wrote.failures.total == 0
    await it.close()


# --- gates that a release opens and closes


@virtual
async def test_a_remember_behind_the_buffer_opens_and_closes_the_gate_of_its_own_pipeline():
    it, _ = plant()
    kept = Kept(it.clock)
    words = ("manual", "auto", 7, "auto", 1, "manual", 1, "off", 1, "auto", 20)
    source = reads(Told(it.clock, modes(*words)))
    buffer = waits(seconds=5, max_messages=9)
    await run(it, over_machines("p", [source], [buffer, REMEMBERS], [takes(kept)]))

    await it.clock.sleep(30)

    assert [[each["mode"] for each in batch] for batch in kept.batches] == [
        ["manual", "auto"],  # by the clock; it opens the gate
        ["auto"],
        ["manual"],  # it closes the gate
        ["off", "auto"],
    ]
    assert kept.times == [5, 7, 8, 14]
    await it.close()


@virtual
async def test_pipelines_whose_gates_open_each_other_hand_on_each_message_once():
    it, bucket = plant()
    kept = {"x": Kept(it.clock), "y": Kept(it.clock)}
    for own, other in (("x", "y"), ("y", "x")):

        def opens(batch, other=other):
            bucket.merge({other: {"mode": "auto"}})
            return [batch]

        source = reads(
            Told(it.clock, [batches([f"{own}1"], [f"{own}2"]), 10, batches([f"{own}3"])])
        )
        gate = waits(max_messages=9, key=own)
        await run(it, pipeline(own, [source], [gate, does(opens)], [takes(kept[own])]))
    await it.clock.sleep(1)

    bucket.merge({"x": {"mode": "auto"}})
    await it.clock.sleep(20)

    assert kept["x"].batches == [["x1", "x2"], ["x3"]]
    assert kept["y"].batches == [["y1", "y2"], ["y3"]]
    assert kept["x"].times[0] == kept["y"].times[0]
    await it.close()


@virtual
async def test_a_step_that_awaits_behind_the_buffer_may_open_its_gate():
    it, bucket = plant()
    kept = Kept(it.clock)

    async def asks(batch):
        await it.clock.sleep(1)
        bucket.merge({WHOLE: {"mode": "auto"}})
        return [batch]

    source = reads(Told(it.clock, [batches([1, 2, 3]), 0.5, batches([4]), 10, batches([5])]))
    await run(
        it,
        pipeline("p", [source], [waits(max_messages=3), does(asks, Awaiting)], [takes(kept)]),
    )

    await it.clock.sleep(20)

    assert kept.batches == [[1, 2, 3], [4], [5]]
    assert kept.times == [1, 2, 11.5]
    await it.close()


@pytest.mark.long
@virtual
async def test_a_row_of_hundreds_of_gates_that_open_each_other_is_no_deeper_than_one():
    it, bucket = plant()
    kept = Kept()
    for number in range(500):

        def opens_the_next(batch, number=number):
            bucket.merge({f"{number + 1}": {"mode": "auto"}})
            return [batch]

        own = reads(Told(it.clock, [batches([number])]))
        gate = waits(max_messages=9, key=str(number))
        await run(it, pipeline(f"p{number}", [own], [gate, does(opens_the_next)], [takes(kept)]))

    bucket.merge({"0": {"mode": "auto"}})

    assert kept.batches == [[number] for number in range(500)]
    await it.close()
