"""Marble lines: what they tell, what is wrong with them, and that they can be written back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.authoring.language.durations import END
from headrace.authoring.language.marbles import (
    LOSS,
    MOST_MOMENTS,
    NotMarbles,
    marbles,
    name_fault,
    render,
)
from tests.examples import examples

NAMES = dict.fromkeys(["a", "b", "c", "d", "r", "warm"])


def told(line: str, frame: float = 1.0) -> list[tuple[float, str]]:
    return [(each.at, each.name) for each in marbles(line, NAMES, frame)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a-b---c 60s d", [(0, "a"), (2, "b"), (6, "c"), (66, "d")]),
        ("abc", [(0, "a"), (1, "b"), (2, "c")]),
        ("a b", [(0, "a"), (1, "b")]),
        ("5s a 20s b", [(5, "a"), (25, "b")]),
        ("9s r 9s r", [(9, "r"), (18, "r")]),
        ("(ab)-c", [(0, "a"), (0, "b"), (2, "c")]),
        ("(r 9s)x3", [(0, "r"), (9, "r"), (18, "r")]),
        ("(r 9s)x2 a", [(0, "r"), (9, "r"), (18, "a")]),
        ("(a-)x2b", [(0, "a"), (2, "a"), (4, "b")]),
        ("warm 1s warm", [(0, "warm"), (1, "warm")]),
        ("a 5s # 5s b", [(0, "a"), (5, LOSS), (10, "b")]),
        ("a | bc", [(0, "a"), (END, "b"), (END, "c")]),
        ("1m 30s a", [(90, "a")]),
        ("", []),
        ("---", []),
    ],
)
def test_a_line_tells_what_happens_when(line: str, expected: list[tuple[float, str]]):
    assert told(line) == expected


def test_a_column_is_as_long_as_a_frame():
    assert told("a-b 5s c", 0.1) == [(0, "a"), (0.2, "b"), (5.2, "c")]


@pytest.mark.parametrize(
    ("line", "column", "said"),
    [
        ("a-x", 3, "nothing is called 'x'"),
        ("(ab", 1, "this '(' is not closed"),
        ("ab)", 3, "this ')' closes nothing"),
        ("()", 1, "there is nothing in this group"),
        ("(a-b)", 3, "a group is one column, in which no time passes"),
        ("(a)x0", 5, "a group is written out 1 to 1,000,000 times"),
        ("(a)x9999999", 5, "a group is written out 1 to 1,000,000 times"),
        ("a | b | c", 7, "the end comes once"),
        ("a | 5s b", 5, "nothing takes any time behind '|'"),
        ("(a|)x2", 3, "the end cannot come inside a group"),
        ("a5s", 2, "'5s' is a duration only between blanks"),
        ("((((((((((((((((((a))))))))))))))))))", 17, "groups are nested more than 16 deep"),
    ],
)
def test_what_is_wrong_is_told_with_its_column(line: str, column: int, said: str):
    with pytest.raises(NotMarbles) as raised:
        marbles(line, NAMES)

    [fault] = raised.value.faults
    assert fault.spot is not None
    assert (fault.spot.line, fault.spot.column) == (1, column)
    assert fault.message.startswith(said)
    assert fault.code == "not-marbles"


def test_a_name_that_is_misspelt_has_a_suggestion():
    with pytest.raises(NotMarbles) as raised:
        marbles("a warn", NAMES)

    assert raised.value.faults[0].suggestion == "did you mean 'warm'?"


def test_all_unknown_names_are_told_at_once():
    with pytest.raises(NotMarbles) as raised:
        marbles("axayaz", NAMES)

    assert [fault.message[-3:] for fault in raised.value.faults] == ["'x'", "'y'", "'z'"]


@pytest.mark.parametrize("line", ["((a)x1000)x10000", "(((a)x1000)x1000)x1000"])
def test_a_line_has_so_many_moments_and_no_more(line: str):
    with pytest.raises(NotMarbles, match=f"more than {MOST_MOMENTS:,} moments"):
        marbles(line, NAMES)


@pytest.mark.parametrize("line", ["-" * 1_000_000, "a" * 1_000_000, " " * 1_000_000])
def test_a_long_line_takes_no_longer_than_its_length(line: str):
    assert len(marbles(line, NAMES)) == line.count("a")


def test_a_line_of_nothing_but_groups_is_refused_at_once():
    with pytest.raises(NotMarbles, match="nested"):
        marbles("(a" * 500_000, NAMES)


@pytest.mark.parametrize(
    ("name", "is_possible"),
    [("a", True), ("é", True), ("5s", False), ("a b", False), ("a-b", False)],
)
def test_a_name_can_stand_in_a_line(name: str, is_possible: bool):
    assert (name_fault(name) is None) is is_possible


MOMENTS = st.lists(
    st.tuples(st.integers(0, 10**9).map(lambda ms: ms / 1000), st.sampled_from([*NAMES])),
    max_size=20,
).map(lambda told: sorted(told, key=lambda each: each[0]))


@examples(300)
@given(MOMENTS, st.sampled_from([1.0, 0.25, 60.0]))
def test_what_is_rendered_is_read_back(moments: list[tuple[float, str]], frame: float):
    assert told(render(moments, frame), frame) == moments
