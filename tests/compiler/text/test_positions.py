"""Lines of a text, found when somebody asks where something stands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.text.documents import Unreadable, read
from headrace.compiler.text.positions import LineIndex, lines_of

BREAKS = "\n" * 100_000


def test_nothing_is_looked_for_before_somebody_asks() -> None:
    assert LineIndex(BREAKS).known == 1


def test_no_further_is_looked_than_the_place_that_is_asked_for() -> None:
    lines = LineIndex(BREAKS)

    assert lines.at(0) == (1, 1)
    assert lines.known == 2
    assert lines.at(9) == (10, 1)
    assert lines.known == 11
    assert lines.offset(21, 1) == 20
    assert lines.known == 22


def test_a_body_of_line_breaks_costs_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[LineIndex] = []

    class Counted(LineIndex):
        def __init__(self, text: str) -> None:
            super().__init__(text)
            made.append(self)

    monkeypatch.setattr("headrace.compiler.text.documents.LineIndex", Counted)

    with pytest.raises(Unreadable) as refused:
        read(BREAKS.encode(), None, "json")

    assert [(each.code, each.line) for each in refused.value.diagnostics] == [("empty-document", 1)]
    assert max(each.known for each in made) == 2


@given(st.text(alphabet="ab\r\n", max_size=30), st.data())
def test_places_do_not_depend_on_what_was_asked_before(text: str, data: st.DataObject) -> None:
    offsets = data.draw(st.lists(st.integers(0, len(text) + 2), max_size=6))
    lines = LineIndex(text)

    seen = [lines.at(offset) for offset in offsets]

    assert seen == [LineIndex(text).at(offset) for offset in offsets]
    for line, column in seen:
        assert line <= len(lines_of(text))
        assert lines.offset(line, column) == LineIndex(text).offset(line, column)
