"""Whatever is refused, and whatever fails in between, each message is written once or refused once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.clock import run_virtual
from headrace.compiler.delivery import Batch
from headrace.compiler.errors import BatchFailed, Unreachable
from headrace.compiler.runtime.bisectingsink import BisectingSink
from tests.compiler.runtime.bridged import Run, Server, lost
from tests.compiler.runtime.refusing import Taking
from tests.compiler.runtime.test_retry_generated import SPANS
from tests.compiler.runtime.test_retry_generated import failure as outage

COUNT = 40
WAYS = ("whole", "index", "first", "mixed")


def refusal(batch: Batch, at: Sequence[int], way: str) -> BatchFailed:
    """Return what a sink raises for a batch with bad messages at some places."""
    match way:
        case "index":
            return BatchFailed("some", refused=dict.fromkeys(at, "bad"))
        case "first":  # it sends one message after the other, and stops
            return BatchFailed("bad", done=range(at[0]), refused={at[0]: "bad"})
        case "mixed":  # half of it is confirmed, and one is known to be bad
            done = [each for each in range(0, len(batch), 2) if each not in at]
            return BatchFailed("bad", done=done, refused={at[-1]: "bad"})
    return BatchFailed("bad", took_nothing=True)


async def failure(it: BisectingSink, batch: Batch) -> BatchFailed | None:
    """Write a batch; return what it raises."""
    try:
        await it.write(batch)
    except BatchFailed as cause:
        return cause
    return None


@given(
    bad=st.sets(st.integers(0, COUNT - 1)),
    away=st.sets(st.integers(0, 60), max_size=12),
    way=st.sampled_from(WAYS),
    size=st.integers(1, COUNT),
    most=st.integers(1, 8),
)
def test_each_message_is_written_once_or_refused_once(
    bad: set[int], away: set[int], way: str, size: int, most: int
) -> None:
    async def main() -> None:
        def refuses(batch: Batch) -> Exception | None:
            if len(sink.tries) in away:
                return Unreachable("away", "unclear" if len(sink.tries) % 2 else None)
            at = [place for place, each in enumerate(batch) if each in bad]
            return refusal(batch, at, way) if at else None

        sink = Taking(refuses)
        it = BisectingSink(sink, most)
        refused, in_a_row = Counter[int](), 0

        for start in range(0, COUNT, size):
            left = [*range(start, min(start + size, COUNT))]
            while left:
                before = len(sink.taken)
                cause = await failure(it, left)
                taken = sink.taken[before:]
                if cause is None:
                    assert sorted(taken) == left
                    in_a_row = 0
                    break
                assert [left[place] for place in cause.done] == sorted(taken)
                refused.update(left[place] for place in cause.refused)
                in_a_row = 0 if taken else in_a_row + len(cause.refused)
                assert in_a_row <= most
                done = {*cause.done, *cause.refused}
                left = [each for place, each in enumerate(left) if place not in done]
                assert bool(left) == (cause.failure != "invalid")
                if cause.failure == "misconfigured":
                    bad.discard(left[0])  # somebody mends it

        assert sorted([*sink.taken, *refused.elements()]) == [*range(COUNT)]
        assert bad.issuperset(refused)

    run_virtual(main)


@given(bad=st.sets(st.integers(0, 99), max_size=8), size=st.integers(1, 100))
def test_tries_are_few(bad: set[int], size: int) -> None:
    async def main() -> None:
        def refuses(batch: Batch) -> Exception | None:
            return BatchFailed("bad", took_nothing=True) if bad.intersection(batch) else None

        sink = Taking(refuses)
        it = BisectingSink(sink, 100)
        refused: set[int] = set()
        for start in range(0, 100, size):
            batch = [*range(start, min(start + size, 100))]
            if (cause := await failure(it, batch)) is not None:
                refused |= {batch[place] for place in cause.refused}

        assert refused == bad
        assert sink.taken == [each for each in range(100) if each not in bad]
        assert len(sink.tries) <= -(-100 // size) + len(bad) * 2 * 7

    run_virtual(main)


@given(
    spans=SPANS,
    bad=st.sets(st.integers(0, 59), max_size=10),
    is_told=st.booleans(),
    at_once=st.integers(1, 4),
    size=st.integers(1, 12),
    takes_seconds=st.sampled_from([0.0, 0.1, 1.7]),
)
def test_behind_retries_each_message_is_written_once_or_lost_for_what_it_is(
    spans: list[tuple[int, int, str]],
    bad: set[int],
    is_told: bool,
    at_once: int,
    size: int,
    takes_seconds: float,
) -> None:
    async def main() -> None:
        it = Run()

        def says(at: float, batch: Batch) -> Exception | None:
            for begins, lasts, kind in spans:
                if begins <= at < begins + lasts:
                    cause = outage(kind, batch)
                    assert isinstance(cause, BatchFailed)
                    cause.done = [place for place in cause.done if batch[place] not in bad]
                    return cause
            places = [place for place, each in enumerate(batch) if each in bad]
            return refusal(batch, places, "index" if is_told else "whole") if places else None

        server = Server(it.clock, says, at_once, lambda _: takes_seconds)
        of = await it.start(BisectingSink(server, 100), 60 // size, size=size)
        await it.clock.sleep(3_000)

        came = {*range(60 // size * size)}
        assert of.in_flight == 0
        assert sorted(server.messages) == sorted(came - bad)
        assert sum(lost(of).values()) == len(came & bad)
        await it.engine.close()

    run_virtual(main)
