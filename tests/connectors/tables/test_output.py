"""Tables: their columns and keys, what is refused, what is remarked on, and what is written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headrace.compiler.config.program import load_program
from headrace.compiler.dottedpaths import DottedPath
from headrace.compiler.errors import BatchFailed
from headrace.compiler.jsontext import decode_exact
from headrace.connectors.clickhouse.native import native_type
from headrace.connectors.postgres.postgres_table import KINDS
from headrace.connectors.tables.columns import CELLS
from headrace.connectors.tables.output import TableOutput
from headrace.connectors.tables.rows import StoredColumn
from tests.compiler.catalogued import written
from tests.doubles import StubContext, refusals
from tests.shelves import CATALOGUE, Shelf, columns, diagnosed, diagnostics_of, shelf


def refused(**options):
    return refusals(Shelf, {"table": "t", **options})


def stored(*each, **options):
    return shelf(columns=list(each), **options).stored_columns()


# Names


@pytest.mark.parametrize("table", ["t", "_t", "T9", "plant.readings", "P_1._2"])
def test_a_table_is_one_name_or_two(table):
    assert refusals(Shelf, {"table": table}) == []


@pytest.mark.parametrize(
    "table",
    ["", " t", "9t", "a.b.c", ".a", "a.", "a-b", 'a"b', "größe", "t\n", "t ", "${T}", "a b"],
)
def test_a_table_of_another_form_is_refused(table):
    [text] = refusals(Shelf, {"table": table})

    assert text.startswith('table: "')
    assert text.endswith('" cannot be the name of a table')


def test_what_a_table_can_be_called_is_told():
    [diagnostic] = diagnostics_of("{type: shelf, table: plant.line-1}")

    assert (diagnostic.code, diagnostic.message, diagnostic.expected) == (
        "not-an-identifier",
        '"plant.line-1" cannot be the name of a table',
        "one name, or two joined by a dot, of letters, digits and underscores, no digit first",
    )


def test_an_echo_of_a_table_leaves_out_that_extra_fields_are_ignored():
    document = {"type": "shelf", "table": "t", "columns": columns("a"), "create_table": True}
    said = {"columns": columns("a"), "create_table": True}

    assert shelf(**said, on_extra_fields="ignore").dump() == document
    assert shelf(**said, on_extra_fields="error").dump() == {
        **document,
        "on_extra_fields": "error",
    }


# Columns and keys


def test_a_column_is_there_once():
    assert refused(columns=columns("a", "b", "A", "a", "a")) == [
        "columns[3].name: the column 'a' is columns[0] already",
        "columns[4].name: the column 'a' is columns[0] already",
    ]


def test_there_are_at_most_as_many_columns_as_the_database_takes():
    assert refused(columns=columns(*"abcdefgh")) == []
    assert refused(columns=columns(*"abcdefghi")) == [
        "columns: expected at most 8 columns, found 9"
    ]


def test_what_names_columns_needs_them():
    assert refused(
        sorted_by=["a", "a"],
        marks=[{"columns": ["a"]}, {"columns": ["b"]}],
        on_extra_fields="error",
    ) == [
        "sorted_by: 'sorted_by' needs 'columns': without them the whole message is stored",
        "marks: 'marks' needs 'columns': without them the whole message is stored",
        "on_extra_fields: 'on_extra_fields' needs 'columns': without them the whole message is stored",
    ]
    assert refused(on_extra_fields="error", columns=[]) == [
        "on_extra_fields: 'on_extra_fields' needs 'columns': without them the whole message is stored"
    ]


def test_a_key_without_columns_is_none():
    assert refused(sorted_by=[], marks=[], columns=[]) == []


@pytest.mark.parametrize("option", ["sorted_by", "marks", "columns"])
def test_a_list_is_not_null(option):
    [text] = refused(**{option: None})

    assert text.startswith(f"{option}: expected a list of ")
    assert text.endswith(", found null")


def test_keys_and_indexes_name_mapped_columns():
    assert refused(
        columns=columns("machine", "at"),
        sorted_by=["at", "machin", "Machine"],
        marks=[{"columns": ["at"]}, {"columns": ["at", "temp"]}],
    ) == [
        "sorted_by[1]: there is no column 'machin' among the mapped ones",
        "sorted_by[2]: there is no column 'Machine' among the mapped ones",
        "marks[1].columns[1]: there is no column 'temp' among the mapped ones",
    ]


def test_what_a_key_may_mean_is_told():
    [diagnostic] = diagnostics_of(
        "{type: shelf, table: t, columns: [{name: machine, type: text}], sorted_by: [machin]}"
    )

    assert (diagnostic.code, diagnostic.found, diagnostic.expected, diagnostic.suggestion) == (
        "unknown-column",
        "machin",
        "one of machine",
        "did you mean 'machine'?",
    )


def test_a_key_names_a_column_once_and_an_index_may_repeat_one():
    assert refused(
        columns=columns("a", "b"), sorted_by=["a", "b", "a"], marks=[{"columns": ["a", "a"]}]
    ) == ["sorted_by[2]: the key names the column 'a' twice"]


def test_an_index_has_columns():
    assert refused(columns=columns("a"), marks=[{"columns": []}]) == [
        "marks[0].columns: expected a list of at least one column name, found an empty list"
    ]


def test_no_more_faults_are_told_than_anybody_reads():
    class Wide(TableOutput, kind="wide"):
        """Takes many."""

    document = {"table": "t", "columns": columns(*["a"] * 300)}

    assert len(refusals(Wide, document)) == 100


# What is written


def test_a_column_is_written_as_it_says():
    assert stored(
        {"name": "machine", "type": "text", "field": "_meta.subject"},
        {"name": "n", "type": "integer", "nullable": False},
        {"name": "temp", "type": "float", "nullable": False, "on_missing": "skip_row"},
        {"name": "day", "type": "date", "on_missing": "error"},
        {"name": "raw", "type": "json", "message": True},
    ) == (
        StoredColumn("machine", "text", DottedPath("_meta.subject"), True, "null"),
        StoredColumn("n", "integer", DottedPath("n"), False, "error"),
        StoredColumn("temp", "float", DottedPath("temp"), False, "skip_row"),
        StoredColumn("day", "date", DottedPath("day"), True, "error"),
        StoredColumn("raw", "json", None, True, "null"),
    )


@pytest.mark.parametrize("said", [{}, {"columns": []}])
def test_without_columns_the_message_is_the_payload(said):
    assert shelf(**said).stored_columns() == (
        StoredColumn("payload", "json", None, False, "error"),
    )


def test_key_columns_are_not_null_and_those_of_indexes_may_be():
    made = stored(
        *columns("a", "b", "c"),
        *columns("d", on_missing="skip_row"),
        sorted_by=["a", "d"],
        marks=[{"columns": ["b"]}],
    )

    assert [(each.name, each.is_nullable, each.on_missing) for each in made] == [
        ("a", False, "error"),
        ("b", True, "null"),
        ("c", True, "null"),
        ("d", False, "skip_row"),
    ]


def test_keys_of_a_table_that_is_not_created_change_nothing():
    [made] = stored(*columns("a"), sorted_by=["a"], create_table=False)

    assert made == StoredColumn("a", "text", DottedPath("a"), True, "null")


def test_keys_of_a_table_that_is_not_created_are_remarked_on():
    table = "type: shelf, table: t, columns: [{name: a, type: text}], create_table: false"

    assert diagnosed(f"{{{table}, sorted_by: [a]}}") == [
        "6:86: pipelines[0].outputs[0].sorted_by: warning: 'sorted_by' does nothing: 'create_table' is"
        " false"
    ]
    assert diagnosed(
        f"{{{table}, marks: [{{columns: [a]}}, {{columns: [a]}}], sorted_by: [a]}}"
    ) == [
        "6:127: pipelines[0].outputs[0].sorted_by: warning: 'sorted_by' and 'marks' do nothing:"
        " 'create_table' is false"
    ]
    assert diagnosed(f"{{{table}}}") == []


def test_rows_are_made_as_the_output_says():
    made = shelf(columns=columns("a"), on_extra_fields="error").rows(StubContext())

    assert made([{"a": "x"}, {}]) == [["x", None]]
    with pytest.raises(BatchFailed):
        made([{"a": "x", "b": 1}])


def test_digits_are_kept_for_a_column_of_decimals_alone():
    assert shelf(columns=[{"name": "a", "type": "decimal"}]).keeps_digits()
    assert not shelf(columns=[{"name": "a", "type": "json", "message": True}]).keeps_digits()
    assert not shelf().keeps_digits()


# What is known of the fields before it


MAPPED = "{type: map, keep: mapped, mappings: [{type: copy, from: temp}]}"


def test_a_column_whose_field_nobody_hands_on_is_remarked_on():
    table = (
        "{type: shelf, table: t, columns: [{name: temp, type: float}, {name: temq, type: float}]}"
    )

    assert diagnosed(table, MAPPED) == [
        "8:75: pipelines[0].outputs[0]: warning: reads 'temq', which transforms[0] (map, line 6) does"
        " not hand on"
    ]


@pytest.mark.parametrize("policy", ["null", "error", "skip_row"])
def test_it_is_whatever_the_policy_is(policy):
    column = f"{{name: a, type: text, field: x.y, on_missing: {policy}}}"

    assert diagnosed(f"{{type: shelf, table: t, columns: [{column}]}}", MAPPED) == [
        "8:70: pipelines[0].outputs[0]: warning: reads 'x.y', which transforms[0] (map, line 6) does"
        " not hand on"
    ]


def test_a_field_is_remarked_on_beside_a_whole_message():
    raw = "{name: raw, type: json, message: true}"

    assert diagnosed(f"{{type: shelf, table: t, columns: [{raw}]}}", MAPPED) == []
    assert diagnosed(
        f"{{type: shelf, table: t, columns: [{raw}, {{name: b, type: text}}]}}", MAPPED
    ) == [
        "8:88: pipelines[0].outputs[0]: warning: reads 'b', which transforms[0] (map, line 6) does not"
        " hand on"
    ]


def test_a_whole_message_is_whatever_is_there():
    assert diagnosed("{type: shelf, table: t}", MAPPED) == []


# The page


PAGE = (Path(__file__).parent.parent.parent.parent / "docs" / "concepts" / "columns.md").read_text()
CODE = re.compile(r"`([^`]+)`")


def typed():
    """Return the table of types: by type, what is taken, what is not, and what databases call it."""
    rows = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| `")]
    return {
        CODE.fullmatch(row[0])[1]: [CODE.findall(cell) for cell in row[1:]] for row in rows[:10]
    }


def test_the_page_shows_a_config_that_loads():
    [text] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)

    program, diagnostics = load_program(written(text), CATALOGUE)

    assert diagnostics == []
    [output] = program.pipelines[0].outputs
    assert {each.name: each.on_missing for each in output.stored_columns()} == {
        "machine": "error",
        "at": "error",
        "temp": "skip_row",
        "price": "null",
        "raw": "null",
    }


def test_the_page_lists_the_types():
    assert [*typed()] == [*CELLS]


@pytest.mark.parametrize("type_", CELLS)
def test_the_page_tells_what_is_taken_and_what_is_not(type_):
    taken, refused, in_postgres, in_clickhouse = typed()[type_]

    assert taken
    for text in taken:
        made(type_, text)
    for text in refused:
        with pytest.raises(BatchFailed):
            made(type_, text)
    assert native_type(StoredColumn("a", type_, None, is_nullable=False)) == in_clickhouse[0]
    assert KINDS[type_] == in_postgres[0]


def made(type_, text):
    rows = shelf(columns=[{"name": "a", "type": type_}]).rows(StubContext())
    return rows([{"a": decode_exact(text.encode())}])


def test_keys_of_a_table_that_is_not_created_are_told_by_the_diagnostic_alone():
    ctx = StubContext()

    shelf(columns=columns("a"), sorted_by=["a"], create_table=False).rows(ctx)

    assert ctx.warnings == []
