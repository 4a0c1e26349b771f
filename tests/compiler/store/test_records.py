"""Dead letters: put down, listed, read, tried again, deleted; bounds; what is committed together."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.store import letterrecords
from headrace.compiler.store.database import Database
from headrace.compiler.store.inpieces import MOST_JOINED
from headrace.compiler.store.journal import Journal
from headrace.compiler.store.letterrecords import Records
from headrace.compiler.store.letterrows import (
    DroppedLetters,
    FoundLetter,
    LetterAmount,
    LetterSignature,
    WholeLetter,
)
from headrace.compiler.store.storedrows import Changes
from headrace.compiler.store.storeerrors import StoreFailed, StoreFull
from tests.compiler.store.killed import kill
from tests.compiler.store.letters import PLAIN, ROOM, ids, letter, opened, put_down, size
from tests.virtual import virtual


async def a_while() -> None:
    await Clock(asyncio.get_running_loop()).sleep(1)


@virtual
async def test_a_letter_is_read_as_it_was_put_down(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    full = letter(component=None, input_index=3, maybe_written=True, messages=20, target="größe")
    empty = letter(target=None, detail=None, received_at=None, config=None, first_seen=5)
    records = Records(store)
    records.append(full, b"one", ROOM)
    await records.append(empty, b"", ROOM).stored()
    await store.close()

    store = await opened(tmp_path)
    records = Records(store)
    assert await records.letter(1) == WholeLetter(FoundLetter(1, full, 3), b"one")
    assert await records.letter(2) == WholeLetter(FoundLetter(2, empty, 0), b"")
    assert await records.letter(3) is None
    assert await records.letter(2**70) is None
    assert store.condition.damaged == 0
    await store.close()


@virtual
async def test_a_large_body_is_written_in_pieces_and_read_whole() -> None:
    store = await opened()
    records = Records(store)
    large = bytes(range(256)) * (MOST_JOINED // 64)
    await put_down(records, b"a", large, b"b")

    found = [await records.letter(id) for id in (1, 2, 3)]
    assert [each.body for each in found if each is not None] == [b"a", large, b"b"]


@virtual
async def test_what_comes_in_one_turn_is_one_commit() -> None:
    store = await opened()
    records = Records(store)
    journal = await Journal.open(store, "press-line", "http", "journal", ROOM)

    groups = [records.append(PLAIN, b"%d" % each, ROOM) for each in range(200)]
    assert {*groups, journal.append(b"entry")} == {groups[0]}
    await groups[0].stored()
    assert store.commits == 1
    assert await ids(records) == [*range(200, 0, -1)]


@virtual
async def test_ids_are_never_used_again(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    records = Records(store)
    await put_down(records, b"a", b"b")
    assert await records.delete("press-line", [1, 2]) == LetterAmount(2, 2, 2 * size(PLAIN, b"a"))
    kill(store)

    store = await opened(tmp_path)
    records = Records(store)
    await put_down(records, b"c")
    assert await ids(records) == [3]
    await store.close()


@virtual
async def test_what_failed_alike_is_one_row() -> None:
    store = await opened()
    records = Records(store)
    await put_down(records, b"1", first_seen=50.0, last_seen=60.0, messages=2)
    await put_down(records, b"22", first_seen=40.0, last_seen=55.0, messages=3)
    await put_down(records, b"3", last_seen=70.0, component=1)
    await put_down(records, b"4", last_seen=80.0, failure="unclear")
    await put_down(records, b"5", last_seen=90.0, stage="input", component=None)
    await put_down(records, b"6", last_seen=65.0, pipeline="milling")

    alike = ("press-line", "output", 0, PLAIN.message, "invalid")
    both = size(PLAIN, b"1") + size(PLAIN, b"22")
    found = await records.signatures("press-line")
    assert found[-1] == LetterSignature(*alike, 2, 5, both, 40.0, 60.0)
    assert [(each.stage, each.component, each.failure) for each in found] == [
        ("input", None, "invalid"),
        ("output", 0, "unclear"),
        ("output", 1, "invalid"),
        ("output", 0, "invalid"),
    ]
    of_all = await records.signatures()
    assert [each.last_seen for each in of_all] == [90.0, 80.0, 70.0, 65.0, 60.0]
    assert await records.signatures("nobody") == []


@virtual
async def test_of_what_failed_alike_so_much_is_told_that_was_seen_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(letterrecords, "MOST_SIGNATURES_LISTED", 4)
    records = Records(await opened())
    for at in range(12):
        await put_down(records, b"", last_seen=at, message=f"m{at}", pipeline=f"p{at % 3}")

    assert [each.last_seen for each in await records.signatures()] == [11, 10, 9, 8]
    assert [each.last_seen for each in await records.signatures("p1")] == [10, 7, 4, 1]


@virtual
async def test_lists_come_in_pages_newest_first() -> None:
    store = await opened()
    records = Records(store)
    await put_down(records, *(b"%d" % each for each in range(250)))

    first = await records.page("press-line")
    assert [each.id for each in first.letters] == [*range(250, 50, -1)]
    assert (first.before, first.is_truncated, first.total) == (51, True, 250)
    assert first.bytes == records.bytes("press-line")
    second = await records.page("press-line", before=first.before)
    assert [each.id for each in second.letters] == [*range(50, 0, -1)]
    assert (second.is_truncated, second.total) == (False, 250)
    assert await ids(records, limit=2) == [250, 249]
    assert len(await ids(records, limit=1_000)) == 200
    assert (await records.page("press-line", before=1)).letters == []
    assert (await records.page("nobody")).total == 0


@virtual
async def test_lists_are_of_a_stage_or_message() -> None:
    store = await opened()
    records = Records(store)
    await put_down(records, b"1", message="late")
    await put_down(records, b"2", message="late", stage="input")
    await put_down(records, b"3", message="early")
    await put_down(records, b"4", message="late", component=7)
    await put_down(records, b"5", message="late", pipeline="milling")

    for of, expected in [
        ({"stage": "output"}, [4, 3, 1]),
        ({"message": "late"}, [4, 2, 1]),
        ({"message": "late", "stage": "output"}, [4, 1]),
        ({"message": "late", "before": 4}, [2, 1]),
        ({"message": "nothing"}, []),
        ({"stage": "nothing"}, []),
    ]:
        page = await records.page("press-line", **of)  # type: ignore[arg-type]
        assert [each.id for each in page.letters] == expected
        count = len(expected) + ("before" in of)
        assert page.total == count
        assert (page.bytes > 0) == (count > 0)


@virtual
async def test_lists_touch_no_body(monkeypatch: pytest.MonkeyPatch) -> None:
    store = await opened()
    records = Records(store)
    await put_down(records, b"a", b"b")
    store.database._run.execute("DROP TABLE bodies")

    assert len(await records.signatures()) == 1
    assert await ids(records, message=PLAIN.message) == [2, 1]
    assert records.amounts("press-line") == {"output": LetterAmount(2, 2, 2 * size(PLAIN, b"a"))}


@virtual
async def test_some_are_read_by_their_ids_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letterrecords, "MOST_LISTED", 2)
    store = await opened()
    records = Records(store)
    for which in range(3):
        await put_down(records, b"a", stage="output", message=f"m{which}")
    await put_down(records, b"b", pipeline="other")
    await put_down(records, b"c", stage="transform", message="m0")
    asked = [5, 4, 3, 5, 1, 6, 0, -1, 2**63 - 1, 2**70]

    def numbers(found: list[FoundLetter]) -> list[int]:
        return [each.id for each in found]

    assert numbers(await records.some("press-line", asked)) == [1, 3, 5]
    assert numbers(await records.some("press-line", asked, "output")) == [1, 3]
    assert numbers(await records.some("press-line", asked, None, "m0")) == [1, 5]
    assert numbers(await records.some("other", asked)) == [4]
    assert await records.some("press-line", []) == []
    assert (
        await records.some("press-line", [5]) == (await records.page("press-line", limit=1)).letters
    )
    store.database._run.execute("DROP TABLE bodies")
    assert len(await records.some("press-line", asked)) == 3

    assert store.condition.damaged == 0
    store.database._run.execute("UPDATE letters SET detail = 'another' WHERE id IN (3, 4)")
    for _ in range(2):
        assert numbers(await records.some("press-line", asked)) == [1, 5]
        assert store.condition.damaged == 1  # the other one is of another pipeline


@virtual
async def test_how_much_there_is_is_known_at_any_time(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    records = Records(store)
    group = records.append(letter(messages=3), b"abc", ROOM)
    one = size(PLAIN, b"abc")
    assert (records.amounts("press-line"), records.bytes("press-line")) == ({}, one)
    await group.stored()
    await put_down(records, b"abc", stage="input")
    expected = {
        "output": LetterAmount(1, 3, one),
        "input": LetterAmount(1, 1, one - len("output") + len("input")),
    }
    assert records.amounts("press-line") == expected
    assert records.pipelines() == ["press-line"]
    await store.close()

    store = await opened(tmp_path)
    records = Records(store)
    assert records.amounts("press-line") == expected
    await records.delete_all("press-line")
    assert (records.pipelines(), records.bytes("press-line")) == ([], 0)
    await store.close()


@virtual
async def test_what_became_of_a_letter_is_written(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    records = Records(store)
    await put_down(records, b"a")
    await records.update(1, 2, 1_800_000_000, maybe_written=True)
    await records.update(9, 2, 1_800_000_000, maybe_written=True)  # it is gone
    kill(store)

    store = await opened(tmp_path)
    now = PLAIN._replace(tries=2, last_seen=1_800_000_000.0, maybe_written=True)
    assert await Records(store).letter(1) == WholeLetter(FoundLetter(1, now, 1), b"a")
    assert (await Records(store).signatures())[0].last_seen == 1_800_000_000
    await store.close()


@virtual
async def test_letters_are_deleted_by_ids_of_their_pipeline_alone() -> None:
    store = await opened()
    records = Records(store)
    await put_down(records, b"a", b"b", b"c")
    await put_down(records, b"d", pipeline="milling")

    deleted = await records.delete("press-line", [1, 3, 4, 17, 2**70])
    assert deleted == LetterAmount(2, 2, 2 * size(PLAIN, b"a"))
    assert await ids(records) == [2]
    assert await ids(records, "milling") == [4]
    found = store.database._run.execute("SELECT id FROM bodies").fetchall()
    assert found == [(2,), (4,)]


@virtual
async def test_letters_are_deleted_by_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.compiler.store.lettertables.DELETED_LETTERS", 7)
    store = await opened()
    records = Records(store)
    for each in range(60):
        fields = {"message": f"m{each % 2}", "stage": f"s{each % 3}", "messages": 2}
        await put_down(records, b"%d" % each, **fields)

    deleted = await records.delete_all("press-line", "s1", "m0")
    assert (deleted.letters, deleted.messages) == (10, 20)
    assert (await records.delete_all("press-line", "s1")).letters == 10
    assert (await records.delete_all("press-line", message="m1")).letters == 20
    assert {each.message for each in await records.signatures()} == {"m0"}
    assert (await records.delete_all("press-line")).letters == 20
    assert (await records.delete_all("press-line")).letters == 0
    assert records.pipelines() == []


@virtual
async def test_what_comes_while_all_are_deleted_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    store = await opened()
    records = Records(store)
    await put_down(records, b"a", b"b")
    of_before = records.delete_all("press-line")
    last = store.last_letter
    deleting = asyncio.ensure_future(of_before)
    await asyncio.sleep(0)
    await put_down(records, b"c")
    await deleting

    assert await ids(records) == [last + 1]


@virtual
async def test_a_full_pipeline_takes_nothing_until_something_goes() -> None:
    store = await opened()
    records = Records(store)
    one = size(PLAIN, b"x" * 100)
    bound = 2 * one + 10
    groups = [records.append(PLAIN, b"x" * 100, bound) for _ in range(2)]
    with pytest.raises(StoreFull, match=r"1,\d\d\d of 1,\d\d\d bytes are in use.*max_bytes"):
        records.append(PLAIN, b"x" * 100, bound)  # those that are being stored count as well
    await groups[0].stored()
    with pytest.raises(StoreFull):
        records.append(PLAIN, b"x" * 100, bound)
    records.append(letter(pipeline="milling"), b"x", bound)  # has a bound of its own

    await records.delete("press-line", [1])
    await records.append(PLAIN, b"x" * 100, bound).stored()


@virtual
async def test_the_oldest_go_for_new_ones_where_that_is_asked_for() -> None:
    store = await opened()
    dropped: list[DroppedLetters] = []
    records = Records(store, dropped.append)
    await put_down(records, b"x" * 100, stage="input", component=None, messages=5)
    await put_down(records, *[b"x" * 100] * 3, messages=2)
    await put_down(records, b"x" * 100, pipeline="milling")
    bound = records.bytes("press-line")

    await records.append(PLAIN, b"x" * 100, bound, drops_oldest=True).stored()
    assert dropped == [
        DroppedLetters("press-line", "input", None, 1, 5),
        DroppedLetters("press-line", "output", 0, 1, 2),  # the other was smaller by a byte
    ]
    assert await ids(records) == [6, 4, 3]
    assert records.bytes("press-line") <= bound
    assert await ids(records, "milling") == [5]
    assert await ids(records, stage="input") == []


@virtual
async def test_letters_of_one_commit_drop_each_other_and_what_went_is_told_once() -> None:
    store = await opened()
    dropped: list[DroppedLetters] = []
    records = Records(store, dropped.append)
    bound = 3 * size(PLAIN, b"1")
    for _ in range(10):
        group = records.append(PLAIN, b"1", bound, drops_oldest=True)
    assert records.bytes("press-line") == bound
    await group.stored()

    assert dropped == [DroppedLetters("press-line", "output", 0, 7, 7)]
    assert await ids(records) == [10, 9, 8]
    assert records.bytes("press-line") == bound


@virtual
async def test_what_never_fits_drops_nothing() -> None:
    store = await opened()
    records = Records(store)
    await put_down(records, b"a")
    with pytest.raises(StoreFull):
        records.append(PLAIN, bytes(5_000), 4_000, drops_oldest=True)

    assert await ids(records) == [1]


@virtual
async def test_a_smaller_bound_is_reached_in_steps() -> None:
    store = await opened()
    records = Records(store)
    await put_down(records, *[b"a"] * 20)
    bound = 2 * size(PLAIN, b"a")
    counts = []
    for _ in range(3):
        await records.append(PLAIN, b"a", bound, drops_oldest=True).stored()
        counts.append(records.amounts("press-line")["output"].letters)

    assert counts == [19, 18, 17]


@virtual
async def test_an_entry_goes_with_its_letter_in_one_commit(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    records = Records(store)
    journal = await Journal.open(store, "press-line", "http", "journal", ROOM)
    await journal.append(b"bad").stored()
    [entry] = await journal.read()
    commits = store.commits

    group = records.append(PLAIN, entry.payload, ROOM)
    journal.let_go([entry.number], group)
    await group.stored()
    assert (journal.entries, store.commits) == (0, commits + 1)
    kill(store)

    store = await opened(tmp_path)
    assert await ids(Records(store)) == [1]
    assert [each.entries for each in await store.queues.listed()] == [0]
    await store.close()


@virtual
async def test_nothing_more_is_committed_for_what_went_along() -> None:
    store = await opened()
    records = Records(store)
    journal = await Journal.open(store, "press-line", "http", "journal", ROOM)
    await journal.append(b"bad").stored()
    group = records.append(PLAIN, b"bad", ROOM)
    journal.let_go([each.number for each in await journal.read()], group)
    await group.stored()
    commits = store.commits
    await a_while()

    assert store.commits == commits


@virtual
async def test_a_row_goes_with_the_last_of_its_entries() -> None:
    store = await opened()
    records = Records(store)
    journal = await Journal.open(store, "press-line", "http", "journal", ROOM)
    for text in (b"a", b"b", b"c"):
        group = journal.append(text)
    await group.stored()
    await journal.read()

    for numbers, left in (([0], 3), ([1, 2], 0)):
        group = records.append(PLAIN, b"bad", ROOM)
        for number in numbers:
            journal.let_go([number], group)
        await group.stored()
        assert [each.entries for each in await store.queues.listed()] == [left]
    assert journal.entries == 0


@virtual
async def test_nothing_goes_along_with_what_is_not_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(tmp_path)
    records = Records(store)
    journal = await Journal.open(store, "press-line", "http", "journal", ROOM)
    await journal.append(b"bad").stored()
    await put_down(records, b"replayed")
    [entry] = await journal.read()
    with monkeypatch.context() as patched:

        def fail(*_: object) -> None:
            raise sqlite3.OperationalError("disk I/O error")

        patched.setattr(Database, "commit", fail)
        group = records.append(PLAIN, b"bad", ROOM)
        journal.let_go([entry.number], group)
        records.let_go([1], group)
        with pytest.raises(StoreFailed):
            await group.stored()
    await a_while()
    await a_while()

    assert (store.condition.state, journal.entries) == ("open", 1)
    assert await ids(records) == [1]
    assert records.bytes("press-line") == size(PLAIN, b"replayed")
    group = records.append(PLAIN, b"bad", ROOM)
    journal.let_go([entry.number], group)
    records.let_go([1], group)
    await group.stored()
    assert journal.entries == 0
    assert len(await ids(records)) == 1
    await store.close()


@virtual
async def test_a_commit_that_was_written_although_it_failed_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(tmp_path)
    records = Records(store)
    journal = await Journal.open(store, "press-line", "http", "journal", ROOM)
    await journal.append(b"bad").stored()
    [entry] = await journal.read()
    commit = Database.commit

    def fail(database: Database, changes: Changes) -> None:
        commit(database, changes)
        raise sqlite3.OperationalError("disk I/O error")

    for is_along in (False, True):
        with monkeypatch.context() as patched:
            patched.setattr(Database, "commit", fail)
            group = records.append(letter(stage=f"{is_along}"), b"bad", ROOM)
            if is_along:
                journal.let_go([entry.number], group)
            with pytest.raises(StoreFailed):
                await group.stored()
        await a_while()
        await a_while()
        assert store.condition.state == "open"

    # Of the second its letter is all there is.
    assert await ids(records) == [2]
    assert [*records.amounts("press-line")] == ["True"]
    assert records.amounts("press-line")["True"].letters == 1
    await store.close()


@virtual
async def test_a_letter_is_let_go_of_with_what_it_is_replayed_into(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    records = Records(store)
    journal = await Journal.open(store, "press-line", "http", "journal", ROOM)
    await put_down(records, b"a", b"b")
    group = journal.append(b"a")
    records.let_go([1], group)
    await group.stored()
    kill(store)

    store = await opened(tmp_path)
    records = Records(store)
    assert await ids(records) == [2]
    assert [each.entries for each in await store.queues.listed()] == [1]
    records.let_go([2])
    await a_while()
    assert records.pipelines() == []
    await store.close()


@virtual
async def test_texts_that_nothing_can_write_keep_nothing_from_being_stored() -> None:
    store = await opened()
    records = Records(store)
    broken = letter(message="half \ud800", detail="nul \0", pipeline="p\udcff")
    await records.append(broken, b"a", ROOM).stored()

    whole = await records.letter(1)
    assert whole is not None
    assert whole.found is not None
    assert whole.found.letter == letter(message="half ?", detail="nul \0", pipeline="p?")
    assert await ids(records, "p\udcff", message="half \ud800") == [1]
    assert store.condition.state == "open"


@virtual
async def test_a_store_that_takes_nothing_takes_no_letters(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    records = Records(store)
    await store.close()

    with pytest.raises(StoreFailed, match="closed"):
        records.append(PLAIN, b"a", ROOM)
    with pytest.raises(StoreFailed, match="closed"):
        await records.page("press-line")
    with pytest.raises(StoreFailed, match="closed"):
        await records.delete_all("press-line")
    with pytest.raises(StoreFailed, match="closed"):
        await records.update(1, 2, 3.0, maybe_written=False)
    assert records.bytes("press-line") == 0
