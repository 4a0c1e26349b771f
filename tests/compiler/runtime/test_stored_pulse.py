"""The pulse tells how much of a pipeline waits on the disk, of those that keep something there."""

from __future__ import annotations

from pathlib import Path

from msgspec import UNSET

from headrace.compiler.jsontext import decode, encode
from headrace.compiler.runtime.monitoring.pipelinelive import live_of, pulse_of
from headrace.compiler.runtime.monitoring.pulses import StoredPulse
from tests.compiler.runtime.durable import Gated, engine_on, post
from tests.compiler.runtime.keeping import addressed, keeping
from tests.compiler.runtime.test_outputqueue_endings import Away
from tests.stand_ins import running
from tests.virtual import virtual


@virtual
async def test_what_waits_in_a_journal_and_since_when(tmp_path: Path) -> None:
    out = Gated(is_open=False)
    async with engine_on(tmp_path, keeping(out)) as it:
        idle = pulse_of(running(it, "p")).stored
        began = it.clock.millis()
        await post(it, 1)
        await it.clock.sleep(5)
        await post(it, 2)
        waits = pulse_of(running(it, "p")).stored
        figures = await it.stored()
        assert figures is not None
        out.gate.set()
        await it.clock.sleep(1)
        written = pulse_of(running(it, "p")).stored

    assert (idle, written) == (StoredPulse(0, 0, None),) * 2
    [part] = figures.parts
    assert waits == StoredPulse(2, part.bytes, part.oldest)
    assert part.oldest is not None
    assert 0 <= part.oldest - began < 100


@virtual
async def test_what_waits_in_the_queue_of_an_output_which_is_told_among_the_queues(
    tmp_path: Path,
) -> None:
    config = keeping(Gated(), addressed(Away(), queue={"max_bytes": 5_000}), durable=None)
    async with engine_on(tmp_path, config) as it:
        for n in range(3):
            await post(it, n)
        await it.clock.sleep(1)
        told = pulse_of(running(it, "p")).stored
        [queue] = [each for each in live_of(running(it, "p")).queues if each.unit == "bytes"]

    assert told.entries == 3
    assert (queue.stage, queue.component, queue.capacity) == ("output", 1, 5_000)
    assert queue.used == told.bytes > 0


@virtual
async def test_nothing_is_told_of_one_that_keeps_nothing(tmp_path: Path) -> None:
    async with engine_on(tmp_path, keeping(Gated(), durable=None)) as it:
        pulse = pulse_of(running(it, "p"))

    assert pulse.stored is UNSET
    assert "stored" not in decode(encode(pulse))
