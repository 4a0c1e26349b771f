"""The `clickhouse` connection and output as a config writes them, and what they say to the server."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Context, Decimal
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.errors import BuildRefused
from headrace.connectors.clickhouse import ClickHouseConnection, ClickHouseOutput
from headrace.connectors.clickhouse.clickhouse_table import ClickHouseTable, narrow
from headrace.connectors.clickhouse.native import Blocks, varint
from headrace.connectors.clickhouse.sink import DeduplicationTokens
from headrace.connectors.tables.rows import StoredColumn
from tests.clickhouse_sides import connection, context, output
from tests.doubles import StubContext, TickingClock, refusals
from tests.services.clickhouse import Access
from tests.virtual import virtual

HERE = Access("http://127.0.0.1:8123", "writer", "open-sesame", "plant")
FILED = {
    "url": "https://ch.example.org",
    "database": "plant",
    "user": "writer",
    "password": "${PASSWORD}",
}


# The connection


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"url": "tcp://host:9000"},
            'url: "tcp://host:9000" is not an absolute http or https url: it does not begin with'
            " http:// or https://",
        ),
        (
            {"url": "https://me:s3cret@host"},
            "url: 'url' holds user info, and the connection has 'user' and 'password'",
        ),
        ({"url": "https://host/?user=me"}, "url: a base url has no query ('?...')"),
        (
            {"url": "http://host", "ca_file": "ca.pem", "allow_http": True},
            "ca_file: 'ca_file' means nothing without TLS",
        ),
        ({"user": "wri\nter"}, "user: 'user' holds what no header can carry"),
        ({"user": " "}, "user: this must not be blank"),
        ({"allow_http": "yes"}, 'allow_http: expected true or false, found "yes"'),
        ({"databse": "x"}, "databse: unknown key 'databse'"),
    ],
)
def test_what_cannot_be_a_connection_is_refused(change, said):
    assert refusals(ClickHouseConnection, FILED | change) == [said]


def test_an_echo_holds_what_was_given():
    assert ClickHouseConnection.load(FILED | {"allow_http": None}).dump() == {
        "type": "clickhouse",
        **FILED,
    }


async def test_a_password_goes_in_the_clear_only_if_that_is_allowed():
    said = "'http://127.0.0.1:8123' sends rows and password in the clear"
    ctx = context(HERE, tls={"allow_http": False})

    with pytest.raises(BuildRefused) as refused:
        output("t").open(ctx)

    fault = refused.value.fault
    assert (fault.message, fault.path) == (said, ("connection",))
    assert fault.expected == "an https:// url, or 'allow_http: true'"
    [filed] = connection(HERE, allow_http=False).examine(CheckContext())
    assert (filed.message, filed.path) == (said, ("url",))
    assert [*connection(HERE).examine(CheckContext())] == []
    assert [*ClickHouseConnection.load(FILED).examine(CheckContext())] == []


async def test_a_password_that_cannot_be_sent_refuses_the_output():
    ctx = StubContext(
        connections={"ch": ClickHouseConnection.load(FILED)}, secrets={"PASSWORD": "pass\nword"}
    )

    with pytest.raises(BuildRefused) as refused:
        output("t").open(ctx)

    assert str(refused.value) == "'password' holds what no header can carry"


# The output


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"settings": {"insert_quorom": 2}},
            "settings.insert_quorom: unknown key 'insert_quorom'",
        ),
        (
            {"settings": {"insert_quorum": "2"}},
            'settings.insert_quorum: expected an integer of at least 0, found "2"',
        ),
        (
            {"settings": {"insert_deduplicate": 1}},
            "settings.insert_deduplicate: expected true or false, found 1",
        ),
        (
            {"deduplicate_token": True, "settings": {"insert_deduplicate": False}},
            "settings.insert_deduplicate: with 'insert_deduplicate: false' a batch that is sent"
            " again is stored again",
        ),
        ({"table": "a.b.c"}, 'table: "a.b.c" cannot be the name of a table'),
        (
            {"order_by": ["a"]},
            "order_by: 'order_by' needs 'columns': without them the whole message is stored",
        ),
        (
            {"columns": [{"name": "a", "type": "text"}], "order_by": ["b"]},
            "order_by[0]: there is no column 'b' among the mapped ones",
        ),
        (
            {"columns": [{"name": "a", "type": "text"}], "order_by": ["a", "a"]},
            "order_by[1]: the key names the column 'a' twice",
        ),
    ],
)
def test_what_cannot_be_an_output_is_refused(change, said):
    assert refusals(ClickHouseOutput, {"connection": "ch", "table": "t", **change}) == [said]


def test_settings_are_sent_as_the_server_writes_them():
    given = {
        "deduplicate_blocks_in_dependent_materialized_views": True,
        "insert_deduplicate": False,
        "insert_quorum": 2,
        "max_partitions_per_insert_block": 0,
    }
    loaded = output("t", settings=given).settings
    assert loaded is not None
    assert loaded.parameters() == {
        "deduplicate_blocks_in_dependent_materialized_views": "1",
        "insert_deduplicate": "0",
        "insert_quorum": "2",
        "max_partitions_per_insert_block": "0",
    }


def table(it: ClickHouseOutput) -> ClickHouseTable:
    """Return the table of an output."""
    database, _, name = it.table.rpartition(".")
    return ClickHouseTable(database, name, it.stored_columns(), it.order_by)


MACHINE = {"name": "machine", "type": "text"}
ARRIVAL = {"name": "received_at", "type": "timestamp"}
BY_ARRIVAL = ' ENGINE = MergeTree ORDER BY ("received_at")'


@pytest.mark.parametrize(
    ("made", "statement"),
    [
        (
            output("t"),
            '"t" ("received_at" DateTime64(3, \'UTC\') DEFAULT now64(3), "payload" String)'
            + BY_ARRIVAL,
        ),
        (
            output("plant.t", MACHINE, {"name": "n", "type": "integer", "nullable": False}),
            '"t" ("received_at" DateTime64(3, \'UTC\') DEFAULT now64(3),'
            ' "machine" Nullable(String), "n" Int32)' + BY_ARRIVAL,
        ),
        (
            output("t", MACHINE, ARRIVAL),
            '"t" ("machine" Nullable(String), "received_at" DateTime64(3, \'UTC\'))' + BY_ARRIVAL,
        ),
        (
            output(
                "t", MACHINE, ARRIVAL, {"name": "at", "type": "date"}, order_by=["at", "machine"]
            ),
            '"t" ("machine" String, "received_at" Nullable(DateTime64(3, \'UTC\')), "at" Date32)'
            ' ENGINE = MergeTree ORDER BY ("at", "machine")',
        ),
    ],
    ids=["whole messages", "columns", "a mapped received_at", "a sorting key"],
)
def test_a_table_is_declared(made, statement):
    assert table(made).creation == f"CREATE TABLE IF NOT EXISTS {statement}"


def test_a_sorting_key_turns_null_into_an_error_and_leaves_skipping_alone():
    skipping = {"name": "at", "type": "timestamp", "on_missing": "skip_row"}
    found = output("t", MACHINE, skipping, order_by=["machine", "at"]).stored_columns()

    assert [(each.is_nullable, each.on_missing) for each in found] == [
        (False, "error"),
        (False, "skip_row"),
    ]


def test_a_table_that_is_not_created_keeps_what_its_columns_say():
    made = output("t", MACHINE, ARRIVAL, create_table=False)

    assert [each.is_nullable for each in made.stored_columns()] == [True, True]


@pytest.mark.parametrize(
    ("kind", "kindred", "others"),
    [
        ("text", "String LowCardinality(String) Enum8('a'=1)", "UInt8 FixedString(3)"),
        ("integer", "Int32 Nullable(Int64) Float64", "Int16 UInt32 Float32"),
        ("decimal", "Decimal(38,9) Decimal(76,9) Decimal(76,18)", "Decimal(18,9) Decimal(38,4)"),
        ("timestamp", "DateTime64(3) DateTime64(6,'UTC')", "DateTime Date32 DateTime64(9)"),
        ("date", "Date32 Nullable(Date32)", "Date DateTime"),
        ("json", "String JSON", "Float64"),
    ],
)
def test_a_column_that_may_change_a_value_is_told(kind, kindred, others):
    it = table(output("t", {"name": "c", "type": kind}))

    for there in kindred.split():
        assert [*narrow(it, {"c": (there.replace(",", ", "), "")})] == []
    for there in others.split():
        [told] = narrow(it, {"c": (there.replace(",", ", "), "")})
        assert told.startswith("the column 'c' of 't' is ")


# Blocks and tokens


@pytest.mark.parametrize(
    ("number", "octets"),
    [(0, b"\x00"), (127, b"\x7f"), (128, b"\x80\x01"), (16384, b"\x80\x80\x01")],
)
def test_a_number_is_written_in_groups_of_seven_bits(number, octets):
    assert varint(number) == octets


def test_a_block_names_its_columns_and_their_types():
    columns = [StoredColumn("n", "integer", None), StoredColumn("s", "text", None, False, "error")]

    assert Blocks(columns).block([[1, None], ["a", "é"]]) == (
        b"\x02\x02"
        b"\x01n\x0fNullable(Int32)\x00\x01\x01\x00\x00\x00\x00\x00\x00\x00"
        b"\x01s\x06String\x01a\x02\xc3\xa9"
    )


def test_a_string_may_be_long():
    columns = [StoredColumn("s", "text", None, False, "error")]

    block = Blocks(columns).block([["a" * 16384, "b"]])

    assert block.endswith(b"\x06String\x80\x80\x01" + b"a" * 16384 + b"\x01b")


@given(st.decimals(-(10**29) + 1, 10**29 - 1, places=9, allow_nan=False))
def test_a_decimal_is_whole_billionths(number):
    columns = [StoredColumn("d", "decimal", None, False, "error")]

    block = Blocks(columns).block([[number]])

    packed = int.from_bytes(block[-16:], "little", signed=True)
    assert Decimal(packed).scaleb(-9, Context(prec=38)) == number


@virtual
async def test_a_token_is_that_of_one_delivery():
    mine, others = DeduplicationTokens(), DeduplicationTokens()
    clock = TickingClock()

    first, second = await mine.next(b"a", clock), await mine.next(b"a", clock)
    other, another = await others.next(b"a", clock), await mine.next(b"b", clock)

    assert len({first, second, other, another}) == 4
    assert {each.partition("-")[0] for each in (first, second, other)} == {
        blake2b(b"a", digest_size=16).hexdigest()
    }


@virtual
async def test_the_block_and_the_token_of_many_rows_are_those_of_one_go():
    columns = [StoredColumn(kind, kind, None) for kind in ("text", "integer", "timestamp", "uuid")]
    uuid, moment = "61F0C404-5cb3-11e7-907b-a6006ad3dba0", datetime(2026, 3, 1, tzinfo=UTC)
    rows = [[value, value, None] * 3000 for value in ("ü", -7, moment, uuid)]
    made = Blocks(columns)

    block = await made.of_large(rows, TickingClock())

    assert block == made.block(rows)
    token = await DeduplicationTokens().next(block, TickingClock())
    assert token.partition("-")[0] == blake2b(block, digest_size=16).hexdigest()
