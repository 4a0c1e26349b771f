"""Documents: values that know where they stand, whatever they are written in."""

import json
import pathlib
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.text.decoding import LARGEST
from headrace.compiler.text.diagnostics import Diagnostic, Fault, Severity
from headrace.compiler.text.documents import Site, Unreadable, read, read_file

PLANT = """\
pipelines:
  - id: plc
    inputs: [ { type: nats, subject: plc.> } ]
  - id: 漢字
    'größe': 12
"""

# What a YAML text may contain without an escape; JSON may contain it as well.
LETTERS = st.characters(
    codec="utf-8",
    min_codepoint=0x20,
    exclude_categories=("Cc", "Zl", "Zp", "Cs"),
    exclude_characters="\ufeff\ufffe\uffff",
)
TEXTS = st.text(LETTERS, max_size=20)
SCALARS = (
    TEXTS
    | st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)
FORMATS = pytest.mark.parametrize("format", ["json", "yaml"])


def written(value):
    return json.dumps(value, ensure_ascii=False)


def in_blocks(value, indent=""):
    """Return a value as YAML in block style."""
    if isinstance(value, dict) and value:
        return "".join(
            f"\n{indent}? {written(key)}\n{indent}: {in_blocks(inner, indent + '  ')}"
            for key, inner in value.items()
        )
    if isinstance(value, list) and value:
        return "".join(f"\n{indent}- {in_blocks(inner, indent + '  ')}" for inner in value)
    return written(value)


def paths(value, path=()):
    """Yield the path of a value and of everything in it."""
    yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*path, key))
    if isinstance(value, list):
        for place, inner in enumerate(value):
            yield from paths(inner, (*path, place))


def at(text, position):
    """Return the JSON value that starts at a position of a text."""
    line, column = position
    lines = re.split(r"(?<=\n)", text)
    return json.JSONDecoder().raw_decode("".join(lines[line - 1 :])[column - 1 :])[0]


def refusal(text, format="json"):
    with pytest.raises(Unreadable) as refused:
        read(text, None, format)
    return refused.value


def said(text, format="json"):
    return [(d.line, d.column, d.code, d.message) for d in refusal(text, format).diagnostics]


@FORMATS
@given(value=VALUES, indent=st.sampled_from([None, 0, 2]))
def test_a_value_and_its_key_stand_where_the_text_has_them(format, value, indent):
    text = json.dumps(value, ensure_ascii=False, indent=indent)

    document = read(text, None, format)

    assert written(document.value) == written(value)
    for path, inner in paths(value):
        assert at(text, document.position(path)) == inner
        if path and isinstance(path[-1], str):
            assert at(text, document.position(path, on_key=True)) == path[-1]


@given(VALUES)
def test_what_is_in_blocks_stands_there_as_well(value):
    text = in_blocks(value)

    document = read(text, None, "yaml")

    assert written(document.value) == written(value)
    for path, inner in paths(value):
        if not inner or not isinstance(inner, dict | list):
            assert at(text, document.position(path)) == inner


@pytest.mark.parametrize(
    ("path", "on_key", "position"),
    [
        ((), False, (1, 1)),
        (("pipelines",), False, (2, 3)),
        (("pipelines",), True, (1, 1)),
        (("pipelines", 0), False, (2, 5)),
        (("pipelines", 0), True, (2, 5)),
        (("pipelines", 0, "inputs", 0, "subject"), False, (3, 38)),
        (("pipelines", 0, "inputs", 0, "subject"), True, (3, 29)),
        (("pipelines", 1, "größe"), False, (5, 14)),
        (("pipelines", 1, "größe"), True, (5, 5)),
    ],
)
def test_positions_count_lines_and_characters_from_1(path, on_key, position):
    assert read(PLANT, None, "yaml").position(path, on_key) == position


@pytest.mark.parametrize(
    ("path", "position"),
    [
        (("state",), (1, 1)),
        (("pipelines", 7), (2, 3)),
        (("pipelines", -1), (2, 3)),
        (("pipelines", "0"), (2, 3)),
        (("pipelines", 1, "inputs", 0, "type"), (4, 5)),
        (("pipelines", 0, "id", "a"), (2, 9)),
        (("pipelines", 0, "inputs", 0, 3), (3, 15)),
    ],
)
def test_what_is_missing_is_where_the_nearest_value_around_it_starts(path, position):
    assert read(PLANT, None, "yaml").position(path, on_key=True) == position


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@FORMATS
def test_every_kind_of_line_end_counts_once(format, end):
    text = f'[1,{end}{end}{{"a":{end} 2}}]'

    document = read(text, None, format)

    assert document.value == [1, {"a": 2}]
    assert document.position((1, "a")) == (4, 2)


def test_a_fault_becomes_a_diagnostic_with_its_place():
    fault = Fault(
        "unknown-key",
        "unknown key 'subject'",
        found='"subject"',
        expected="topic",
        suggestion="did you mean 'topic'?",
        path=(0, "subject"),
        on_key=True,
        severity=Severity.WARNING,
    )

    place = Site(read(PLANT, "plant.yaml", "yaml")).inside("pipelines", 0, "inputs")

    diagnostic = place.diagnose(fault)

    assert diagnostic == Diagnostic(
        file="plant.yaml",
        line=3,
        column=29,
        end_line=3,
        end_column=36,
        path="pipelines[0].inputs[0].subject",
        severity=Severity.WARNING,
        code="unknown-key",
        message="unknown key 'subject'",
        found='"subject"',
        expected="topic",
        suggestion="did you mean 'topic'?",
    )


@FORMATS
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", (1, 1, "empty-document", "the document is empty")),
        (b" \n\n", (1, 1, "empty-document", "the document is empty")),
        (
            b'\xef\xbb\xbf["\xe4"]',
            (1, 3, "not-text", "byte 6 (0xe4) is not UTF-8 text"),
        ),
        (
            "[1]".encode("utf-16"),
            (1, 1, "not-text", "this is UTF-16: save it as UTF-8"),
        ),
        (
            "[1]".encode("utf-16-le"),
            (1, 1, "not-text", "this is UTF-16: save it as UTF-8"),
        ),
        (
            "[1]".encode("utf-16-be"),
            (1, 1, "not-text", "this is UTF-16: save it as UTF-8"),
        ),
        (
            '["ä",\n"'.encode() + b'\xe4"]',
            (2, 2, "not-text", "byte 9 (0xe4) is not UTF-8 text"),
        ),
        (b"\x89PNG\r\n\x1a\n\0\0", (1, 1, "not-text", "byte 1 (0x89) is not UTF-8 text")),
        (b"[1,\n\0\0", (2, 1, "not-text", "a NUL character: this is not a text file")),
        ('["\ud800"]', (1, 3, "lone-surrogate", r"\ud800 is half of a character")),
        (
            '[1,\n "\x1b"]',
            (
                2,
                3,
                "control-character",
                "the control character U+001B has to be written as an escape in quotes",
            ),
        ),
        (b" " * (LARGEST + 1), (1, 1, "too-large", "a document has at most 16 MiB")),
    ],
    ids=lambda value: repr(value)[:40],  # one of them is 16 MiB
)
def test_what_is_no_text_is_refused_with_its_place(format, text, expected):
    assert said(text, format) == [expected]


@pytest.mark.parametrize("character", ["\x7f", "\x85", "\u2028", "\u2029", "\ufeff", "\uffff"])
def test_what_yaml_takes_only_as_an_escape_is_refused_there(character):
    text = f'["{character}"]'

    assert [code for *_, code, _ in said(text, "yaml")] == ["control-character"]
    assert read(text, None, "json").value == [character]


@FORMATS
def test_a_document_with_keys_given_twice_can_still_be_checked(format):
    refused = refusal('{"a": [1], "a": {"b": 2}, "c": 3}', format)

    assert refused.document is not None
    assert refused.document.value == {"a": [1], "c": 3}
    assert refused.document.position(("a",), on_key=True) == (1, 2)


@FORMATS
@pytest.mark.parametrize("text", ['{"a": 1, "a": 1, "b": [', '{"a": 1, "a": -1e999}'])
def test_a_document_with_other_faults_cannot(format, text):
    assert refusal(text, format).document is None


def test_a_refusal_keeps_the_text_to_show_its_lines():
    assert refusal("[1,\n2").text == "[1,\n2"


@given(st.binary(max_size=40), st.sampled_from(["json", "yaml"]))
def test_any_bytes_are_read_or_refused_with_places(text, format):
    try:
        told = [Site(read(text, None, format)).diagnose(Fault("blank", "here"))]
    except Unreadable as refused:
        told = refused.diagnostics

    assert told
    assert all(said.line and said.column for said in told)


@pytest.mark.parametrize("name", ["a.yaml", "a.yml", "a.YAML", "a.b.Yml"])
def test_a_yaml_extension_in_any_case_means_yaml(tmp_path, name):
    (tmp_path / name).write_text("a: yes")

    assert read_file(tmp_path / name).value == {"a": "yes"}


@pytest.mark.parametrize("name", ["a.json", "a", ".yaml", "a.yaml.txt", "yaml"])
def test_every_other_name_means_json(tmp_path, name):
    path = tmp_path / name
    path.write_text('{"a": 1}')

    document = read_file(path)

    assert (document.value, document.file) == ({"a": 1}, str(path))
    path.write_text("a: yes")
    with pytest.raises(Unreadable):
        read_file(path)


def test_a_refused_file_is_named(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("[1,]")

    with pytest.raises(
        Unreadable, match=r"^a comma before '\]' is not JSON: remove it$"
    ) as refused:
        read_file(path)

    assert [said.file for said in refused.value.diagnostics] == [str(path)]


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("missing.yaml", "missing-file", "no such file"),
        ("", "unreadable-file", "cannot be read: Is a directory"),
        ("file/a.yaml", "unreadable-file", "cannot be read: Not a directory"),
        ("a\0.yaml", "unreadable-file", "cannot be read: embedded null byte"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_diagnostic(tmp_path, name, code, message):
    (tmp_path / "file").touch()
    path = tmp_path / name

    with pytest.raises(Unreadable) as refused:
        read_file(path)

    assert refused.value.diagnostics == [Diagnostic(file=str(path), code=code, message=message)]


def test_no_more_than_the_largest_document_is_read_of_a_file():
    with pytest.raises(Unreadable, match="at most 16 MiB"):
        read_file(pathlib.Path("/dev/zero"))


def test_reading_json_does_not_load_what_yaml_needs():
    program = (
        "import sys; from headrace.compiler.text.documents import read;"
        "read(b'[1]', None, 'json'); sys.exit('yaml' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("json", '{"password": SECRET}'),
        ("json", '{"password": SECRET'),
        ("json", '{"password": "SECRET'),
        ("json", '{"password": "a" SECRET}'),
        ("json", '{"password": 1SECRET}'),
        ("json", '{} "SECRET"'),
        ("yaml", "password: !SECRET"),
        ("yaml", "password: *SECRET"),
        ("yaml", "password: &SECRET [*SECRET]"),
        ("yaml", "password: @SECRET"),
        ("yaml", "password: 'SECRET"),
        ("yaml", "password: [SECRET"),
        ("yaml", "password: SECRET: SECRET"),
    ],
)
def test_no_value_is_repeated_in_what_is_said_of_a_document(format, text):
    assert "SECRET" not in str(refusal(text, format).diagnostics)


@FORMATS
@pytest.mark.parametrize("text", [b"\xef\xbb\xbf[1,\n 2]", "\ufeff[1,\n 2]"])
def test_a_byte_order_mark_at_the_start_is_no_part_of_the_text(format, text):
    document = read(text, None, format)

    assert (document.value, document.text) == ([1, 2], "[1,\n 2]")
    assert (document.position((0,)), document.position((1,))) == ((1, 2), (2, 2))


@FORMATS
def test_a_byte_order_mark_anywhere_else_is_refused(format):
    assert len(said("\ufeff\ufeff[1]", format)) == 1
