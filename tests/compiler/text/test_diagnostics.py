"""Diagnostics, faults and how paths and values are written in them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.text.diagnostics import (
    Diagnostic,
    Fault,
    Range,
    Severity,
    Spot,
    diagnosed,
    in_file_order,
    path_text,
    printable,
    shown,
)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("pipelines", 2, "inputs", 0, "topic"), "pipelines[2].inputs[0].topic"),
        ((0, "id"), "[0].id"),
        (("max-keys", "größe", "_meta"), "max-keys.größe._meta"),
        (("pipelines", 0, "a b"), 'pipelines[0]["a b"]'),
        (("a b", "c"), '["a b"].c'),
        (("state", "0", "", "a.b"), 'state["0"][""]["a.b"]'),
        (('say "hi"\n', "x"), '["say \\"hi\\"\\n"].x'),
    ],
)
def test_a_path_is_written_as_people_write_it(path, text):
    assert path_text(path) == text


def test_a_diagnostic_as_json_has_exactly_the_documented_keys():
    diagnostic = Diagnostic(
        file="plant.yaml",
        line=3,
        column=7,
        end_line=3,
        end_column=12,
        path="pipelines[0].tpoic",
        severity=Severity.WARNING,
        code="unknown-key",
        message="unknown key 'tpoic'",
        found='"tpoic"',
        expected="topic",
        suggestion="did you mean 'topic'?",
        replacement="topic",
    )

    assert json.dumps(diagnostic.as_json()) == (
        '{"file": "plant.yaml", "line": 3, "column": 7, "end_line": 3, "end_column": 12, '
        '"path": "pipelines[0].tpoic", "severity": "warning", "code": "unknown-key", '
        '"message": "unknown key \'tpoic\'", '
        '"found": "\\"tpoic\\"", "expected": "topic", "suggestion": "did you mean \'topic\'?", '
        '"replacement": "topic"}'
    )


def test_the_text_of_a_file_is_no_part_of_what_is_told():
    brief = Diagnostic(file="x.rhai", line=1, code="not-compiled", message="m")
    whole = Diagnostic(file="x.rhai", line=1, code="not-compiled", message="m", text="emit(")

    assert whole == brief
    assert hash(whole) == hash(brief)
    assert whole.as_json() == brief.as_json()


def test_a_fault_in_a_file_of_its_own_is_told_there_whatever_the_document():
    fault = Fault("not-compiled", "m", spot=Spot(3, 4, "x.rhai", "1\n2\n345"))

    told = [
        diagnosed(fault, file, place, ("a", 1))
        for file, place in (("a.yaml", Range(7, 8)), (None, None))
    ]

    assert told[0] == told[1]
    assert (told[0].file, told[0].line, told[0].column, told[0].path) == ("x.rhai", 3, 4, "a[1]")
    assert told[0].text == "1\n2\n345"


def test_what_is_unknown_is_null_in_json():
    diagnostic = Diagnostic(code="missing-file", message="no such file")

    assert diagnostic.as_json() == {
        "file": None,
        "line": None,
        "column": None,
        "end_line": None,
        "end_column": None,
        "path": "",
        "severity": "error",
        "code": "missing-file",
        "message": "no such file",
        "found": None,
        "expected": None,
        "suggestion": None,
        "replacement": None,
    }


def test_diagnostics_are_in_file_order():
    def at(file, line, column):
        return Diagnostic(file=file, line=line, column=column, code="blank", message="")

    written = [at("b", 9, 1), at("a", 2, 2), at("b", 1, 5), at("a", 2, 1), at("b", None, None)]

    assert in_file_order(written) == [
        at("b", None, None),
        at("b", 1, 5),
        at("b", 9, 1),
        at("a", 2, 1),
        at("a", 2, 2),
    ]


def test_diagnostics_of_one_place_keep_the_order_in_which_they_were_found():
    found = [Diagnostic(line=1, column=1, code="blank", message=text) for text in "cab"]

    assert in_file_order(found) == found


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("topic", '"topic"'),
        (None, "null"),
        (True, "true"),
        (1.0, "1.0"),
        ([1, {"a": "é"}], '[1,{"a":"é"}]'),
        ("x" * 100, '"' + "x" * 56 + "..."),
        ([7] * 1000, "[" + "7," * 28 + "..."),
        ("line\nbreak \u202e\x9b", r'"line\nbreak \u202e\x9b"'),
        (10**70, "1" + "0" * 56 + "..."),
    ],
)
def test_a_found_value_is_shown_as_short_json(value, text):
    assert shown(value) == text


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner)))
def test_what_is_shown_is_one_short_line(value):
    assert len(shown(value)) <= 60
    assert shown(value).isprintable()


@given(st.text())
def test_printable_text_is_one_line_and_keeps_what_prints(text):
    assert printable(text).isprintable()
    assert printable(text) == text or not text.isprintable()


def test_a_fault_refuses_unless_it_says_otherwise():
    assert Fault("blank", "an id cannot be empty").severity is Severity.ERROR
