"""Timelines that are not as expected: how batches are paired, and how the difference is drawn."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headrace.authoring.language.durations import END
from headrace.authoring.playing.played import SaidAt
from headrace.authoring.verdicts.marblediff import WIDEST, drawn
from headrace.authoring.verdicts.matching import Matching
from headrace.authoring.verdicts.pairing import as_batch, pairs
from headrace.authoring.verdicts.saiddiff import compare_said
from headrace.authoring.verdicts.timelinediff import compare
from headrace.compiler.clock import stopwatch
from tests.examples import examples

MATCHING = Matching(datetime(2026, 1, 1, tzinfo=UTC))
Line = list[tuple[float, Any]]


def text(expected: Line, came: Line) -> str | None:
    """Return what is drawn of the difference of two timelines, if there is one."""
    difference = compare(expected, came, MATCHING)
    return difference and "\n".join(drawn(difference, "press-7", "config.tests.yaml:14"))


def test_what_came_as_expected_is_no_difference():
    assert text([(1, 5), (END, {"$count": 2})], [(1, [5]), (END, [1, 2])]) is None


def test_a_batch_that_differs_is_told_at_its_moment():
    expected = [(25, [{"temp": 61}]), (27, {"mode": "auto"})]

    assert (
        text(expected, [(25, [{"temp": 60.0}]), (27, [{"mode": "auto"}])])
        == """\
  press-7   config.tests.yaml:14
             25s 27s
  expected  -a!--b--
  came      -a!--b--
  ! a       25s  [0].temp: expected 61, found 60.0"""
    )


def test_a_batch_at_another_moment_is_told_as_moved():
    assert (
        text([(660, {"n": 1})], [(360, [{"n": 1}])])
        == """\
  press-7   config.tests.yaml:14
             6m 11m
  expected  ----a--
  came      -a-----
  ~ a       11m  came at 6m"""
    )


def test_what_never_came_and_what_nobody_expected_are_told_as_such():
    assert (
        text([(60, {"n": 1})], [(90, [{"a": "b"}])])
        == """\
  press-7   config.tests.yaml:14
             1m 1m30s
  expected  -a-------
  came      ----b----
  - a       1m     never came: {"n": 1}
  + b       1m30s  nobody expected: {"a": "b"}"""
    )


def test_only_moments_near_a_difference_are_drawn():
    expected = [(float(n), n) for n in range(100)]
    came = [(float(n), [n if n != 50 else -1]) for n in range(100)]

    assert (
        text(expected, came)
        == """\
  press-7   config.tests.yaml:14
             48s 49s 50s 51s 52s
  expected  …a---b---c!--d---e--…
  came      …a---b---c!--d---e--…
  ! c       50s  [0]: expected 50, found -1"""
    )


def test_what_is_let_go_at_the_end_has_its_place():
    drawing = text([(1, 1)], [(1, [1]), (END, [2])])

    assert drawing is not None
    assert "+ b       end  nobody expected: 2" in drawing


def test_lines_are_no_wider_than_a_terminal():
    came = [(n * 61.001, [{"名" * 90: "値" * 90}]) for n in range(50)]

    drawing = text([(n * 61.001, {"名" * 90: n}) for n in range(50)], came)

    assert drawing is not None
    from rich.cells import cell_len

    assert max(cell_len(line) for line in drawing.splitlines()) <= WIDEST


def test_batches_of_one_moment_are_paired_by_likeness():
    expected = [(1, {"id": "a", "n": 1}), (1, {"id": "b", "n": 2})]
    came = [(1, [{"id": "b", "n": 3}]), (1, [{"id": "a", "n": 1}])]

    wanted = [(at, as_batch(what)) for at, what in expected]
    assert {*pairs(wanted, came, MATCHING)} == {(0, 1), (1, 0)}


LINES = st.lists(
    st.tuples(st.integers(0, 5).map(float), st.lists(st.integers(0, 3), min_size=1, max_size=3)),
    max_size=12,
)


@examples(300)
@given(LINES, LINES)
def test_every_batch_is_in_one_pair(expected: Line, came: Line):
    found = pairs(expected, came, MATCHING)

    assert sorted(i for i, _ in found if i is not None) == [*range(len(expected))]
    assert sorted(j for _, j in found if j is not None) == [*range(len(came))]


@examples(300)
@given(LINES)
def test_a_timeline_does_not_differ_from_itself(line: Line):
    assert compare(line, line, MATCHING) is None


def test_long_timelines_that_have_nothing_in_common_are_compared_soon():
    expected = [(float(n), {"id": f"a{n}", "n": n}) for n in range(20_000)]
    came = [(n + 0.5, [{"id": f"b{n}", "n": -n}]) for n in range(20_000)]

    began = stopwatch()
    difference = compare(expected, came, MATCHING)

    assert difference is not None
    assert len(difference.batches) + difference.more == 40_000
    assert stopwatch() - began < 60  # quadratic would be hours


def test_a_failure_that_nobody_expected_is_told():
    came = [SaidAt(5, "p.outputs[0]", "gone"), SaidAt(9, "p.outputs[0]", "gone")]

    [difference] = compare_said("failures", (), came)

    assert difference.line() == "failed  p.outputs[0] at 5s, and nobody expected it (2 times): gone"
    assert difference.as_json() == {
        "kind": "failures",
        "at": "p.outputs[0]",
        "says": "gone",
        "moment": "5s",
        "expected": 0,
        "found": 2,
    }
