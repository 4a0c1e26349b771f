"""The pump over raw payloads: decoding, skipping, coalescing, envelopes, acknowledging, stopping."""

from __future__ import annotations

from itertools import count

import pytest

from headrace.compiler.clock import run_virtual
from headrace.compiler.component.envelopes import Merge, Wrap
from headrace.compiler.component.inputbuffers import Tumbling
from headrace.compiler.delivery import LARGE_BATCH, PART
from tests.promises import promise
from tests.stand_ins import (
    Kept,
    RawTold,
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
)


def payloads(*bodies: bytes):
    return list(zip(bodies, range(len(bodies)), strict=True))


def fed(script, *, max_batch=1, about=None, **options):
    """Return what an output gets, and what was acknowledged, for raw arrivals.

    ``about`` is the kind's own metadata, if not a topic and an offset.
    """

    async def main():
        it = engine()
        source, kept = RawTold(it.clock, script), Kept()
        source.max_batch = max_batch
        source.describe = lambda origin: about or {"topic": "t", "offset": origin}
        await run(
            it, pipeline("p", [reads(source, acknowledges=True, **options)], [], [takes(kept)])
        )
        await it.close()
        return kept.batches, source.acknowledged

    return run_virtual(main)


def test_each_payload_is_a_batch_of_its_own_by_default():
    assert fed([payloads(b"1", b"[2]", b'{"n":3}')]) == ([[1], [[2]], [{"n": 3}]], [0, 1, 2])


def test_what_has_arrived_is_coalesced_up_to_max_batch_and_never_waited_for():
    got, _ = fed([payloads(b"1", b"2", b"3"), 1.0, payloads(b"4")], max_batch=2)

    assert got == [[1, 2], [3]]  # 4 comes a second later, and nobody waits for it


def test_payloads_that_are_unreadable_in_one_way_are_warned_of_once_wherever_the_fault_is(caplog):
    broken = [b"[" + b" " * blanks + b"x]" for blanks in range(300)]

    fed([payloads(*broken, b"{", b"[1, 2")])

    skipped = [record.message for record in caplog.records if "skipped" in record.message]
    assert len(skipped) == 2
    assert "invalid character" in skipped[0]
    assert "truncated" in skipped[1]


@promise("delivery.ack.skipped")
@pytest.mark.parametrize("ack", ["on_receipt", "on_delivery"])
def test_an_unreadable_payload_is_skipped_with_one_warning_and_acknowledged(ack, caplog):
    got, acknowledged = fed([payloads(b"1", b"{", b"{", b"4")], max_batch=10, ack=ack)

    assert (got, acknowledged) == ([[1, 4]], [0, 1, 2, 3])
    assert sum("is not JSON" in record.message for record in caplog.records) == 1


@promise("delivery.ack.skipped", "delivery.case.garbage")
def test_what_is_skipped_is_counted():
    async def main():
        it = engine()
        raw = RawTold(it.clock, [payloads(b"{", b"1", b'{"n":1}', b"{}", b"")])
        ready = Told(it.clock, [batches([1, {"n": 1}, 2])])
        await run(it, pipeline("p", [reads(each, envelope=Merge()) for each in (raw, ready)]))
        counters = running(it, "p").counters
        await it.close()
        return counters.inbound, counters.skipped

    assert run_virtual(main) == (3, 5)


@pytest.mark.parametrize(("max_batch", "under_way"), [(0, 256), (1, 256), (10, 25), (100, 16)])
def test_of_small_batches_more_are_under_way(max_batch, under_way):
    async def main():
        it = engine()
        source, stuck = RawTold(it.clock, [payloads(*[b"1"] * 5000)]), Slow(it.clock, 1e9)
        source.max_batch = max_batch
        await run(it, pipeline("p", [reads(source)], [], [takes(stuck)]))
        await it.clock.sleep(1)
        found = running(it, "p").in_flight
        await it.close()
        return found

    assert run_virtual(main) == under_way


def test_nothing_readable_is_acknowledged_all_the_same():
    assert fed([payloads(b"{", b"")], max_batch=10, ack="on_delivery") == ([], [0, 1])


def test_merge_adds_the_metadata_as_one_more_field():
    [[message]], _ = fed([payloads(b'{"temp":21.5}')], envelope=Merge())

    assert list(message) == ["temp", "_meta"]
    received = message["_meta"].pop("received_at")
    assert message == {
        "temp": 21.5,
        "_meta": {"pipeline": "p", "input": "acknowledging", "topic": "t", "offset": 0},
    }
    assert received == "2026-01-01T00:00:00.000000+00:00"


def test_merge_skips_what_is_no_object_and_acknowledges_it(caplog):
    got, acknowledged = fed([payloads(b"1", b'{"a":1}')], max_batch=5, envelope=Merge())

    assert ([list(message) for [message] in got], acknowledged) == ([["a", "_meta"]], [0, 1])
    assert "skipped a message that is not an object" in caplog.text


def test_merge_replaces_a_field_of_that_name_and_says_so_once(caplog):
    got, _ = fed([payloads(b'{"_meta":1}', b'{"_meta":2}')], envelope=Merge())

    assert [message["_meta"]["offset"] for [message] in got] == [0, 1]
    assert caplog.text.count("have a field '_meta' of their own") == 1


def test_wrap_puts_any_payload_beside_the_metadata():
    [[message]], _ = fed([payloads(b"[1]")], envelope=Wrap(meta="about", payload="  "))

    assert list(message) == ["about", "value"]
    assert message["value"] == [1]


def test_metadata_of_the_kind_wins_over_the_shared_but_for_the_time_of_arrival():
    about = {"received_at": "never", "input": "its own"}

    [[message]], _ = fed([payloads(b"1")], envelope=Wrap(), about=about)

    assert message["_meta"] == {
        "pipeline": "p",
        "input": "its own",
        "received_at": "2026-01-01T00:00:00.000000+00:00",
    }


def test_an_input_buffer_does_not_change_when_a_message_arrived():
    async def main():
        it = engine()
        source, kept = Told(it.clock, [batches([1]), 3.0, batches([2])]), Kept()
        options = {"envelope": Wrap(), "buffer": Tumbling(window_seconds=10)}
        await run(it, pipeline("p", [reads(source, **options)], [], [takes(kept)]))
        await it.clock.sleep(60)
        await it.close()
        return kept.batches

    [batch] = run_virtual(main)

    assert [each["_meta"]["received_at"][14:19] for each in batch] == ["00:00", "00:03"]


def test_a_source_that_hands_out_nothing_readable_of_its_own_keeps_running():
    async def main():
        it = engine()
        source, kept = Told(it.clock, [[], batches([]), batches([1])]), Kept()
        await run(it, pipeline("p", [reads(source)], [], [takes(kept)]))
        await it.close()
        return kept.batches

    assert run_virtual(main) == [[1]]


def test_what_was_read_before_a_stop_still_goes_through():
    async def main():
        it = engine()
        source = Told(it.clock, [batches(*([n] for n in range(40)))])
        slow = Slow(it.clock, 0.01)
        await run(it, pipeline("p", [reads(source)], [], [takes(slow)]))

        await it.dispose("p")

        return slow.batches

    assert run_virtual(main) == [[n] for n in range(40)]


def test_a_stop_does_not_wait_for_a_backoff():
    async def main():
        it = engine()
        source = Told(it.clock, [OSError("refused")] * 20)
        await run(it, pipeline("p", [reads(source)]))
        await it.clock.sleep(60)
        began = it.clock.monotonic()

        await it.dispose("p")

        assert it.clock.monotonic() == began
        assert source.is_closed

    run_virtual(main)


def test_a_fault_in_a_step_is_reported_with_its_kind_and_ends_nothing():
    async def main():
        it = engine()
        source, kept = Told(it.clock, [batches([1], [2])]), Kept()
        faults = [ZeroDivisionError("by zero")]

        def step(batch):
            if faults:
                raise faults.pop()
            return [batch]

        await run(it, pipeline("p", [reads(source)], [does(step)], [takes(kept)]))
        [view] = it.graph.pipelines.values()
        [failure] = view.failures.table.latest()
        await it.close()
        return kept.batches, failure.message

    assert run_virtual(main) == ([[2]], "ZeroDivisionError: by zero")


LARGE = [*range(LARGE_BATCH), {"n": 1}, {"_meta": 2}]


@pytest.mark.parametrize(
    ("envelope", "expected", "skipped"),
    [(Wrap(), len(LARGE), 0), (Merge(), 2, LARGE_BATCH)],
)
def test_a_large_batch_gets_its_envelope_in_slices_and_all_of_it_the_same(
    envelope, expected, skipped
):
    async def main():
        it = engine()
        source, kept = Told(it.clock, [batches([{"a": 0}], LARGE, [{"a": 9}])]), Kept()
        given_way = hurried(it.clock)
        await run(it, pipeline("p", [reads(source, envelope=envelope)], [], [takes(kept)]))
        found = running(it, "p").counters.skipped
        await it.close()
        return kept.batches, found, len(given_way)

    got, found, given_way = run_virtual(main)

    assert ([len(batch) for batch in got], found) == ([1, expected, 1], skipped)
    assert len({repr(each["_meta"]) for each in got[1]}) == 1
    assert given_way >= LARGE_BATCH // PART


def hurried(clock):
    """Have every turn be over as soon as somebody looks; return what keeps how often way is given."""
    began, looks, given_way, sleep = clock.monotonic(), count(), [], clock.sleep

    async def noting(seconds):
        given_way.append(seconds)
        await sleep(seconds)

    clock.monotonic, clock.sleep = lambda: began + next(looks), noting
    return given_way
