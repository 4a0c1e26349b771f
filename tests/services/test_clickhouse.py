"""The ClickHouse of the tests, asked by a plain client and by the client library.

The engine is real, the HTTP front is ours.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import clickhouse_connect
import pytest

from tests.services.authority import Authority
from tests.services.clickhouse import VARIABLE, Access, ClickHouse, Refusal

WRONG = (
    "Code: 516. DB::Exception: writer: Authentication failed: password is incorrect, or there is no"
    " user with such name.\n\nIf you use ClickHouse Cloud, the password can be reset on the settings"
    " page. (AUTHENTICATION_FAILED) (version 26.5.1.1 (official build))\n"
)


@pytest.mark.long
@pytest.mark.usefixtures("front_of_ours")
def test_a_row_survives_a_killed_server(tmp_path: Path) -> None:
    with ClickHouse(tmp_path) as server:
        server.access.ask("CREATE TABLE kept (n Int32) ENGINE = MergeTree ORDER BY n")
        server.access.ask("INSERT INTO kept FORMAT JSONCompactEachRow", b"[1]")

        server.kill()
        server.restart()

        assert server.access.rows("SELECT n FROM kept") == [[1]]


@pytest.mark.long
@pytest.mark.usefixtures("front_of_ours")
def test_whoever_knows_the_password_gets_in(tmp_path: Path) -> None:
    with ClickHouse(tmp_path, user="writer", password="open-sesame") as server:
        assert server.access.ask("SELECT 1") == b"1\n"
        with pytest.raises(Refusal) as refused:
            Access(server.url, "writer", "wrong", "default").ask("SELECT 1")

    assert str(refused.value) == WRONG


@pytest.mark.long
@pytest.mark.usefixtures("front_of_ours")
def test_tls_is_for_whoever_trusts_the_authority(authority: Authority, tmp_path: Path) -> None:
    with ClickHouse(tmp_path, tls=authority) as server:
        assert server.access.ask("SELECT 1") == b"1\n"
        with pytest.raises(ConnectionError):
            Access(server.url.replace("https", "http"), "default", "", "default").ask("SELECT 1")


def test_the_engine_says_what_is_wrong(clickhouse: Access) -> None:
    with pytest.raises(Refusal, match=r"^Code: 81\. DB::Exception: .*\(UNKNOWN_DATABASE\)"):
        Access(clickhouse.url, clickhouse.user, clickhouse.password, "nowhere").ask("SELECT 1")


@pytest.mark.parametrize("compress", [False, True])
async def test_the_client_library_inserts_and_reads(clickhouse: Access, compress: bool) -> None:
    clickhouse.ask("CREATE OR REPLACE TABLE library (n Int32, s String) ENGINE = Memory")
    host, _, port = clickhouse.where.partition(":")
    client = await clickhouse_connect.get_async_client(
        host=host,
        port=int(port),
        username=clickhouse.user,
        password=clickhouse.password,
        database=clickhouse.database,
        compress=compress,
    )
    try:
        await client.insert("library", [[1, "a"], [2, "b"]], ["n", "s"])
        found = await client.query("SELECT n, s FROM library ORDER BY n")
    finally:
        await client.close()
        await asyncio.to_thread(clickhouse.ask, "DROP TABLE library")

    assert found.result_rows == [(1, "a"), (2, "b")]


def test_the_environment_may_name_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "https://us%40er:pa%3Ass@host:8443/plant")
    assert Access.given() == Access("https://host:8443", "us@er", "pa:ss", "plant")

    monkeypatch.setenv(VARIABLE, "http://host:8123")
    assert Access.given() == Access("http://host:8123", "default", "", "default")

    monkeypatch.delenv(VARIABLE)
    assert Access.given() is None
