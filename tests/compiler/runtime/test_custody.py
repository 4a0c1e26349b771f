"""Acknowledged when the last part of a delivery has left the outputs, and never before."""

from __future__ import annotations

from headrace.compiler.clock import run_virtual
from headrace.compiler.component.inputbuffers import Static
from headrace.compiler.errors import (
    BatchFailed,
)
from headrace.operators.buffer import Buffer
from tests.promises import promise
from tests.stand_ins import (
    Kept,
    Slow,
    Told,
    batches,
    does,
    engine,
    pipeline,
    reads,
    run,
    takes,
)


class TestCustody:
    """Acknowledged when the last part of a delivery has left the outputs, and never before."""

    def acknowledged(self, transforms, outputs, script, seconds=0.0, buffer=None):
        async def main():
            it = engine()
            source = Told(it.clock, script)
            given = reads(source, acknowledges=True, ack="on_delivery", buffer=buffer)
            made = [make(it.clock) for make in outputs]
            await run(it, pipeline("p", [given], transforms, [takes(each) for each in made]))
            await it.clock.sleep(seconds)
            seen = list(source.acknowledged)
            await it.close()
            return seen, source.acknowledged

        return run_virtual(main)

    @promise("delivery.ack.dropped")
    def test_what_is_filtered_to_nothing_is_acknowledged(self):
        seen, _ = self.acknowledged([does(lambda b: [])], [lambda _: Kept()], [batches([1], [2])])

        assert seen == [0, 1]

    @promise("delivery.ack.failed")
    def test_a_failed_batch_is_acknowledged(self):
        def fails(_):
            raise BatchFailed("no")

        seen, _ = self.acknowledged([does(fails)], [lambda _: Kept()], [batches([1])])

        assert seen == [0]

    @promise("delivery.ack.on_delivery")
    def test_a_split_delivery_waits_for_its_last_part(self):
        split = does(lambda b: [[m] for m in b])
        script = [batches([1, 2, 3])]

        early, _ = self.acknowledged([split], [lambda c: Slow(c, 1.0)], script, 2.5)
        late, _ = self.acknowledged([split], [lambda c: Slow(c, 1.0)], script, 3.5)

        assert (early, late) == ([], [0])

    @promise("delivery.ack.on_delivery")
    def test_the_slowest_output_decides(self):
        outputs = [lambda c: Slow(c, 1.0), lambda c: Slow(c, 5.0)]

        early, _ = self.acknowledged([], outputs, [batches([1])], 2.0)
        late, _ = self.acknowledged([], outputs, [batches([1])], 6.0)

        assert (early, late) == ([], [0])

    @promise("buffer.transform.holds", "delivery.ack.buffer")
    def test_what_a_buffer_holds_is_not_acknowledged(self):
        held = [Buffer(seconds=10, max_messages=100)]

        early, end = self.acknowledged(held, [lambda _: Kept()], [batches([1], [2])], 9.0)
        late, _ = self.acknowledged(held, [lambda _: Kept()], [batches([1], [2])], 11.0)

        assert (early, late, end) == ([], [0, 1], [0, 1])

    def test_a_cut_acknowledges_each_delivery_with_its_own_last_message(self):
        seen, _ = self.acknowledged(
            [Buffer(size=3)], [lambda _: Kept()], [batches([1, 2], [3, 4], [5])]
        )

        assert seen == [0]

    @promise("delivery.ack.buffer")
    def test_what_an_input_buffer_holds_is_not_acknowledged(self):
        seen, end = self.acknowledged(
            [], [lambda _: Kept()], [batches([1], [2], [3])], buffer=Static(size=2)
        )

        assert (seen, end) == ([0, 1], [0, 1, 2])

    def test_a_buffer_larger_than_the_window_does_not_deadlock(self):
        seen, _ = self.acknowledged(
            [Buffer(size=1000)],
            [lambda c: Slow(c, 0.0)],
            [batches(*([n] for n in range(3000)))],
            10.0,
        )

        assert sorted(seen) == list(range(3000))

    @promise("delivery.ack.on_receipt")
    def test_on_receipt_acknowledges_before_anything_is_written(self):
        async def main():
            it = engine()
            source = Told(it.clock, [batches([1])])
            slow = Slow(it.clock, 100.0)
            await run(it, pipeline("p", [reads(source, acknowledges=True)], [], [takes(slow)]))
            seen = list(source.acknowledged)
            await it.close()
            return seen

        assert run_virtual(main) == [0]
