"""Tables that are there already: each value is in them as it was written, or refused by name."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import pytest

from headrace.compiler.decimals import exact
from headrace.compiler.errors import BatchFailed, BuildRefused
from headrace.connectors.postgres.postgres_table import KINDS
from tests.connected import started
from tests.connectors.test_postgres_refusals import failure
from tests.doubles import StubContext
from tests.postgres_sides import column, context, done, found, operator, sink, unused
from tests.services.postgres import Postgres


async def there(server: Postgres, type: str) -> str:
    """Have a table with a column `v` of a type."""
    table = unused()
    await done(server, f"create table {table} (v {type})")
    return table


@pytest.mark.parametrize(
    ("declared", "type", "said"),
    [
        ("smallint", "float", "is smallint: a float does not fit without rounding; make it double"
            " precision, or map it as 'integer' or 'bigint'"),
        ("integer", "float", "is integer: a float does not fit without rounding; make it double"
            " precision, or map it as 'integer' or 'bigint'"),
        ("bigint", "float", "is bigint: a float does not fit without rounding; make it double"
            " precision, or map it as 'integer' or 'bigint'"),
        ("numeric", "float", "is numeric: PostgreSQL rounds a float to 15 digits there; make it"
            " double precision, or map it as 'decimal'"),
        ("numeric(5,1)", "float", "is numeric(5,1): PostgreSQL rounds a float to 15 digits there;"
            " make it double precision, or map it as 'decimal'"),
        ("integer", "decimal", "is integer: a decimal does not fit without rounding; make it"
            " numeric, or map it as 'integer' or 'bigint'"),
        ("bigint", "decimal", "is bigint: a decimal does not fit without rounding; make it"
            " numeric, or map it as 'integer' or 'bigint'"),
        ("real", "decimal", "is real: a decimal does not keep its digits there; make it numeric,"
            " or map it as 'float'"),
        ("double precision", "decimal", "is double precision: a decimal does not keep its digits"
            " there; make it numeric, or map it as 'float'"),
        ("money", "decimal", "is money: a decimal does not fit without rounding; make it numeric"),
        ("date", "timestamp", "is date: a timestamp loses its time of day there; make it timestamp"
            " with time zone, or map it as 'date'"),
        ("time", "timestamp", "is time without time zone: a timestamp loses its date there; make it"
            " timestamp with time zone"),
        ("timetz(3)", "timestamp", "is time(3) with time zone: a timestamp loses its date there;"
            " make it timestamp with time zone"),
        ("name", "text", "is name: PostgreSQL cuts there what is too long; make it text"),
        ('"char"', "text", 'is "char": PostgreSQL cuts there what is too long; make it text'),
        ("name", "json", "is name: PostgreSQL cuts there what is too long; make it text"),
        ("of_whole", "float", "is of_whole, which is smallint: a float does not fit without"
            " rounding; make it double precision, or map it as 'integer' or 'bigint'"),
    ],
)  # fmt: skip
async def test_a_type_in_which_a_value_would_be_another_refuses_the_build(
    postgres: Postgres, declared, type, said
):
    await domains(postgres)
    table = await there(postgres, declared)

    for creates in (True, False):
        with pytest.raises(BuildRefused) as refused:
            await sink(postgres, table, [column("v", type)], create_table=creates).start()

        assert str(refused.value) == f"the column 'v' of '{table}' {said}"
        assert refused.value.fault.path == ("columns", 0, "type")


async def domains(server: Postgres) -> None:
    """Have a domain over another."""
    await done(
        server,
        "do $$ begin create domain whole as smallint; create domain of_whole as whole;"
        " create domain short as varchar(3); create domain of_short as short;"
        " exception when duplicate_object then end $$",
    )


CUT = "expected a string of at most 3 characters, as the table takes, found a longer one"
SINGLE = "expected an integer that is exact as real, which the table has, found one that would be rounded"
DOUBLE = SINGLE.replace("real", "double precision")
HUNDREDS = "expected a number that is a multiple of 1e2, as the table keeps, found another one"


def finer(what: str, places: int) -> str:
    return (
        f"expected {what} of at most {places} digits after its point, as the table keeps,"
        " found one of more"
    )


@pytest.mark.parametrize(
    ("declared", "type", "kept", "refused", "said"),
    [
        ("varchar(3)", "text", ["", "äöü", "ab ", "\U0001f600  "], ["abc ", "abcd"], CUT),
        ("of_short", "text", ["äöü", "ab "], ["abc "], CUT),
        ("real", "integer", [2**24, -(2**24), 2**30], [2**24 + 1], SINGLE),
        ("real", "bigint", [2**24, 2**60], [2**24 + 1, 2**63 - 1], SINGLE),
        ("double precision", "bigint", [2**53, 2**62], [2**53 + 1, -(2**53) - 1], DOUBLE),
        ("numeric(5,-2)", "integer", [0, 100, -1200], [7, 110, -10], HUNDREDS),
        ("numeric(5,-2)", "bigint", [99_900], [1, 99_910], HUNDREDS),
        (
            "numeric(5,-2)",
            "decimal",
            [100, exact("1200.00"), exact("1e3")],
            [110, exact("100.01"), exact("120.0")],
            HUNDREDS,
        ),
        (
            "numeric(6,2)",
            "decimal",
            [7, 1.25, exact("-1.10"), exact("1.250000"), exact("1e-2")],
            [1.005, exact("1.2500001"), exact("1e-3"), exact("0.0010")],
            finer("a number", 2),
        ),
        (
            "numeric(5)",
            "decimal",
            [7, exact("7.000")],
            [7.5, exact("0.01")],
            finer("a number", 0),
        ),
        (
            "timestamp(0)",
            "timestamp",
            ["2026-03-01T08:00:00+01:00", "2026-03-01T08:00:00.000Z", 1],
            ["2026-03-01T08:00:00.7Z", 1.5, "2026-03-01 08:00:00,000001"],
            finer("a timestamp", 0),
        ),
        (
            "timestamptz(3)",
            "timestamp",
            ["2026-03-01T08:00:00.123Z", "2026-03-01T08:00:00.1230", "2026-03-01T08:00:00.1230009Z"],
            ["2026-03-01T08:00:00.1234Z", "2026-03-01T08:00:00.123001-08:00"],
            finer("a timestamp", 3),
        ),
    ],
)  # fmt: skip
async def test_a_type_that_keeps_some_values_takes_those_only(
    postgres: Postgres, declared, type, kept, refused, said
):
    await domains(postgres)
    table, whole = await there(postgres, declared), await there(postgres, KINDS[type])
    columns, ctx = [column("v", type)], context(postgres)

    async with started(sink(ctx, table, columns)) as it, started(sink(ctx, whole, columns)) as ref:
        for batch in ([{"v": value} for value in kept], [{}], *([{"v": value}] for value in kept)):
            await it.write(batch)
            await ref.write(batch)
        failed = {await failure(it, {"v": kept[0]}, {"v": value}) for value in refused}

    assert failed == {f"column 'v': {said}"}
    assert len(await found(postgres, f"select * from {table}")) == 2 * len(kept) + 1
    assert await altered(postgres, table, whole, KINDS[type]) == []
    assert [each for each in ctx.warnings if "told this once" not in each] == []


async def altered(server: Postgres, table: str, whole: str, type: str) -> list[Any]:
    """Return what is in one table and not in the other, read as a type. The session is in UTC."""
    async with operator(server) as client:
        await client.execute("set timezone = 'UTC'")
        narrow = f"select v::{type} as v from {table}"
        rows = await client.fetch(
            f"(({narrow}) except all (table {whole})) union all"
            f" ((table {whole}) except all ({narrow}))"
        )
    return [row["v"] for row in rows]


VALUES: dict[str, list[Any]] = {
    "text": ["", " ", "x", "x ", "abc", "abc   ", "7", "true", "é" * 70, "2026-03-01", "{}"],
    "integer": [0, 1, -1, 7, 99, 40_000, 2**24 + 1, 2**31 - 1],
    "bigint": [0, 1, -1, 7, 99, 40_000, 2**24 + 1, 2**31, 2**53 + 1, -(2**63)],
    "float": [0, 1, 5.5, 1.27, -0.0, 0.1 + 0.2, 1e15, 1e300, 5e-324, 2.0**24 + 1],
    "decimal": [0, 7, exact("1.10"), 1.239, 5.5, exact("0.123456789012345678901"), 10**20, 1e300],
    "boolean": [True, False],
    "timestamp": [
        "2026-03-01T08:00:00Z",
        "2026-03-01T23:00:00.7-08:00",
        "2026-03-01T08:00:00.123456Z",
        1.5,
        "0001-01-02",
        "9999-12-31T23:59:59.999999Z",
    ],
    "date": ["2026-03-01", "0001-01-01", "9999-12-31"],
    "uuid": ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
    "json": [None, 7, "x ", {"b": exact("1.10"), "a": [True]}, "x" * 80],
}
KNOWN = re.compile("may be changed|rounds|blanks at the end")
DECLARED = [
    *("text", "varchar", "varchar(3)", "varchar(64)", "bpchar", "name", '"char"'),
    *("smallint", "integer", "bigint", "real", "double precision", "oid", "regclass"),
    *("numeric", "numeric(5)", "numeric(5,1)", "numeric(30,20)", "numeric(4,-1)", "numeric(2,4)"),
    *("boolean", "date", "time", "timetz", "timestamp", "timestamp(0)", "timestamp(3)"),
    *("timestamptz", "timestamptz(0)", "timestamptz(5)", "uuid", "json", "jsonb"),
    *("text[]", "short", "of_short", "of_whole"),
]


@pytest.mark.long
@pytest.mark.parametrize("type", VALUES)
async def test_whatever_the_type_each_value_is_kept_or_refused(postgres: Postgres, type):
    await domains(postgres)
    whole, columns = await there(postgres, KINDS[type]), [column("v", type)]
    async with started(sink(postgres, whole, columns)) as it:
        await it.write([{"v": value} for value in VALUES[type]])

    taken = 0
    async with operator(postgres) as client:
        await client.execute("set timezone = 'UTC'")
        for declared in DECLARED:
            table, ctx = unused(), context(postgres)
            await client.execute(f"create table {table} (v {declared})")
            try:
                rows = await written(ctx, table, columns, VALUES[type])
            except BuildRefused:
                continue
            if not any(map(KNOWN.search, ctx.warnings)):
                taken += 1
                assert len(await client.fetch(f"table {table}")) == rows, declared
                kept = f"select v::{KINDS[type]} from {table}"
                altered = await client.fetch(f"({kept}) except all (table {whole})")
                assert (declared, altered) == (declared, [])

    assert taken >= 5


async def written(ctx: StubContext, table: str, columns: list[Any], values: list[Any]) -> int:
    """Return how many of some values a table takes."""
    rows = 0
    async with started(sink(ctx, table, columns)) as it:
        for value in values:
            with suppress(BatchFailed):
                await it.write([{"v": value}])
                rows += 1
    return rows


@pytest.mark.parametrize(
    ("declared", "type", "said"),
    [
        ("real", "float", "is real: PostgreSQL rounds values of type 'float' to 6 digits or so there"),
        ("char(3)", "text", "is character(3): blanks at the end of a text do not count there"),
        ("bpchar", "text", "is bpchar: blanks at the end of a text do not count there"),
        ("oid", "integer", "is oid: values of type 'integer' that it cannot hold may be changed in"
            " silence"),
    ],
)  # fmt: skip
async def test_what_may_change_a_value_and_is_a_decision_is_warned_of(
    postgres: Postgres, declared, type, said
):
    table, ctx = await there(postgres, declared), context(postgres)

    async with started(sink(ctx, table, [column("v", type)])):
        pass

    assert ctx.warnings == [f"the column 'v' of '{table}' {said}"]


@pytest.mark.parametrize(
    ("declared", "type"),
    [
        ("char(36)", "uuid"),
        ("json", "json"),
        ("timestamp", "timestamp"),
        ("money", "integer"),
        ("char(6)", "boolean"),
    ],
)
async def test_what_keeps_every_value_is_not_warned_of(postgres: Postgres, declared, type):
    table, ctx = await there(postgres, declared), context(postgres)

    async with started(sink(ctx, table, [column("v", type)])):
        pass

    assert ctx.warnings == []
