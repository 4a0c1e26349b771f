"""Posts of many messages to a durable input: what is held on to until they are stored and handed on."""

from __future__ import annotations

from pathlib import Path

from headrace.compiler.delivery import BATCHES_UNDER_WAY
from headrace.compiler.runtime.storedbatches import KEPT_BYTES, KEPT_MESSAGES
from tests.compiler.runtime.durable import Gated, durable, engine_on
from tests.virtual import virtual

MANY = KEPT_MESSAGES + 1
DECODED_AGAIN = [0] * MANY
"""What the text says of each post."""
HELD = [1] * MANY
"""What it was decoded to, as is said of it."""
AHEAD = 100
"""Posts of which more than one waits to be read, where the output is away."""


async def written(folder: Path, posts: int, size: int) -> list[object]:
    """Return what comes of posts of so many bytes each, all of which wait until the last is stored."""
    text = repr(DECODED_AGAIN).encode().ljust(size)
    out = Gated(is_open=False)
    async with engine_on(folder, durable(out)) as it:
        way_in = it.way_in("p")
        assert way_in is not None
        keep = way_in.ingress.keep
        assert keep is not None
        for _ in range(posts):
            await keep([*HELD], None, len(text), text, is_json=False)
        out.gate.set()
        await it.clock.sleep(60)
    return [*out.batches]


@virtual
async def test_what_waits_to_be_read_is_not_decoded_again(tmp_path: Path) -> None:
    assert await written(tmp_path, AHEAD, 100) == [HELD] * AHEAD


@virtual
async def test_what_is_held_on_to_is_bounded(tmp_path: Path) -> None:
    fit = 16
    batches = await written(tmp_path, AHEAD, KEPT_BYTES // fit)

    held = batches.count(HELD)
    assert (
        fit <= held <= fit + BATCHES_UNDER_WAY + 2
    )  # those that the pipeline has, and is about to
    assert batches == [HELD] * held + [DECODED_AGAIN] * (AHEAD - held)
