"""Values that were made up to do harm, by type of column: as the text that stands in a message.

They are drawn from Hypothesis strategies, the same ones in every run. What a column is to make of them is
not told here but in `reference.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from functools import cache
from random import Random

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.whole.stores.kinds.kind import Json

POOL = 100
"""How many values there are for each type, of each sort."""
SEED = 20260301

ENDS = {bits: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (32, 64)}
NUMBERS = st.from_regex(
    r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?", fullmatch=True
)
"""Numbers as somebody may write them: `1.10`, `-0`, `7E+3`, and thirty digits of one."""
TEXTS = st.text(max_size=40) | st.sampled_from(
    [
        "",
        " ",
        "\x7f",
        "é\u0301",
        "\U0001f4a7",
        "'; drop table t; --",
        "\\",
        '"',
        "\u2028",
        "NULL",
        "x" * 9000,
    ]
)
NUL = st.sampled_from(["\x00", "a\x00b"])
OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
ZONES = st.just(UTC) | OFFSETS
DATES = st.dates(date(1900, 1, 1), date(2299, 12, 31))
DAYS = st.dates(date(1901, 1, 1), date(2298, 12, 31))
MOMENTS = st.builds(datetime.combine, DAYS, st.times(), ZONES)
DECIMALS = st.from_regex(r"-?(0|[1-9][0-9]{0,27})(\.[0-9]{1,9})?", fullmatch=True)
"""What is in the range of every database, and has digits that no double has."""
FAR_MOMENTS = st.datetimes(timezones=ZONES)
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
ANYTHING = st.recursive(
    LEAVES | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)


def written(values: st.SearchStrategy[object]) -> st.SearchStrategy[str]:
    """Return the texts of JSON values; some with every character outside ASCII escaped."""
    return st.builds(
        lambda value, ascii: json.dumps(value, ensure_ascii=ascii), values, st.booleans()
    )


def whole(bits: int) -> st.SearchStrategy[str]:
    low, high = ENDS[bits]
    return (st.integers(low, high) | st.sampled_from([low, high, 0])).map(str) | st.just("-0")


def too_large(bits: int) -> st.SearchStrategy[str]:
    low, high = ENDS[bits]
    return (st.integers(high + 1, high**3) | st.integers(low**3, low - 1)).map(str)


FRACTIONS = st.sampled_from(["12.0", "5.5", "1e3", "-0.0", "1E0"])
SECONDS = st.integers(-(10**9), 4 * 10**9).map(str) | st.floats(-1e9, 4e9).map(repr)
NO_MOMENTS = st.sampled_from(
    ["", "now", "infinity", "-infinity", "1772359200", "12026-01-01T00:00:00Z"]
) | st.sampled_from(
    ["13-01T00:00:00Z", "02-30T10:00:00Z", "03-01T25:00:00Z", "03-01T10:61:00Z"]
).map("2026-{}".format)
NO_DATES = st.sampled_from(
    ["", "today", "infinity", "2026-13-01", "2026-02-30", "12026-01-01", "2026-3-1", "0000-01-01"]
)
NO_UUIDS = st.sampled_from(["", "0" * 31, "g" * 32, "00000000-0000-0000-0000-00000000000z", "{}"])

GOOD: Mapping[str, st.SearchStrategy[str]] = {
    "text": written(TEXTS),
    "integer": whole(32),
    "bigint": whole(64),
    "float": NUMBERS | st.floats(allow_nan=False, allow_infinity=False).map(repr) | whole(64),
    "decimal": DECIMALS | whole(64),
    "boolean": st.sampled_from(["true", "false"]),
    "timestamp": written(MOMENTS.map(datetime.isoformat)) | SECONDS,
    "date": written(DATES.map(str)),
    "uuid": written(st.uuids().map(str)),
    "json": written(ANYTHING) | NUMBERS,
}
"""By type of column: what it may well take."""
BAD: Mapping[str, st.SearchStrategy[str]] = {
    "text": written(NUL) | NUMBERS,
    "integer": too_large(32) | FRACTIONS,
    "bigint": too_large(64) | FRACTIONS,
    "float": st.sampled_from(['"1.5"', '"NaN"'])
    | st.integers(400, 500).map(lambda digits: "9" * digits),
    "decimal": written(st.decimals(allow_nan=True).map(str)) | NUMBERS,
    "boolean": st.sampled_from(["0", "1", '"true"', "1.0"]),
    "timestamp": written(NO_MOMENTS | FAR_MOMENTS.map(datetime.isoformat))
    | st.floats(min_value=1e12, allow_infinity=False).map(repr),
    "date": written(NO_DATES | st.dates().map(str)) | SECONDS,
    "uuid": written(NO_UUIDS) | whole(64),
    "json": written(NUL),
}
"""What it hardly takes, and looks nearly right."""


@cache
def pool(kind: str, sort: str) -> Sequence[str]:
    """Return the values of a type of column: `good`, `bad`, or `any` that belong nowhere."""
    strategies = {"good": GOOD, "bad": BAD}
    return _drawn(strategies[sort][kind] if sort in strategies else written(ANYTHING))


def _drawn(strategy: st.SearchStrategy[str]) -> Sequence[str]:
    found: list[str] = []

    @settings(
        max_examples=POOL,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    @given(strategy)
    def draw(value: str) -> None:
        found.append(value)

    draw()
    return found


def messages(columns: Sequence[Json], count: int) -> Iterator[str]:
    """Yield so many messages, each with its number, as text: most have one value that does harm."""
    random = Random(SEED)
    for number in range(count):
        yield _message(random, columns, number)


def _message(random: Random, columns: Sequence[Json], number: int) -> str:
    if random.random() < 0.01:
        return random.choice(pool("json", "any"))  # most of them no object, and none has a number
    harmed = random.sample([each["name"] for each in columns], random.choice([0, 0, 1, 1, 1, 2]))
    fields = [
        (each["name"], _value(random, each, each["name"] in harmed))
        for each in columns
        if random.random() < 0.97
    ]
    random.shuffle(fields)
    doubled = random.sample(fields, 1) if fields and random.random() < 0.02 else []
    pairs = [("n", str(number)), *doubled, *fields]  # of a name that comes twice the last counts
    return "{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in pairs) + "}"


def _value(random: Random, column: Json, is_harmed: bool) -> str:
    sort = random.choice(["bad", "bad", "any"]) if is_harmed else "good"
    return random.choice(pool(column["type"], sort))
