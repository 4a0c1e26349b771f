"""The tables of the `clickhouse` output. The engine is real, the HTTP front is ours.

Where ``CLICKHOUSE_URL`` names a server, these tests run against that one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from headrace.compiler.errors import BatchFailed, BuildRefused
from headrace.connectors.clickhouse.native import native_type
from tests.clickhouse_sides import EVERY, N, context, named, output, said, started, wrote
from tests.services.clickhouse import Access


@pytest.fixture
def table(clickhouse: Access) -> Iterator[str]:
    """Give the name of a table that is not there, and is gone afterwards."""
    with named(clickhouse) as name:
        yield name


# Tables


async def test_a_table_is_created_with_the_types_of_its_columns(clickhouse: Access, table: str):
    made = output(table, *EVERY, {"name": "n", "type": "integer", "nullable": False})
    async with started(made, context(clickhouse)):
        pass

    found = clickhouse.rows(
        f"SELECT name, type, default_expression FROM system.columns WHERE table = '{table}'"
    )
    assert found == [
        ["received_at", "DateTime64(3, 'UTC')", "now64(3)"],
        *([each.name, native_type(each), ""] for each in made.stored_columns()),
    ]
    assert clickhouse.rows(
        "SELECT engine LIKE '%MergeTree', trim(BOTH '()' FROM sorting_key) FROM system.tables"
        f" WHERE name = '{table}'"
    ) == [[1, "received_at"]]


async def test_a_table_may_be_sorted_by_columns_which_are_then_not_null(
    clickhouse: Access, table: str
):
    columns = [{"name": "machine", "type": "text"}, {"name": "at", "type": "timestamp"}, N]
    made = output(table, *columns, order_by=["machine", "at"])
    async with started(made, context(clickhouse)):
        pass

    assert clickhouse.rows(
        "SELECT name, type, is_in_sorting_key FROM system.columns"
        f" WHERE table = '{table}' ORDER BY position"
    ) == [
        ["machine", "String", 1],
        ["at", "DateTime64(3, 'UTC')", 1],
        ["n", "Nullable(Int32)", 0],
    ]


async def test_a_mapped_received_at_is_the_key_and_not_null(clickhouse: Access, table: str):
    arrival = {"name": "received_at", "type": "timestamp"}
    async with started(output(table, arrival), context(clickhouse)) as it:
        with pytest.raises(BatchFailed) as failed:
            await it.write([{}])

    assert str(failed.value) == "column 'received_at': the field 'received_at' is missing or null"
    assert clickhouse.rows(f"SELECT name, type FROM system.columns WHERE table = '{table}'") == [
        ["received_at", "DateTime64(3, 'UTC')"]
    ]


async def test_a_table_that_is_there_is_not_altered(clickhouse: Access, table: str):
    clickhouse.ask(f"CREATE TABLE {table} (n Int64, extra String DEFAULT 'x') ENGINE = Memory")

    assert await wrote(clickhouse, table, [{"n": 1}], N) == [[1]]

    assert clickhouse.rows(f"SELECT * FROM {table}") == [[1, "x"]]


async def test_the_database_of_a_qualified_table_wins(clickhouse: Access, table: str):
    other = f"d_{uuid4().hex}"
    clickhouse.ask(f"CREATE DATABASE {other}")
    try:
        async with started(output(f"{other}.{table}", N), context(clickhouse)) as it:
            await it.write([{"n": 7}])

        assert clickhouse.rows(f"SELECT n FROM {other}.{table}") == [[7]]
    finally:
        clickhouse.ask(f"DROP DATABASE {other}")


async def test_a_name_keeps_its_case_and_may_be_a_word_of_sql(clickhouse: Access, table: str):
    columns = [{"name": "Select", "type": "integer"}, {"name": "select", "type": "integer"}]

    assert await wrote(clickhouse, table, [{"Select": 1, "select": 2}], *columns) == [[1, 2]]


# Tables of others


async def test_a_column_of_a_kindred_type_is_converted_by_the_server(
    clickhouse: Access, table: str
):
    clickhouse.ask(
        f"CREATE TABLE {table} (a LowCardinality(String), b DateTime64(6), c Nullable(Int64), d JSON)"
        " ENGINE = Memory"
    )
    columns = [
        {"name": "a", "type": "text"},
        {"name": "b", "type": "timestamp"},
        {"name": "c", "type": "integer"},
        {"name": "d", "type": "json"},
    ]
    message = {"a": "x", "b": "2026-01-01T00:00:00.123456Z", "c": None, "d": {"e": 1}}
    ctx = context(clickhouse)
    async with started(output(table, *columns, create_table=False), ctx) as it:
        await it.write([message])

    assert clickhouse.rows(f"SELECT a, toUnixTimestamp64Micro(b), c, d.e FROM {table}") == [
        ["x", 1767225600123456, None, 1]
    ]
    assert ctx.warnings == []


async def test_a_column_that_is_too_narrow_is_warned_of(clickhouse: Access, table: str):
    clickhouse.ask(f"CREATE TABLE {table} (n Nullable(UInt8)) ENGINE = Memory")
    ctx = context(clickhouse)
    async with started(output(table, N), ctx):
        pass

    assert ctx.warnings == [
        f"the column 'n' of '{table}' is UInt8: values of type 'integer' that it cannot hold may"
        " be changed in silence"
    ]


async def test_a_null_that_the_table_cannot_take_fails_the_batch(clickhouse: Access, table: str):
    clickhouse.ask(f"CREATE TABLE {table} (n Int32) ENGINE = Memory")
    async with started(output(table, N), context(clickhouse)) as it:
        with pytest.raises(BatchFailed) as failed:
            await it.write([{"n": 1}, {"n": None}])
        await it.write([{"n": 2}])

    assert said(failed, clickhouse) == (
        "'Code 349 CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN' of the column 'n'"
    )
    assert clickhouse.rows(f"SELECT n FROM {table}") == [[2]]


# Refusals


async def refusal(clickhouse: Access, made: Any) -> BuildRefused:
    with pytest.raises(BuildRefused) as refused:
        async with started(made, context(clickhouse)):
            pass
    return refused.value


async def test_a_table_that_is_not_there_refuses_the_output(clickhouse: Access, table: str):
    refused = await refusal(clickhouse, output(table, create_table=False))

    assert str(refused) == f"{clickhouse.where} has no table '{table}'"
    assert refused.fault.path == ("table",)
    assert refused.fault.expected == "a table, or 'create_table: true'"


async def test_a_column_that_is_not_there_refuses_the_output(clickhouse: Access, table: str):
    clickhouse.ask(f"CREATE TABLE {table} (num Int32, x Int32 MATERIALIZED num) ENGINE = Memory")

    missing = await refusal(clickhouse, output(table, N))
    computed = await refusal(
        clickhouse, output(table, {"name": "num", "type": "integer"}, {**N, "name": "x"})
    )
    whole = await refusal(clickhouse, output(table))

    assert str(missing) == f"the table '{table}' has no column 'n'"
    assert missing.fault.path == ("columns", 0, "name")
    assert missing.fault.expected == "one of num, x"
    assert str(computed) == f"the column 'x' of '{table}' is computed (MATERIALIZED)"
    assert computed.fault.path == ("columns", 1, "name")
    assert str(whole) == f"the table '{table}' has no column 'payload'"
    assert whole.fault.path == ("table",)


@pytest.mark.parametrize(
    ("kind", "there", "said"),
    [
        (
            "integer",
            "Map(String, String)",
            "'Code 53 TYPE_MISMATCH: Unsupported types to CAST AS Map",
        ),
        ("text", "Map(String, String)", "'Code 53 TYPE_MISMATCH: Unsupported types to CAST AS Map"),
        ("float", "JSON", "'Code 53 TYPE_MISMATCH: Cast to JSON can be performed only from "),
        ("integer", "FixedString(4)", "'Code 48 NOT_IMPLEMENTED: CAST AS FixedString is only "),
        ("uuid", "Int64", "'Code 48 NOT_IMPLEMENTED: "),
        ("bigint", "Tuple(Int64)", "'Code 53 TYPE_MISMATCH: CAST AS Tuple can only "),
    ],
)
async def test_a_type_that_the_server_converts_nothing_of_ours_to_refuses_the_output(
    clickhouse: Access, table: str, kind: str, there: str, said: str
):
    clickhouse.ask(f"CREATE TABLE {table} (n Int32, v {there}) ENGINE = Memory")

    refused = await refusal(clickhouse, output(table, N, {"name": "v", "type": kind}))

    assert str(refused).startswith(f"{clickhouse.where} says {said}")
    assert refused.fault.path in (("columns", 1, "type"), ("table",))  # not all name the column


async def test_wide_numbers_are_converted_or_refused_before_the_first_row(
    clickhouse: Access, table: str
):
    """The library's engine does not convert to them, that of a server may."""
    for kind, there in (("integer", "Int128"), ("decimal", "Decimal(76, 9)")):
        clickhouse.ask(f"CREATE OR REPLACE TABLE {table} (v {there}) ENGINE = Memory")
        said = ""
        try:
            await wrote(clickhouse, table, [{"v": 7}], {"name": "v", "type": kind})
        except BuildRefused as refused:
            said = str(refused)

        [[count]] = clickhouse.rows(f"SELECT count() FROM {table} WHERE toString(v) = '7'")
        assert count == 1 or f" to {there} is not supported" in said


async def test_looking_at_a_table_of_others_leaves_nothing_in_it(clickhouse: Access, table: str):
    clickhouse.ask(f"CREATE TABLE {table} (n Int64) ENGINE = MergeTree ORDER BY n")
    async with started(output(table, N), context(clickhouse)):
        pass

    assert clickhouse.rows(f"SELECT count() FROM {table}") == [[0]]
    parts = f"SELECT count() FROM system.parts WHERE table = '{table}'"
    assert clickhouse.rows(parts) == [[0]]


async def test_a_database_that_is_not_there_refuses_the_output(clickhouse: Access):
    elsewhere = Access(clickhouse.url, clickhouse.user, clickhouse.password, "nowhere")

    of_connection = await refusal(elsewhere, output("t"))
    of_table = await refusal(clickhouse, output("nowhere.t"))

    for refused in (of_connection, of_table):
        assert str(refused).startswith(
            f"{clickhouse.where} says 'Code 81 UNKNOWN_DATABASE: Database nowhere "
        )
    assert of_connection.fault.path == ("connection",)
    assert of_table.fault.path == ("table",)


async def test_a_table_that_cannot_be_created_refuses_the_output(clickhouse: Access, table: str):
    # A name that is too long for a file is one of the few things that only the server knows of.
    refused = await refusal(clickhouse, output("t" * 300, N))

    assert refused.fault.path == ("table",)
    assert "says 'Code " in str(refused)
    assert "CREATE" not in str(refused)
