"""What is tried again although it is the content: batches are taken apart, and single messages given up."""

from __future__ import annotations

from headrace.compiler.delivery import Batch
from headrace.compiler.errors import BatchFailed, Unreachable
from tests.compiler.runtime.bridged import Run, Server, away, lost, retry
from tests.promises import promise
from tests.virtual import virtual


def poisoned() -> Unreachable:
    """Return what is said of a message that a server cannot work on."""
    return Unreachable("POST: 500", is_answered=True)


@promise("delivery.retry.answered")
@virtual
async def test_a_message_that_the_other_side_never_takes_while_others_pass_is_at_fault() -> None:
    it = Run()

    def says(at: float, batch: Batch) -> Exception | None:
        return poisoned() if 13 in batch else None

    server = Server(it.clock, says)
    of = await it.start(server, 4, size=5)
    await it.clock.sleep(200)

    assert server.messages == [n for n in range(20) if n != 13]
    assert lost(of) == {"batch": 1}
    [failure] = of.failures.table.latest()
    assert failure.failure == "invalid"  # as it was last
    assert of.parts.outages[0].waits_for is None
    await it.engine.close()


@virtual
async def test_one_that_comes_alone_is_at_fault_if_what_comes_behind_it_passes() -> None:
    it = Run()

    def says(at: float, batch: Batch) -> Exception | None:
        return poisoned() if 3 in batch else None

    server = Server(it.clock, says)
    of = await it.start(server, 10)
    await it.clock.sleep(200)

    assert sorted(server.messages) == [n for n in range(10) if n != 3]
    assert lost(of) == {"batch": 1}
    await it.engine.close()


@virtual
async def test_one_that_was_tried_alone_already_is_tried_three_times_while_others_pass() -> None:
    it = Run()

    def says(at: float, batch: Batch) -> Exception | None:
        return BatchFailed("hangs up", "unclear", was_alone=True) if 3 in batch else None

    server = Server(it.clock, says)
    of = await it.start(server, 10, every=0.01)
    await it.clock.sleep(20)

    assert server.begun == [0, 1, 2, 3, 3, 4, 3, 5, 6, 7, 8, 9]
    assert lost(of) == {"batch": 1}
    assert of.parts.outages[0].waits_for is None
    await it.engine.close()


@virtual
async def test_one_that_comes_alone_and_last_waits() -> None:
    it = Run()

    def says(at: float, batch: Batch) -> Exception | None:
        return poisoned() if 3 in batch and at < 500 else None

    server = Server(it.clock, says)
    of = await it.start(server, 4)
    await it.clock.sleep(400)
    assert (server.messages, lost(of)) == ([0, 1, 2], {})
    await it.clock.sleep(200)

    assert server.messages == [0, 1, 2, 3]
    assert lost(of) == {}
    await it.engine.close()


@virtual
async def test_where_no_message_passes_it_is_an_outage_after_all() -> None:
    it = Run()
    server = Server(it.clock, away(0, 300, poisoned()))
    of = await it.start(server, 4, size=5)
    await it.clock.sleep(900)

    # The batch that was taken apart when the server came back is whole, and not in its order.
    assert sorted(server.messages) == [*range(20)]
    assert lost(of) == {}
    await it.engine.close()


@virtual
async def test_a_server_that_comes_and_goes_costs_nothing_that_it_takes_in_the_end() -> None:
    it = Run()

    def says(at: float, batch: Batch) -> Exception | None:
        return poisoned() if at % 100 > 1 else None

    server = Server(it.clock, says)
    of = await it.start(server, 6, size=4)
    await it.clock.sleep(20_000)

    assert sorted(server.messages) == [*range(24)]
    assert lost(of) == {}
    await it.engine.close()


@virtual
async def test_what_is_refused_in_an_outage_is_lost_and_the_rest_is_written() -> None:
    it = Run()

    def says(at: float, batch: Batch) -> Exception | None:
        if batch == [1]:
            return BatchFailed("POST: 422", is_answered=True)
        return poisoned() if at < 60 or 1 in batch else None

    server = Server(it.clock, says)
    of = await it.start(server, 3, size=2)
    await it.clock.sleep(600)

    assert sorted(server.messages) == [0, 2, 3, 4, 5]
    assert lost(of) == {"batch": 1}
    await it.engine.close()


@virtual
async def test_what_passes_in_between_begins_the_seconds_anew() -> None:
    it = Run()

    def says(at: float, batch: Batch) -> Exception | None:
        return poisoned() if 50 in batch else None

    server = Server(it.clock, says)
    of = await it.start(server, 2, size=100, retry=retry(30))
    await it.clock.sleep(600)

    assert sorted(server.messages) == [n for n in range(200) if n != 50]
    assert lost(of) == {"batch": 1}
    await it.engine.close()


@virtual
async def test_many_of_them_keep_the_others_waiting_for_minutes_and_no_longer() -> None:
    it = Run()

    def says(at: float, batch: Batch) -> Exception | None:
        return poisoned() if any(n < 20 for n in batch) else None

    server = Server(it.clock, says)
    of = await it.start(server, 2, size=21)
    await it.clock.sleep(400)

    assert sorted(server.messages) == [*range(20, 42)]
    assert lost(of) == {"batch": 20}
    await it.engine.close()


@virtual
async def test_what_is_done_of_what_was_tried_ahead_is_not_written_twice() -> None:
    it = Run()
    ahead = [Unreachable("some are confirmed", done=[0, 3]), Unreachable("away")]

    def says(at: float, batch: Batch) -> Exception | None:
        if 3 in batch:
            return poisoned()
        return ahead.pop(0) if ahead and batch[-1] == 7 else None

    server = Server(it.clock, says)
    of = await it.start(server, 4, size=4)
    await it.clock.sleep(400)

    assert sorted(server.messages) == [n for n in range(16) if n != 3]
    assert lost(of) == {"batch": 1}
    await it.engine.close()
