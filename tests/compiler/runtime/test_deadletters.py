"""What cannot be read, done or written is put down as dead letters, and nothing of it is lost."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.delivery import Batch
from headrace.compiler.edges import AwaitingSink
from headrace.compiler.errors import BatchFailed, Refused, Unreachable
from headrace.compiler.runtime import deadletters, letterkeeping
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.letterbody import arrival_of
from headrace.compiler.runtime.monitoring.liveevents import Event, Interest
from headrace.compiler.store.database import Database
from headrace.compiler.store.group import Group
from headrace.compiler.store.storedrows import Changes
from headrace.connectors.http import HttpInput
from headrace.operators.map import Map
from headrace.operators.script import Script
from tests.compiler.runtime.bridged import hear, retry
from tests.compiler.runtime.durable import Gated, engine_on, kept, post
from tests.compiler.runtime.lettered import PutDown, lettered, lost, put_down
from tests.promises import promise
from tests.stand_ins import (
    Kept,
    RawTold,
    Told,
    batches,
    does,
    reads,
    run,
    running,
    takes,
)
from tests.virtual import virtual

CAST = {"type": "cast", "from": "n", "to": "integer"}
NO_NUMBER = (
    "mapping 0 ('cast'): field 'n': cannot read a string as an integer: expected a whole number, or its"
    " digits in a string"
)


def casts(**options: Any) -> Map:
    """Return a transform that fails on what is no number."""
    return Map.load({"mappings": [CAST], **options})


class Refusing(AwaitingSink):
    """Refuses what it is told to, and keeps the rest."""

    def __init__(self, *refused: Any, failure: Any = "invalid", says: str = "no") -> None:
        self.refused, self.failure, self.says = refused, failure, says
        self.written: Batch = []

    async def write(self, batch: Batch) -> None:
        bad = {index: self.says for index, each in enumerate(batch) if each in self.refused}
        good = [index for index in range(len(batch)) if index not in bad]
        self.written += [batch[index] for index in good]
        if bad:
            raise BatchFailed(self.says, self.failure, done=good, refused=bad)


@promise("delivery.letters.transform")
@virtual
async def test_a_message_that_a_transform_cannot_do_is_put_down_as_it_came(tmp_path: Path) -> None:
    out = Gated()
    async with engine_on(tmp_path, lettered([takes(out)], [casts()])) as it:
        await post(it, [{"n": "1"}, {"n": "one"}, {"n": "two"}, {"n": 2}])
        await it.clock.sleep(1)

        assert out.batches == [[{"n": 1}, {"n": 2}]]
        assert await put_down(it) == [
            PutDown("transform[0]", "invalid", NO_NUMBER, None, [{"n": "one"}, {"n": "two"}])
        ]
        assert lost(it) == {}
        assert running(it, "p").failures.by_stage["transform"] == 1


@virtual
async def test_who_asks_for_it_is_told_once_a_second_of_what_fails_alike(tmp_path: Path) -> None:
    async with engine_on(tmp_path, lettered([takes(Refusing(*range(100)))])) as it:
        heard = list[Event]()
        hearing = asyncio.ensure_future(
            hear(it.observe(Interest(named=frozenset({"dead-letters"}))), heard)
        )
        for n in range(100):
            await post(it, n)
            await it.clock.sleep(0.05)
        await it.clock.sleep(3)
        told = [json.loads(each.data) for each in heard if each.name == "dead-letters"]
    await hearing

    assert sum(each["count"] for each in told) == 100
    assert 5 <= len(told) <= 8
    assert {(each["stage"], each["component"], each["message"]) for each in told} == {
        ("output", 0, "no")
    }


@virtual
async def test_with_on_error_fail_the_whole_batch_is_put_down(tmp_path: Path) -> None:
    out = Gated()
    async with engine_on(tmp_path, lettered([takes(out)], [casts(on_error="fail")])) as it:
        await post(it, [{"n": 1}, {"n": "one"}])
        await it.clock.sleep(1)

        assert out.batches == []
        assert [each.content for each in await put_down(it)] == [[{"n": 1}, {"n": "one"}]]
        assert lost(it) == {}


@promise("delivery.letters.batch")
@virtual
async def test_a_batch_on_which_a_script_fails_is_put_down(tmp_path: Path) -> None:
    source = {"type": "inline", "code": "throw `no ${batch.len}`;"}
    script = Script.load({"scope": "batch", "source": source})
    async with engine_on(tmp_path, lettered([], [script])) as it:
        await post(it, [1, 2, 3])
        await it.clock.sleep(1)

        [letter] = await put_down(it)
        assert letter.content == [1, 2, 3]
        assert "no 3" in letter.message


@virtual
async def test_a_step_that_is_at_fault_itself_costs_nothing_that_came(tmp_path: Path) -> None:
    def step(batch: Batch) -> Any:
        raise ZeroDivisionError("division by zero")

    async with engine_on(tmp_path, lettered([], [does(step)])) as it:
        await post(it, [1, 2])
        await it.clock.sleep(1)

        said = "ZeroDivisionError: division by zero"
        assert await put_down(it) == [PutDown("transform[0]", "invalid", said, None, [1, 2])]


@promise("delivery.letters.output")
@virtual
async def test_of_what_an_output_refuses_each_message_says_why(tmp_path: Path) -> None:
    out, other = Refusing(2, 3), Gated()
    async with engine_on(tmp_path, lettered([takes(out), takes(other)])) as it:
        await post(it, [1, 2, 3, 4])
        await it.clock.sleep(1)

        assert await put_down(it) == [PutDown("output[0]", "invalid", "no", None, [2, 3])]
        assert (out.written, other.messages) == ([1, 4], [1, 2, 3, 4])
        assert lost(it) == {}


class Whole(AwaitingSink):
    """Takes a batch whole or not at all, and says nothing of its messages; not while it is away."""

    def __init__(self, *refused: Any, says_so: bool = True) -> None:
        self.refused, self.says_so = refused, says_so
        self.written: Batch = []
        self.is_away = False

    async def write(self, batch: Batch) -> None:
        if self.is_away:
            raise Unreachable("nobody answers")
        if bad := [each for each in batch if each in self.refused]:
            raise BatchFailed(f"cannot be {bad[0]}", took_nothing=self.says_so)
        self.written += batch


@promise("delivery.letters.bisect")
@virtual
async def test_of_a_batch_that_is_refused_whole_only_what_is_at_fault_is_put_down(
    tmp_path: Path,
) -> None:
    out, whole = Whole(3, 40), Whole(3, 40, says_so=False)
    async with engine_on(tmp_path, lettered([takes(out), takes(whole)])) as it:
        await post(it, [*range(100)])
        await it.clock.sleep(1)

        assert sorted(out.written) == [n for n in range(100) if n not in (3, 40)]
        assert whole.written == []
        letters = [each for each in await put_down(it) if each.place == "output[0]"]
        assert [(x.message, x.detail, x.content) for x in letters] == [
            ("cannot be 3", None, [3]),
            ("cannot be 3", "cannot be 40", [40]),
        ]
        [other] = [each.content for each in await put_down(it) if each.place == "output[1]"]
        assert other == [*range(100)]
        assert lost(it) == {}


@promise("delivery.letters.brake")
@virtual
async def test_too_many_in_a_row_are_not_put_down_but_waited_with_until_somebody_acts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = Whole(*range(100))
    config = lettered([takes(out, retry=True)], letters={"most_in_a_row": 10})
    async with engine_on(tmp_path, config) as it:
        for n in range(30):
            await post(it, n)
        await it.clock.sleep(120)
        before, waits = await put_down(it), running(it, "p").in_flight
        out.refused = ()
        await it.clock.sleep(60)

        assert [each.content for each in before] == [[n] for n in range(10)]
        assert waits == 16
        assert out.written == [*range(10, 30)]
        assert await put_down(it) == before
        assert lost(it) == {}
    assert "refused in a row: 10; nothing more is set aside" in caplog.text


@promise("delivery.letters.brake")
@virtual
async def test_without_retry_batches_are_put_down_whole_after_too_many_in_a_row(
    tmp_path: Path,
) -> None:
    config = lettered([takes(Whole(*range(100)))], letters={"most_in_a_row": 10})
    async with engine_on(tmp_path, config) as it:
        await post(it, [*range(20)])
        await post(it, [*range(20, 40)])
        await it.clock.sleep(1)

        letters = await put_down(it)
        assert sorted(n for each in letters for n in each.content) == [*range(40)]
        assert letters[-1].content == [*range(20, 40)]
        assert letters[-1].failure == "misconfigured"
        assert lost(it) == {}


@promise("delivery.letters.outage")
@virtual
async def test_with_retry_an_outage_makes_no_letter_and_what_is_given_up_does(
    tmp_path: Path,
) -> None:
    out = Whole()
    config = lettered([takes(out, retry=retry(30))])
    async with engine_on(tmp_path, config) as it:
        out.is_away = True
        await post(it, [1])
        await it.clock.sleep(10)
        before = await put_down(it)
        out.is_away = False
        await it.clock.sleep(20)
        written = [*out.written]
        out.is_away = True
        await post(it, [2])
        await it.clock.sleep(60)

        assert (before, written) == ([], [1])
        assert [(x.failure, x.content) for x in await put_down(it)] == [("unavailable", [2])]


@virtual
async def test_what_an_output_writes_in_the_pass_and_cannot_is_put_down(tmp_path: Path) -> None:
    async with engine_on(tmp_path, lettered([takes(Kept(fails=True))])) as it:
        await post(it, [1, 2])
        await it.clock.sleep(1)

        said = "the disk is full"
        assert await put_down(it) == [PutDown("output[0]", "unavailable", said, None, [1, 2])]


class Away(AwaitingSink):
    """Is never there."""

    async def write(self, batch: Batch) -> None:
        raise Unreachable("nobody answers")


@promise("delivery.letters.outage")
@virtual
async def test_without_retry_an_outage_is_put_down_batch_by_batch(tmp_path: Path) -> None:
    async with engine_on(tmp_path, lettered([takes(Away())])) as it:
        for n in range(5):
            await post(it, n)
        await it.clock.sleep(1)

        letters = await put_down(it)
        assert [each.content for each in letters] == [[0], [1], [2], [3], [4]]
        assert {each.failure for each in letters} == {"unavailable"}
        assert lost(it) == {}


@promise("delivery.letters.input")
@virtual(started_at=datetime(2026, 5, 1, tzinfo=UTC))
async def test_a_payload_that_is_not_json_is_put_down_with_where_it_came_from(
    tmp_path: Path,
) -> None:
    class Described(RawTold):
        def describe(self, origin: Any) -> dict[str, Any]:
            return {"subject": origin}

    async with engine_on(tmp_path) as it:
        source = Described(it.clock, [[(b"{", "a.b"), (b"1", "c.d")]])
        await run(it, lettered([takes(Gated())], inputs=[reads(source)]))
        await it.clock.sleep(1)

        [letter] = await put_down(it)
        assert (letter.place, letter.content) == ("input[0]", b"{")
        assert letter.message.startswith("skipped a payload that is not JSON")
        assert lost(it) == {}
        records = it._storage.records
        assert records is not None
        whole = await records.letter(1)
        assert whole is not None
        assert whole.found is not None
        assert whole.body is not None
        arrival = arrival_of(whole.found.letter, whole.body)
        assert arrival is not None
        assert arrival.metadata == {
            "subject": "a.b",
            "received_at": "2026-05-01T00:00:00.000000+00:00",
        }


@virtual
async def test_a_message_that_no_envelope_can_be_put_on_is_put_down(tmp_path: Path) -> None:
    envelope = {"type": "merge"}
    source = HttpInput.load({"envelope": envelope})
    async with engine_on(tmp_path, lettered([takes(Gated())], inputs=[source])) as it:
        await post(it, [{"n": 1}, 2])
        await it.clock.sleep(1)

        [letter] = await put_down(it)
        assert (letter.place, letter.content) == ("input[0]", b"[2]")
        assert lost(it) == {}


def failing_letters(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Have commits fail that put down letters, while the one item of what is returned is true."""
    commit, fails = Database.commit, [True]

    def failing(self: Database, changes: Changes) -> Any:
        if fails[0] and changes.letters:
            raise sqlite3.OperationalError("disk I/O error")
        return commit(self, changes)

    monkeypatch.setattr(Database, "commit", failing)
    return fails


@promise("delivery.letters.acknowledged")
@virtual
async def test_nobody_is_told_that_it_was_written_before_it_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = failing_letters(monkeypatch)
    async with engine_on(tmp_path) as it:
        source = Told(it.clock, [batches([1, 2]), 1.0, [([3], 1)]])
        inputs = [reads(source, acknowledges=True, ack="on_delivery")]
        await run(it, lettered([takes(Refusing(2))], inputs=inputs))
        await it.clock.sleep(5)
        before, under_way = [*source.acknowledged], running(it, "p").in_flight
        fails[0] = False
        await it.clock.sleep(5)

        assert (before, under_way) == ([], 1)
        assert source.acknowledged == [0, 1]
        assert [each.content for each in await put_down(it)] == [[2]]
        assert lost(it) == {}


@promise("delivery.letters.failing")
@virtual
async def test_what_a_transform_cannot_do_and_the_disk_does_not_take_is_lost_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fails, out = failing_letters(monkeypatch), Gated()
    async with engine_on(tmp_path, lettered([takes(out)], [casts()])) as it:
        await post(it, [{"n": "one"}, {"n": "two"}, {"n": 3}])
        await it.clock.sleep(5)
        fails[0] = False

        assert out.messages == [{"n": 3}]
        assert lost(it) == {("transform[0]", "error"): 2}
        assert await put_down(it) == []
    assert "messages lost that could not be put down as dead letters: " in caplog.text


@promise("delivery.letters.process")
@virtual
async def test_what_ended_the_process_three_times_is_put_down(tmp_path: Path) -> None:
    durable = HttpInput.load({"durable": True})
    async with engine_on(tmp_path, lettered([takes(Gated(is_open=False))], inputs=[durable])) as it:
        await post(it, "poison")
        await post(it, "fine")
    with closing(sqlite3.connect(tmp_path / "store" / "0" / "store.db")) as database, database:
        database.execute("UPDATE entries SET deaths = 3 WHERE first = 0")
    out = Gated()
    async with engine_on(tmp_path, lettered([takes(out)], inputs=[durable])) as it:
        await it.clock.sleep(5)

        said = "set aside: the process ended 3 times while it was under way"
        assert out.messages == ["fine"]
        assert await put_down(it) == [PutDown("process[0]", "invalid", said, None, b'"poison"')]
        assert lost(it) == {}
        assert await kept(it) == {("p", False): 0}


@virtual
async def test_a_stored_post_that_gives_no_message_any_more_is_put_down(tmp_path: Path) -> None:
    durable = HttpInput.load({"durable": True})
    async with engine_on(tmp_path, lettered([takes(Gated(is_open=False))], inputs=[durable])) as it:
        await post(it, {"n": 1})
    out, table = Gated(), HttpInput.load({"durable": True, "format": "csv"})
    async with engine_on(tmp_path, lettered([takes(out)], inputs=[table])) as it:
        await it.clock.sleep(5)

        said = "skipped what does not fit the format: no message can be made of it"
        assert await put_down(it) == [PutDown("input[0]", "invalid", said, None, b'{"n":1}')]
        assert lost(it) == {}
        assert await kept(it) == {("p", False): 0}


@virtual
async def test_what_was_put_down_outlasts_a_restart(tmp_path: Path) -> None:
    config = lettered([takes(Refusing("x"))])
    async with engine_on(tmp_path, config) as it:
        await post(it, ["x"])
    async with engine_on(tmp_path, lettered([takes(Refusing("y"))])) as it:
        await post(it, ["y"])
        await it.clock.sleep(1)

        assert [each.content for each in await put_down(it)] == [["x"], ["y"]]


@promise("delivery.letters.stop")
@virtual
async def test_what_there_was_no_time_for_at_the_end_is_put_down(tmp_path: Path) -> None:
    stuck = Gated(is_open=False)
    async with engine_on(tmp_path, lettered([takes(stuck)])) as it:
        await post(it, [1])
        await post(it, [2])
        await it.clock.sleep(0.1)
        await it.dispose("p")

        letters = await put_down(it)
        assert [(each.failure, each.content) for each in letters] == [
            ("unclear", [1]),
            ("unavailable", [2]),
        ]


@promise("delivery.letters.full")
@virtual
async def test_where_they_are_full_the_oldest_of_a_transform_goes_and_is_counted(
    tmp_path: Path,
) -> None:
    config = lettered([takes(Gated())], [casts()], letters={"max_bytes": 3_000})
    async with engine_on(tmp_path, config) as it:
        for n in range(20):
            await post(it, {"n": f"x{n}"})
            await it.clock.sleep(0.1)

        letters = await put_down(it)
        there = len(letters)
        assert 1 < there < 20
        assert [each.content for each in letters] == [
            [{"n": f"x{n}"}] for n in range(20 - there, 20)
        ]
        assert lost(it) == {("transform[0]", "dropped"): 20 - there}
        assert it._storage.dropped_letters == 20 - there


@promise("delivery.letters.output_full")
@virtual
async def test_where_they_are_full_an_output_waits_until_somebody_makes_room(
    tmp_path: Path,
) -> None:
    out = Refusing(*range(40))
    async with engine_on(tmp_path, lettered([takes(out)], letters={"max_bytes": 3_000})) as it:
        for n in range(10):
            await post(it, n)
            await it.clock.sleep(0.1)
        before = await put_down(it)
        assert 1 < len(before) < 10
        assert running(it, "p").in_flight == 10 - len(before)
        records = it._storage.records
        assert records is not None
        await records.delete_all("p")
        await it.clock.sleep(2)

        after = await put_down(it)
        assert [each.content for each in (*before, *after)] == [[n] for n in range(10)]
        assert running(it, "p").in_flight == 0
        assert lost(it) == {}


@virtual
async def test_one_that_could_never_fit_is_lost_and_holds_up_nobody(tmp_path: Path) -> None:
    out = Refusing("x" * 5_000, "y")
    async with engine_on(tmp_path, lettered([takes(out)], letters={"max_bytes": 3_000})) as it:
        await post(it, ["x" * 5_000])
        await post(it, ["y"])
        await it.clock.sleep(1)

        assert [each.content for each in await put_down(it)] == [["y"]]
        assert lost(it) == {("output[0]", "batch"): 1}
        assert running(it, "p").in_flight == 0


@virtual
async def test_of_what_comes_faster_than_the_disk_takes_it_so_much_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(letterkeeping, "MOST_BYTES_COMING", 100)
    monkeypatch.setattr(deadletters, "MOST_COMING", 5)
    async with engine_on(tmp_path, lettered([], [casts()])) as it:
        records = it._storage.records
        assert records is not None
        groups: list[Group] = []

        def append(*_: Any, **__: Any) -> Group:
            groups.append(Group())
            return groups[-1]

        with monkeypatch.context() as patched:
            patched.setattr(records, "append", append)
            for n in range(20):
                await post(it, {"n": f"{n:01000}x"})
                await it.clock.sleep(0.001)
            await it.clock.sleep(1)
        for each in groups:
            each.end()
        await it.clock.sleep(1)

        assert len(groups) == 1
        assert lost(it) == {("transform[0]", "error"): 14}
        assert [each.content[0]["n"] for each in await put_down(it)] == [
            f"{n:01000}x" for n in range(1, 6)
        ]
    assert "they come faster than the disk takes them" in caplog.text


@virtual
async def test_messages_that_an_input_leaves_out_alike_are_one_letter(tmp_path: Path) -> None:
    source = HttpInput.load({"envelope": {"type": "merge"}})
    async with engine_on(tmp_path, lettered([takes(Gated())], inputs=[source])) as it:
        await post(it, [*range(2_500)])
        await it.clock.sleep(1)

        sizes = [len(json.loads(each.content)) for each in await put_down(it)]
        assert sizes == [1_000, 1_000, 500]
        assert lost(it) == {}


@virtual
async def test_a_burst_of_large_batches_is_put_down_whole(tmp_path: Path) -> None:
    def step(batch: Batch) -> Any:
        raise BatchFailed("no")

    async with engine_on(tmp_path, lettered([], [does(step)])) as it:
        for _ in range(40):
            await post(it, [{"n": n} for n in range(3_000)])
        await it.clock.sleep(30)

        assert [len(each.content) for each in await put_down(it)] == [3_000] * 40
        assert lost(it) == {}


@virtual
async def test_at_a_stop_what_the_disk_does_not_take_is_lost_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing_letters(monkeypatch)
    async with engine_on(tmp_path, lettered([takes(Gated(is_open=False))])) as it:
        await post(it, [1, 2])
        await it.clock.sleep(0.1)
        of = running(it, "p")
        await it.dispose("p")
        await it.clock.sleep(5)

    counted = {each.reason: each.count for each in of.failures.losses if each.count}
    assert counted == {"stopped": 2}


@virtual
async def test_a_large_batch_is_put_down_whole(tmp_path: Path) -> None:
    def step(batch: Batch) -> Any:
        raise BatchFailed("no")

    async with engine_on(tmp_path, lettered([], [does(step)])) as it:
        await post(it, [{"n": n} for n in range(20_000)])
        await it.clock.sleep(5)

        [letter] = await put_down(it)
        assert letter.content == [{"n": n} for n in range(20_000)]
        assert lost(it) == {}


async def test_without_a_directory_it_is_refused() -> None:
    it = Engine(Clock(asyncio.get_running_loop()))
    with pytest.raises(Refused) as refused:
        await it.compile(lettered([]))
    await it.close()

    [told] = refused.value.diagnostics
    assert (told.path, told.code) == ("dead_letters", "no-data-dir")
