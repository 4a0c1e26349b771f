"""A durable input: what was taken is on the disk until all of it has left the outputs."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from pathlib import Path

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.component.retry import RetryOptions
from headrace.compiler.delivery import Batch
from headrace.compiler.errors import Refused, StoredInUse, UnknownStored
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.wayin import NoRoom, TooLargeToKeep
from headrace.compiler.store.database import Database
from headrace.compiler.store.storedrows import Changes
from tests.compiler.runtime.bridged import Server, away
from tests.compiler.runtime.durable import Gated, durable, engine_on, failing_commits, kept, post
from tests.promises import promise
from tests.stand_ins import pipeline, run, with_attribute
from tests.virtual import virtual


@virtual
async def test_a_post_is_stored_then_written_then_let_go_of(tmp_path: Path) -> None:
    out = Gated(is_open=False)
    async with engine_on(tmp_path, durable(out)) as it:
        assert await post(it, [{"n": 1}, {"n": 2}]) == 2
        before = await kept(it)
        out.gate.set()
        await it.clock.sleep(1)
        after = await kept(it)

    assert (before, after) == ({("p", False): 1}, {("p", False): 0})
    assert out.batches == [[{"n": 1}, {"n": 2}]]


@promise("http.durable.kill")
@virtual
async def test_what_was_not_written_comes_again_before_what_is_posted_then(tmp_path: Path) -> None:
    stuck, out = Gated(is_open=False), Gated()
    async with engine_on(tmp_path, durable(stuck)) as it:
        for n in range(100):
            await post(it, n)
    async with engine_on(tmp_path, durable(out)) as it:
        await post(it, 100)
        await it.clock.sleep(5)
        left = await kept(it)

    assert out.messages == [*range(101)]
    assert left == {("p", False): 0}


@promise("http.durable.twice")
@virtual
async def test_after_an_end_in_order_nothing_comes_twice(tmp_path: Path) -> None:
    class Some(Gated):
        async def write(self, batch) -> None:
            if len(self.batches) >= 37:
                await asyncio.Event().wait()
            await super().write(batch)

    some, out = Some(), Gated()
    async with engine_on(tmp_path, durable(some)) as it:
        await asyncio.gather(*(post(it, n) for n in range(100)))
        await it.clock.sleep(1)
    async with engine_on(tmp_path, durable(out)) as it:
        await it.clock.sleep(5)

    assert some.messages == [*range(37)]
    assert out.messages == [*range(37, 100)]


@virtual
async def test_what_waits_when_the_time_is_over_is_not_lost(tmp_path: Path) -> None:
    server = Server(Clock(asyncio.get_running_loop()), away(0, 1e9))
    config = durable(server)
    [output] = config.outputs
    bridging = pipeline(
        "p", config.inputs, [], [with_attribute(output, "retry", RetryOptions.load({}))]
    )
    async with engine_on(tmp_path, bridging) as it:
        for n in range(40):
            await post(it, n)
        running = it.graph.pipelines["p"]
    lost = {each.reason: each.count for each in running.failures.losses if each.count}
    assert (lost, running.lost) == ({}, 0)

    out = Gated()
    async with engine_on(tmp_path, durable(out)) as it:
        await it.clock.sleep(5)
    assert out.messages == [*range(40)]


@virtual
async def test_metadata_and_the_time_of_arrival_outlast_a_restart(tmp_path: Path) -> None:
    stuck, out, wrap = Gated(is_open=False), Gated(), {"type": "wrap"}
    async with engine_on(tmp_path, durable(stuck, envelope=wrap)) as it:
        await post(it, {"n": 1})
        arrived = it.clock.timestamp()
        await it.clock.sleep(3600)
    async with engine_on(tmp_path, durable(out, envelope=wrap)) as it:
        await it.clock.sleep(5)

    [message] = out.messages
    assert message["value"] == {"n": 1}
    assert message["_meta"] == {
        "pipeline": "p",
        "input": "http",
        "method": "POST",
        "remote_addr": "10.0.0.7:1",
        "headers": {"x-request-id": "r1"},
        "received_at": arrived,
    }
    assert b"s3cret" not in (tmp_path / "store" / "0" / "store.db").read_bytes()


@virtual
async def test_numbers_keep_their_digits_and_a_changed_format_reads_what_is_kept(
    tmp_path: Path,
) -> None:
    stuck, out = Gated(is_open=False), Gated()
    async with engine_on(tmp_path, durable(stuck, format="lines")) as it:
        await post(it, b"1.10\n2\n")
        await post(it, b"no json\n")
    async with engine_on(tmp_path, durable(out, format="ndjson")) as it:
        await it.clock.sleep(5)
        [figures] = await it.pipelines()
        left = await kept(it)

    assert out.messages == [1.1, 2]
    assert figures.skipped == 1
    assert [(each.reason, each.count) for each in figures.losses if each.count] == [("error", 1)]
    assert left == {("p", False): 0}


@virtual
async def test_large_posts_are_read_back_one_by_one(tmp_path: Path) -> None:
    class Counting(Gated):
        """Keeps no batch: it is in memory as long as anybody has it."""

        async def write(self, batch) -> None:
            self.batches.append([len(batch), batch[0], batch[-1]])

    stuck, out = Gated(is_open=False), Counting()
    large = [{"n": n, "text": "x" * 100} for n in range(20_000)]
    async with engine_on(tmp_path, durable(stuck)) as it:
        for _ in range(5):
            assert await post(it, large) == len(large)
    async with engine_on(tmp_path, durable(out, max_queued_bytes=3_000_000)) as it:
        await it.clock.sleep(5)
        left = await kept(it)

    assert out.batches == [[len(large), large[0], large[-1]]] * 5
    assert left == {("p", False): 0}


@promise("http.durable.beyond")
@virtual
async def test_what_there_is_no_room_for_is_not_taken(tmp_path: Path) -> None:
    out = Gated(is_open=False)
    async with engine_on(tmp_path, durable(out, durable={"max_bytes": 2_000})) as it:
        taken = 0

        async def post_all() -> None:
            nonlocal taken
            for _ in range(1_000):
                taken += await post(it, "x" * 100)

        with pytest.raises(
            NoRoom, match=r"pipeline 'p': .* of 2,000 bytes are in use \(max_bytes\)"
        ):
            await post_all()
        figures = await it.stored()
        assert figures is not None
        assert [each.state for each in figures.parts] == ["full"]

        out.gate.set()
        await it.clock.sleep(1)
        assert await post(it, 1) == 1
        await it.clock.sleep(1)

    assert 5 < taken < 20
    assert len(out.messages) == taken + 1


class OneByOne(Gated):
    """Writes one batch whenever its gate is opened."""

    async def write(self, batch: Batch) -> None:
        await super().write(batch)
        self.gate.clear()


@virtual
async def test_a_part_is_not_full_any_more_when_there_is_room_again(tmp_path: Path) -> None:
    async def states() -> list[tuple[int, str]]:
        await it.clock.sleep(1)
        figures = await it.stored()
        assert figures is not None
        return [(each.entries, each.state) for each in figures.parts]

    out = OneByOne(is_open=False)
    async with engine_on(tmp_path, durable(out, durable={"max_bytes": 2_000})) as it:
        found = []
        for size in (900, 100):
            await post(it, "x" * size)
            found += await states()
        # There is room for the first when one is gone, and for the second there is not.
        for size in (1_000, 1_700):
            with pytest.raises(NoRoom):
                await post(it, "x" * size)
            found += await states()
            out.gate.set()
            found += await states()
            if size == 1_000:
                await post(it, "x" * 300)

    assert found == [(1, "open"), (2, "open"), (2, "full"), (1, "open"), (2, "full"), (1, "full")]


@virtual
async def test_a_part_that_is_empty_is_not_full(tmp_path: Path) -> None:
    out = Gated(is_open=False)
    async with engine_on(tmp_path, durable(out, durable={"max_bytes": 2_000})) as it:
        await post(it, "x" * 900)
        with pytest.raises(NoRoom):
            await post(it, "x" * 1_800)
        out.gate.set()
        await it.clock.sleep(1)
        figures = await it.stored()
        assert figures is not None

    assert [(each.entries, each.state) for each in figures.parts] == [(0, "open")]


@virtual
async def test_what_is_larger_than_all_that_may_be_kept_never_is(tmp_path: Path) -> None:
    async with engine_on(tmp_path, durable(Gated(), durable={"max_bytes": 200})) as it:
        with pytest.raises(TooLargeToKeep, match=r"takes 1,083 bytes, and at most 200 may be kept"):
            await post(it, "x" * 1_000)
        assert await post(it, "x" * 50) == 1


@promise("http.durable.waits")
@virtual
async def test_what_is_being_stored_is_bounded(tmp_path: Path) -> None:
    async with engine_on(tmp_path, durable(Gated(), capacity=3)) as it:
        way_in = it.way_in("p")
        assert way_in is not None
        taken = [way_in.take(b"1", None) for _ in range(3)]
        with pytest.raises(NoRoom, match="too many posts wait to be stored"):
            way_in.take(b"1", None)
        assert [await each for each in taken] == [1, 1, 1]
        assert await post(it, 1) == 1


@virtual
async def test_bytes_that_are_being_stored_are_bounded(tmp_path: Path) -> None:
    async with engine_on(tmp_path, durable(Gated(), max_queued_bytes=100)) as it:
        way_in = it.way_in("p")
        assert way_in is not None
        taken = way_in.take(b'"%b"' % (b"x" * 90), None)
        with pytest.raises(NoRoom, match="too many bytes wait to be stored"):
            way_in.take(b'"%b"' % (b"x" * 90), None)
        assert await taken == 1


@virtual
async def test_nothing_is_answered_before_it_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = failing_commits(monkeypatch)
    out = Gated()
    async with engine_on(tmp_path, durable(out)) as it:
        fails[0] = True
        with pytest.raises(
            NoRoom, match="it could not be stored: it cannot be written: disk I/O error"
        ):
            await post(it, 1)
        with pytest.raises(NoRoom, match="disk I/O error, nothing was taken"):
            await post(it, 2)
        fails[0] = False
        await it.clock.sleep(5)
        assert await post(it, 3) == 1
        await it.clock.sleep(1)

    assert out.messages == [3]


@virtual
async def test_a_pipeline_that_keeps_nothing_is_not_touched_by_a_disk_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(self: Database, changes: Changes) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    out = Gated()
    async with engine_on(tmp_path, durable(Gated()), durable(out, id="q", durable=None)) as it:
        monkeypatch.setattr(Database, "commit", failing)
        with pytest.raises(NoRoom):
            await post(it, 1)
        assert await post(it, 2, "q") == 1
        await it.clock.sleep(1)
        monkeypatch.undo()

    assert out.messages == [2]


@virtual
async def test_without_a_directory_a_pipeline_is_refused_in_words() -> None:
    it = Engine(Clock(asyncio.get_running_loop()))
    with pytest.raises(Refused) as refused:
        await run(it, durable(Gated()))
    await it.close()

    [said] = refused.value.diagnostics
    assert said.path == "inputs[0].durable"
    assert said.message == "nothing can be kept without --data-dir"


@virtual
async def test_where_nothing_is_durable_nothing_is_made(tmp_path: Path) -> None:
    async with engine_on(tmp_path, durable(Gated(), durable=None)) as it:
        await post(it, 1)
        assert await it.stored() is None

    assert not os.listdir(tmp_path)


@virtual
async def test_a_store_that_somebody_else_has_refuses_in_words(tmp_path: Path) -> None:
    async with engine_on(tmp_path, durable(Gated())), engine_on(tmp_path) as it:
        with pytest.raises(Refused) as refused:
            await run(it, durable(Gated()))

    [said] = refused.value.diagnostics
    assert said.message.endswith("store/0' is in use by another process")


@virtual
async def test_a_pipeline_that_is_exchanged_goes_on_with_what_is_kept(tmp_path: Path) -> None:
    stuck, out = Gated(is_open=False), Gated()
    async with engine_on(tmp_path, durable(stuck)) as it:
        for n in range(50):
            await post(it, n)
        exchanging = asyncio.ensure_future(it.exchange("p", durable(out, capacity=1000), None))
        await asyncio.sleep(0)
        meanwhile = []
        for n in range(50, 60):
            meanwhile.append(asyncio.ensure_future(post(it, n)))
            await it.clock.sleep(0.2)
        await exchanging
        assert [await each for each in meanwhile] == [1] * 10
        await it.clock.sleep(5)
        left = await kept(it)

    assert sorted(stuck.messages + out.messages) == [*range(60)]
    assert out.messages == sorted(out.messages)
    assert left == {("p", False): 0}


@virtual
async def test_a_pipeline_that_is_deleted_works_off_what_it_can(tmp_path: Path) -> None:
    slow = Server(Clock(asyncio.get_running_loop()), away(0, 0))
    async with engine_on(tmp_path, durable(slow)) as it:
        for n in range(20):
            await post(it, n)
        await it.dispose("p")
        left = await kept(it)

    assert slow.messages == [*range(20)]
    assert left == {}


@virtual
async def test_what_is_left_of_a_deleted_pipeline_is_nobody_elses(tmp_path: Path, caplog) -> None:
    stuck, out = Gated(is_open=False), Gated()
    async with engine_on(tmp_path, durable(stuck)) as it:
        for n in range(20):
            await post(it, n)
        await it.dispose("p")
        deleted = await kept(it)
        await run(it, durable(out))
        await post(it, "new")
        await it.clock.sleep(5)
        figures = await it.stored()
        assert figures is not None
        [part] = [each for each in figures.parts if each.left_over]
        await it.discard_stored(part.id)
        with pytest.raises(UnknownStored):
            await it.discard_stored(part.id)
        [mine] = [each for each in (await it.stored()).parts if not each.left_over]
        with pytest.raises(StoredInUse, match="in use by pipeline 'p'"):
            await it.discard_stored(mine.id)

    assert deleted == {("p", True): 20}
    assert "left over in the store: entries: 20" in caplog.text
    assert out.messages == ["new"]


@virtual
async def test_what_ended_the_process_three_times_is_set_aside(tmp_path: Path, caplog) -> None:
    stuck, out = Gated(is_open=False), Gated()
    async with engine_on(tmp_path, durable(stuck)) as it:
        await post(it, "poison")
        await post(it, "fine")
    with sqlite3.connect(tmp_path / "store" / "0" / "store.db") as database:
        database.execute("UPDATE entries SET deaths = 3 WHERE first = 0")
    database.close()
    async with engine_on(tmp_path, durable(out)) as it:
        await it.clock.sleep(5)
        [figures] = await it.pipelines()
        left = await kept(it)

    assert out.messages == ["fine"]
    said = "set aside: the process ended 3 times while it was under way"
    assert [each.levelname for each in caplog.records if said in each.message] == [
        "WARNING",
        "ERROR",
    ]
    assert [(each.reason, each.count) for each in figures.losses if each.count] == [("error", 1)]
    assert left == {("p", False): 0}


@pytest.mark.parametrize(
    ("options", "body", "then", "count"),
    [
        ({}, b'[{"n": [1, 2]}, 2, "a,b"]', {}, 3),
        ({}, b'{"n": [1, 2]}', {}, 1),
        ({}, b"[" + b"0," * 99_999 + b"0]", {}, 100_000),
        ({}, b"[" + b"0," * 100_000 + b"0]", {}, 1),
        ({}, b'["' + b"x" * 2**20 + b'", "' + b"x" * 2**20 + b'"]', {}, 1),
        ({"format": "csv"}, b"n\n1\n2\n", {"format": "csv"}, 2),
        ({"format": "csv"}, b"n\n1\n2\n", {}, 1),
        ({"format": "csv"}, b"n\n1\n2\n", {"format": "ndjson"}, 1),
        ({}, b"[1, 2]", {"format": "csv"}, 1),
    ],
    ids=[
        "an array",
        "no array",
        "as many as are counted",
        "too many to be counted",
        "too long to be counted",
        "a table",
        "a table where JSON is expected",
        "a table where lines of JSON are expected",
        "an array that is a header now",
    ],
)
@virtual
async def test_what_is_set_aside_counts_as_its_messages(
    tmp_path: Path, options: dict[str, str], body: bytes, then: dict[str, str], count: int
) -> None:
    async with engine_on(tmp_path, durable(Gated(is_open=False), **options)) as it:
        await post(it, body)
    with sqlite3.connect(tmp_path / "store" / "0" / "store.db") as database:
        database.execute("UPDATE entries SET deaths = 3")
    database.close()
    async with engine_on(tmp_path, durable(Gated(), **then)) as it:
        await it.clock.sleep(5)
        [figures] = await it.pipelines()

    assert [(each.reason, each.count) for each in figures.losses if each.count] == [
        ("error", count)
    ]


@virtual
async def test_a_post_that_gives_no_message_any_more_is_skipped_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = Gated()
    async with engine_on(tmp_path, durable(Gated(is_open=False))) as it:
        await post(it, {"n": 1})
        await post(it, {"n": 2})
    async with engine_on(tmp_path, durable(out, format="csv")) as it:
        await post(it, b"n\n3\n")
        await it.clock.sleep(5)
        [figures] = await it.pipelines()
        left = await kept(it)

    assert out.messages == [{"n": "3"}]
    assert figures.skipped == 2
    assert [(each.reason, each.count) for each in figures.losses if each.count] == [("error", 2)]
    said = "skipped what does not fit the format: no message can be made of it"
    assert sum(said in each.message for each in caplog.records) == 1
    assert left == {("p", False): 0}


@virtual
async def test_posts_are_stored_while_the_outputs_come_up(tmp_path: Path) -> None:
    class Late(Gated):
        async def start(self) -> None:
            if it.clock.monotonic() < 20:
                raise OSError("connection refused")

    late = Late()
    async with engine_on(tmp_path) as it:
        await run(it, durable(late))
        assert await post(it, 1) == 1
        await it.clock.sleep(60)

    assert late.messages == [1]


@virtual
async def test_two_outputs_have_it_let_go_of_together(tmp_path: Path) -> None:
    fast, slow = Gated(), Gated(is_open=False)
    async with engine_on(tmp_path, durable(fast, slow)) as it:
        await post(it, 1)
        await it.clock.sleep(1)
        before = await kept(it)
        slow.gate.set()
        await it.clock.sleep(1)
        after = await kept(it)

    assert (fast.messages, slow.messages) == ([1], [1])
    assert (before, after) == ({("p", False): 1}, {("p", False): 0})
