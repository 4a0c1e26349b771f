"""One large value encoded piece by piece: the bytes are those of one go, and no piece is large."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from hypothesis import given

from headrace.compiler.decimals import exact
from headrace.compiler.jsontext import encode
from headrace.compiler.largejson import LargeList, pieces
from tests.compiler.test_largejson_writing import VALUES
from tests.examples import examples

HERE = import_module("headrace.compiler.largejson.pieces")
BEGINNING = import_module("headrace.compiler.largejson.beginning")


def test_the_bytes_are_those_of_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HERE, "MOST_ITEMS", 2)
    monkeypatch.setattr(HERE, "TEXT_SLICE", 3)
    monkeypatch.setattr(BEGINNING, "MOST_CHARACTERS", 3)
    monkeypatch.setattr(BEGINNING, "MOST_VALUES", 4)

    @examples(300, database=None)
    @given(VALUES)
    def holds(value: Any) -> None:
        assert b"".join(pieces(value)) == encode(value)

    holds()


def large(*items: Any) -> LargeList[Any]:
    """Return a list as it is of a large batch."""
    made = LargeList[Any]()
    made += items
    return made


@pytest.mark.parametrize(
    "value",
    [
        [*range(200_000)],
        {str(number): [number] for number in range(100_000)},
        ["x" * 3_000_000, {"y" * 600_000: "\\u0001" * 600_000}],
        [[[[*range(50_000)]]] * 3, exact("1.50")],
        large(*({"n": number} for number in range(100_000))),
    ],
    ids=["numbers", "fields", "texts", "nested", "decoded"],
)
def test_no_piece_of_a_large_value_is_large(value: Any) -> None:
    made = [*pieces(value)]

    assert b"".join(made) == encode(value)
    assert max(map(len, made)) < 4 * 1024 * 1024
    assert len(made) > 10


def test_what_is_no_json_is_refused_as_at_once() -> None:
    with pytest.raises(ValueError, match="surrogate"):
        b"".join(pieces(["x" * 600_000, "\ud800"]))
