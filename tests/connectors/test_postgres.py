"""What a `postgres` connection and output may say, and the statements that come of it."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.compiler.errors import BuildRefused
from headrace.connectors.postgres import PostgresConnection, PostgresOutput
from headrace.connectors.postgres.postgres_table import Declared, Index, PostgresTable
from tests.doubles import StubContext, refusals
from tests.postgres_sides import column, output

CONNECTION = {
    "host": "db.example.org",
    "database": "plant",
    "user": "headrace",
    "password": "${DB_PASSWORD}",
}
MANY = [f"c{n}" for n in range(1601)]
COLUMNS = [column("k", "text"), column("n", "integer")]


def refused(**options: Any) -> list[str]:
    """Return why an output is refused."""
    document = {"connection": "db", "table": "t", "columns": COLUMNS, **options}
    kept = {key: value for key, value in document.items() if value is not None}
    return refusals(PostgresOutput, kept)


def table(config: PostgresOutput) -> PostgresTable:
    """Return the table that an output is to find."""
    indexes = config.indexes
    columns = config.stored_columns()
    return PostgresTable(config.table, columns, config.primary_key, indexes, config.on_conflict)


@pytest.mark.parametrize(
    "host", ["db", "db.example.org", "192.0.2.7", "::1", "2001:db8::7", "fe80::1%eth0", "dB-1_x"]
)
def test_a_host_is_a_name_or_an_address(host):
    assert PostgresConnection.load(CONNECTION | {"host": host}).host == host


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("db.example.org:5433", "the port has a key of its own"),
        ("[::1]:5433", "the port has a key of its own"),
        ("[::1]", "hosts are not written so"),
        ("a,b", "hosts are not written so"),
        ("a b", "hosts are not written so"),
        ("user@db", "hosts are not written so"),
        ("postgresql://db", "it is a url"),
        ("/run/postgresql", "it is a path, and servers are reached over TCP"),
    ],
)
def test_what_is_no_host_is_refused(host, why):
    assert refusals(PostgresConnection, CONNECTION | {"host": host}) == [
        f'host: "{host}" is no host: {why}'
    ]


def test_a_connection_says_who_wants_where():
    assert refusals(
        PostgresConnection, {"host": " ", "database": "", "user": "a\0b", "port": 65536}
    ) == [
        "host: this must not be blank",
        "port: expected an integer of at least 0 and of at most 65535, found 65536",
        "database: this must not be blank",
        "user: a name on a server holds no NUL character",
        "password: this key is required",
    ]


def test_a_connection_is_echoed_with_its_reference():
    given = {"type": "postgres", **CONNECTION, "tls": True, "ca_file": "ca.pem"}
    document = {key: value for key, value in given.items() if key != "type"}

    assert PostgresConnection.load(document).dump() == given


def test_a_password_that_nothing_answers_refuses_the_build():
    filed = {"db": PostgresConnection.load(CONNECTION)}

    with pytest.raises(BuildRefused) as refusal:
        output("t").open(StubContext(connections=filed))

    assert refusal.value.fault.code == "unresolved-secret"


def test_the_password_is_not_shown_by_what_knows_it():
    ctx = StubContext(secrets={"DB_PASSWORD": "open-sesame"})

    assert "open-sesame" not in repr(PostgresConnection.load(CONNECTION).server(ctx))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"primary_key": ["x"]}, "primary_key[0]: there is no column 'x' among the mapped ones"),
        ({"primary_key": ["k", "k"]}, "primary_key[1]: the key names the column 'k' twice"),
        (
            {"indexes": [{"columns": ["K"]}]},
            "indexes[0].columns[0]: there is no column 'K' among the mapped ones",
        ),
        (
            {"indexes": [{"columns": []}]},
            "indexes[0].columns: expected a list of at least one column name, found an empty list",
        ),
        (
            {"columns": None, "primary_key": ["k"]},
            "primary_key: 'primary_key' needs 'columns': without them the whole message is stored",
        ),
        (
            {"columns": None, "indexes": [{"columns": ["k"]}]},
            "indexes: 'indexes' needs 'columns': without them the whole message is stored",
        ),
        (
            {"columns": None, "on_extra_fields": "error"},
            "on_extra_fields: 'on_extra_fields' needs 'columns': without them the whole message is"
            " stored",
        ),
        (
            {"indexes": [{"columns": ["k"]}, {"columns": ["n"]}, {"columns": ["k"]}]},
            "indexes[2]: the index would be called 't_k_idx', as indexes[0] is",
        ),
        (
            {"on_conflict": "update"},
            "on_conflict: 'update' needs a key that tells which row to write over",
        ),
        (
            {"on_conflict": "ignore", "indexes": [{"columns": ["k"]}]},
            "on_conflict: 'ignore' needs a key or a unique index: nothing else is there already",
        ),
        (
            {"on_conflict": "update", "primary_key": ["k"], "pool": 2},
            "pool: 'update' needs the order of the batches: over several connections it is lost",
        ),
        ({"pool": 0}, "pool: expected an integer of at least 1 and of at most 100, found 0"),
        (
            {"columns": [column(f"c{n}", "text") for n in range(1599)]},
            "columns: expected at most 1,598 columns, found 1,599",
        ),
        (
            {"columns": [column(name, "text") for name in ("id", *MANY[:1599])]},
            "columns: expected at most 1,599 columns, found 1,600",
        ),
        (
            {"columns": [column(name, "text") for name in MANY], "create_table": False},
            "columns: expected at most 1,600 columns, found 1,601",
        ),
        (
            {"columns": [column(name, "text") for name in MANY], "primary_key": ["c0"]},
            "columns: expected at most 1,600 columns, found 1,601",
        ),
        (
            {"table": "x" * 64},
            "table: a name of 64 characters: PostgreSQL cuts that of a table to 63",
        ),
        (
            {"table": f"{'s' * 70}.t"},
            "table: a name of 70 characters: PostgreSQL cuts that of a schema to 63",
        ),
        (
            {"columns": [column("c" * 64, "text")]},
            "columns[0].name: a name of 64 characters: PostgreSQL cuts that of a column to 63",
        ),
        (
            {"table": "pg_temp.x"},
            "table: 'pg_temp' is a schema of PostgreSQL's own: its tables are not for rows to keep",
        ),
        (
            {"table": "pg_toast.x"},
            "table: 'pg_toast' is a schema of PostgreSQL's own: its tables are not for rows to keep",
        ),
    ],
)
def test_what_cannot_be_is_refused(options, said):
    assert refused(**options) == [said]


@pytest.mark.parametrize(
    "options",
    [
        {"on_conflict": "ignore", "primary_key": ["k"], "pool": 4},
        {"on_conflict": "ignore", "indexes": [{"columns": ["k"], "unique": True}]},
        {"on_conflict": "ignore", "create_table": False},
        {"on_conflict": "ignore", "create_table": False, "columns": None},
        {"indexes": [{"columns": ["k"]}, {"columns": ["k"], "unique": True}]},
        {"table": f"{'s' * 63}.{'t' * 63}", "columns": [column("c" * 63, "text")]},
        {"table": "PG_TEMP.x"},
        {"columns": [column(name, "text") for name in MANY[:1600]], "create_table": False},
    ],
)
def test_what_can_be_is_taken(options):
    assert refused(**options) == []


def test_indexes_whose_cut_names_are_the_same_are_refused():
    long, table = "x" * 60, "readings"
    columns = [column(f"{long}{n}", "text") for n in range(2)]
    indexes = [{"columns": [each["name"]]} for each in columns]

    name = f"{table}_{long}"[:63]
    assert refused(table=table, columns=columns, indexes=indexes) == [
        f"indexes[1]: the index would be called '{name}', as indexes[0] is"
    ]


def test_keys_of_a_table_that_is_not_created_are_remarked_on():
    config = output(
        "t", COLUMNS, create_table=False, primary_key=["k"], indexes=[{"columns": ["n"]}]
    )
    writing = output("t", COLUMNS, create_table=False, primary_key=["k"], on_conflict="update")

    assert [key.path for key in config.unapplied()] == [("primary_key",), ("indexes", 0, "columns")]
    assert [*writing.unapplied()] == []


def test_the_key_of_a_table_has_no_null():
    config = output(
        "t", [column("k", "text", on_missing="skip_row"), COLUMNS[1]], primary_key=["k", "n"]
    )

    assert [(each.is_nullable, each.on_missing) for each in config.stored_columns()] == [
        (False, "skip_row"),
        (False, "error"),
    ]


def test_the_statements_of_a_table():
    made = table(
        output(
            "plant.Readings",
            [*COLUMNS, column("at", "timestamp")],
            primary_key=["k", "at"],
            indexes=[{"columns": ["at", "n"], "unique": True}],
            on_conflict="update",
        )
    )

    assert made.creation() == (
        'CREATE TABLE IF NOT EXISTS "plant"."Readings" ("k" TEXT NOT NULL, "n" INTEGER,'
        ' "at" TIMESTAMPTZ NOT NULL, PRIMARY KEY ("k", "at"))'
    )
    assert made.index_creations() == {
        "Readings_at_n_key": 'CREATE UNIQUE INDEX IF NOT EXISTS "Readings_at_n_key"'
        ' ON "plant"."Readings" ("at", "n")'
    }
    assert made.insertion({"k": Declared("short", "character varying(3)")}) == (
        'INSERT INTO "plant"."Readings" ("k", "n", "at") SELECT "k", "n", "at" FROM'
        ' (SELECT DISTINCT ON ("k"::character varying(3), "at"::TIMESTAMPTZ) * FROM'
        " unnest($1::TEXT::TEXT[], $2::TEXT::INTEGER[], $3::TEXT::TIMESTAMPTZ[])"
        ' WITH ORDINALITY AS batch ("k", "n", "at", "#")'
        ' ORDER BY "k"::character varying(3), "at"::TIMESTAMPTZ, "#" DESC) AS latest ORDER BY "#"'
        ' ON CONFLICT ("k", "at") DO UPDATE SET "n" = EXCLUDED."n"'
    )


def test_the_name_of_an_index_is_that_of_its_table_and_columns():
    assert Index(columns=("a", "b"), unique=False).name("plant.readings") == "readings_a_b_idx"
    assert Index(columns=("a",), unique=True).name("readings") == "readings_a_key"
    assert Index(columns=("a" * 63,), unique=True).name("t") == "t_" + "a" * 61
