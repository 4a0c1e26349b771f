"""Strict JSON, and what is said of a text that is not."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.compiler.text.documents import Unreadable, read
from headrace.compiler.text.render import render


def refusal(text):
    """Return everything that is said of a text, one line each."""
    with pytest.raises(Unreadable) as refused:
        read(text, "a.json", "json")
    return render(refused.value.diagnostics, style="plain").splitlines()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1', "1:1: the object that starts here does not end"),
        ('{"a":\n [1, 2', "2:2: the list that starts here does not end"),
        ('{"a": [', "1:7: the list that starts here does not end"),
        ('{"a": {"b": 1,', "1:7: the object that starts here does not end"),
        ("[1,\n2,\n]", "2:2: a comma before ']' is not JSON: remove it"),
        ('{"a": 1,}', "1:8: a comma before '}' is not JSON: remove it"),
        ("[1 2]", "1:4: a comma is missing before this"),
        ('{"a": 1\n "b": 2}', "2:2: a comma is missing before this"),
        ('[{"a": 1}\n {"b": 2}]', "2:2: a comma is missing before this"),
        ("[1,,2]", "1:4: ',' cannot stand here"),
        ("[\n1}", "2:2: '}' cannot stand here in the list that starts on line 1"),
        ('{"a": 1]', "1:8: ']' cannot stand here in the object that starts on line 1"),
        ('["a": 1]', "1:5: ':' cannot stand here in the list that starts on line 1"),
        ('{"a": }', "1:7: '}' cannot stand here"),
        ("{,}", "1:2: ',' cannot stand here"),
        ('{"a"}', "1:5: no ':' follows the key"),
        ('{"a"; 1}', "1:5: no ':' follows the key"),
        ("{a: 1}", "1:2: the key 'a' needs double quotes"),
        ("{'a': 1}", "1:2: JSON strings take double quotes"),
        ("['a']", "1:2: JSON strings take double quotes"),
        (
            "[True]",
            "1:2: this word is not JSON: a string takes double quotes (did you mean 'true'?)",
        ),
        ("[kafka]", "1:2: this word is not JSON: a string takes double quotes"),
        ("[1] // all", "1:5: text after the end of the document"),
        ("[1]\n[2]", "2:1: text after the end of the document"),
        ("[1, // one\n2]", "1:5: JSON has no comments: remove it"),
        ("# all\n[1]", "1:1: JSON has no comments: remove it"),
        ("[/* one */ 1]", "1:2: JSON has no comments: remove it"),
        ('["a', "1:2: the string that starts here does not end"),
        ('["a\\"]', "1:2: the string that starts here does not end"),
        (
            '{"id": "a,\n"b": 1}',
            "1:8: the string that starts here has no end on its line: close it, or write \\n",
        ),
        ('["a\tb"]', "1:4: a string cannot contain a tab: write \\t"),
        (r'["C:\plc"]', r"1:5: '\p' is not a JSON escape"),
        (r'["\u12"]', r"1:3: '\u' is not a JSON escape"),
    ],
)
def test_what_is_not_json_is_refused_with_its_place(text, said):
    assert refusal(text) == [f"a.json:{said}"]


@pytest.mark.parametrize(
    "text",
    [
        *("01", "-01", "1.", ".5", "1.5.5", "+1", "--1", "-", "1-2", "0x10", "1_000", "1e", "1e+"),
        *("NaN", "nan", "Infinity", "-Infinity"),
    ],
)
def test_what_is_no_json_number_is_refused(text):
    assert refusal(f"[0, {text}]") == ["a.json:1:5: this is not a JSON number"]


def test_a_word_that_is_nearly_one_of_json_is_recognised():
    with pytest.raises(Unreadable) as refused:
        read("[True]", None, "json")

    assert refused.value.diagnostics[0].suggestion == "did you mean 'true'?"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": [0, 1e400]}', "1:11: a[1]: this number is not finite"),
        (f"[{'9' * 4301}]", "1:2: [0]: a whole number has at most 4,300 digits"),
        (r'{"a": "\ud800"}', r"1:7: a: \ud800 is half of a character"),
        (r'{"a": {"\udc00": 1}}', r"1:8: a: \udc00 is half of a character"),
        ('{"a": 1,\n "a": 2}', "2:2: a: duplicate key 'a': first given on line 1, column 2"),
    ],
)
def test_a_value_that_cannot_be_kept_is_refused_with_its_path(text, said):
    assert refusal(text) == [f"a.json:{said}"]


def test_everything_that_is_wrong_up_to_the_end_is_told():
    text = '{"a": 1, "a": 2,\n"b": 1e400,\n"c": {"d": 1, "d": 2},\n"e" 1}'

    assert refusal(text) == [
        "a.json:1:10: a: duplicate key 'a': first given on line 1, column 2",
        "a.json:2:6: b: this number is not finite",
        "a.json:3:15: c.d: duplicate key 'd': first given on line 3, column 7",
        "a.json:4:4: no ':' follows the key",
    ]


def test_of_countless_faults_a_hundred_are_told():
    assert len(refusal('{"a": 1' + ', "a": 1' * 10_000 + "}")) == 100


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_nesting_is_bounded(opening):
    closing = "]" if opening == "[" else "}"
    deepest = opening * 128 + "1" + closing * 128

    assert read(deepest, None, "json").value == json.loads(deepest)
    assert refusal(opening * 100_000) == [
        f"a.json:1:{128 * len(opening) + 1}: lists and objects are nested more than 128 deep"
    ]


@given(st.text("[]{},:\"\\'019.-+eE truefalsnx/\n\t", max_size=12))
@example('{"a":[{}, [ ]], "b":-0.0E+1}')
@example('"\\ud83d\\ude00"')
def test_exactly_what_the_standard_library_reads_is_read(text):
    assert read_here(text) == read_there(text)


def read_here(text):
    """Return the value of a text, or nothing if it is not JSON."""
    try:
        return [read(text, None, "json").value]
    except Unreadable as refused:
        stricter = {"duplicate-key", "lone-surrogate", "number-too-large"}
        is_json = refused.diagnostics[0].code in stricter
        return read_there(text) if is_json else []


def read_there(text):
    try:
        return [json.loads(text, parse_constant=int)]
    except ValueError:
        return []
