"""What PostgreSQL fails with, and of which class that is: every row of the table, by its cause there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import asyncpg
import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.delivery import LARGE_BATCH
from headrace.compiler.errors import BatchFailed, Unreachable
from headrace.connectors.postgres.connection import Limits
from headrace.connectors.postgres.sink import KeyIsThere, PostgresSink
from tests.connected import started
from tests.doubles import StubContext
from tests.postgres_relay import Relay, relayed
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
from tests.promises import promise
from tests.services.postgres import Postgres

COLUMNS = [column("k", "text"), column("n", "integer")]
ROW = {"k": "a", "n": 1}


async def failed(it: PostgresSink, *messages: Any) -> BatchFailed:
    """Return what a batch fails with; which of its messages are at fault no server tells."""
    with pytest.raises(BatchFailed) as failure:
        await it.write([*messages])
    assert (failure.value.done, failure.value.refused) == ((), {})
    return failure.value


@dataclass
class Writer:
    """A user of a database who may write into one table, and one session of whom is told apart."""

    ctx: StubContext
    table: str
    user: str

    def say(self, statement: str) -> str:
        """Return a statement about the table and the user."""
        return statement.format(table=self.table, user=self.user)


async def writer(server: Postgres) -> Writer:
    """Return a new user, with a new table: its key, a number, and a trigger that does nothing yet."""
    table, user = unused("classed"), unused("classed_user")
    await done(
        server,
        f"create table {table} (k text constraint {table}_key primary key, n integer)",
        f"create role {user} login password 'open-sesame'",
        f"grant insert, select, update on {table} to {user}",
        f"create schema of_{table}",
        f"grant usage on schema of_{table} to {user}",
        f"create function of_{table}.seen(n integer) returns integer language sql return n",
        f"create function {table}_look() returns trigger language plpgsql as $$ begin return new; end $$",
        f"create trigger look before insert on {table} for each row execute function {table}_look()",
    )
    return Writer(context(server, pipeline=user, connection={"user": user}), table, user)


def looks(body: str) -> str:
    """Return the statement with which a function looks at each row."""
    return (
        "create or replace function {table}_look() returns trigger language plpgsql as"
        f" $$ begin {body}; return new; end $$"
    )


@promise(
    "postgres.output.fails.no_right",
    "postgres.output.fails.undefined_table",
    "postgres.output.fails.undefined_column",
    "postgres.output.fails.column_type",
    "postgres.output.fails.altered_table",
)
@pytest.mark.parametrize(
    ("on_conflict", "statement", "code"),
    [
        ("error", "revoke insert on {table} from {user}", "42501"),
        ("update", "revoke update on {table} from {user}", "42501"),
        ("error", "drop table {table}", "42P01"),
        ("error", "alter table {table} rename to of_{table}_no_more", "42P01"),
        (
            "error",
            looks("new.n := of_{table}.seen(new.n)") + "; drop schema of_{table} cascade",
            "3F000",
        ),
        ("error", "alter table {table} drop column n", "42703"),
        ("error", "alter table {table} rename column n to m", "42703"),
        ("error", "alter table {table} alter column n type date using null", "42804"),
        ("update", "alter table {table} drop constraint {table}_key", "42P10"),
        (
            "error",
            "alter table {table} drop column n;"
            " alter table {table} add column n integer generated always as (7) stored",
            "428C9",
        ),
        (
            "error",
            "drop table {table}; create view {table} as select 'a'::text as k, 1 as n;"
            " grant insert on {table} to {user}",
            "55000",
        ),
        ("error", "drop table {table}; create type {table} as (k text, n integer)", "42809"),
    ],
)
async def test_what_somebody_has_changed_somebody_has_to_mend(
    postgres: Postgres, on_conflict: str, statement: str, code: str
):
    who = await writer(postgres)
    options = {} if on_conflict == "error" else {"primary_key": ["k"], "on_conflict": on_conflict}

    async with started(sink(who.ctx, who.table, COLUMNS, create_table=False, **options)) as it:
        await it.write([ROW])
        await done(postgres, who.say(statement))
        failure = await failed(it, {"k": "b", "n": 2})

    assert (failure.failure, type(failure)) == ("misconfigured", BatchFailed)
    assert f"(SQLSTATE {code})" in str(failure)


@promise("postgres.output.fails.sign_in")
@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("alter role {user} password 'abracadabra'", "password authentication failed"),
        ("alter role {user} nologin", "is not permitted to log in"),
        ("alter role {user} valid until '2001-01-01'", "password authentication failed"),
        ("alter role {user} rename to former_{user}", "password authentication failed"),
    ],
)
async def test_who_is_not_let_in_any_more_needs_somebody(
    postgres: Postgres, statement: str, said: str
):
    who = await writer(postgres)

    async with started(sink(who.ctx, who.table, COLUMNS, create_table=False)) as it:
        await done(postgres, who.say(statement))
        await it.write([ROW])  # in the session that is there
        await cut_off(postgres, who.user)
        failure = await failed(it, {"k": "b", "n": 2})

    assert (failure.failure, type(failure)) == ("misconfigured", Unreachable)
    assert said in str(failure)


@promise("postgres.output.fails.no_database", "postgres.output.fails.no_right")
@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("alter database {database} rename to former_{database}", "does not exist"),
        ("revoke connect on database {database} from public", "permission denied for database"),
        (
            "alter database {database} allow_connections false",
            "not currently accepting connections",
        ),
    ],
)
async def test_a_database_that_is_not_there_for_us_any_more_needs_somebody(
    postgres: Postgres, statement: str, said: str
):
    database, user = unused("database"), unused("stranger")
    await done(
        postgres,
        f"create database {database}",
        f"create role {user} login password 'open-sesame'",
        f"alter database {database} owner to {user}",
    )
    ctx = context(postgres, pipeline=user, connection={"user": user, "database": database})

    async with started(sink(ctx, "t", COLUMNS)) as it:
        await it.write([ROW])
        await cut_off(postgres, user)
        owned = f"alter database {database} owner to {postgres.user}"
        await done(postgres, owned, statement.format(database=database))
        failure = await failed(it, ROW)

    assert (failure.failure, type(failure)) == ("misconfigured", Unreachable)
    assert said in str(failure)


@promise(
    "postgres.output.fails.lock",
    "postgres.output.fails.statement_timeout",
)
@pytest.mark.parametrize(
    ("limits", "setting", "code"),
    [
        (Limits(), "lock_timeout = '50ms'", "55P03"),
        (Limits(statement_seconds=0.05), "lock_timeout = 0", "57014"),
        (Limits(), "statement_timeout = '50ms'", "57014"),
    ],
)
async def test_somebody_who_holds_a_lock_lets_go_of_it_in_time(
    postgres: Postgres, limits: Limits, setting: str, code: str
):
    who = await writer(postgres)
    await done(postgres, who.say(f"alter role {{user}} set {setting}"))
    made = sink(who.ctx, who.table, COLUMNS, limits=limits, create_table=False)

    async with started(made) as it, operator(postgres) as client:
        async with client.transaction():
            await client.execute(f"lock table {who.table}")
            failure = await failed(it, ROW)
        await it.write([ROW])

    assert (failure.failure, type(failure)) == ("unavailable", BatchFailed)
    assert failure.is_answered is (code == "57014")
    assert f"(SQLSTATE {code})" in str(failure)


@promise("postgres.output.fails.statement_timeout")
async def test_a_statement_that_somebody_cancels_may_be_tried_again(postgres: Postgres):
    who = await writer(postgres)
    ours = f"from pg_stat_activity where application_name = 'headrace-{who.user}'"

    async with (
        started(sink(who.ctx, who.table, COLUMNS, create_table=False)) as it,
        operator(postgres) as client,
        client.transaction(),
    ):
        await client.execute(f"lock table {who.table}")
        failing = asyncio.ensure_future(failed(it, ROW))
        await until(postgres, f"select count(*) {ours} and wait_event_type = 'Lock'")
        await done(postgres, f"select pg_cancel_backend(pid) {ours}")
        failure = await failing

    assert failure.failure == "unavailable"
    assert "canceling statement due to user request (SQLSTATE 57014)" in str(failure)


@promise("postgres.output.fails.read_only")
async def test_a_server_that_only_reads_may_write_again(postgres: Postgres):
    who = await writer(postgres)

    async with started(sink(who.ctx, who.table, COLUMNS, create_table=False)) as it:
        await done(postgres, f"alter role {who.user} set default_transaction_read_only = on")
        await cut_off(postgres, who.user)
        failure = await failed(it, ROW)
        await done(postgres, f"alter role {who.user} reset default_transaction_read_only")
        await it.write([ROW])

    assert (failure.failure, type(failure)) == ("unavailable", BatchFailed)
    assert "(SQLSTATE 25006)" in str(failure)


@promise("postgres.output.fails.resources")
async def test_a_server_without_room_for_a_session_may_have_some_later(postgres: Postgres):
    who = await writer(postgres)

    async with started(sink(who.ctx, who.table, COLUMNS, create_table=False)) as it:
        await done(postgres, f"alter role {who.user} connection limit 0")
        await cut_off(postgres, who.user)
        failure = await failed(it, ROW)

    assert (failure.failure, type(failure)) == ("unavailable", Unreachable)
    assert not failure.is_answered
    assert "too many connections for role" in str(failure)


@promise("postgres.output.fails.resources")
async def test_a_server_without_room_for_a_batch_may_have_some_later(postgres: Postgres):
    who = await writer(postgres)
    await done(
        postgres,
        f"alter role {who.user} set work_mem = '64kB'",
        f"alter role {who.user} set temp_file_limit = '1MB'",
        who.say(looks("perform x from generate_series(1, 300000) as x order by -x")),
    )

    async with started(sink(who.ctx, who.table, COLUMNS, create_table=False)) as it:
        failure = await failed(it, ROW)
        await done(postgres, f"alter role {who.user} reset temp_file_limit")
        await cut_off(postgres, who.user)
        await it.write([ROW])

    assert (failure.failure, type(failure)) == ("unavailable", BatchFailed)
    assert failure.is_answered
    assert "(SQLSTATE 53400)" in str(failure)


class Between(Clock):
    """Has somebody do something where others wait."""

    def __init__(self, something: Callable[[], Awaitable[None]]) -> None:
        super().__init__(asyncio.get_running_loop())
        self._something = something

    async def sleep(self, seconds: float) -> None:
        await self._something()


class Rival:
    """Somebody who is in the way of a batch of two rows, ever again."""

    def __init__(self, client: asyncpg.Connection, table: str) -> None:
        self._client, self.table = client, table
        self.is_there = asyncio.Event()
        self._turn = asyncio.Lock()

    async def come(self) -> None:
        """Have a row that the batch wants as well."""
        async with self._turn:
            await self._client.execute(f"rollback; begin; {self.first()}")
        self.is_there.set()

    async def go(self) -> None:
        """Have the batch lose."""
        self.is_there.clear()
        async with self._turn:
            await self._client.execute(self.last())

    def first(self) -> str:
        return f"insert into {self.table} values ('b', 0)"

    def last(self) -> str:
        return f"insert into {self.table} values ('a', 0)"  # waits for who waits for us


class Faster(Rival):
    """Somebody who changes the rows that the batch is to change, and is done first."""

    def first(self) -> str:
        return f"update {self.table} set n = n + 1"

    def last(self) -> str:
        return "commit"


@promise("postgres.output.fails.rolled_back")
@pytest.mark.parametrize(
    ("kind", "code"),
    [pytest.param(Rival, "40P01", marks=pytest.mark.long), (Faster, "40001")],
    ids=["deadlock", "serialization"],
)
async def test_who_loses_to_others_three_times_may_win_later(
    postgres: Postgres, kind: type[Rival], code: str
):
    who = await writer(postgres)
    isolation = "set default_transaction_isolation = 'repeatable read'"
    await done(postgres, f"alter role {who.user} {isolation}")
    waits = (
        "select count(*) from pg_stat_activity"
        f" where application_name = 'headrace-{who.user}' and wait_event_type = 'Lock'"
    )
    options = {"primary_key": ["k"], "on_conflict": "update", "create_table": False}
    batch = [ROW, {"k": "b", "n": 2}]

    async with (
        operator(postgres) as client,
        started(sink(who.ctx, who.table, COLUMNS, **options)) as it,
    ):
        await client.execute("set deadlock_timeout = '1h'")  # so it is ours that notices and loses
        if kind is Faster:
            await it.write(batch)
        rival = kind(client, who.table)
        who.ctx.clock = Between(rival.come)
        await rival.come()
        failing = asyncio.ensure_future(failed(it, *batch))
        for _ in range(3):
            await rival.is_there.wait()
            await until(postgres, waits)
            await rival.go()
        failure = await failing
        await client.execute("rollback")
        await it.write(batch)

    assert (failure.failure, type(failure)) == ("unavailable", BatchFailed)
    assert f"(SQLSTATE {code})" in str(failure)


@promise(
    "postgres.output.fails.value",
    "postgres.output.fails.constraint",
    "postgres.output.fails.limit",
    "postgres.output.fails.raised",
)
@pytest.mark.parametrize(
    ("statement", "bad", "code"),
    [
        ("alter table {table} alter column n type smallint", {"n": 40_000}, "22003"),
        ("alter table {table} alter column k type varchar(2)", {"k": "abc"}, "22001"),
        ("alter table {table} alter column n set not null", {"n": None}, "23502"),
        ("alter table {table} add check (n < 9)", {"n": 9}, "23514"),
        ("select 1", {"k": "a"}, "23505"),
        (
            "create table {table}_known (n integer primary key);"
            " insert into {table}_known values (1);"
            " alter table {table} add foreign key (n) references {table}_known",
            {},
            "23503",
        ),
        (
            "select 1",
            {"k": "".join(chr(0x4E00 + n * 7919 % 20_000) for n in range(4000))},
            "54000",
        ),
        (looks("raise 'not %', new.n"), {}, "P0001"),
        (looks("raise 'of its own' using errcode = 'WRONG'"), {}, "WRONG"),
    ],
)
async def test_what_a_server_has_against_a_value_is_about_the_content(
    postgres: Postgres, statement: str, bad: dict[str, Any], code: str
):
    who = await writer(postgres)

    async with started(sink(who.ctx, who.table, COLUMNS, create_table=False)) as it:
        await it.write([ROW])
        await done(postgres, who.say(statement))
        failure = await failed(it, {"k": "b", "n": 2} | bad)

    assert (failure.failure, type(failure)) == ("invalid", BatchFailed)
    assert f"(SQLSTATE {code})" in str(failure)


@promise("postgres.output.fails.misfit")
async def test_values_that_do_not_fit_are_known_by_message_before_anything_is_sent(
    postgres: Postgres,
):
    who = await writer(postgres)
    columns = [column("k", "text", on_missing="skip_row"), column("n", "integer")]
    good = [{"k": f"k{n}", "n": n} for n in range(LARGE_BATCH)]
    bad = [{"n": "left out"}, {"k": "x", "n": "7"}, {"k": "y"}, {"k": "z", "n": 1 << 31}]

    async with started(sink(who.ctx, who.table, columns, create_table=False)) as it:
        await done(postgres, f"drop table {who.table}")
        for batch, at in ((bad, 0), ([*good, *bad], LARGE_BATCH)):
            with pytest.raises(BatchFailed) as failure:
                await it.write(batch)
            assert failure.value.failure == "invalid"
            assert failure.value.refused == {
                at + 1: "column 'n': expected an integer, found a string",
                at + 3: "column 'n': expected an integer of 32 bits, found a larger one",
            }


@promise("postgres.output.fails.connection")
async def test_who_does_not_answer_is_away_and_nothing_was_sent(postgres: Postgres):
    async with relayed(postgres) as relay:
        who = await over(relay, postgres)
        async with started(sink(who.ctx, who.table, COLUMNS, create_table=False)) as it:
            await it.write([ROW])
            relay.is_away = True
            relay.cut()
            await until_closed(postgres, who)
            failure = await failed(it, {"k": "b", "n": 2})

    assert (failure.failure, type(failure)) == ("unavailable", Unreachable)
    assert str(failure).endswith(f":{relay.port} closed the connection")


@promise("postgres.output.fails.cut_off")
@pytest.mark.parametrize("is_back", [False, True])
async def test_of_what_was_cut_off_without_a_word_nobody_knows(postgres: Postgres, is_back: bool):
    async with relayed(postgres) as relay:
        who = await over(relay, postgres)
        async with started(sink(who.ctx, who.table, COLUMNS, create_table=False)) as it:
            await it.write([ROW])
            relay.is_mute = True
            batch = [{"k": "b", "n": 2}]
            failing = asyncio.ensure_future(it.write(batch))
            await until(postgres, f"select count(*) = 2 from {who.table}")
            relay.is_mute, relay.is_away = False, not is_back
            relay.cut()
            with pytest.raises(BatchFailed) as cut_off:
                await failing
            failure = cut_off.value
            relay.is_away = False
            again = await failed(it, {"k": "b", "n": 2})
            await it.write(batch)  # tried again: the key that is there is its own
            await it.write([{"k": "c", "n": 3}])

    assert failure.failure == "unclear"
    if is_back:
        assert (type(failure), type(again)) == (KeyIsThere, BatchFailed)
        assert "(SQLSTATE 23505)" in str(failure)
    else:
        assert type(failure) is Unreachable
    assert again.failure == "invalid"
    assert await found(postgres, f"select k from {who.table} order by k") == ["a", "b", "c"]


async def over(relay: Relay, server: Postgres) -> Writer:
    """Return a new user who comes over a relay."""
    who = await writer(server)
    connection = {"user": who.user, "host": server.host, "port": relay.port}
    who.ctx = context(server, pipeline=who.user, connection=connection)
    return who


async def until_closed(server: Postgres, who: Writer) -> None:
    """Return when the sessions of a user are over."""
    ours = f"from pg_stat_activity where application_name = 'headrace-{who.user}'"
    await until(server, f"select count(*) = 0 {ours}")
