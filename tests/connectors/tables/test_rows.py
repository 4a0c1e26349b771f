"""Rows: what becomes of fields that are missing or too many, and what a batch fails with."""

from __future__ import annotations

import asyncio
import gc
import linecache
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from headrace.compiler import jsontext
from headrace.compiler.dottedpaths import DottedPath
from headrace.compiler.errors import BatchFailed
from headrace.compiler.largejson import SLICE_MESSAGES
from headrace.connectors.tables import cells
from headrace.connectors.tables.cells import Bound
from headrace.connectors.tables.columns import CELLS
from headrace.connectors.tables.rows import Rows, StoredColumn
from tests.doubles import StubContext, TickingClock
from tests.promises import promise
from tests.virtual import virtual

OBJECTS = [{}, {"temp": None}]
NO_OBJECTS = [None, 7, 7.5, True, "temp", ["temp"], []]


def column(name, type_="text", field=None, on_missing="null", **options):
    return StoredColumn(name, type_, DottedPath(field or name), on_missing=on_missing, **options)


def whole(name="raw"):
    return StoredColumn(name, "json", None)


def rows(*columns, ctx=None, refuses_extra=False, cells=CELLS):
    return Rows(columns, cells, ctx or StubContext(), refuses_extra=refuses_extra)


def failure(made, batch):
    """Return why a batch fails."""
    with pytest.raises(BatchFailed) as failed:
        made(batch)
    assert failed.value.__cause__ is None, "a cause would put the value into the log"
    return str(failed.value)


def is_usual(made, batch):
    """Return whether a batch goes the usual way, which then has to come to the same."""
    try:
        usual = made.usually(batch)
    except Exception:
        return False
    assert usual == made.plainly(batch)
    return True


# What is read


def test_a_batch_becomes_one_list_per_column_in_their_order():
    made = rows(column("n", "integer"), column("temp", "float"), whole())
    batch = [{"temp": 20.5, "n": 1}, {"n": 2, "temp": 21}]

    assert made(batch) == [[1, 2], [20.5, 21.0], [b'{"temp":20.5,"n":1}', b'{"n":2,"temp":21}']]
    assert is_usual(made, batch)


def test_the_batch_is_left_as_it_was():
    batch = [{"temp": 20.5}, {}, {"temp": 1}]
    made = rows(column("temp", "float", on_missing="skip_row"))

    assert made(batch) == [[20.5, 1.0]]
    assert batch == [{"temp": 20.5}, {}, {"temp": 1}]


@pytest.mark.parametrize(
    ("message", "value"),
    [
        ({"a.b": "literal", "a": {"b": "inner"}}, "literal"),
        ({"a": {"b": "inner"}}, "inner"),
        ({"a.b": None, "a": {"b": "inner"}}, None),
        ({"a": {"b.c": "deep"}}, None),
        ({"a": {}}, None),
        ({"a": None}, None),
        ({"a": 0}, None),
        ({"a": ""}, None),
        ({"a": []}, None),
        ({"a": "b"}, None),
        ({"a": ["b"]}, None),
        ({"a": 1}, None),
        ({}, None),
    ],
)
def test_a_path_is_a_literal_key_or_leads_down_through_objects(message, value):
    made = rows(column("x", field="a.b"))

    assert made([message]) == [[value]]
    assert made([message, {"a": {"b": "y"}}]) == [[value, "y"]]


def test_a_batch_of_both_sorts_goes_the_usual_way():
    made = rows(column("x", field="a.b"))

    assert is_usual(made, [{"a.b": "literal"}, {"a": {"b": "inner"}}])
    assert is_usual(made, [{"a.b": "literal"}, {"a": {"b": "inner"}}, {}, {"a": None}])


def test_names_are_taken_as_they_are_in_what_is_generated():
    odd = "it's \"} \n {m}\\"

    assert rows(column("x", field=odd))([{odd: "there"}, {}]) == [["there", None]]


@pytest.mark.long
def test_generated_reads_are_forgotten_with_their_output():
    def entries():
        return [
            file for file in linecache.cache if file.startswith("<headrace p1 outputs[0] column")
        ]

    made = rows(column("a"), column("b"))
    assert len(entries()) == 2

    del made
    gc.collect()
    assert entries() == []


# What is missing


@pytest.mark.parametrize("message", OBJECTS + NO_OBJECTS)
def test_null_is_written_for_what_is_missing(message):
    made = rows(column("temp", "float"))

    assert made([message]) == [[None]]
    assert made([{"temp": 1}, message, {"temp": 2}]) == [[1.0, None, 2.0]]


@pytest.mark.parametrize("message", OBJECTS + NO_OBJECTS)
def test_a_batch_fails_for_what_is_missing(message):
    made = rows(column("t", "float", "temp", "error"))

    assert failure(made, [{"temp": 1}, message]) == (
        "column 't': the field 'temp' is missing or null"
    )


@pytest.mark.parametrize("message", OBJECTS + NO_OBJECTS)
def test_a_row_is_left_out_for_what_is_missing(message):
    made = rows(column("temp", "float", on_missing="skip_row"), column("n", "integer"))

    assert made([{"temp": 1, "n": 1}, message, {"temp": 2, "n": 2}]) == [[1.0, 2.0], [1, 2]]
    assert made([message]) == [[], []]


@promise("delivery.failed.row")
def test_a_row_that_is_left_out_is_not_looked_at_any_further():
    made = rows(
        column("n", "integer"),
        column("m", "integer", on_missing="error"),
        column("temp", "float", on_missing="skip_row"),
        refuses_extra=True,
    )

    assert made([{"n": "no integer", "else": 1}, {"n": 1, "m": 2, "temp": 3}]) == [[1], [2], [3.0]]


def test_columns_that_skip_have_to_agree_on_a_row():
    made = rows(column("a", on_missing="skip_row"), column("b", on_missing="skip_row"))
    batch = [{"a": "1"}, {"a": "2", "b": "2"}, {"b": "3"}]

    assert made(batch) == [["2"], ["2"]]
    assert is_usual(made, batch)


def test_sparse_fields_are_usual():
    made = rows(
        *(column(type_, type_) for type_ in CELLS),
        column("skipping", on_missing="skip_row"),
    )
    batch = [
        {"skipping": "", "decimal": 1.5, "date": "2026-03-01"},
        {"skipping": "", "text": "a", "json": [None], "float": 1, "timestamp": 0, "integer": 7},
        {"text": "left out"},
        {"skipping": "", "uuid": "123e4567-e89b-12d3-a456-426614174000", "boolean": False},
    ]

    assert is_usual(made, batch)
    assert made(batch)[4] == [Decimal("1.5"), None, None]


@pytest.mark.parametrize("policy", ["null", "error", "skip_row"])
@pytest.mark.parametrize("message", [*OBJECTS, *NO_OBJECTS])
def test_a_whole_message_is_never_missing(message, policy):
    made = rows(StoredColumn("raw", "json", None, is_nullable=False, on_missing=policy))

    assert made([message]) == [[jsontext.encode(message)]]
    assert is_usual(made, [message, {"a": 1}])


# What is too many


def test_extra_fields_are_ignored():
    assert rows(column("a"))([{"a": "x", "b": 1}]) == [["x"]]


EXTRA = "a message has a field that no column takes, and 'on_extra_fields' is error"


@pytest.mark.parametrize(
    "message",
    [
        {"a": "x", "d": 1},
        {"a": "x", "d": None},
        {"b": {"c": 1}, "c": 1},
        {"b.d": 1},
        {"": 1},
    ],
)
def test_a_field_that_no_column_takes_fails_the_batch(message):
    made = rows(column("a"), column("x", "json", "b.c"), refuses_extra=True)

    assert failure(made, [{"a": "x"}, message]) == EXTRA


@pytest.mark.parametrize(
    "message", [{}, {"a": "x"}, {"b": {"c": 1, "d": 2}}, {"b.c": 1}, {"b": 1}, *NO_OBJECTS]
)
def test_a_column_takes_the_first_key_of_its_path_and_the_whole_of_it(message):
    made = rows(column("a"), column("x", "json", "b.c"), refuses_extra=True)

    assert len(made([message])[0]) == 1


def test_a_whole_message_takes_all_fields():
    assert rows(whole(), column("a"), refuses_extra=True)([{"b": 1}]) == [[b'{"b":1}'], [None]]


def test_objects_without_extra_fields_are_usual():
    made = rows(column("a"), column("b", "integer"), refuses_extra=True)

    assert is_usual(made, [{"a": "x"}, {"b": 1}, {}])
    assert not is_usual(made, [["a"], "b"])  # whose items only look like keys


# What a failure says


def test_a_failure_names_the_column_and_the_rule_and_not_the_value():
    made = rows(column("temp", "float", "reading.temp"))

    assert failure(made, [{"reading": {"temp": "21.5 C"}}]) == (
        "column 'temp': expected a number, found a string"
    )


def test_the_first_message_and_in_it_the_first_column_decides():
    made = rows(column("a", "integer"), column("b", "integer"))

    assert failure(made, [{"a": 1, "b": "x"}, {"a": True}]) == (
        "column 'b': expected an integer, found a string"
    )
    assert failure(made, [{"b": "x", "a": True}]) == (
        "column 'a': expected an integer, found a boolean"
    )


def test_the_value_is_logged_the_first_time():
    ctx = StubContext()
    made = rows(column("temp", "float"), ctx=ctx, refuses_extra=True)

    for value in ("warm", "hot", True, "cold", False):
        failure(made, [{"temp": value}])
    failure(made, [{"temp": 1, "unit": "C"}])
    failure(made, [{"temp": 1, "colour": "red"}])

    assert ctx.warnings == [
        "column 'temp': expected a number, found a string; it is \"warm\" (told this once)",
        "column 'temp': expected a number, found a boolean; it is true (told this once)",
        EXTRA + '; it is "unit" (told this once)',
    ]


@pytest.mark.parametrize(
    ("type_", "value", "told"),
    [
        ("integer", "x" * 10_000, '"' + "x" * 56 + "..."),
        ("integer", {"a": ["\n\x00\ud800"]}, r'{"a":["\n\u0000\ud800"]}'),
        ("integer", 10**5000, "a number"),
        ("decimal", jsontext.decode_exact(b"1e-20000"), "1e-20000"),
        ("decimal", float("nan"), "NaN"),
    ],
    ids=["long", "odd", "endless", "written", "nan"],
)
def test_what_is_logged_is_short_and_on_one_line(type_, value, told):
    ctx = StubContext()

    failure(rows(column("a", type_), ctx=ctx), [{"a": value}])

    [warning] = ctx.warnings
    assert warning.endswith(f"; it is {told} (told this once)")


def refusals(made, batch):
    """Return what is said of each message that does not fit."""
    with pytest.raises(BatchFailed) as failed:
        made(batch)
    assert (failed.value.failure, failed.value.done) == ("invalid", ())
    assert str(failed.value) == next(iter(failed.value.refused.values()))
    return failed.value.refused


def test_every_message_that_does_not_fit_is_named_by_its_place():
    ctx = StubContext()
    made = rows(
        column("n", "integer"),
        column("m", on_missing="error"),
        column("gone", on_missing="skip_row"),
        ctx=ctx,
        refuses_extra=True,
    )
    fits = {"n": 1, "m": "x", "gone": ""}
    left_out = [{}, {"n": "no integer"}, {"else": 1}]

    assert refusals(
        made,
        [
            *left_out,
            *(fits, fits | {"n": "x"}, {"n": "x"}, fits | {"m": None, "n": 2}, fits),
            *(fits | {"n": True, "m": None}, fits | {"else": 1}, "m", fits | {"n": "y"}),
        ],
    ) == {
        4: "column 'n': expected an integer, found a string",
        6: "column 'm': the field 'm' is missing or null",
        8: "column 'n': expected an integer, found a boolean",
        9: EXTRA,
        11: "column 'n': expected an integer, found a string",
    }
    # Of the first alone what was found is told.
    assert ctx.warnings == [
        "column 'n': expected an integer, found a string; it is \"x\" (told this once)"
    ]


def test_those_that_do_not_fit_are_found_wherever_they_are():
    made = rows(column("n", "integer"))
    at_fault = {0, 1, SLICE_MESSAGES, 5 * SLICE_MESSAGES - 1, 5 * SLICE_MESSAGES, 1999}

    found = refusals(made, [{"n": "x" if n in at_fault else n} for n in range(2000)])

    assert [*found] == sorted(at_fault)


def test_a_fault_that_nobody_foresaw_hides_none_that_somebody_did():
    def read(value):
        if value == 13:
            raise ZeroDivisionError
        return value

    odd = replace(CELLS["integer"], read=read, usual=lambda values, kinds: [*map(read, values)])
    made = rows(column("n", "integer"), cells={**CELLS, "integer": odd})

    assert [*refusals(made, [{"n": n} for n in (1, "x", 13, 2, "y")])] == [1, 4]
    with pytest.raises(ZeroDivisionError):
        made([{"n": 1}, {"n": 13}, {"n": "x"}])


def test_what_is_missing_says_all_there_is_to_say():
    ctx = StubContext()

    failure(rows(column("a", on_missing="error"), ctx=ctx), [{}])

    assert ctx.warnings == []


def test_a_database_brings_its_own_cells():
    made = rows(column("a"), cells={**CELLS, "text": cells.text(nul=False)})

    assert failure(made, [{"a": "\0"}]) == (
        "column 'a': expected a string, found one with a NUL character"
    )


def test_a_column_that_is_not_usual_leaves_the_others_so():
    made = rows(column("at", "timestamp"), column("n", "integer"))
    batch = [{"at": "2026-03-01T08:00:00+0100", "n": 1}, {"n": 2}, {"at": 0, "n": 3}]

    assert is_usual(made, batch)
    assert made(batch)[0] == [
        datetime(2026, 3, 1, 7, tzinfo=UTC),
        None,
        datetime(1970, 1, 1, tzinfo=UTC),
    ]


def test_a_table_that_is_there_may_take_less():
    made = rows(column("n", "integer"), column("temp", "float"))
    assert made([{"n": 9}]) == [[9], [None]]

    made.bound({"n": Bound(lambda values: max(values) < 9, "a digit", "more")})

    assert is_usual(made, [{"n": 8, "temp": 1.5}, {"temp": 2.5}])
    assert failure(made, [{"n": 8}, {"n": 9}]) == "column 'n': expected a digit, found more"
    assert failure(made, [{"n": "8"}]) == "column 'n': expected an integer, found a string"


# Large batches


@virtual
async def test_a_large_batch_becomes_the_same_columns():
    made = rows(column("n", "integer", on_missing="skip_row"), column("temp", "float"), whole())
    batch = [{"n": n, "temp": [None, 20.5, 21][n % 3]} if n % 7 else {} for n in range(9000)]

    assert await made.of_large(batch) == made(batch)
    assert await made.of_large([{}] * 9000) == [[], [], []]


@virtual
async def test_a_large_batch_fails_with_its_first_fault_and_names_them_all():
    ctx = StubContext(clock=TickingClock())
    made = rows(
        column("n", "integer"),
        column("temp", "float"),
        column("gone", on_missing="skip_row"),
        ctx=ctx,
    )
    some = [{"n": 1, "gone": "x"}, {"n": "left out"}] * 2500
    batch = [
        *some,
        {"temp": "x", "gone": ""},
        {"n": "x", "gone": ""},
        *some,
        {"n": True, "gone": ""},
    ]

    with pytest.raises(BatchFailed) as failed:
        await made.of_large(batch)

    assert str(failed.value) == failure(made, batch)
    assert failed.value.refused == {
        5000: "column 'temp': expected a number, found a string",
        5001: "column 'n': expected an integer, found a string",
        10_002: "column 'n': expected an integer, found a boolean",
    }
    assert failed.value.refused == refusals(made, batch)
    assert len(ctx.warnings) == 1


@virtual
async def test_others_have_their_turns_while_it_is_looked_for_those_that_do_not_fit():
    made = rows(column("n", "integer"), ctx=StubContext(clock=TickingClock()))
    turns = 0

    async def take_turns():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    others = asyncio.ensure_future(take_turns())
    for batch in ([{"n": "x"}] * 2000, [{"n": "x"}] * 5000):
        turns = 0
        with pytest.raises(BatchFailed) as failed:
            await made.of(batch)
        assert len(failed.value.refused) == len(batch)
        assert turns > len(batch) / SLICE_MESSAGES / 10
    others.cancel()


@virtual
async def test_a_batch_of_any_size_becomes_the_same_columns():
    made = rows(column("n", "integer", on_missing="skip_row"), whole())

    for batch in ([{"n": 1}, {}], [{"n": 1}, {}, "n", [1]], [{"n": 1}, {}] * 3000):
        assert await made.of(batch) == made(batch)
