"""What a diagnostic is about, up to the character behind its last one, and what would do there."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from headrace.authoring.configfiles import catalogue
from headrace.compiler.config.program import load_program
from headrace.compiler.text.decoding import Format
from headrace.compiler.text.diagnostics import Diagnostic, Fault, Path
from headrace.compiler.text.documents import Document, Site, Unreadable, read
from headrace.compiler.text.positions import lines_of
from headrace.compiler.text.writing import write
from tests.compiler.text.test_documents import VALUES, in_blocks, paths, written

KNOWN = catalogue()


def between(text: str, told: Diagnostic) -> str:
    """Return what stands where a diagnostic is."""
    assert told.line is not None
    assert told.column is not None
    assert told.end_line is not None
    assert told.end_column is not None
    lines = lines_of(text)[told.line - 1 : told.end_line]
    lines[-1] = lines[-1][: told.end_column - 1]
    lines[0] = lines[0][told.column - 1 :]
    return "\n".join(lines)


def value_at(document: Document, path: Path, *, on_key: bool = False) -> Diagnostic:
    return Site(document).diagnose(Fault("blank", "here", path=path, on_key=on_key))


def wrong(text: str, format: Format = "yaml") -> list[tuple[str, str | None]]:
    """Return what is wrong with a config: what stands there, and what would do."""
    try:
        _, said = load_program(read(text, None, format), KNOWN)
    except Unreadable as cause:
        said = cause.diagnostics
    return [(between(text, each), each.replacement) for each in said]


@pytest.mark.parametrize("format", ["json", "yaml"])
@given(value=VALUES)
def test_a_value_ends_where_reading_it_alone_ends(format: Format, value: Any) -> None:
    text = written(value)

    document = read(text, None, format)

    for path, inner in paths(value):
        assert written(
            read(between(text, value_at(document, path)), None, format).value
        ) == written(inner)
        if path and isinstance(path[-1], str):
            assert (
                read(between(text, value_at(document, path, on_key=True)), None, format).value
                == (path[-1])
            )


@given(VALUES)
def test_so_does_one_in_blocks(value: Any) -> None:
    for text in (in_blocks(value), write(value, "yaml")):
        document = read(text, None, "yaml")

        for path, inner in paths(value):
            told = value_at(document, path)
            margin = " " * ((told.column or 1) - 1)
            alone = read(f"{margin}{between(text, told)}\n", None, "yaml").value
            assert written(alone).rstrip('\\n"') == written(inner).rstrip('\\n"')


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ("a: x  # why\nb: 1", "x"),
        ("a: 'it''s' # why\n", "'it''s'"),
        ("a: |  # why\n  one\n\n  two\n\n# why\nb: 1", "|  # why\n  one\n\n  two"),
        ("a: >-\n  one\n  two", ">-\n  one\n  two"),
        ("a:\n  one\n  two\n\nb: 1", "one\n  two"),
        ("a:\n  b: 1\n  c: [ 2,\n    3 ]  # why\n\n# why\nd: 4", "b: 1\n  c: [ 2,\n    3 ]"),
        ("a: { b: 1, # why\n  c: 2 }\nd: 3", "{ b: 1, # why\n  c: 2 }"),
        ("a:\n- b: 1\n- c:\n    d: 2\n  # why\ne: 3", "- b: 1\n- c:\n    d: 2"),
        ("a:\nb: 1", ""),
        ("a:\n  b:\n  c:\nd: 1", "b:\n  c:"),
        ("x: &x [1]\na: *x\n", "*x"),
        ("a: &x [1]\nb: *x\n", "&x [1]"),
        ("a: x\r\nb: 1\r\n", "x"),
        ('"a":\t"\U0001f600\\n"\t', '"\U0001f600\\n"'),
    ],
)
def test_what_stands_around_a_value_is_no_part_of_it(text: str, stands: str) -> None:
    assert between(text, value_at(read(text, None, "yaml"), ("a",))) == stands


def test_what_is_missing_has_a_place_and_no_end() -> None:
    told = value_at(read("a:\n  b: 1\n", None, "yaml"), ("a", "c"))

    assert (told.line, told.column, told.end_line, told.end_column) == (2, 3, None, None)


def test_columns_count_characters_and_not_units_of_utf_16() -> None:
    told = value_at(read("{ '\U0001f600': 12 }", None, "yaml"), ("\U0001f600",))

    assert (told.column, told.end_column) == (8, 10)


HTTP = "inputs: [ { type: http } ]"


def reading(upstream: str, id: str) -> str:
    return f"- inputs: [ {{ type: pipeline, upstream: {upstream} }} ]\n- {{ id: {id}, {HTTP} }}"


@pytest.mark.parametrize(
    ("text", "stands", "replacement"),
    [
        (f"- {HTTP}\n  ouputs: []", "ouputs", "outputs"),
        (f"- {HTTP}\n  'ouputs': []", "'ouputs'", "'outputs'"),
        (f'- {HTTP}\n  "ouputs" : []', '"ouputs"', '"outputs"'),
        (f"- {HTTP}\n  ? ouputs\n  : []", "ouputs", "outputs"),
        (f"- {HTTP}\n  &k ouputs: []", "&k ouputs", None),
        ("- inputs: [ { type: htp, } ]", "htp", "http"),
        ("- inputs: [ { type: 'htp' } ]", "'htp'", "'http'"),
        ("- inputs:\n  - type: >-\n      htp\n", ">-\n      htp", "http"),
        ("- inputs: [ { type: &k htp } ]", "&k htp", None),
        (reading("ab", "'abc'"), "ab", "abc"),
        (reading("ab", "'a,b'"), "ab", '"a,b"'),
        (reading("tru", "'true'"), "tru", "'true'"),
        (reading("ab", '"a\\u200bb"'), "ab", None),
        (reading("'''b'", "'''bc'"), "'''b'", "'''bc'"),
    ],
)
def test_a_replacement_is_spelled_as_what_it_replaces(
    text: str, stands: str, replacement: str | None
) -> None:
    assert wrong(text) == [(stands, replacement)]


def test_in_json_a_replacement_is_a_string() -> None:
    text = '[{"inputs": [{"type":"htp"}], "ouputs" : []}]'

    assert wrong(text, "json") == [('"htp"', '"http"'), ('"ouputs"', '"outputs"')]


def test_a_number_in_the_place_of_a_word_is_replaced_by_the_word() -> None:
    text = "- inputs: [ { type: mqtt, connection: n, topic: a, qos: 1 } ]"

    assert wrong(text) == [("1", "at_least_once")]


def test_so_is_a_sign_that_yaml_takes_for_the_beginning_of_a_text() -> None:
    text = (
        f"- {HTTP}\n  transforms:\n  - type: filter\n    Numeric:\n      field: a\n      value: 1"
    )

    assert wrong(f"{text}\n      operator: >\n") == [(">", "greater_than")]


def test_with_its_replacement_a_config_is_right() -> None:
    text = f"- {HTTP}\n  transforms:\n    - type: bufer # why\n      seconds: 5\n      max_mesages: 5\n"

    for _ in range(2):
        (stands, replacement), *_ = wrong(text)
        assert replacement is not None
        text = text.replace(stands, replacement)

    assert wrong(text) == []


def test_a_key_that_belongs_elsewhere_has_no_replacement() -> None:
    assert wrong(
        f"- {HTTP}\n  outputs: [ {{ type: nats, url: x, connection: n, subject: s }} ]"
    ) == [("url", None)]


def test_what_is_read_in_the_place_of_a_tab_ends_where_the_text_has_it() -> None:
    text = f"- {HTTP}\n\touputs: [ 1 ]\n"

    with pytest.raises(Unreadable) as refused:
        read(text, None, "yaml")

    assert refused.value.mended is not None
    _, said = load_program(refused.value.mended, KNOWN)
    assert [(between(text, each), each.replacement) for each in said][:1] == [("ouputs", "outputs")]


def test_what_is_wrong_with_a_value_as_it_is_read_has_an_end() -> None:
    text = f"- {HTTP}\n  {HTTP}\n  5: 1e999\n"

    assert wrong(text) == [("inputs", None), ("5", None), ("1e999", None)]
