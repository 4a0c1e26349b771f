"""The rows of the `clickhouse` output. The engine is real, the HTTP front is ours.

Where ``CLICKHOUSE_URL`` names a server, these tests run against that one.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.decimals import Written
from headrace.compiler.delivery import LARGE_BATCH
from headrace.compiler.errors import BatchFailed, Unreachable
from tests.clickhouse_sides import EVERY, TYPES, N, context, named, output, said, started, wrote
from tests.doubles import TickingClock
from tests.examples import examples
from tests.services.clickhouse import Access


@pytest.fixture
def table(clickhouse: Access) -> Iterator[str]:
    """Give the name of a table that is not there, and is gone afterwards."""
    with named(clickhouse) as name:
        yield name


# Rows


async def test_without_columns_each_message_is_stored_whole(clickhouse: Access, table: str):
    batch = [{"a": [1, "ü"], "b": None}, 2.5, "x", None, [1]]
    before = datetime.now(UTC) - timedelta(minutes=5)

    assert await wrote(clickhouse, table, batch) == [
        ['{"a":[1,"ü"],"b":null}'],
        ["2.5"],
        ['"x"'],
        ["null"],
        ["[1]"],
    ]
    [[first]] = clickhouse.rows(f"SELECT min(received_at) FROM {table}")
    assert before < datetime.fromisoformat(f"{first}+00:00") < before + timedelta(minutes=10)


async def test_a_value_of_every_type_arrives(clickhouse: Access, table: str):
    message = {
        "a_text": "ü\x00'\"\\",
        "a_integer": -(2**31),
        "a_bigint": 2**63 - 1,
        "a_float": 5e-324,
        "a_decimal": Written("1.10"),
        "a_boolean": True,
        "a_timestamp": "1969-12-31T23:59:59.123999+01:00",
        "a_date": "1900-01-01",
        "a_uuid": "61F0C404-5cb3-11e7-907b-a6006ad3dba0",
        "a_json": {"b": [1, None]},
    }

    assert await wrote(clickhouse, table, [message, {}], *EVERY) == [
        [
            "ü\x00'\"\\",
            -(2**31),
            2**63 - 1,
            5e-324,
            "1.1",
            True,
            "1969-12-31 22:59:59.123",
            "1900-01-01",
            "61f0c404-5cb3-11e7-907b-a6006ad3dba0",
            '{"b":[1,null]}',
        ],
        [None] * 10,
    ]


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("1.10", "1.1"),
        ("1e3", "1000"),
        ("-0.000000001", "-0.000000001"),
        ("12345678901234567890123456789.123456789", "12345678901234567890123456789.123456789"),
        ("1.0000000000000", "1"),
        ("0e99", "0"),
    ],
)
async def test_a_decimal_arrives_with_its_digits(
    clickhouse: Access, table: str, written: str, stored: str
):
    column = {"name": "d", "type": "decimal"}

    assert await wrote(clickhouse, table, [{"d": Written(written)}], column) == [[stored]]


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (
            "decimal",
            Written("1.0000000001"),
            "expected a number of at most 29 digits before its point and 9 after it, found one of"
            " more",
        ),
        (
            "decimal",
            Written("123456789012345678901234567890"),
            "expected a number of at most 29 digits before its point and 9 after it, found one of"
            " more",
        ),
        ("integer", 2**31, "expected an integer of 32 bits, found a larger one"),
        ("bigint", -(2**63) - 1, "expected an integer of 64 bits, found a larger one"),
        ("float", "1.5", "expected a number, found a string"),
        ("date", "1899-12-31", "expected a date from 1900-01-01 to 2299-12-31, found another one"),
        ("date", "2300-01-01", "expected a date from 1900-01-01 to 2299-12-31, found another one"),
        (
            "timestamp",
            "1899-12-31T23:59:59.999Z",
            "expected a timestamp from 1900-01-01 to 2299-12-31, found another one",
        ),
        (
            "timestamp",
            "2299-12-31T23:59:59-01:00",
            "expected a timestamp from 1900-01-01 to 2299-12-31, found another one",
        ),
        ("uuid", "zz", "expected 8-4-4-4-12 hexadecimal digits, found another string"),
        ("text", "\ud800", "expected a string, found one with half a character (a lone surrogate)"),
    ],
)
async def test_a_value_that_the_column_cannot_hold_is_refused_by_name(
    clickhouse: Access, table: str, kind: str, value: Any, said: str
):
    async with started(output(table, {"name": "c", "type": kind}), context(clickhouse)) as it:
        with pytest.raises(BatchFailed) as failed:
            await it.write([{"c": None}, {"c": value}])

    assert str(failed.value) == f"column 'c': {said}"
    assert clickhouse.rows(f"SELECT count() FROM {table}") == [[0]]


async def test_the_ends_of_the_calendar_arrive(clickhouse: Access, table: str):
    columns = [{"name": "at", "type": "timestamp"}, {"name": "day", "type": "date"}]
    batch = [
        {"at": "1900-01-01T00:00:00Z", "day": "1900-01-01"},
        {"at": "2299-12-31T23:59:59.999Z", "day": "2299-12-31"},
        {"at": -1.5, "day": None},
    ]

    assert await wrote(clickhouse, table, batch, *columns) == [
        ["1900-01-01 00:00:00.000", "1900-01-01"],
        ["2299-12-31 23:59:59.999", "2299-12-31"],
        ["1969-12-31 23:59:58.500", None],
    ]


async def test_a_row_may_be_skipped_and_a_batch_without_rows_is_not_sent(
    clickhouse: Access, table: str
):
    column = {**N, "on_missing": "skip_row"}
    async with started(output(table, column), context(clickhouse)) as it:
        await it.write([{"n": 1}, {}, {"n": 2}])
        clickhouse.ask(f"RENAME TABLE {table} TO {table}_aside")
        await it.write([{}, {"n": None}])  # there is no table that could take it
        clickhouse.ask(f"RENAME TABLE {table}_aside TO {table}")

    assert clickhouse.rows(f"SELECT n FROM {table} ORDER BY n") == [[1], [2]]


FIRST, LAST = map(datetime.fromisoformat, ("1900-01-01", "2299-12-31T23:59:59.999999"))
moments = st.datetimes(FIRST, LAST, timezones=st.just(UTC))
messages = st.fixed_dictionaries(
    {},
    optional={
        "a_text": st.none() | st.text(st.characters(exclude_categories=["Cs"])),
        "a_integer": st.none() | st.integers(-(2**31), 2**31 - 1),
        "a_bigint": st.none() | st.integers(-(2**63), 2**63 - 1),
        "a_float": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "a_decimal": st.none()
        | st.decimals(-(10**29) + 1, 10**29 - 1, places=9).map(str).map(Written),
        "a_boolean": st.none() | st.booleans(),
        "a_timestamp": st.none() | moments.map(datetime.isoformat),
        "a_date": st.none() | moments.map(lambda moment: moment.date().isoformat()),
        "a_uuid": st.none() | st.uuids().map(str),
        "a_json": st.none()
        | st.lists(st.integers() | st.text(st.characters(exclude_categories=["Cs"]))),
    },
)


@given(batch=st.lists(messages, min_size=1, max_size=30))
@examples(40)
async def test_what_is_in_the_table_is_what_was_sent(clickhouse: Access, batch: list[Any]):
    name = f"t_{uuid4().hex}"
    made = output(name, {"name": "row", "type": "integer"}, *EVERY)
    numbered = [{"row": number, **each} for number, each in enumerate(batch)]
    try:
        async with started(made, context(clickhouse)) as it:
            await it.write(numbered)
        exact = "hex(reinterpretAsString(a_float))"
        found = clickhouse.rows(f"SELECT * EXCEPT (received_at), {exact} FROM {name} ORDER BY row")
    finally:
        clickhouse.ask(f"DROP TABLE IF EXISTS {name}")

    assert [sent(each) for each in numbered] == [got(each) for each in found]


def sent(message: dict[str, Any]) -> list[Any]:
    """Return a message as the table should have it."""
    each = {f"a_{kind}": message.get(f"a_{kind}") for kind in TYPES}
    if each["a_decimal"] is not None:
        each["a_decimal"] = Decimal(each["a_decimal"].text)
    if each["a_timestamp"] is not None:
        moment = datetime.fromisoformat(each["a_timestamp"])
        each["a_timestamp"] = moment - timedelta(microseconds=moment.microsecond % 1000)
    if each["a_uuid"] is not None:
        each["a_uuid"] = UUID(each["a_uuid"])
    return [message["row"], *each.values()]


def got(row: list[Any]) -> list[Any]:
    """Return a row in the same form; of the double, the bits."""
    number, *values, bits = row
    each = dict(zip(TYPES, values, strict=True))
    if each["float"] is not None:
        [each["float"]] = struct.unpack("<d", bytes.fromhex(bits).ljust(8, b"\0"))
    if each["decimal"] is not None:
        each["decimal"] = Decimal(each["decimal"])
    if each["timestamp"] is not None:
        each["timestamp"] = datetime.fromisoformat(f"{each['timestamp']}+00:00")
    if each["uuid"] is not None:
        each["uuid"] = UUID(each["uuid"])
    if each["json"] is not None:
        each["json"] = json.loads(each["json"])
    return [number, *each.values()]


async def test_a_double_keeps_every_bit(clickhouse: Access, table: str):
    """As text it would not: the server reads digits fast, and not exactly. So it writes them, too."""
    column = {"name": "f", "type": "float"}
    doubles = [7.465964297036646, 5e-324, 1.7976931348623157e308, -2.5e-7, 6.814861640505002e16]

    await wrote(clickhouse, table, [{"f": each} for each in doubles], column)

    found = clickhouse.rows(f"SELECT reinterpretAsUInt64(f) FROM {table}")
    assert sorted(struct.unpack("<d", struct.pack("<Q", bits)) for [bits] in found) == sorted(
        (each,) for each in doubles
    )


async def test_a_large_batch_is_one_insert(clickhouse: Access, table: str):
    columns = [N, {"name": "s", "type": "text"}]
    batch = [{"n": n, "s": "x" * 300} for n in range(20_000)]
    async with started(output(table, *columns), context(clickhouse)) as it:
        await it.write(batch)

    assert clickhouse.rows(f"SELECT count(), sum(n), sum(length(s)) FROM {table}") == [
        [20_000, sum(range(20_000)), 6_000_000]
    ]
    parts = f"SELECT count() FROM system.parts WHERE active AND table = '{table}'"
    assert clickhouse.rows(parts) == [[1]]


# Failures while it runs


async def test_a_batch_that_the_server_refuses_fails_in_words_without_values(
    clickhouse: Access, table: str
):
    clickhouse.ask(f"CREATE TABLE {table} (n Int32, CONSTRAINT small CHECK n < 5) ENGINE = Memory")
    ctx, texts = context(clickhouse), set()
    async with started(output(table, N), ctx) as it:
        for n in (77, 78):
            with pytest.raises(BatchFailed) as failed:
                await it.write([{"n": 1}, {"n": n}])
            assert not isinstance(failed.value, Unreachable)
            texts.add(said(failed, clickhouse))
        await it.write([{"n": 4}])

    assert texts == {"'Code 469 VIOLATED_CONSTRAINT' of the constraint 'small'"}
    assert clickhouse.rows(f"SELECT n FROM {table}") == [[4]]
    [warning] = ctx.warnings
    assert "Column values: n = 77" in warning
    assert warning.endswith("(told this once)")


async def test_an_output_goes_on_when_its_table_is_back(clickhouse: Access, table: str):
    texts = []
    async with started(output(table, N), context(clickhouse)) as it:
        for statement in (f"DROP TABLE {table}", f"CREATE TABLE {table} (m Int32) ENGINE = Memory"):
            clickhouse.ask(statement)
            for n in range(2):
                with pytest.raises(BatchFailed) as failed:
                    await it.write([{"n": n}])
                texts.append(said(failed, clickhouse))
        clickhouse.ask(f"ALTER TABLE {table} ADD COLUMN n Int32")
        await it.write([{"n": 3}])

    assert (
        texts
        == ["'Code 60 UNKNOWN_TABLE'"] * 2
        + ["'Code 16 NO_SUCH_COLUMN_IN_TABLE' of the column 'n'"] * 2
    )
    assert clickhouse.rows(f"SELECT n FROM {table}") == [[3]]


async def test_a_server_that_cannot_keep_up_is_left_alone_for_a_while(
    clickhouse: Access, table: str
):
    clickhouse.ask(
        f"CREATE TABLE {table} (n Int32) ENGINE = MergeTree ORDER BY n"
        " SETTINGS parts_to_throw_insert = 1, parts_to_delay_insert = 1"
    )
    clickhouse.ask(f"SYSTEM STOP MERGES {table}")
    async with started(output(table, N), context(clickhouse)) as it:
        await it.write([{"n": 1}])
        with pytest.raises(Unreachable) as failed:
            await it.write([{"n": 2}])
        clickhouse.ask(f"TRUNCATE TABLE {table}")
        await it.write([{"n": 3}])

    assert said(failed, clickhouse) == "'Code 252 TOO_MANY_PARTS'"
    assert clickhouse.rows(f"SELECT n FROM {table}") == [[3]]


async def test_settings_hold_for_each_insert(clickhouse: Access, table: str):
    clickhouse.ask(f"CREATE TABLE {table} (n Int32) ENGINE = MergeTree ORDER BY n PARTITION BY n")
    batch = [{"n": n} for n in range(150)]
    async with started(output(table, N), context(clickhouse)) as it:
        with pytest.raises(BatchFailed) as failed:
            await it.write(batch)
    assert not isinstance(failed.value, Unreachable)
    assert said(failed, clickhouse) == "'Code 252 TOO_MANY_PARTS'"

    many = output(table, N, settings={"max_partitions_per_insert_block": 0})
    async with started(many, context(clickhouse)) as it:
        await it.write(batch)

    assert clickhouse.rows(f"SELECT count() FROM {table}") == [[150]]


async def test_every_setting_is_one_that_the_server_knows(clickhouse: Access, table: str):
    known = {
        "deduplicate_blocks_in_dependent_materialized_views": True,
        "distributed_foreground_insert": True,
        "insert_deduplicate": True,
        "insert_quorum": 0,
        "insert_quorum_timeout": 5000,
        "materialized_views_ignore_errors": False,
        "max_partitions_per_insert_block": 10,
    }

    assert await wrote(clickhouse, table, [{"n": 1}], N, settings=known) == [[1]]
    assert known.keys() == output("t", settings=known).settings.options().keys()


async def test_a_large_batch_is_in_whole_or_not_at_all(clickhouse: Access, table: str):
    s = {"name": "s", "type": "text"}
    batch = [{"n": n, "s": "ü" if n % 7 else None} for n in range(3 * LARGE_BATCH)]

    async with started(output(table, N, s), context(clickhouse, clock=TickingClock())) as it:
        with pytest.raises(BatchFailed, match="column 'n': expected an integer, found a string"):
            await it.write([*batch, {"n": "x"}])
        await it.write(batch)
        await it.write([{"n": -1}])

    rows = clickhouse.rows(f"SELECT n, s FROM {table} ORDER BY n")
    assert rows == [[-1, None], *([each["n"], each["s"]] for each in batch)]
