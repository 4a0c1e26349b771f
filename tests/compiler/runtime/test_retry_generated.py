"""Whatever fails when, each message is written once or told as lost, and nothing stays under way."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.clock import run_virtual
from headrace.compiler.delivery import Batch
from headrace.compiler.errors import BatchFailed, Unreachable
from tests.compiler.runtime.bridged import Run, Server, lost

SPANS = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.integers(1, 20),
        st.sampled_from(["away", "unclear", "answered", "misconfigured", "part"]),
    ),
    max_size=4,
)


def failure(kind: str, batch: Batch) -> Exception:
    match kind:
        case "unclear":
            return BatchFailed("cut off", "unclear")
        case "answered":
            return Unreachable("busy", is_answered=True)
        case "misconfigured":
            return BatchFailed("no table", "misconfigured")
        case "part":
            return Unreachable("some are confirmed", done=range(0, len(batch) - 1, 2))
    return Unreachable("away")


@given(
    spans=SPANS,
    refused=st.sets(st.integers(0, 59), max_size=3),
    at_once=st.integers(1, 4),
    size=st.integers(1, 4),
    takes_seconds=st.sampled_from([0.0, 0.1, 1.7]),
)
def test_each_message_is_written_once_or_lost(
    spans: list[tuple[int, int, str]],
    refused: set[int],
    at_once: int,
    size: int,
    takes_seconds: float,
) -> None:
    async def main() -> None:
        it = Run()

        def says(at: float, batch: Batch) -> Exception | None:
            if refused.intersection(batch):
                return BatchFailed("too large")
            for begins, lasts, kind in spans:
                if begins <= at < begins + lasts:
                    return failure(kind, batch)
            return None

        server = Server(it.clock, says, at_once, lambda _: takes_seconds)
        of = await it.start(server, 60 // size, size=size)
        await it.clock.sleep(2_000)

        assert of.in_flight == 0
        assert max(Counter(server.messages).values(), default=0) <= 1
        wrong = {
            n for start in range(0, 60 // size * size, size) for n in range(start, start + size)
        }
        missing = wrong - {*server.messages}
        batches = {n // size for n in refused}
        assert {n // size for n in missing} <= batches
        assert sum(lost(of).values()) == len(missing)
        assert refused.intersection(wrong) <= missing
        await it.engine.close()

    run_virtual(main)
