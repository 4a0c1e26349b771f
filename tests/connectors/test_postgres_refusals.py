"""Batches that PostgreSQL refuses: lost as a whole, under one text each, and the next one goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.errors import BatchFailed, Unreachable
from headrace.connectors.postgres.connection import Limits
from headrace.connectors.postgres.sink import PostgresSink
from tests.connected import started
from tests.postgres_sides import (
    column,
    context,
    cut_off,
    done,
    found,
    operator,
    sink,
    until,
    unused,
)
from tests.services.postgres import Postgres

TEXT = [column("v", "text")]


async def failure(it: PostgresSink, *messages: Any) -> str:
    """Return in which words a batch fails. It is to blame itself: nobody is waited for."""
    with pytest.raises(BatchFailed) as failed:
        await it.write([*messages])
    assert not isinstance(failed.value, Unreachable)
    return str(failed.value)


@pytest.mark.parametrize(
    ("there", "type", "good", "bad", "said"),
    [
        (
            "text not null",
            "text",
            "x",
            None,
            'null value in column "v" of relation "{table}" violates not-null constraint'
            " (SQLSTATE 23502)",
        ),
        (
            "int check (v < 9)",
            "integer",
            1,
            9,
            'new row for relation "{table}" violates check constraint "{table}_v_check"'
            " (SQLSTATE 23514)",
        ),
        (
            "int references known",
            "integer",
            1,
            9,
            'insert or update on table "{table}" violates foreign key constraint "{table}_v_fkey"'
            " (SQLSTATE 23503)",
        ),
        (
            "varchar(2)",
            "integer",
            12,
            123,
            "value too long for type character varying(2) (SQLSTATE 22001)",
        ),
        ("smallint", "bigint", 7, 40_000, "smallint out of range (SQLSTATE 22003)"),
        ("real", "float", 7, 1e300, "value out of range: overflow (SQLSTATE 22003)"),
        ("numeric(4,2)", "decimal", 7, 700, "numeric field overflow (SQLSTATE 22003)"),
        (
            "picky",
            "integer",
            7,
            13,
            "a function raises an exception (SQLSTATE P0001)",
        ),
        ("picky", "integer", 7, 14, "an error of its own (SQLSTATE WRONG)"),
        (
            "text unique",
            "text",
            "x",
            "".join(chr(0x4E00 + n * 7919 % 20_000) for n in range(4000)),
            "program limit exceeded (SQLSTATE 54000)",
        ),
    ],
)
async def test_a_value_that_the_table_does_not_take_fails_its_batch(
    postgres, there, type, good, bad, said
):
    table = unused()
    await done(
        postgres,
        "create table if not exists known (n int primary key)",
        "insert into known values (1) on conflict do nothing",
        "create or replace function pick(n int) returns boolean language plpgsql as $$ begin"
        " if n = 13 then raise 'not %', n; end if;"
        " if n = 14 then raise 'nor %', n using errcode = 'WRONG'; end if;"
        " return true; end $$",
        "do $$ begin create domain picky as int check (pick(value));"
        " exception when duplicate_object then end $$",
        f"create table {table} (v {there}, n int)",
    )
    columns = [column("v", type), column("n", "integer")]

    async with started(sink(postgres, table, columns)) as it:
        await it.write([{"v": good, "n": 1}])
        failed = {await failure(it, {"v": bad, "n": n}, {"n": n}) for n in (2, 3)}
        if there != "text unique":
            await it.write([{"v": good, "n": 4}])

    assert failed == {f"the database refuses the batch: {said.format(table=table)}"}
    numbers = await found(postgres, f"select n from {table} order by n")
    assert numbers == ([1] if there == "text unique" else [1, 4])


@pytest.mark.parametrize(
    ("type", "value", "said"),
    [
        ("text", "a\0b", "column 'v': expected a string, found one with a NUL character"),
        ("json", ["a\0b"], "column 'v': expected JSON, found a string with a NUL character"),
        (
            "text",
            "\ud800",
            "column 'v': expected a string, found one with half a character (a lone surrogate)",
        ),
        ("float", float("inf"), "column 'v': expected a number, found one that is not finite"),
        ("decimal", float("nan"), "column 'v': expected a number, found one that is not finite"),
        (
            "timestamp",
            "infinity",
            "column 'v': expected an ISO 8601 timestamp, found another string",
        ),
        (
            "timestamp",
            "10000-01-01T00:00:00Z",
            "column 'v': expected an ISO 8601 timestamp, found another string",
        ),
        (
            "timestamp",
            "2026-02-30T00:00:00Z",
            "column 'v': expected an ISO 8601 timestamp, found one that no calendar or clock shows",
        ),
        ("date", "epoch", "column 'v': expected a date as YYYY-MM-DD, found another string"),
        ("bigint", 2**63, "column 'v': expected an integer of 64 bits, found a larger one"),
    ],
)
async def test_a_value_that_no_table_takes_is_not_sent_and_the_column_is_named(
    postgres, type, value, said
):
    async with started(sink(postgres, unused(), [column("v", type)])) as it:
        assert await failure(it, {"v": value}) == said


async def test_the_log_tells_a_value_once_for_each_text(postgres: Postgres):
    table, ctx = unused(), context(postgres)

    async with started(sink(ctx, table, TEXT, primary_key=["v"])) as it:
        await it.write([{"v": "a"}, {"v": "b"}])
        await failure(it, {"v": "a"})
        await failure(it, {"v": "b"})
        await done(postgres, f"drop table {table}")
        await failure(it, {"v": "c"})

    assert ctx.warnings == [
        "the database refuses the batch: duplicate key value violates unique constraint"
        f' "{table}_pkey" (SQLSTATE 23505): Key (v)=(a) already exists.'
    ]


RAISING = """
CREATE FUNCTION {table}_raise() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'no %', NEW.v USING ERRCODE = '22000', DETAIL = 'one of ' || NEW.v;
END $$;
CREATE TRIGGER {table}_raises BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION {table}_raise()
"""


async def test_a_function_that_says_something_else_each_time_fills_no_log(postgres):
    table, ctx = unused(), context(postgres)

    async with started(sink(ctx, table, TEXT, limits=Limits(told=3))) as it:
        await done(postgres, RAISING.format(table=table))
        for number in range(10):
            await failure(it, {"v": f"v{number}"})

    assert [each.rpartition(": ")[2] for each in ctx.warnings] == [
        "one of v0",
        "one of v1",
        "one of v2",
    ]


async def test_a_table_may_be_dropped_and_made_again_by_somebody(postgres: Postgres):
    table = unused()

    async with started(sink(postgres, table, TEXT)) as it:
        await it.write([{"v": "a"}])
        await done(postgres, f"drop table {table}")
        failed = {await failure(it, {"v": "b"}) for _ in range(3)}
        assert await found(postgres, f"select to_regclass('{table}')") == [None]
        await done(postgres, f"create table {table} (v varchar(9))")
        await it.write([{"v": "c"}])

    said = f'relation "{table}" does not exist (SQLSTATE 42P01)'
    assert failed == {f"the database refuses the batch: {said}"}
    assert await found(postgres, f"select * from {table}") == ["c"]


async def test_a_column_may_be_dropped_changed_and_added_again(postgres: Postgres):
    table, columns = unused(), [column("v", "text"), column("n", "integer")]

    async with started(sink(postgres, table, columns)) as it:
        await it.write([{"v": "a", "n": 1}])
        await done(postgres, f"alter table {table} drop column n")
        gone = await failure(it, {"v": "b", "n": 2})
        await done(postgres, f"alter table {table} add column n text")
        await it.write([{"v": "c", "n": 3}])
        await done(postgres, f"alter table {table} alter column n type date using null")
        other = await failure(it, {"v": "d", "n": 4})
        await done(postgres, f"alter table {table} alter column n type bigint using 5")
        await it.write([{"v": "e", "n": 6}])

    assert [gone, other] == [
        f'the database refuses the batch: column "n" of relation "{table}" does not exist'
        " (SQLSTATE 42703)",
        'the database refuses the batch: column "n" is of type date but expression is of type'
        " integer (SQLSTATE 42804)",
    ]
    assert await found(postgres, f"select v, n from {table} order by v") == [
        ("a", 5),
        ("c", 5),
        ("e", 6),
    ]


async def test_a_right_may_be_taken_and_given_back(postgres: Postgres):
    table, user = unused(), unused("writer")
    await done(
        postgres,
        f"create table {table} (v text)",
        f"create role {user} login password 'open-sesame'",
        f"grant insert on {table} to {user}",
    )

    async with started(sink(context(postgres, connection={"user": user}), table, TEXT)) as it:
        await it.write([{"v": "a"}])
        await done(postgres, f"revoke insert on {table} from {user}")
        failed = {await failure(it, {"v": "b"}) for _ in range(3)}
        await done(postgres, f"grant insert on {table} to {user}")
        await it.write([{"v": "c"}])

    said = f"permission denied for table {table} (SQLSTATE 42501)"
    assert failed == {f"the database refuses the batch: {said}"}
    assert await found(postgres, f"select * from {table} order by v") == ["a", "c"]


@pytest.mark.long
async def test_a_database_may_be_read_only_for_a_while(tmp_path):
    with Postgres(tmp_path) as server:
        async with started(sink(server, "t", TEXT)) as it:
            await done(server, "alter database postgres set default_transaction_read_only = on")
            await it.write([{"v": "a"}])  # the session began before
            await cut_off(server)
            failed = {await failure(it, {"v": "b"}) for _ in range(2)}
            undo = "alter database postgres reset default_transaction_read_only"
            await done(
                server,
                "set default_transaction_read_only = off",
                f"begin read write; {undo}; commit",
            )
            await it.write([{"v": "c"}])

        assert await found(server, "select v from t") == ["a", "c"]
    said = "cannot execute INSERT in a read-only transaction (SQLSTATE 25006)"
    assert failed == {f"the database refuses the batch: {said}"}


async def test_a_statement_that_waits_for_too_long_fails_its_batch(postgres):
    table, limits = unused(), Limits(statement_seconds=0.05)

    async with (
        started(sink(postgres, table, TEXT, limits=limits)) as it,
        operator(postgres) as client,
    ):
        async with client.transaction():
            await client.execute(f"lock table {table}")
            said = await failure(it, {"v": "a"})
        await it.write([{"v": "b"}])

    assert said == (
        "the database refuses the batch: canceling statement due to statement timeout"
        " (SQLSTATE 57014)"
    )
    assert await found(postgres, f"select v from {table}") == ["b"]


async def test_two_that_wait_for_each_other_both_write_in_the_end(postgres: Postgres):
    table = unused()
    ours = (
        "from pg_stat_activity where application_name = 'headrace-p1' and wait_event_type = 'Lock'"
    )

    async with (
        started(sink(postgres, table, TEXT, primary_key=["v"])) as it,
        operator(postgres) as client,
    ):
        await client.execute("set deadlock_timeout = '1h'")  # so it is ours that notices and loses
        async with client.transaction():
            await client.execute(f"insert into {table} values ('b')")
            writing = asyncio.ensure_future(it.write([{"v": "a"}, {"v": "b"}]))
            await until(postgres, f"select count(*) {ours}")
            # The row of ours is not committed, so this waits for us, who wait for this.
            await client.execute(f"insert into {table} values ('a')")
            await client.execute(f"delete from {table}")
        await writing

    assert await found(postgres, f"select v from {table} order by v") == ["a", "b"]


@pytest.mark.parametrize("lost", [2, 3])
async def test_a_batch_that_loses_to_others_is_written_again_after_a_while_and_refused_in_the_end(
    postgres: Postgres, lost: int
):
    table, ctx = unused(), context(postgres)
    pauses: list[float] = []

    class Noting(Clock):
        async def sleep(self, seconds: float) -> None:
            pauses.append(seconds)

    ctx.clock = Noting(asyncio.get_running_loop())
    await done(
        postgres,
        f"create table {table} (v text)",
        f"create sequence {table}_tries",  # what is rolled back counts as well
        f"create function {table}_lose() returns trigger language plpgsql as $$ begin"
        f" if nextval('{table}_tries') <= {lost} then"
        " raise exception 'deadlock detected' using errcode = '40P01'; end if; return new; end $$",
        f"create trigger lose before insert on {table} execute function {table}_lose()",
    )

    async with started(sink(ctx, table, TEXT)) as it:
        if lost == 2:
            await it.write([{"v": "a"}])
        else:
            assert "deadlock detected" in await failure(it, {"v": "a"})

    assert pauses == [0.1, 0.4]
    assert await found(postgres, f"select v from {table}") == (["a"] if lost == 2 else [])


async def test_a_batch_at_whose_size_the_server_hangs_up_is_refused(postgres):
    table, limits = unused(), Limits(batch_bytes=1 << 20)

    async with (
        started(sink(postgres, table, TEXT, limits=limits)) as it,
        operator(postgres) as client,
    ):
        async with client.transaction():
            await client.execute(f"lock table {table}")
            writing = asyncio.ensure_future(failure(it, {"v": "x" * (1 << 20)}))
            await until(
                postgres, "select count(*) from pg_stat_activity where wait_event = 'relation'"
            )
            await cut_off(postgres)
            said = await writing
        await it.write([{"v": "x" * (1 << 20)}])

    assert said == "the batch is too large for the database: more than 1 MiB"
