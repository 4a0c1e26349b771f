"""What is left of a batch that is tried again: neither what is written, nor what is known to be bad."""

from __future__ import annotations

import pytest

from headrace.compiler.delivery import Batch
from headrace.compiler.errors import BatchFailed, Unreachable
from headrace.compiler.runtime.bisectingsink import BisectingSink
from headrace.compiler.runtime.partwritten import PartWritten
from tests.compiler.runtime.bridged import Run, Server, lost
from tests.compiler.runtime.refusing import Taking
from tests.virtual import virtual


async def failed(part: PartWritten, sink: Taking) -> BatchFailed:
    """Return what the writing of what is left raises."""
    with pytest.raises(BatchFailed) as failure:
        await part.rest(sink.write)
    return failure.value


@virtual
async def test_what_an_outage_says_is_at_fault_is_not_tried_again() -> None:
    said: list[Exception | None] = [Unreachable("away", done=[0], refused={2: "too late"}), None]
    sink = Taking(lambda _: said.pop(0))
    part = PartWritten([*range(6)], Unreachable("away", done=range(1, 2), refused={3: "too large"}))

    first = await failed(part, sink)
    last = await failed(part, sink)

    assert sink.tries == [[0, 2, 4, 5], [2, 5]]
    assert (first.failure, [*first.done]) == ("unavailable", [0, 1])
    assert (last.failure, [*last.done], str(last)) == ("invalid", [0, 1, 2, 5], "too large")
    assert first.refused == last.refused == {3: "too large", 4: "too late"}


@virtual
async def test_where_nothing_else_is_left_nothing_is_written() -> None:
    sink = Taking()
    part = PartWritten([1, 2], Unreachable("away", done=[0], refused={1: "too large"}))

    failure = await failed(part, sink)

    assert (failure.failure, [*failure.done], failure.refused) == ("invalid", [0], {1: "too large"})
    assert sink.tries == []


@virtual
async def test_a_batch_of_which_nothing_is_known_is_tried_again_as_it_is() -> None:
    batch = [1, 2]
    cause = Unreachable("away")
    said: list[Exception | None] = [cause, None]
    sink = Taking(lambda _: said.pop(0))
    part = PartWritten(batch, cause)

    assert await failed(part, sink) is cause
    await part.rest(sink.write)

    assert all(each is batch for each in sink.tries)


@virtual
async def test_an_outage_in_the_middle_of_a_bisect_is_waited_for_and_it_goes_on_there() -> None:
    it = Run()

    def says(at: float, batch: Batch) -> Exception | None:
        if batch == [9, 10, 11] and at < 60:
            return Unreachable("away")
        if {2, 17}.intersection(batch):
            return BatchFailed("bad", took_nothing=True)
        return None

    server = Server(it.clock, says)
    of = await it.start(BisectingSink(server, 100), 2, size=12)
    await it.clock.sleep(200)

    assert server.messages == [n for n in range(24) if n not in (2, 17)]
    assert lost(of) == {"batch": 2}
    await it.engine.close()


@virtual
async def test_where_everything_is_refused_it_waits_until_somebody_has_acted() -> None:
    it = Run()

    def says(at: float, batch: Batch) -> Exception | None:
        return BatchFailed("bad", took_nothing=True) if at < 600 else None

    server = Server(it.clock, says)
    of = await it.start(BisectingSink(server, 5), 4, size=12)
    await it.clock.sleep(500)

    [outage] = of.parts.outages
    assert (outage.waits_for, server.messages) == ("misconfigured", [])
    between = [
        after - before for before, after in zip(server.tries, server.tries[1:], strict=False)
    ]
    assert all(20 < each < 40 for each in between[-10:])

    await it.clock.sleep(500)
    assert server.messages == [*range(5, 48)]
    assert lost(of) == {"batch": 5}
    await it.engine.close()


@pytest.mark.parametrize("at_once", [1, 3])
@virtual
async def test_a_message_that_a_server_cannot_work_on_is_found_behind_a_bisect_as_well(
    at_once: int,
) -> None:
    it = Run()

    def says(at: float, batch: Batch) -> Exception | None:
        if 13 in batch:
            return Unreachable("POST: 500", is_answered=True)
        refused = {place: "bad" for place, each in enumerate(batch) if each in (12, 18)}
        return BatchFailed("bad", refused=refused) if refused else None

    server = Server(it.clock, says, at_once)
    of = await it.start(BisectingSink(server, 100), 4, size=5)
    await it.clock.sleep(200)

    assert sorted(server.messages) == [n for n in range(20) if n not in (12, 13, 18)]
    assert lost(of) == {"batch": 3}
    await it.engine.close()
