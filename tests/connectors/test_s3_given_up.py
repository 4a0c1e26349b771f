"""Parts that a store refuses for what they are: they are given up by an `s3` output, and not held."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from headrace.connectors.s3.refusedparts import SUSPECTED_SECONDS
from tests.connectors.test_s3_custody import Ledger
from tests.doubles import StubContext
from tests.partsinmemory import PartsInMemory
from tests.promises import promise
from tests.s3_filling import ASIDE, MORNING, key
from tests.s3_keeping import FIRST, SECOND, opened
from tests.virtual import virtual

LETTERS = {"context": {"most_refused": 100}}
REFUSED = "a part is refused for what it is: the shop refuses this one"
THIRD = "p/2026-03-01T08-00-00Z-000003.ndjson"
A_WHILE = 300.0


def tries(shop: Any, name: str) -> int:
    """Return how often a part was sent."""
    return sum(found == name for _, found in shop.tried)


@promise("delivery.parts.refused")
@virtual(started_at=MORNING)
async def test_what_can_never_be_taken_is_lost_at_once_and_never_tried_again():
    sink, shop, ctx = await opened(None, rotate={"max_rows": 2})
    ledger = Ledger(sink)
    shop.faulty = {FIRST}

    await ledger.write(1, 2)
    await ledger.write(3, 4)
    await ctx.clock.sleep(A_WHILE)

    assert tries(shop, FIRST) == 1
    assert ctx.lost == {REFUSED: 2}
    assert ctx.classes == ["invalid"]
    assert shop.objects == {SECOND: b"3\n4\n"}
    assert sorted(ledger.written) == [
        1,
        2,
        3,
        4,
    ]  # nobody brings it again: it would be refused again
    assert sink.queue().used == 0
    await sink.finish()
    assert ctx.warnings == []


FORMATS: dict[str, dict[str, Any]] = {
    "ndjson": {},
    "ndjson.gz": {"compression": "gzip"},
    "ndjson.zst": {"compression": "zstd"},
    "json": {"format": "json_array"},
    "json.zst": {"format": "json_array", "compression": "zstd"},
    "txt": {"format": "text", "template": "{n}"},
    "csv": {"format": "csv", "csv": {"columns": ["n"]}},
    "csv.gz": {"format": "csv", "csv": {"columns": ["n"]}, "compression": "gzip"},
}
MESSAGES = [{"n": 1, "text": "a\nb, c"}, {"n": 2.5, "ü": None}, {"n": 3}]


@promise("delivery.parts.refused")
@pytest.mark.parametrize("extension", FORMATS)
@virtual(started_at=MORNING)
async def test_its_messages_become_a_dead_letter_whatever_they_are_written_as(extension: str):
    sink, shop, ctx = await opened(None, rotate={"max_rows": 3}, **FORMATS[extension], **LETTERS)
    ledger = Ledger(sink)
    shop.faulty = {f"p/{key(1, extension=extension)}"}

    await ledger.write(*MESSAGES[:2])
    await ledger.write(MESSAGES[2])
    await ctx.clock.sleep(A_WHILE)

    assert ctx.letters_of == [MESSAGES]
    assert (ctx.failures, ctx.lost, shop.objects) == ([REFUSED], {}, {})
    assert ledger.written == MESSAGES
    assert sink.queue().used == 0
    await sink.finish()


@pytest.mark.parametrize("extension", ["ndjson.gz", "csv.gz", "txt"])
@virtual(started_at=MORNING)
async def test_a_part_of_an_earlier_run_becomes_one_as_well(extension: str):
    kept, options = PartsInMemory(), {"rotate": {"max_rows": 3}, **FORMATS[extension], **LETTERS}
    sink, shop, _ = await opened(kept, **options)
    shop.is_down = True
    await sink.write(MESSAGES)
    await sink.finish()
    assert len(kept.parts) == 1

    sink, shop, ctx = await opened(kept, **options)
    shop.faulty = {f"p/{key(1, extension=extension)}"}
    await ctx.clock.sleep(A_WHILE)

    assert (ctx.letters_of, kept.parts, shop.objects) == ([MESSAGES], {}, {})
    await sink.finish()


@virtual(started_at=MORNING)
async def test_what_cannot_be_read_back_is_lost_and_counted():
    kept, options = PartsInMemory(), {"rotate": {"max_rows": 3}, **FORMATS["csv"]}
    sink, shop, _ = await opened(kept, **options)  # nothing may become a letter yet
    shop.is_down = True
    await sink.write(MESSAGES)
    await sink.finish()

    sink, shop, ctx = await opened(kept, **options, **LETTERS)
    shop.faulty = {f"p/{key(1, extension='csv')}"}
    await ctx.clock.sleep(A_WHILE)

    assert (ctx.letters_of, ctx.lost, kept.parts) == ([], {REFUSED: 3}, {})
    await sink.finish()


@virtual(started_at=MORNING)
async def test_a_large_part_becomes_letters_of_a_thousand_messages():
    sink, shop, ctx = await opened(None, rotate={"max_rows": 2_500}, **LETTERS)
    shop.faulty = {FIRST}

    await sink.write([*range(2_500)])
    await ctx.clock.sleep(1)

    assert [len(each) for each in ctx.letters_of] == [1_000, 1_000, 500]
    assert [n for each in ctx.letters_of for n in each] == [*range(2_500)]
    await sink.finish()


class SlowLetters(StubContext):
    """A context whose dead letters are on the disk when the test says so."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.then: list[Callable[[], None]] = []

    def when_kept(self, action: Callable[[], None]) -> None:
        self.then.append(action)


@virtual(started_at=MORNING)
async def test_a_part_is_let_go_of_when_its_letter_is_on_the_disk_and_not_before(monkeypatch):
    kept = PartsInMemory()
    monkeypatch.setattr("tests.s3_sides.StubContext", SlowLetters)
    sink, shop, ctx = await opened(kept, rotate={"max_rows": 1}, **LETTERS)
    assert isinstance(ctx, SlowLetters)
    ledger = Ledger(sink)
    shop.faulty = {FIRST}

    await ledger.write(1)
    await ctx.clock.sleep(1)
    before = [*ledger.written], [*sink.put_down()]
    ctx.then.pop()()
    await ctx.clock.sleep(1)

    assert before == ([], [[1]])
    assert (ledger.written, [*sink.put_down()]) == ([1], [])
    await sink.finish()
    assert kept.parts == {}


@virtual(started_at=MORNING)
async def test_a_part_whose_letter_finds_no_room_is_kept_over_the_end(monkeypatch):
    kept = PartsInMemory()
    monkeypatch.setattr("tests.s3_sides.StubContext", SlowLetters)
    sink, shop, ctx = await opened(kept, rotate={"max_rows": 1}, **LETTERS)
    shop.faulty = {FIRST}

    await sink.write([1])
    await ctx.clock.sleep(1)
    await sink.finish()

    assert len(kept.parts) == 1
    assert ctx.lost == {}
    sink, _, ctx = await opened(kept, rotate={"max_rows": 1}, **LETTERS)
    await ctx.clock.sleep(1)
    assert kept.parts == {}  # the store takes it now
    await sink.finish()


@virtual(started_at=MORNING)
async def test_what_nobody_knows_is_tried_again_until_others_were_taken_meanwhile():
    sink, shop, ctx = await opened(None, rotate={"max_rows": 1}, **LETTERS)
    late = f"p/{key(2, '08-00-01')}"
    shop.faulty, shop.is_certain = {late}, False

    await sink.write([1])  # before: it says nothing
    await ctx.clock.sleep(1)
    await sink.write([2])
    await ctx.clock.sleep(A_WHILE)
    alone, letters = tries(shop, late), [*ctx.letters_of]
    await sink.write([3])
    await ctx.clock.sleep(A_WHILE)

    assert (alone > 5, letters) == (True, [])
    assert ctx.letters_of == [[2]]
    assert tries(shop, late) == alone + 1
    assert set(ctx.failures) == {f"{ASIDE}the shop refuses this one", REFUSED}
    await sink.finish()


@virtual(started_at=MORNING)
async def test_what_nobody_knows_has_to_come_for_a_while_though_others_are_taken():
    sink, shop, ctx = await opened(None, rotate={"max_rows": 1}, **LETTERS)
    shop.faulty, shop.is_certain = {FIRST}, False

    for n in (1, 2):
        await sink.write([n])
        await ctx.clock.sleep(1)
    await ctx.clock.sleep(SUSPECTED_SECONDS - 3)
    during = [*ctx.letters_of]
    await ctx.clock.sleep(A_WHILE)

    assert (during, ctx.letters_of) == ([], [[1]])
    await sink.finish()


@virtual(started_at=MORNING)
async def test_a_fault_of_ours_costs_no_part():
    sink, shop, ctx = await opened(None, rotate={"max_rows": 1}, **LETTERS)
    shop.faults = [MemoryError() for _ in range(40)]

    for n in range(1, 4):
        await sink.write([n])
    await ctx.clock.sleep(2 * A_WHILE)

    assert len(shop.objects) == 3
    assert (ctx.letters_of, ctx.lost) == ([], {})
    await sink.finish()


@promise("delivery.parts.brake")
@pytest.mark.parametrize(("most", "lost"), [(None, 1), (3, 3)])
@virtual(started_at=MORNING)
async def test_where_none_is_taken_it_is_not_the_parts_and_they_wait_for_somebody(
    most: int | None, lost: int
):
    sink, shop, ctx = await opened(
        None, rotate={"max_rows": 1}, retry={}, context={"most_refused": most}
    )
    shop.faulty = {f"p/{key(n)}" for n in range(1, 7)}

    for n in range(1, 6):
        await sink.write([n])
    await ctx.clock.sleep(1)
    during = sum(ctx.lost.values()) + len(ctx.letters_of)
    waiting = ctx.outage.waits_for
    shop.faulty.discard(f"p/{key(5)}")
    await ctx.clock.sleep(A_WHILE)

    assert during == lost
    assert waiting == "misconfigured"
    # The one that is taken shows that it is the others, so these are given up now.
    assert shop.objects == {f"p/{key(5)}": b"5\n"}
    assert sum(ctx.lost.values()) + len(ctx.letters_of) > lost
    assert len(ctx.called) == 1
    await sink.finish()


@virtual(started_at=MORNING)
async def test_a_part_that_is_refused_at_the_end_becomes_a_letter_in_time():
    kept = PartsInMemory()
    sink, shop, ctx = await opened(kept, rotate={"max_rows": 2}, **LETTERS)
    shop.faulty = {FIRST}
    await sink.write([1])

    await sink.finish()

    assert (ctx.letters_of, kept.parts) == ([[1]], {})


@virtual(started_at=MORNING)
async def test_others_are_uploaded_while_one_becomes_a_letter():
    sink, shop, ctx = await opened(None, rotate={"max_rows": 1}, **LETTERS)
    shop.seconds, shop.faulty = 0.5, {SECOND}

    await asyncio.gather(*(sink.write([n]) for n in range(1, 4)))
    await ctx.clock.sleep(1.2)

    assert shop.objects == {FIRST: b"1\n", THIRD: b"3\n"}
    await sink.finish()
