"""Rows of adversarial batches: as an obvious reference has them, and the same in either way.

Values are drawn together with what should become of them, so the reference looks nothing up: it knows.
"""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler import jsontext
from headrace.compiler.dottedpaths import DottedPath
from headrace.compiler.errors import BatchFailed
from headrace.connectors.tables import cells, moments
from headrace.connectors.tables.columns import CELLS
from headrace.connectors.tables.rows import Rows, StoredColumn
from tests.doubles import StubContext
from tests.examples import examples

REFUSED, MISSING = object(), object()
"""What becomes of a value that does not fit, and of a field that is not there."""

DATABASES = {
    "widest": CELLS,
    "narrow": {
        **CELLS,
        "text": cells.text(nul=False),
        "json": cells.json(nul=False),
        "decimal": cells.decimal(before=5, after=2),
        "timestamp": moments.timestamp("1900-01-01", "2299-12-31"),
        "date": moments.date("1900-01-01", "2299-12-31"),
    },
}
FIRST, LAST = datetime(1900, 1, 1, tzinfo=UTC), datetime(2300, 1, 1, tzinfo=UTC)

# Strings. Surrogates are drawn on purpose: no decoder lets them in, but arithmetic on strings might.

CHARACTERS = st.characters(codec=None)
TEXTS = st.text(CHARACTERS, max_size=8) | st.sampled_from(["\0", "a\0", "\ud800", "\udc00\ud800"])


def is_whole(text: str) -> bool:
    return not any("\ud800" <= each <= "\udfff" for each in text)


def text_of(value: Any, narrow: bool) -> Any:
    fits = is_whole(value) and not (narrow and "\0" in value)
    return value if fits else REFUSED


# Numbers, with as many digits as anybody writes

INTEGERS = st.integers() | st.sampled_from(
    [
        sign * (2**bits) + by
        for bits in (31, 32, 63, 64, 1024)
        for sign in (1, -1)
        for by in (-1, 0, 1)
    ]
)
DIGITS = st.from_regex(r"\A-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?\Z")
EXPONENTS = st.sampled_from(
    ["1e-20000", "0e20000", "-0e-5", "1.10", "1e3", "99999.99", "1e-1000000"]
)
DOUBLES = st.floats() | st.sampled_from([1.0, -0.0, 12.5, 1e-5, 5e-324, 1.7976931348623157e308])


def written(text: str) -> Any:
    """Return a number as a pipeline that keeps digits decodes it; one too large for it as 1.5."""
    try:
        return jsontext.decode_exact(text.encode())
    except jsontext.NotJson:
        return 1.5


NUMBERS = INTEGERS | DOUBLES | (DIGITS | EXPONENTS).map(written)


def integer_of(bits: int, value: Any) -> Any:
    fits = type(value) is int and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)
    return value if fits else REFUSED


def float_of(value: Any) -> Any:
    try:
        return float(value) if math.isfinite(value) else REFUSED
    except OverflowError:
        return REFUSED


def decimal_of(value: Any, narrow: bool) -> Any:
    if type(value) is float and not math.isfinite(value):
        return REFUSED
    number = Decimal(getattr(value, "text", None) or str(value))
    before, after = (5, 2) if narrow else (131_072, 16_383)
    if number == 0:
        return number
    _sign, digits, exponent = number.as_tuple()
    while digits[-1] == 0 and exponent < 0:  # zeros at the end may be cut off
        digits, exponent = digits[:-1], exponent + 1
    fits = -exponent <= after and len(digits) + exponent <= before
    return number if fits else REFUSED


# Moments

OFFSETS = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(timezones=st.just(UTC) | OFFSETS)
SPELLINGS = st.sampled_from(
    [
        datetime.isoformat,
        str,
        lambda moment: moment.isoformat().replace("+00:00", "Z"),
        lambda moment: moment.isoformat().replace("+00:00", "z").replace("T", "t"),
        lambda moment: moment.isoformat().replace(".", ","),
        lambda moment: moment.isoformat(timespec="microseconds").replace("+", "789+"),
    ]
)
NO_MOMENTS = st.sampled_from(
    [
        "2026-W09-7",
        "20260301",
        "2026-060",
        "2026-02-29T00:00:00Z",
        "2026-03-01T08:00:00+01:60",
        "24:00",
        "now",
        "2026-03-01T08",
        "2026-03-01T08:00:00.Z",
        "0000-01-01T00:00:00Z",
        "2026-03-01T24:01:00Z",
    ]
)
SECONDS = st.floats(-9e9, 9e9) | st.integers(-9_000_000_000, 9_000_000_000)
NO_SECONDS = st.sampled_from([math.nan, math.inf, 9_000_000_001, 1.7e12, -1e300, 10**400])


def moment_of(moment: datetime, narrow: bool) -> Any:
    begin = FIRST if narrow else datetime.min.replace(tzinfo=UTC)
    end = LAST if narrow else datetime.max.replace(tzinfo=UTC)
    return (
        moment if begin <= moment and (moment < end or (moment == end and not narrow)) else REFUSED
    )


def seconds_of(value: float, narrow: bool) -> Any:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=value)
    return moment_of(moment, narrow)


DATES = st.dates()
NO_DATES = st.sampled_from(
    ["2026-02-29", "20260301", "2026-W09-7", "2026-3-1", "0000-01-01", "2026-03-01T00:00Z"]
)
UUIDS = st.uuids().flatmap(lambda each: st.sampled_from([str(each), str(each).upper()]))
NO_UUIDS = st.uuids().flatmap(
    lambda each: st.sampled_from(
        [each.hex, f"{{{each}}}", f"{each}\n{each}", f"{each}\n", str(each)[1:]]
    )
)

# Any value, for a column that it does not belong to

SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
ANY = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


def is_written(value: Any, narrow: bool) -> bool:
    """Return whether a value can be written as JSON, and be taken by the database."""
    if isinstance(value, str):
        return text_of(value, narrow) is not REFUSED
    if isinstance(value, dict):
        return all(is_written(each, narrow) for pair in value.items() for each in pair)
    return not isinstance(value, list) or all(is_written(each, narrow) for each in value)


class Document:
    """JSON text that is equal to other text of the same value."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: Any) -> bool:
        return json.loads(other) == json.loads(
            json.dumps(self.value), parse_constant=lambda _: None
        )


def becomes(type_: str, value: Any, narrow: bool) -> Any:
    """Return what becomes of a value of which nothing is known but its type."""
    if type_ == "json":
        return Document(value) if is_written(value, narrow) else REFUSED
    if type(value) is bool:
        return value if type_ == "boolean" else REFUSED
    if type_ == "text" and type(value) is str:
        return text_of(value, narrow)
    if type_ == "integer":
        return integer_of(32, value)
    if type_ == "bigint":
        return integer_of(64, value)
    if isinstance(value, int | float):
        if type_ == "float":
            return float_of(value)
        if type_ == "decimal":
            return decimal_of(value, narrow)
        if type_ == "timestamp":
            return seconds_of(value, narrow) if abs(value) <= 9e9 else REFUSED
    return REFUSED


@st.composite
def values(draw: st.DrawFn, type_: str, narrow: bool) -> tuple[Any, Any]:
    """Draw a value, mostly one that belongs into the column, and what becomes of it."""
    sort = draw(st.integers(0, 9))
    if sort == 0:
        value = draw(ANY)
        return (value, MISSING) if value is None else (value, becomes(type_, value, narrow))
    if sort == 1:
        return None, MISSING
    if type_ == "timestamp" and sort < 7:
        moment = draw(MOMENTS)
        return draw(SPELLINGS)(moment), moment_of(moment, narrow)
    if type_ == "timestamp" and sort == 7:
        return draw(NO_MOMENTS | NO_SECONDS), REFUSED
    if type_ == "date":
        day = draw(DATES)
        fits = not narrow or FIRST.date() <= day < LAST.date()
        return (
            (day.isoformat(), day if fits else REFUSED) if sort > 2 else (draw(NO_DATES), REFUSED)
        )
    if type_ == "uuid":
        text = draw(UUIDS)
        return (text, text) if sort > 2 else (draw(NO_UUIDS), REFUSED)
    usual = {
        "text": TEXTS,
        "integer": st.integers(-(2**31), 2**31 - 1) if sort > 3 else INTEGERS,
        "bigint": st.integers(-(2**63), 2**63 - 1) if sort > 3 else INTEGERS,
        "float": NUMBERS,
        "decimal": NUMBERS,
        "boolean": st.booleans(),
        "timestamp": SECONDS,
        "json": ANY.filter(lambda value: value is not None),
    }
    value = draw(usual[type_])
    return value, becomes(type_, value, narrow)


PATHS = ("a", "b", "c.d", "c.e", "f.g.h")
POLICIES = ("null", "error", "skip_row")


@st.composite
def tables(draw: st.DrawFn) -> list[StoredColumn]:
    """Draw columns of any types, each with a field of its own, and perhaps one of whole messages."""
    made = [
        StoredColumn(
            f"column {path}", draw(st.sampled_from(list(CELLS))), DottedPath(path),
            on_missing=draw(st.sampled_from(POLICIES)),
        )
        for path in draw(st.lists(st.sampled_from(PATHS), min_size=1, unique=True))
    ]  # fmt: skip
    return made + [StoredColumn("raw", "json", None)] * draw(st.booleans())


@st.composite
def messages(
    draw: st.DrawFn, table: list[StoredColumn], narrow: bool
) -> tuple[Any, dict[str, Any]]:
    """Draw a message, and what becomes of its values by the names of the columns."""
    if draw(st.integers(0, 19)) == 0:
        message = draw(SCALARS | st.lists(st.sampled_from(PATHS), max_size=2))
        return message, {column.name: MISSING for column in table}
    message: dict[str, Any] = draw(st.sampled_from([{}, {}, {}, {"extra": 1}]).map(dict))
    made: dict[str, Any] = {}
    for column in table:
        if column.field is None:
            continue
        value, made[column.name] = draw(values(column.type, narrow))
        if value is None and draw(st.booleans()):
            continue
        if draw(st.integers(0, 3)) == 0:
            message[column.field.text] = value
        else:
            inner = message
            for segment in column.field.segments[:-1]:
                inner = inner.setdefault(segment, {})
            inner[column.field.segments[-1]] = value
    return message, made


def expected(table: list[StoredColumn], batch: list[Any], refuses_extra: bool, narrow: bool) -> Any:
    """Return the rows that the batch should become; REFUSED if it should fail."""
    rows = []
    has_whole = any(column.field is None for column in table)
    for message, made in batch:
        skipping = [each.name for each in table if each.on_missing == "skip_row"]
        if any(made[name] is MISSING for name in skipping):
            continue
        if refuses_extra and not has_whole and isinstance(message, dict) and "extra" in message:
            return REFUSED
        row = []
        for column in table:
            if column.field is None:
                cell = becomes("json", message, narrow)
            elif made[column.name] is MISSING:
                cell = REFUSED if column.on_missing == "error" else None
            else:
                cell = made[column.name]
            if cell is REFUSED:
                return REFUSED
            row.append(cell)
        rows.append(row)
    return rows


def result(build: Any, batch: list[Any]) -> Any:
    """Return the rows that come of a batch, or why it fails."""
    try:
        columns = build(batch)
    except BatchFailed as failed:
        return str(failed)
    assert len({len(column) for column in columns}) == 1
    return [list(row) for row in zip(*columns, strict=True)]


@examples(400)
@given(st.data(), st.booleans(), st.booleans())
def test_every_row_is_as_it_should_be_or_the_batch_is_refused_by_name(data, narrow, refuses_extra):
    table = data.draw(tables())
    drawn = data.draw(st.lists(messages(table, narrow), min_size=1, max_size=6))
    batch = [message for message, _ in drawn]
    rows = Rows(
        table,
        DATABASES["narrow" if narrow else "widest"],
        StubContext(),
        refuses_extra=refuses_extra,
    )

    made, wanted = result(rows, batch), expected(table, drawn, refuses_extra, narrow)

    if wanted is REFUSED:
        assert isinstance(made, str)
        assert made.startswith(("column 'column ", "column 'raw': ", "a message has a field that"))
    else:
        assert wanted == made
        assert repr(made) == repr(result(rows.plainly, batch))


@examples(200)
@given(st.data(), st.booleans(), st.booleans())
def test_every_message_is_refused_for_what_it_is_refused_for_alone(data, narrow, refuses_extra):
    table = data.draw(tables())
    drawn = data.draw(st.lists(messages(table, narrow), min_size=1, max_size=6))
    batch = [message for message, _ in drawn]
    rows = Rows(
        table,
        DATABASES["narrow" if narrow else "widest"],
        StubContext(),
        refuses_extra=refuses_extra,
    )
    alone = [result(rows, [message]) for message in batch]
    refused = {index: said for index, said in enumerate(alone) if isinstance(said, str)}

    if not refused:
        rows(batch)
        return
    with pytest.raises(BatchFailed) as failed:
        rows(batch)
    assert failed.value.refused == refused
    assert str(failed.value) == refused[min(refused)]


AS_TEXT = {"decimal as text": cells.decimal_text()}


@examples(400)
@given(st.data(), st.sampled_from([*CELLS, *AS_TEXT]), st.booleans())
def test_the_usual_way_comes_to_the_same_as_the_plain_one(data, name, narrow):
    type_ = name.split()[0]
    cell = (DATABASES["narrow" if narrow else "widest"] | AS_TEXT)[name]
    drawn = data.draw(st.lists(values(type_, narrow), min_size=1, max_size=5))
    column = [value for value, _ in drawn if value is not None]

    try:
        usual = cell.many(column, set(map(type, column)))
    except Exception:
        return

    assert repr(usual) == repr([*map(cell.one, column)])
