"""The tables of the `postgres` output, as a real server describes them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headrace.compiler.errors import BuildRefused, Unreachable
from tests.connected import started
from tests.postgres_sides import column, context, done, found, operator, sink, until, unused
from tests.services.postgres import Postgres

ALL = [
    column("a", "text"),
    column("b", "integer", nullable=False),
    column("c", "bigint"),
    column("d", "float"),
    column("e", "decimal"),
    column("f", "boolean"),
    column("g", "timestamp"),
    column("h", "date"),
    column("i", "uuid"),
    column("j", "json"),
]

ID = ("id", "bigint", "NO")
RECEIVED_AT = ("received_at", "timestamp with time zone", "NO")


async def made(server: Postgres, table: str, *positional: Any, **options: Any) -> str:
    """Have an output make its table."""
    async with started(sink(server, table, *positional, **options)):
        return table


async def described(server: Postgres, table: str) -> list[tuple[str, str, str]]:
    """Return the columns of a table: name, type, whether it takes null."""
    return await found(
        server,
        "select column_name, data_type, is_nullable from information_schema.columns"
        f" where table_name = '{table}' order by ordinal_position",
    )


async def indexed(server: Postgres, table: str) -> list[str]:
    """Return what creates the indexes of a table, that of its key among them."""
    query = f"select indexdef from pg_indexes where tablename = '{table}' order by indexname"
    return [
        each.partition(" INDEX ")[0] + each.partition(" INDEX")[2]
        for each in await found(server, query)
    ]


async def test_a_table_for_whole_messages(postgres: Postgres):
    table = await made(postgres, unused())

    assert await described(postgres, table) == [ID, RECEIVED_AT, ("payload", "jsonb", "NO")]
    assert await indexed(postgres, table) == [
        f"CREATE UNIQUE {table}_pkey ON public.{table} USING btree (id)"
    ]


async def test_a_table_of_columns_has_an_id_and_a_time_of_its_own(postgres: Postgres):
    table = await made(postgres, unused(), ALL)

    assert await described(postgres, table) == [
        ID,
        RECEIVED_AT,
        ("a", "text", "YES"),
        ("b", "integer", "NO"),
        ("c", "bigint", "YES"),
        ("d", "double precision", "YES"),
        ("e", "numeric", "YES"),
        ("f", "boolean", "YES"),
        ("g", "timestamp with time zone", "YES"),
        ("h", "date", "YES"),
        ("i", "uuid", "YES"),
        ("j", "jsonb", "YES"),
    ]


@pytest.mark.parametrize(
    ("name", "left"), [("id", [RECEIVED_AT]), ("received_at", [ID]), ("ID", [ID, RECEIVED_AT])]
)
async def test_a_mapped_column_stands_in_for_one_that_would_be_there(postgres, name, left):
    table = await made(postgres, unused(), [column(name, "text")])

    assert await described(postgres, table) == [*left, (name, "text", "YES")]


async def test_a_table_with_a_key_has_its_columns_only(postgres: Postgres):
    table = await made(postgres, unused(), ALL[:3], primary_key=["c", "a"])

    assert await described(postgres, table) == [
        ("a", "text", "NO"),
        ("b", "integer", "NO"),
        ("c", "bigint", "NO"),
    ]
    assert await indexed(postgres, table) == [
        f"CREATE UNIQUE {table}_pkey ON public.{table} USING btree (c, a)"
    ]


async def test_indexes_are_named_after_their_columns(postgres: Postgres):
    indexes = [{"columns": ["a", "b"]}, {"columns": ["b"], "unique": True}]
    table = await made(postgres, unused(), ALL, primary_key=["a"], indexes=indexes)

    assert await indexed(postgres, table) == [
        f"CREATE {table}_a_b_idx ON public.{table} USING btree (a, b)",
        f"CREATE UNIQUE {table}_b_key ON public.{table} USING btree (b)",
        f"CREATE UNIQUE {table}_pkey ON public.{table} USING btree (a)",
    ]


async def test_the_name_of_an_index_is_cut(postgres: Postgres):
    name = "c" * 60
    table = await made(postgres, unused(), [column(name, "text")], indexes=[{"columns": [name]}])
    again = await made(postgres, table, [column(name, "text")], indexes=[{"columns": [name]}])

    cut = f"{again}_{name}_idx"[:63]
    assert await found(
        postgres, f"select indexname from pg_indexes where tablename = '{table}' order by 1"
    ) == sorted([cut, f"{table}_pkey"])


async def test_a_table_is_made_in_its_schema(postgres: Postgres):
    schema, indexes = unused("schema"), [{"columns": ["a"]}]
    await done(postgres, f"create schema {schema}")

    await made(postgres, f"{schema}.readings", ALL, indexes=indexes)
    await made(postgres, f"{schema}.readings", ALL, indexes=indexes)

    assert await found(
        postgres, f"select indexname from pg_indexes where schemaname = '{schema}' order by 1"
    ) == ["readings_a_idx", "readings_pkey"]


async def test_a_table_that_is_there_is_left_as_it_is(postgres: Postgres):
    table, missing = unused(), [{"columns": ["a"]}]
    await done(postgres, f"create table {table} (a varchar(9), mine text)")

    await made(postgres, table, [column("a", "text", nullable=False)], indexes=missing)

    assert await described(postgres, table) == [
        ("a", "character varying", "YES"),
        ("mine", "text", "YES"),
    ]
    assert await indexed(postgres, table) == [
        f"CREATE {table}_a_idx ON public.{table} USING btree (a)"
    ]


async def test_a_user_without_the_right_to_create_writes_to_what_is_there(postgres: Postgres):
    table, user = unused(), unused("writer")
    indexes = [{"columns": ["a"], "unique": True}]
    await made(postgres, table, [column("a", "text")], indexes=indexes)
    await done(
        postgres,
        f"create role {user} login password 'open-sesame'",
        f"grant insert on {table} to {user}",
        f"grant usage on sequence {table}_id_seq to {user}",
    )
    ctx = context(postgres, connection={"user": user})

    async with started(sink(ctx, table, [column("a", "text")], indexes=indexes)) as it:
        await it.write([{"a": "x"}])

    assert await found(postgres, f"select a from {table}") == ["x"]


async def test_several_outputs_make_one_table_at_once(postgres: Postgres):
    table, indexes = unused(), [{"columns": ["a"]}, {"columns": ["b"]}]
    makers = [sink(postgres, table, ALL, indexes=indexes) for _ in range(8)]

    await asyncio.gather(*(maker.start() for maker in makers))
    await asyncio.gather(*(maker.write([{"b": n}]) for n, maker in enumerate(makers)))
    await asyncio.gather(*(maker.finish() for maker in makers))

    assert sorted(await found(postgres, f"select b from {table}")) == [*range(8)]


async def refusal(server: Postgres, table: str, *positional: Any, **options: Any) -> str:
    """Return with which words an output to a table is refused, after its path."""
    with pytest.raises(BuildRefused) as refused:
        await sink(server, table, *positional, **options).start()
    assert refused.value.fault.code == "turned-away"
    path = ".".join(map(str, refused.value.fault.path))
    return f"{path}: {str(refused.value).removeprefix(f'{server.address} says ')}"


async def test_a_table_that_is_not_there_refuses_the_build(postgres: Postgres):
    table = unused()

    said = await refusal(postgres, table, create_table=False)

    assert said == f"""table: 'relation "{table}" does not exist'"""


async def test_a_schema_that_is_not_there_refuses_the_build(postgres: Postgres):
    assert await refusal(postgres, "nowhere.t") == """table: 'schema "nowhere" does not exist'"""


@pytest.mark.parametrize("creates", [True, False])
@pytest.mark.parametrize(
    ("definition", "columns", "said"),
    [
        (
            "a text",
            [column("b", "text")],
            'column "b" of relation "{table}" does not exist',
        ),
        (
            "a integer",
            [column("a", "text")],
            'column "a" is of type integer but expression is of type text',
        ),
        (
            "a integer generated always as (1) stored",
            [column("a", "integer")],
            'cannot insert a non-DEFAULT value into column "a"',
        ),
    ],
)
async def test_a_column_that_takes_no_such_values_refuses_the_build(
    postgres, creates, definition, columns, said
):
    table = unused()
    await done(postgres, f"create table {table} ({definition})")

    found_to_say = await refusal(postgres, table, columns, create_table=creates)

    assert found_to_say == f"table: '{said.format(table=table)}'"


async def test_a_right_that_is_missing_refuses_the_build(postgres: Postgres):
    table, user = unused(), unused("reader")
    await made(postgres, table)
    await done(
        postgres,
        f"create role {user} login password 'open-sesame'",
        f"grant select on {table} to {user}",
    )

    with pytest.raises(BuildRefused) as refused:
        await sink(context(postgres, connection={"user": user}), table).start()

    assert str(refused.value) == f"{postgres.address} says 'permission denied for table {table}'"


async def test_a_right_to_create_that_is_missing_refuses_the_build(postgres: Postgres):
    user = unused("stranger")
    await done(postgres, f"create role {user} login password 'open-sesame'")

    with pytest.raises(BuildRefused) as refused:
        await sink(context(postgres, connection={"user": user}), unused()).start()

    assert str(refused.value) == f"{postgres.address} says 'permission denied for schema public'"


async def test_a_refused_index_leaves_no_table_behind(postgres: Postgres):
    table, wide = unused(), [column(f"c{n}", "integer") for n in range(40)]
    indexes = [{"columns": [each["name"] for each in wide]}]

    said = await refusal(postgres, table, wide, indexes=indexes)

    assert said == "table: 'cannot use more than 32 columns in an index'"
    assert await described(postgres, table) == []


async def test_rows_that_are_not_unique_refuse_a_unique_index(postgres: Postgres):
    table = unused()
    await done(postgres, f"create table {table} as select 'x' as a from generate_series(1, 2)")

    said = await refusal(
        postgres, table, [column("a", "text")], indexes=[{"columns": ["a"], "unique": True}]
    )

    assert said == f"""table: 'could not create unique index "{table}_a_key"'"""


async def test_an_index_whose_name_is_taken_refuses_the_build(postgres: Postgres):
    table = unused()
    await done(postgres, f"create table {table}_a_idx ()")

    said = await refusal(postgres, table, [column("a", "text")], indexes=[{"columns": ["a"]}])

    assert said == (
        f"indexes.0: the index would be called '{table}_a_idx', and so is something else in its schema"
    )


async def test_no_key_to_tell_conflicts_by_refuses_the_build(postgres: Postgres):
    table, columns = unused(), [column("a", "text"), column("b", "text")]
    await made(postgres, table, columns)

    said = await refusal(postgres, table, columns, primary_key=["a"], on_conflict="update")

    assert said == (
        "table: 'there is no unique or exclusion constraint matching the ON CONFLICT specification'"
    )


@pytest.mark.long
async def test_a_table_may_have_as_many_columns_as_the_server_takes(postgres: Postgres):
    columns = [column(f"c{n}", "integer") for n in range(1600)]

    table = await made(postgres, unused(), columns[:1598])
    keyed = await made(postgres, unused(), columns, primary_key=["c0"])

    assert [len(await described(postgres, each)) for each in (table, keyed)] == [1600, 1600]


async def test_what_is_only_asked_inserts_nothing_and_calls_no_trigger(postgres: Postgres):
    table = unused()
    await done(
        postgres,
        f"create table {table} (payload jsonb)",
        f"create table {table}_seen ()",
        f"create function {table}_note() returns trigger language plpgsql as"
        f" $$ begin insert into {table}_seen default values; return null; end $$",
        f"create trigger note after insert on {table} execute function {table}_note()",
    )

    await made(postgres, table)

    assert await found(postgres, f"select count(*) from {table}_seen") == [0]


async def test_a_start_that_is_given_up_leaves_no_connection(postgres: Postgres):
    table, ctx = unused(), context(postgres, pipeline="given-up")
    ours = "from pg_stat_activity where application_name = 'headrace-given-up'"
    await made(postgres, table, [column("a", "text")])

    async with operator(postgres) as client:
        async with client.transaction():
            await client.execute(f"lock table {table}")
            it = sink(ctx, table, [column("a", "text")], indexes=[{"columns": ["a"]}])
            starting = asyncio.ensure_future(it.start())
            await until(postgres, f"select count(*) {ours} and wait_event_type = 'Lock'")
            starting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await starting
        await until(postgres, f"select count(*) = 0 {ours}")
        await it.start()
        await it.finish()


async def test_a_server_that_stands_by_refuses_to_create(tmp_path):
    with Postgres(tmp_path, extra=["default_transaction_read_only = on"]) as server:
        said = await refusal(server, "t")

    assert said == "table: 'cannot execute CREATE TABLE in a read-only transaction'"


@pytest.mark.long
async def test_a_server_that_goes_while_the_table_is_made_is_tried_again(tmp_path):
    with Postgres(tmp_path) as server:
        await made(server, "t", [column("a", "text")])
        async with operator(server) as client:
            await client.execute("begin; lock table t")
            it = sink(server, "t", [column("a", "text")], indexes=[{"columns": ["a"]}])
            starting = asyncio.ensure_future(it.start())
            await until(server, "select 1 from pg_stat_activity where wait_event_type = 'Lock'")
            await asyncio.to_thread(server.kill)
            with pytest.raises(Unreachable) as failed:
                await starting
        await asyncio.to_thread(server.start)
        await it.start()
        await it.finish()

    assert str(failed.value) == f"{server.address} closed the connection"
