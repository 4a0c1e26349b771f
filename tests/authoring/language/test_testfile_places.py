"""What is wrong with a file of tests is told once, where it is, and at no great cost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace.authoring.language.marbles import MOST_MOMENTS
from headrace.authoring.language.testfile import load_tests
from headrace.authoring.playing.scenario import GivenState
from headrace.compiler.text.composing import FAULTS
from headrace.compiler.text.diagnostics import Diagnostic, Severity
from headrace.compiler.text.documents import read
from headrace.compiler.text.render import render
from tests.authoring.language.test_testfile import CONFIG, case, loaded
from tests.authoring.playing.playing import program


def wrong(body: str, head: str = "", folder: Path | None = None) -> list[Diagnostic]:
    """Return what a file with one test is refused with."""
    file, said = loaded(f"{head}\ntests:\n  t:\n    {body}\n", folder)
    errors = [each for each in said if each.severity is Severity.ERROR]
    assert (file is None) is bool(errors)
    return errors


def places(found: list[Diagnostic]) -> list[tuple[int | None, int | None, str]]:
    return [(each.line, each.column, each.code) for each in found]


@pytest.mark.parametrize(
    ("section", "name", "code"),
    [
        ("given", "{$message: 1, $meta: {qss: 1}}", "unknown-metadata"),
        ("expect", "{$anny: 1}", "not-a-matcher"),
    ],
)
def test_a_fault_of_a_name_is_told_once_however_often_it_is_drawn(
    section: str, name: str, code: str
):
    found = wrong(f"{section}: {{w: '(r 1s)x700'}}", f"messages: {{r: {name}}}")

    assert [each.code for each in found] == [code]


def test_names_in_a_line_that_cannot_be_read_are_not_told_as_unused():
    _, said = loaded("messages: {a: 1}\ntests: {t: {given: {w: a-x}, expect: {w: {}}}}")

    assert [each.code for each in said] == ["not-marbles"]


def test_the_first_of_a_line_that_is_past_the_end_is_told_at_its_column():
    found = wrong("given: {w: a-----(b)x9}\n    until: 2s", "messages: {a: 1, b: 2}")

    assert places(found) == [(4, 23, "past-the-end")]


def test_what_cannot_be_given_is_told_at_its_column():
    found = wrong("given: {w: a-|b, 'two.inputs[0]': a#}", "messages: {a: 1, b: 2}")

    assert places(found) == [(4, 19, "past-the-end"), (4, 40, "not-an-input")]


def test_a_bucket_has_no_connection_to_lose():
    found = wrong("given: {state.last: '#'}")

    assert render(found, style="plain") == (
        "c.tests.yaml:4:26: tests.t.given[\"state.last\"]: 'state.last' has no connection to lose"
    )


def test_a_moment_after_the_end_is_told_at_its_key():
    found = wrong("given: {w: {1s: 1, 3s: 1, 4s: 1}}\n    until: 2s")

    assert places(found) == [(4, 24, "past-the-end"), (4, 31, "past-the-end")]


def test_what_is_expected_to_be_said_is_said_by_a_component_that_is_there():
    found = wrong(
        "expect: {failures: [{at: 'ww.outputs[0]', says: x}], warnings: [{at: w, says: x}]}"
    )

    assert [each.message for each in found] == [
        "there is no pipeline 'ww'",
        "'w' is no component, and says nothing",
    ]


@pytest.mark.parametrize("place", ["w.outputs[0]", "w.inputs", "state"])
def test_whatever_says_something_can_be_named(place: str):
    assert wrong(f"expect: {{failures: [{{at: '{place}', says: x}}]}}") == []


def test_only_posts_are_refused():
    [found] = wrong("expect: {refused: {w: 1}}")

    assert (found.code, found.message) == ("not-an-input", "nothing is posted to 'w'")


def test_a_connection_that_nothing_names_is_not_offered():
    text = b"tests: {t: {faults: {connections.spare: {0s..: down}}, expect: {w: {}}}}"

    _, said = load_tests(
        read(text, "c.tests.yaml", "yaml"), program(CONFIG), {"c": None, "spare": None}
    )

    assert [(each.code, each.expected) for each in said] == [("unknown-connection", "one of c")]


@pytest.mark.parametrize(
    "meta", ["{headers: 5}", "{headers: {a: 1}}", "{method: [1]}", "{remote_addr: 1}"]
)
def test_a_post_is_told_with_what_a_post_can_have(meta: str):
    [found] = wrong(f"given: {{'two.inputs[0]': {{0s: {{$message: 1, $meta: {meta}}}}}}}")

    assert found.code == "wrong-type"


def test_a_field_with_a_dollar_is_written_to_a_bucket():
    found = case("    given: {state.last: {0s: {k: {$$x: 7}}}}")

    assert found.given == (GivenState(0, "last", {"k": {"$x": 7}}),)


@pytest.mark.parametrize(
    "start",
    [
        "2026-03-02",
        "9999-12-31T23:59:59Z",
        "2026-03-02T06:00:00",
        "0001-01-01T00:00:00+14:00",
    ],
)
def test_the_wall_starts_at_a_time_that_all_moments_can_follow(start: str):
    _, said = loaded(f"start: {start}\ntests: {{t: {{expect: {{w: {{}}}}}}}}")

    assert [each.code for each in said] == ["not-a-time"]


def test_a_misspelt_word_of_a_file_of_messages_has_a_suggestion():
    found = wrong("given: {w: {$fle: x.ndjson, $every: 1h}}")

    assert [each.suggestion for each in found] == ["did you mean '$file'?"]
    assert [each.code for each in wrong("given: {w: {$every: 1h}}")] == ["missing-key"]


def test_a_pipe_without_a_writer_is_read_as_empty(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.ndjson")

    assert wrong("given: {w: {$file: pipe.ndjson}}", folder=tmp_path) == []


def test_all_timelines_of_a_file_share_so_many_moments(tmp_path: Path):
    (tmp_path / "two.ndjson").write_text("1\n2\n")
    given = (
        f"w: '(a)x{MOST_MOMENTS - 1}', 'two.inputs[0]': aa, 'two.inputs[1]': {{$file: two.ndjson}}"
    )

    [line, file] = wrong(f"given: {{{given}}}", "messages: {a: 1}", tmp_path)

    assert line.message == (
        "these are more than 1,000,000 moments with those of other timelines of the file"
    )
    assert file.message == "the timelines of a file have at most 1,000,000 moments"


def test_a_file_that_is_wrong_everywhere_is_told_so_often_and_no_more():
    many = ", ".join(f"{n}x: 1" for n in range(5 * FAULTS))

    assert len(wrong(f"given: {{w: {{{many}}}}}")) == FAULTS
