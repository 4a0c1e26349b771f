"""The `postgres` output, against a real server: what is in a table after a batch."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from headrace.compiler.decimals import exact
from headrace.compiler.delivery import LARGE_BATCH
from headrace.compiler.errors import BatchFailed
from tests.connected import started
from tests.doubles import TickingClock
from tests.postgres_sides import column, context, done, found, operator, sink, until, unused
from tests.promises import promise
from tests.services.postgres import Postgres

KEYED = [column("k", "text"), column("n", "integer")]


async def test_a_message_is_stored_whole_where_nothing_is_mapped(postgres: Postgres):
    table, batch = unused(), [{"b": 1, "a": [None, "ü"]}, 2.5, "x", None, [True]]

    async with started(sink(postgres, table)) as it:
        await it.write(batch)

    payloads = await found(postgres, f"select payload from {table} order by id")
    assert [json.loads(each) for each in payloads] == batch


async def test_the_rows_of_batches_are_in_order(postgres: Postgres):
    table = unused()

    async with started(sink(postgres, table, [column("n", "integer")])) as it:
        for start in range(0, 2000, 400):
            await it.write([{"n": n} for n in range(start, start + 400)])

    assert await found(postgres, f"select n from {table} order by id") == [*range(2000)]


@pytest.mark.parametrize(
    ("type", "value", "kept"),
    [
        ("text", "it's ü\n\\", "it's ü\n\\"),
        ("text", "", ""),
        ("text", "null", "null"),
        ("text", '{",}', '{",}'),
        ("text", "\x01\t\x7f\u2028", "\x01\t\x7f\u2028"),
        ("integer", -(2**31), -(2**31)),
        ("bigint", 2**63 - 1, 2**63 - 1),
        ("float", 1, 1.0),
        ("float", 1.7976931348623157e308, 1.7976931348623157e308),
        ("float", 5e-324, 5e-324),
        ("decimal", exact("1.10"), "1.10"),
        (
            "decimal",
            exact("123456789012345678901234567890.12"),
            "123456789012345678901234567890.12",
        ),
        ("decimal", exact("1e3"), "1000"),
        ("decimal", exact("-0.00"), "0.00"),
        ("decimal", 0.1, "0.1"),
        ("decimal", 10**40, str(10**40)),
        ("boolean", False, False),
        ("timestamp", "2026-03-01T08:00:00.5+01:00", datetime(2026, 3, 1, 7, 0, 0, 500_000, UTC)),
        ("timestamp", "2026-03-01T08:00:00.1234569Z", datetime(2026, 3, 1, 8, 0, 0, 123_456, UTC)),
        ("timestamp", "2026-03-01T08:00:00+23:00", datetime(2026, 2, 28, 9, tzinfo=UTC)),
        ("timestamp", "2026-03-01 08:00", datetime(2026, 3, 1, 8, tzinfo=UTC)),
        ("timestamp", "0001-01-02T00:00:00Z", datetime(1, 1, 2, tzinfo=UTC)),
        (
            "timestamp",
            "9999-12-31T23:59:59.999999Z",
            datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
        ),
        ("timestamp", 1.5, datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)),
        ("timestamp", -1, datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("date", "2024-02-29", date(2024, 2, 29)),
        ("date", "0001-01-01", date(1, 1, 1)),
        (
            "uuid",
            "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
            UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ),
        ("json", [1, {"a": None}], '[1, {"a": null}]'),
        ("json", "x", '"x"'),
        ("json", {"\\": '"\n', "n": exact("1.10")}, '{"\\\\": "\\"\\n", "n": 1.10}'),
    ],
)
async def test_every_type_arrives_as_it_was_sent(postgres: Postgres, type, value, kept):
    table, as_read = unused(), "v::text" if type == "decimal" else "v"

    async with started(sink(postgres, table, [column("v", type)])) as it:
        await it.write([{"v": value}, {}, {"v": value}])

    assert await found(postgres, f"select {as_read} from {table} order by id") == [kept, None, kept]


@pytest.mark.parametrize(
    ("there", "type", "value", "kept"),
    [
        ("varchar(5)", "text", "x", "x"),
        ("char(3)", "text", "x", "x  "),
        ("real", "float", 0.1, 0.10000000149011612),
        ("smallint", "integer", 7, 7),
        ("smallint", "bigint", 7, 7),
        ("percent", "bigint", 7, 7),
        ("numeric(6,2)", "decimal", exact("1.5"), Decimal("1.50")),
        ("json", "json", {"a": 1}, '{"a": 1}'),
        ("timestamp", "timestamp", "2026-03-01T12:00:00+02:00", "2026-03-01 10:00:00"),
    ],
)
async def test_a_column_of_another_type_takes_what_can_be_assigned_to_it(
    postgres, there, type, value, kept
):
    table, as_read = unused(), "v::text" if there == "timestamp" else "v"
    if there == "percent":
        await done(postgres, "create domain percent as smallint check (value between 0 and 100)")
    await done(postgres, f"create table {table} (v {there}, more text default 'of its own')")

    async with started(sink(postgres, table, [column("v", type)], create_table=False)) as it:
        await it.write([{"v": value}])

    assert await found(postgres, f"select {as_read}, more from {table}") == [(kept, "of its own")]


async def test_a_message_without_a_field_is_as_its_column_says(postgres: Postgres):
    table = unused()
    columns = [
        column("a", "text", on_missing="skip_row"),
        column("b", "text"),
        column("c", "text", field="deep.er", on_missing="error"),
    ]

    async with started(sink(postgres, table, columns)) as it:
        await it.write([{"a": "1", "deep": {"er": "x"}}, {"a": None}, {"b": "2"}])
        await it.write([{}, {"a": None}])
        with pytest.raises(BatchFailed) as failed:
            await it.write([{"a": "1", "deep": {"er": "x"}}, {"a": "1"}])

    assert str(failed.value) == "column 'c': the field 'deep.er' is missing or null"
    assert await found(postgres, f"select a, b, c from {table}") == [("1", None, "x")]


async def test_a_field_that_no_column_takes_fails_the_batch_where_that_is_said(postgres: Postgres):
    table = unused()

    async with started(sink(postgres, table, KEYED, on_extra_fields="error")) as it:
        await it.write([{"k": "a", "n": 1}])
        with pytest.raises(BatchFailed):
            await it.write([{"k": "b", "n": 1}, {"k": "c", "n": 1, "odd": 1}])

    assert await found(postgres, f"select k from {table}") == ["a"]


@promise("postgres.output.written", "postgres.output_keyed.written")
async def test_a_batch_is_written_when_others_can_see_it(postgres: Postgres):
    table = unused()

    async with operator(postgres) as client, started(sink(postgres, table)) as it:
        for n in range(20):
            await it.write([n])
            assert await client.fetchval(f"select count(*) from {table}") == n + 1


async def test_a_batch_of_which_nothing_is_left_is_not_sent(postgres: Postgres):
    table, columns = unused(), [column("a", "text", on_missing="skip_row")]

    async with started(sink(postgres, table, columns)) as it:
        await done(postgres, f"drop table {table}")
        await it.write([{}, {"a": None}])


async def test_one_connection_is_used_for_all_and_tells_whose_it_is(postgres: Postgres):
    ctx = context(postgres, pipeline="only one")

    async with started(sink(ctx, unused())) as it:
        for n in range(5):
            await it.write([n])
        names = await found(postgres, "select application_name from pg_stat_activity")

    assert names.count("headrace-only one") == 1


async def test_several_connections_write_at_once(postgres: Postgres):
    table, ctx = unused(), context(postgres, pipeline="several")
    waiting = (
        "select count(*) = 3 from pg_stat_activity"
        " where application_name = 'headrace-several' and wait_event_type = 'Lock'"
    )

    async with started(sink(ctx, table, pool=3)) as it, operator(postgres) as client:
        assert it.at_once == 3
        async with client.transaction():
            await client.execute(f"lock table {table} in exclusive mode")
            writing = [asyncio.ensure_future(it.write([n])) for n in range(3)]
            await until(postgres, waiting)
        await asyncio.gather(*writing)

    assert sorted(await found(postgres, f"select payload::int from {table}")) == [0, 1, 2]


@pytest.mark.long
async def test_a_thousand_columns_are_one_statement(postgres: Postgres):
    table, names = unused(), [f"c{n}" for n in range(1000)]

    async with started(sink(postgres, table, [column(name, "integer") for name in names])) as it:
        await it.write([{name: n for n, name in enumerate(names)}] * 3)

    [total] = await found(postgres, f"select sum(c0 + c500 + c999) from {table}")
    assert total == 3 * 1499


async def test_names_keep_their_case_and_may_be_words_of_sql(postgres: Postgres):
    await done(postgres, 'create schema "Plant"')
    columns = [column("select", "text"), column("Select", "text", field="b")]

    async with started(
        sink(
            postgres,
            "Plant.Table",
            columns,
            primary_key=["select"],
            indexes=[{"columns": ["Select"]}],
        )
    ) as it:
        await it.write([{"select": "x", "b": "y"}])

    assert await found(postgres, 'select * from "Plant"."Table"') == [("x", "y")]


MANY = 3 * LARGE_BATCH


async def test_a_large_batch_is_one_transaction(postgres: Postgres):
    table, ctx = unused(), context(postgres, clock=TickingClock())
    columns = [column("n", "integer", on_missing="skip_row"), column("s", "text")]
    batch = [{"n": n, "s": 'a"\\ü' if n % 7 else None} for n in range(MANY)]

    async with started(sink(ctx, table, columns)) as it:
        with pytest.raises(BatchFailed, match="column 'n': expected an integer, found a string"):
            await it.write([*batch, {"n": "x"}])
        await it.write([*batch, {}])
        await it.write([{"n": -1}])
        await it.write([{}] * MANY)

    rows = await found(
        postgres, f"select row_to_json(t) from (select n, s from {table} order by id) t"
    )
    assert [json.loads(each) for each in rows] == [*batch, {"n": -1, "s": None}]
    assert await found(postgres, f"select count(distinct xmin::text) from {table}") == [2]
