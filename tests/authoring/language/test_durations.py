"""Durations and moments as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.authoring.language.durations import END, NotADuration, not_a_time, seconds, told
from tests.examples import examples


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", 90),
        ("1m30s", 90),
        ("250ms", 0.25),
        ("1.5h", 5400),
        ("2d", 172_800),
        ("7us", 7e-6),
        ("0s", 0),
    ],
)
def test_a_duration_is_a_number_with_its_unit_for_each_unit(text: str, expected: float):
    assert seconds(text) == expected


@pytest.mark.parametrize(
    "text", ["", "90", "s", "1s1m", "1s1s", "-1s", "1 s", "1e3s", "99999999d", "1m 30s", "٣s"]
)
def test_nothing_else_is_one(text: str):
    with pytest.raises(NotADuration):
        seconds(text)


@pytest.mark.parametrize(
    ("at", "expected"),
    [(0, "0s"), (90, "1m30s"), (0.25, "250ms"), (END, "end"), (86_400.5, "1d500ms")],
)
def test_a_moment_is_told_as_people_write_it(at: float, expected: str):
    assert told(at) == expected


@examples(200)
@given(st.integers(0, 10**15))
def test_what_is_told_is_read_back(micros: int):
    assert seconds(told(micros / 1e6)) == micros / 1e6


@pytest.mark.parametrize(
    ("found", "meant"), [("5 sec", "5s"), (5, "5s"), ("+2 min", "+2m"), ("soon", None)]
)
def test_what_is_probably_meant_is_suggested(found, meant):
    suggestion = not_a_time(found).suggestion

    assert suggestion == (None if meant is None else f"did you mean '{meant}'?")
