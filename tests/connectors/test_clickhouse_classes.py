"""Of which class the failures of the `clickhouse` output are. The engine is real, the HTTP front is ours.

Each code comes from the engine itself; what no server stands behind comes from an HTTP server. These tests
change settings of the server: none of them is about the one that ``CLICKHOUSE_URL`` names.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.errors import BatchFailed, Unreachable
from headrace.connectors.clickhouse.connection import Limits, answer
from tests.clickhouse_sides import N, Passage, answering, context, fault, output, said, started
from tests.peer import replies
from tests.promises import promise
from tests.services.authority import Authority
from tests.services.clickhouse import Access, ClickHouse
from tests.services.server import free_port
from tests.whole.stores.cramped import CrampedClickHouse

pytestmark = pytest.mark.usefixtures("front_of_ours")

TEXT = {"name": "n", "type": "text"}
BIGINT = {"name": "n", "type": "bigint"}
ELSEWHERE = replies(status=307, headers={"Location": "https://elsewhere.example.org/"})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    """Give a server whose settings may be changed, if they are put back."""
    with ClickHouse(tmp_path_factory.mktemp("classes")) as it:
        yield it.access


@pytest.fixture
def access(server: Access) -> Iterator[Access]:
    """Give the server, on which the table `t` is not there before and afterwards."""
    server.ask("DROP TABLE IF EXISTS t")
    yield server
    server.ask("DROP TABLE IF EXISTS t")


async def failing(
    access: Access,
    column: Mapping[str, Any],
    *values: Any,
    changes: Sequence[str] = (),
    limits: Limits | None = None,
    **options: Any,
) -> pytest.ExceptionInfo[BatchFailed]:
    """Return the failure of a batch that is written once the server is changed like this."""
    async with started(output("t", column, **options), context(access), limits) as it:
        for each in changes:
            access.ask(each)
        with pytest.raises(BatchFailed) as failed:
            await it.write([{"n": value} for value in values])
    return failed


@contextmanager
def setting(access: Access, name: str, value: str, usual: str = "0") -> Iterator[None]:
    """Have the server work with a setting for as long as the block lasts."""
    access.ask(f"SET {name} = {value}")
    try:
        yield
    finally:
        access.ask(f"SET {name} = {usual}")


def table(columns: str, engine: str = "Memory") -> str:
    """Return the statement that makes the table."""
    return f"CREATE TABLE t ({columns}) ENGINE = {engine}"


# What time heals


@promise("clickhouse.output.fails.slow")
async def test_an_insert_that_takes_too_long_is_unavailable(access: Access):
    access.ask(table("n Int32, s UInt8 DEFAULT sleep(1)"))
    with setting(access, "max_execution_time", "0.5"):
        failed = await failing(access, N, 1)
    access.ask("DROP TABLE t")
    access.ask(table("n Int32, s UInt8 DEFAULT sleep(5)"))
    slow = await failing(access, N, 1)

    assert said(failed, access) == "'Code 159 TIMEOUT_EXCEEDED'"
    assert said(slow, access) == "'Code 160 TOO_SLOW'"
    assert {failed.value.failure, slow.value.failure} == {"unavailable"}
    assert isinstance(failed.value, Unreachable)
    assert failed.value.is_answered
    assert slow.value.is_answered


@promise("clickhouse.output.fails.memory")
async def test_a_server_without_memory_is_unavailable(access: Access):
    bytes_at_once = "arrayMap(x -> randomString(100000000), range(1000))"
    access.ask(table(f"n Int32, s Array(String) DEFAULT {bytes_at_once}"))
    failed = await failing(access, N, 1)

    assert said(failed, access) == "'Code 241 MEMORY_LIMIT_EXCEEDED'"
    assert failed.value.failure == "unavailable"
    assert failed.value.is_answered


@promise("clickhouse.output.fails.between_servers")
async def test_another_server_that_is_not_reached_is_unavailable(access: Access):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        for port, code in (
            (free_port(), "210 NETWORK_ERROR"),
            (silent.getsockname()[1], "209 SOCKET_TIMEOUT"),
        ):
            access.ask(f"CREATE TABLE t (n Int32) AS remote('127.0.0.1:{port}', default.x)")
            with setting(access, "handshake_timeout_ms", "100", "10000"):
                failed = await failing(access, N, 1, create_table=False)
            access.ask("DROP TABLE t")

            assert said(failed, access) == f"'Code {code}'"
            assert failed.value.failure == "unavailable"
            assert not failed.value.is_answered


@promise(
    "clickhouse.output.fails.table_read_only",
    "clickhouse.output.fails.disk_full",
    "clickhouse.output.fails.too_many_parts",
)
@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ("table_readonly = 1", "242 TABLE_IS_READ_ONLY"),
        ("min_free_disk_bytes_to_perform_insert = 1000000000000000", "243 NOT_ENOUGH_SPACE"),
        ("parts_to_throw_insert = 1, parts_to_delay_insert = 1", "252 TOO_MANY_PARTS"),
    ],
)
async def test_a_table_that_takes_nothing_for_now_is_unavailable(
    access: Access, settings: str, code: str
):
    access.ask(table("n Int32", f"MergeTree ORDER BY n SETTINGS {settings}"))
    changes = ["SYSTEM STOP MERGES t"]
    if "252" in code:
        changes.append("INSERT INTO t VALUES (1)")
    failed = await failing(access, N, 1, changes=changes)

    assert said(failed, access) == f"'Code {code}'"
    assert (type(failed.value), failed.value.failure) == (Unreachable, "unavailable")


@promise("clickhouse.output.fails.disk_full")
@pytest.mark.skipif("sys.platform != 'linux'", reason="needs namespaces")
async def test_a_full_disk_is_unavailable_until_there_is_room(tmp_path: Path):
    with CrampedClickHouse(tmp_path) as it:
        async with started(output("t", TEXT), context(it.access)) as sink:
            it.disk.fill(it)
            with pytest.raises(Unreachable) as failed:
                await sink.write([{"n": "x" * 1_000_000}])
            it.disk.clear(it)
            await sink.write([{"n": "y"}])

        assert said(failed, it.access) == "'Code 243 NOT_ENOUGH_SPACE'"
        assert it.access.rows("SELECT n FROM t") == [["y"]]
    assert failed.value.failure == "unavailable"


@promise("clickhouse.output.fails.no_answer")
async def test_a_server_that_is_not_there_is_unavailable(tmp_path: Path):
    with ClickHouse(tmp_path) as it:
        async with started(output("t", N), context(it.access)) as sink:
            await asyncio.to_thread(it.kill)
            with pytest.raises(Unreachable) as failed:
                await sink.write([{"n": 1}])

    assert str(failed.value) == f"{it.address} does not answer: connection refused"
    assert failed.value.failure == "unavailable"


async def test_what_breaks_at_the_start_is_unavailable_as_nothing_was_to_be_written():
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.transport.abort()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as it:
        port = it.sockets[0].getsockname()[1]
        told = await fault(Access(f"http://127.0.0.1:{port}", "u", "p", "d"))

    assert isinstance(told, Unreachable)
    assert str(told).endswith("closed the connection")
    assert told.failure == "unavailable"


# What somebody has to mend


@promise("clickhouse.output.fails.missing")
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (["DROP TABLE other.t"], "'Code 60 UNKNOWN_TABLE'"),
        (["DROP DATABASE other"], "'Code 81 UNKNOWN_DATABASE'"),
        (
            ["ALTER TABLE other.t ADD COLUMN m Int32", "ALTER TABLE other.t DROP COLUMN n"],
            "'Code 16 NO_SUCH_COLUMN_IN_TABLE' of the column 'n'",
        ),
    ],
    ids=["table", "database", "column"],
)
async def test_what_is_not_there_is_misconfigured(server: Access, changes: list[str], told: str):
    server.ask("CREATE DATABASE IF NOT EXISTS other")
    try:
        async with started(output("other.t", N), context(server)) as it:
            for each in changes:
                server.ask(each)
            with pytest.raises(BatchFailed) as failed:
                await it.write([{"n": 1}])
    finally:
        server.ask("DROP DATABASE IF EXISTS other")

    assert said(failed, server) == told
    assert (type(failed.value), failed.value.failure) == (BatchFailed, "misconfigured")


@promise("clickhouse.output.fails.user_read_only")
async def test_a_user_who_may_only_read_is_misconfigured(tmp_path: Path):
    with ClickHouse(tmp_path) as it:  # nobody can take that back
        failed = await failing(it.access, N, 1, changes=["SET readonly = 1"])

        assert said(failed, it.access) == "'Code 164 READONLY'"
    assert failed.value.failure == "misconfigured"


async def test_a_credential_that_is_refused_later_is_misconfigured(tmp_path: Path):
    server = ClickHouse(tmp_path, user="writer", password="open-sesame")
    with server:
        async with started(output("t", N), context(server.access)) as it:
            await asyncio.to_thread(server.stop)
            server.password = "changed"
            await asyncio.to_thread(server.start)
            with pytest.raises(Unreachable) as failed:
                await it.write([{"n": 1}])

    assert failed.value.failure == "misconfigured"


@promise("clickhouse.output.fails.stranger", "clickhouse.output.fails.gateway_away")
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        *((status, "unavailable") for status in (408, 425, 429, 500, 501, 502, 503, 504)),
        *((status, "misconfigured") for status in (301, 401, 403, 404, 405, 410)),
        *((status, "invalid") for status in (400, 413)),
    ],
)
async def test_somebody_else_has_the_class_of_its_status(status: int, expected: str):
    described = replies('["n","Nullable(Int32)",""]')
    async with (
        answering(replies("1\n"), replies(), described) as (it, access),
        started(output("t", N), context(access)) as sink,
    ):
        it.answers = [replies("no", status)]
        with pytest.raises(BatchFailed) as failed:
            await sink.write([{"n": 1}])

    assert failed.value.failure == expected


@promise("clickhouse.output.fails.stranger")
async def test_a_server_that_changes_to_what_it_was_not_is_misconfigured(
    authority: Authority, tmp_path: Path
):
    described = replies('["n","Nullable(Int32)",""]')
    async with (
        answering(replies("1\n"), replies(), described) as (it, access),
        started(output("t", N), context(access)) as sink,
    ):
        it.answers = [ELSEWHERE]
        with pytest.raises(Unreachable) as redirected:
            await sink.write([{"n": 1}])
    secured = ClickHouse(tmp_path, tls=authority)
    ctx = context(secured.access, tls={"ca_file": str(authority.ca_file)})
    with secured:
        async with started(output("t", N), ctx) as sink:
            await asyncio.to_thread(secured.stop)
            secured.tls = None
            await asyncio.to_thread(secured.start)
            with pytest.raises(Unreachable) as plain:
                await sink.write([{"n": 1}])

    assert redirected.value.failure == "misconfigured"
    assert plain.value.failure == "misconfigured"


# What is of the content


@promise("clickhouse.output.fails.unread_text")
@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("Int32", "6 CANNOT_PARSE_TEXT"),
        ("Tuple(a Int32)", "27 CANNOT_PARSE_INPUT_ASSERTION_FAILED"),
        ("Date", "38 CANNOT_PARSE_DATE"),
        ("DateTime", "41 CANNOT_PARSE_DATETIME"),
        ("JSON", "117 INCORRECT_DATA"),
        ("Array(Int32)", "130 CANNOT_READ_ARRAY_FROM_TEXT"),
        ("UUID", "376 CANNOT_PARSE_UUID"),
        ("Bool", "467 CANNOT_PARSE_BOOL"),
        ("IPv4", "675 CANNOT_PARSE_IPV4"),
        ("IPv6", "676 CANNOT_PARSE_IPV6"),
        ("Enum8('a' = 1)", "691 UNKNOWN_ELEMENT_OF_ENUM"),
    ],
)
async def test_a_text_that_is_not_what_its_column_takes_is_invalid(
    access: Access, kind: str, code: str
):
    access.ask(table("n String"))
    changes = ["DROP TABLE t", table(f"n {kind}")]
    failed = await failing(access, TEXT, "{", changes=changes)

    assert said(failed, access).startswith(f"'Code {code}'")
    assert (type(failed.value), failed.value.failure) == (BatchFailed, "invalid")


@promise("clickhouse.output.fails.not_converted")
@pytest.mark.parametrize(
    ("columns", "changed", "code"),
    [
        (
            "n Int32, s DateTime DEFAULT toStartOfInterval(now(), toIntervalSecond(n))",
            None,
            "44 ILLEGAL_COLUMN",
        ),
        ("n Int32", "n UUID", "48 NOT_IMPLEMENTED"),
        ("n Int32", "n Tuple(a Int32)", "53 TYPE_MISMATCH"),
        ("n Int32", "n BFloat16", "70 CANNOT_CONVERT_TYPE"),
    ],
)
async def test_a_type_that_is_not_converted_is_invalid(
    access: Access, columns: str, changed: str | None, code: str
):
    access.ask(table(columns))
    changes = [] if changed is None else ["DROP TABLE t", table(changed)]
    failed = await failing(access, N, 1, changes=changes)

    assert said(failed, access).startswith(f"'Code {code}'")
    assert (type(failed.value), failed.value.failure) == (BatchFailed, "invalid")


@promise(
    "clickhouse.output.fails.out_of_range",
    "clickhouse.output.fails.null",
    "clickhouse.output.fails.constraint",
)
@pytest.mark.parametrize(
    ("columns", "column", "value", "code"),
    [
        (
            "n Int64, s UInt64 DEFAULT length(range(n))",
            BIGINT,
            2_000_000_000,
            "69 ARGUMENT_OUT_OF_BOUND",
        ),
        ("n FixedString(2)", TEXT, "xxx", "131 TOO_LARGE_STRING_SIZE"),
        (
            "n Int64, s Decimal(9, 2) DEFAULT toDecimal32(n, 8)",
            BIGINT,
            10**15,
            "407 DECIMAL_OVERFLOW",
        ),
        ("n Int32", N, None, "349 CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN"),
        ("n Int32, CONSTRAINT small CHECK n < 5", N, 7, "469 VIOLATED_CONSTRAINT"),
        (
            "n Int32, s UInt8 DEFAULT throwIf(n > 5)",
            N,
            7,
            "395 FUNCTION_THROW_IF_VALUE_IS_NON_ZERO",
        ),
    ],
)
async def test_a_value_that_the_table_does_not_take_is_invalid(
    access: Access, columns: str, column: dict[str, str], value: Any, code: str
):
    access.ask(table(columns))
    failed = await failing(access, column, value)

    assert said(failed, access).startswith(f"'Code {code}'")
    assert (type(failed.value), failed.value.failure) == (BatchFailed, "invalid")


@promise("clickhouse.output.fails.too_many_partitions")
async def test_a_batch_for_too_many_partitions_is_invalid_and_no_overload(access: Access):
    access.ask(table("n Int32", "MergeTree ORDER BY n PARTITION BY n"))
    failed = await failing(access, N, *range(150))

    assert said(failed, access) == "'Code 252 TOO_MANY_PARTS'"
    assert (type(failed.value), failed.value.failure) == (BatchFailed, "invalid")


@promise("clickhouse.output.fails.misfit")
async def test_a_value_that_does_not_fit_its_column_is_invalid(access: Access):
    failed = await failing(access, N, 1, "x")

    assert str(failed.value) == "column 'n': expected an integer, found a string"
    assert (type(failed.value), failed.value.failure) == (BatchFailed, "invalid")
    assert access.rows("SELECT count() FROM t") == [[0]]


# What nobody knows


@promise("clickhouse.output.fails.cut_off")
async def test_an_answer_that_gets_lost_is_unclear(access: Access):
    async with Passage(access) as way, started(output("t", N), context(way.access)) as it:
        way.lose()
        with pytest.raises(Unreachable) as failed:
            await it.write([{"n": 1}])

    assert failed.value.failure == "unclear"
    assert access.rows("SELECT n FROM t") == [[1]]


@promise("clickhouse.output.fails.cut_off")
async def test_a_large_batch_that_breaks_off_on_its_way_is_unclear(access: Access):
    async with Passage(access) as way, started(output("t", TEXT), context(way.access)) as it:
        way.cut()
        with pytest.raises(Unreachable) as failed:
            await it.write([{"n": "x" * 8_000_000}] * 4)

    assert failed.value.failure == "unclear"


@promise("clickhouse.output.fails.cut_off")
async def test_an_insert_that_is_not_answered_in_time_is_unclear(tmp_path: Path):
    limits = Limits(insert_seconds=0.1)
    with ClickHouse(tmp_path) as it:
        async with started(output("t", N), context(it.access), limits) as sink:
            with it.halted(), pytest.raises(Unreachable) as failed:
                await sink.write([{"n": 1}])

    assert str(failed.value) == f"{it.address} does not answer within 0.1 s"
    assert failed.value.failure == "unclear"


async def test_a_batch_that_is_sent_once_more_in_vain_is_unclear(tmp_path: Path):
    with ClickHouse(tmp_path) as it:
        async with Passage(it.access) as way:
            made = output("t", N, deduplicate_token=True)
            async with started(made, context(way.access)) as sink:
                way.lose()
                way.close()
                with pytest.raises(Unreachable) as failed:
                    await sink.write([{"n": 1}])

        assert it.access.rows("SELECT n FROM t") == [[1]]
    assert failed.value.failure == "unclear"


# What no test brings the engine to


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        *(
            (code, "unavailable")
            for code in (75, 201, 202, 225, 236, 285, 286, 394, 425, 439, 745, 999)
        ),
        *((code, "misconfigured") for code in (192, 193, 194, 497, 516)),
        (319, "unclear"),
        (1_000, "invalid"),
        (4_711, "invalid"),
    ],
)
def test_an_exception_has_the_class_of_its_code_whatever_the_status(code: int, expected: str):
    for status in (400, 403, 500):
        assert answer(status, str(code), "").failure == expected
