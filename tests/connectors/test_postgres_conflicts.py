"""Rows whose key is there already: a `postgres` output fails, leaves them, or writes them over."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from headrace.compiler.decimals import exact
from headrace.compiler.delivery import LARGE_BATCH
from headrace.compiler.errors import BatchFailed
from tests.connected import started
from tests.doubles import TickingClock
from tests.postgres_sides import column, context, done, found, sink, unused
from tests.promises import promise
from tests.services.postgres import Postgres

KEYED = [column("k", "text"), column("n", "integer")]


async def test_a_row_that_is_there_fails_the_whole_batch(postgres: Postgres):
    table, ctx = unused(), context(postgres)

    async with started(sink(ctx, table, KEYED, primary_key=["k"])) as it:
        await it.write([{"k": "a", "n": 1}])
        for _ in range(2):
            with pytest.raises(BatchFailed) as failed:
                await it.write([{"k": "b", "n": 2}, {"k": "a", "n": 2}])
        await it.write([{"k": "c", "n": 3}])

    said = (
        "the database refuses the batch: duplicate key value violates unique constraint"
        f' "{table}_pkey" (SQLSTATE 23505)'
    )
    assert str(failed.value) == said
    assert ctx.warnings == [f"{said}: Key (k)=(a) already exists."]
    assert await found(postgres, f"select * from {table} order by k") == [("a", 1), ("c", 3)]


@promise("postgres.output_keyed.twice")
async def test_a_row_that_is_there_can_be_left_as_it_is(postgres: Postgres):
    table = unused()

    async with started(sink(postgres, table, KEYED, primary_key=["k"], on_conflict="ignore")) as it:
        await it.write([{"k": "a", "n": 1}])
        await it.write([{"k": "a", "n": 2}, {"k": "b", "n": 3}, {"k": "b", "n": 4}])

    assert await found(postgres, f"select * from {table} order by k") == [("a", 1), ("b", 3)]


async def test_a_row_can_be_left_as_it_is_for_any_unique_index(postgres: Postgres):
    table, unique = unused(), [{"columns": ["n"], "unique": True}]

    async with started(sink(postgres, table, KEYED, indexes=unique, on_conflict="ignore")) as it:
        await it.write([{"k": "a", "n": 1}, {"k": "b", "n": 1}, {"k": "c", "n": 2}])

    assert await found(postgres, f"select k from {table} order by k") == ["a", "c"]


@promise("postgres.output_keyed.twice")
async def test_a_row_that_is_there_can_be_written_over_and_the_last_one_counts(postgres: Postgres):
    table = unused()
    columns = [
        column("k", "uuid"),
        column("at", "timestamp"),
        column("d", "decimal"),
        column("n", "integer"),
        column("s", "text"),
    ]
    key, same = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"

    async with started(
        sink(postgres, table, columns, primary_key=["k", "at", "d"], on_conflict="update")
    ) as it:
        first = {"k": key, "at": "2026-01-01T00:00:00Z", "d": 1}
        again = {"k": same, "at": "2026-01-01T01:00:00+01:00", "d": exact("1.0")}
        other = first | {"d": 2}
        await it.write([first | {"n": 1, "s": "x"}, again | {"n": 2, "s": "y"}, other | {"n": 3}])
        await it.write([again | {"n": 4}])

    kept = await found(postgres, f"select k, d::text, n, s from {table} order by d")
    assert kept == [(UUID(key), "1.0", 4, None), (UUID(key), "2", 3, None)]


async def test_writing_over_a_row_that_is_all_key_leaves_it(postgres: Postgres):
    table, columns = unused(), [column("k", "text")]

    async with started(
        sink(postgres, table, columns, primary_key=["k"], on_conflict="update")
    ) as it:
        await it.write([{"k": "a"}, {"k": "a"}])
        await it.write([{"k": "a"}, {"k": "b"}])

    assert await found(postgres, f"select k from {table} order by k") == ["a", "b"]


async def test_a_table_of_somebody_else_can_be_written_over_by_its_key(postgres: Postgres):
    table, ctx = unused(), context(postgres)
    await done(
        postgres,
        f"create table {table} (k text primary key, n int, seen timestamptz default now())",
        f"insert into {table} values ('a', 1, '2020-01-01Z')",
    )

    options = {"create_table": False, "primary_key": ["k"], "on_conflict": "update"}
    async with started(sink(ctx, table, KEYED, **options)) as it:
        await it.write([{"k": "a", "n": 2}])

    assert ctx.warnings == []
    assert await found(postgres, f"select * from {table}") == [
        ("a", 2, datetime(2020, 1, 1, tzinfo=UTC))
    ]


@pytest.mark.parametrize(
    ("declared", "type", "same"),
    [
        (
            "jsonb",
            "json",
            [
                {"a": 1, "b": [True]},
                {"b": [True], "a": exact("1.0")},
                {"a": exact("1e0"), "b": [True]},
            ],
        ),
        ("real", "float", [0.1, 0.10000000000000002]),
        ("char(3)", "text", ["x", "x ", "x  "]),
    ],
)
async def test_the_last_row_counts_of_several_with_what_the_table_takes_for_one_key(
    postgres, declared, type, same
):
    table = unused()
    await done(postgres, f"create table {table} (k {declared} primary key, n integer)")
    columns = [column("k", type), column("n", "integer")]

    options = {"primary_key": ["k"], "on_conflict": "update"}
    async with started(sink(postgres, table, columns, **options)) as it:
        await it.write([{"k": key, "n": n} for n, key in enumerate(same)])

    assert await found(postgres, f"select n from {table}") == [len(same) - 1]


async def test_rows_that_are_written_over_are_in_the_order_of_their_batch(postgres: Postgres):
    table = unused()
    await done(postgres, f"create table {table} (k text primary key, n integer, at serial)")

    options = {"primary_key": ["k"], "on_conflict": "update"}
    async with started(sink(postgres, table, KEYED, **options)) as it:
        await it.write([{"k": key, "n": n} for n, key in enumerate("dbcadb")])

    assert await found(postgres, f"select k, n from {table} order by at") == [
        ("c", 2),
        ("a", 3),
        ("d", 4),
        ("b", 5),
    ]


async def test_what_is_one_key_is_for_the_type_to_say(postgres: Postgres):
    # A type that we do not know: texts of one length are equal to it.
    table, lengths = unused(), unused("lengths")
    await done(
        postgres,
        f"create type {lengths} as (size integer)",
        f"create function {lengths}_of(text) returns {lengths} language sql immutable"
        f" as 'select row(length($1))::{lengths}'",
        f"create cast (text as {lengths}) with function {lengths}_of(text) as assignment",
        f"create table {table} (k {lengths} primary key, n integer)",
    )

    options = {"primary_key": ["k"], "on_conflict": "update"}
    async with started(sink(postgres, table, KEYED, **options)) as it:
        await it.write([{"k": key, "n": n} for n, key in enumerate(["a", "bb", "c"])])

    assert await found(postgres, f"select (k).size, n from {table} order by n") == [(2, 1), (1, 2)]


async def test_documents_that_are_not_equal_are_several_keys(postgres: Postgres):
    table, columns = unused(), [column("k", "json"), column("n", "integer")]
    keys = [1, True, "1", [1], [True], {"a": 1}, [["a", 1]], [1, 1], {}, [], False, 0, ""]

    options = {"primary_key": ["k"], "on_conflict": "update"}
    async with started(sink(postgres, table, columns, **options)) as it:
        await it.write([{"k": key, "n": n} for n, key in enumerate(keys)])

    assert await found(postgres, f"select n from {table} order by n") == [*range(len(keys))]


async def test_the_last_row_counts_of_a_large_batch_as_well(postgres: Postgres):
    table, ctx = unused(), context(postgres, clock=TickingClock())
    batch = [{"k": f"{n % 5000}", "n": n} for n in range(3 * LARGE_BATCH)]

    async with started(sink(ctx, table, KEYED, primary_key=["k"], on_conflict="update")) as it:
        await it.write(batch)

    last = {each["k"]: each["n"] for each in batch}
    assert await found(postgres, f"select n from {table} order by n") == sorted(last.values())
