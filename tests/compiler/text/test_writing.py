"""Documents as text: whatever is written reads back as it was, also with other people's loaders."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.text.composing import VALUES
from headrace.compiler.text.decoding import LARGEST
from headrace.compiler.text.documents import read
from headrace.compiler.text.writing import Unwritable, write, write_flow

MEANT_OTHERWISE = [
    *("null", "Null", "~", "yes", "No", "on", "off", "y", "N", "true", "TRUE", "1", "1.0", "1e16"),
    *("-1", "+1", "0x1f", "0o7", "010", "0b1", "1_000", "12:30:45", "2026-03-01", ".inf", "-.inf"),
    *(
        ".nan",
        "NaN",
        "<<",
        "=",
        "---",
        "...",
        "- a",
        "-",
        "? a",
        "a: b",
        "a:",
        "a #b",
        "#x",
        "",
        " ",
    ),
    *(
        " x",
        "x ",
        "'",
        '"',
        "`",
        "@a",
        "%a",
        "!a",
        "&a",
        "*a",
        "|",
        ">",
        "[]",
        "{}",
        ",",
        "a,b",
        "\\",
    ),
]
LINES = [
    *("a\nb", "a\nb\n", "a\n\nb\n\n", "\na", "\n", "\n\n", " a\nb", "a\n  b", "\ta\nb", "a\n\tb"),
    *("a \nb", "a\n \nb", "a\n ", "a\r\nb", "a\rb", "# a\n- b: c\n", "---\na\n", "a\n\n "),
]
UNPRINTED = [
    "\x00",
    "\x07",
    "\x1b[0m",
    "\x7f",
    "\x85",
    "\u2028",
    "\u2029",
    "\ufeff",
    "\uffff",
    "\t",
]
UNICODE = ["ü", "日本 語", "👩‍🏭", "e\u0301", "\u00a0", "\u202e", "\U0010ffff"]
LONG = ["x" * 300, "x" * 1500, "\x01" * 400, "word " * 400]
NUMBERS = [0, -1, 2**63, 2**64, -(10**400), 0.0, -0.0, 1e16, 1e-5, 1.5, 5e-324, -1.7e308, 0.1]

strings = st.one_of(
    st.sampled_from([*MEANT_OTHERWISE, *LINES, *UNPRINTED, *UNICODE, *LONG]),
    st.text(max_size=12),
    st.text(alphabet=" \n\t-:#'\"|>a1.{}[],&*!%@`?~=<\\\r\x85\u2028\ufeff0xé", max_size=14),
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(NUMBERS),
    strings,
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(strings, inner, max_size=4)
    ),
    max_leaves=25,
)
documents = st.one_of(st.lists(values, max_size=3), st.dictionaries(strings, values, max_size=3))


def same(one: Any, other: Any) -> bool:
    """Compare with types, signs of zeros and the order of keys."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return [*one] == [*other] and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return repr(one) == repr(other)


@given(documents)
def test_whatever_is_written_reads_back_the_same(document: Any) -> None:
    as_json, as_yaml = write(document, "json"), write(document, "yaml")

    assert same(read(as_json, None, "json").value, document)
    assert same(read(as_yaml, None, "yaml").value, document)
    assert same(json.loads(as_json), document)


@given(documents)
def test_a_yaml_1_1_loader_reads_the_same(document: Any) -> None:
    text = write(document, "yaml")

    assert same(yaml.load(text, Loader=yaml.SafeLoader), document)


@pytest.mark.parametrize("value", [*MEANT_OTHERWISE, *LINES, *UNPRINTED, *UNICODE, *LONG, *NUMBERS])
@pytest.mark.parametrize("holder", [lambda it: [it], lambda it: {"a": it}, lambda it: [[it], it]])
def test_each_of_the_difficult_ones_is_kept(value: Any, holder: Any) -> None:
    document = holder(value)

    for format in ("json", "yaml"):
        assert same(read(write(document, format), None, format).value, document)
    assert same(yaml.load(write(document, "yaml"), Loader=yaml.CSafeLoader), document)


@pytest.mark.parametrize("key", [*MEANT_OTHERWISE, *LINES, *UNPRINTED, *UNICODE, *LONG])
def test_each_of_them_is_kept_as_a_key(key: str) -> None:
    document = {key: {key: [{key: 1}]}}

    for format in ("json", "yaml"):
        assert same(read(write(document, format), None, format).value, document)


def test_json_is_indented_by_two_and_ends_in_one_line_break() -> None:
    document = [{"id": "ü", "inputs": [{"type": "dummy", "n": 1e16}], "outputs": [], "state": {}}]

    assert write(document, "json") == (
        "[\n"
        "  {\n"
        '    "id": "ü",\n'
        '    "inputs": [\n'
        "      {\n"
        '        "type": "dummy",\n'
        '        "n": 1e16\n'
        "      }\n"
        "    ],\n"
        '    "outputs": [],\n'
        '    "state": {}\n'
        "  }\n"
        "]\n"
    )


def test_yaml_is_in_blocks_quoted_where_it_has_to_be_and_scripts_are_readable() -> None:
    document = {
        "state": {"modes": {}},
        "pipelines": [
            {
                "id": "press 7",
                "inputs": [{"type": "nats", "subject": "plc.>", "n": [1, -2.5, 1e16, None, True]}],
                "transforms": [{"code": "// a: b\nemit(msg);\n"}, {"code": "a\nb"}],
                "at": ["null", "12:30", "größe", "it's", "a: b", 'a "b"', "nats://a:4222", "a\tb"],
                "outputs": [],
            }
        ],
    }

    assert write(document, "yaml") == (
        "state:\n"
        "  modes: {}\n"
        "pipelines:\n"
        "  - id: press 7\n"
        "    inputs:\n"
        "      - type: nats\n"
        "        subject: plc.>\n"
        "        'n':\n"
        "          - 1\n"
        "          - -2.5\n"
        "          - 1.0e+16\n"
        "          - null\n"
        "          - true\n"
        "    transforms:\n"
        "      - code: |\n"
        "          // a: b\n"
        "          emit(msg);\n"
        "      - code: |-\n"
        "          a\n"
        "          b\n"
        "    at:\n"
        "      - 'null'\n"
        "      - '12:30'\n"
        "      - 'größe'\n"
        "      - 'it''s'\n"
        "      - 'a: b'\n"
        "      - 'a \"b\"'\n"
        "      - nats://a:4222\n"
        '      - "a\\tb"\n'
        "    outputs: []\n"
    )


@pytest.mark.parametrize(("empty", "text"), [([], "[]\n"), ({}, "{}\n")])
def test_what_is_empty_is_written_on_one_line(empty: Any, text: str) -> None:
    assert (write(empty, "json"), write(empty, "yaml")) == (text, text)


def test_a_value_that_stands_twice_is_written_twice() -> None:
    shared = {"a": 1}

    assert write([shared, shared], "yaml") == "- a: 1\n- a: 1\n"


def nested(levels: int) -> Any:
    """Return lists in each other."""
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize("format", ["json", "yaml"])
def test_what_nests_as_deep_as_a_document_may_is_written(format: Any) -> None:
    assert read(write(nested(128), format), None, format).value == nested(128)


@pytest.mark.parametrize("format", ["json", "yaml"])
def test_what_nests_deeper_is_not_written(format: Any) -> None:
    with pytest.raises(
        Unwritable, match=r"^lists and objects in it are nested more than 128 deep$"
    ):
        write(nested(129), format)


@pytest.mark.parametrize("format", ["json", "yaml"])
def test_what_is_larger_than_a_document_may_be_is_not_written(format: Any) -> None:
    with pytest.raises(
        Unwritable, match=r"^it is larger than the 16 MiB that a document may have$"
    ):
        write(["ü" * (LARGEST // 2)], format)


@pytest.mark.long
@pytest.mark.parametrize("format", ["json", "yaml"])
@pytest.mark.parametrize("values", [[0] * VALUES, [{"a": []}] * (VALUES // 2)])
def test_what_has_more_values_than_a_document_may_have_is_not_written(
    format: Any, values: Any
) -> None:
    said = "^it has more than the 1,000,000 values that a document may have$"
    with pytest.raises(Unwritable, match=said):
        write(values, format)


@pytest.mark.parametrize(
    ("value", "yaml_text", "json_text"),
    [
        ({"1m30s": {"$has": {"n": 2}}}, "{ 1m30s: { $has: { n: 2 } } }", None),
        ([1, 2.5, None, True], "[1, 2.5, null, true]", "[1, 2.5, null, true]"),
        ({"a": [], "b": {}}, "{ a: [], b: {} }", '{ "a": [], "b": {} }'),
        ("a, b", "'a, b'", '"a, b"'),
        ({"a{b": "c]"}, "{ 'a{b': 'c]' }", '{ "a{b": "c]" }'),
        (["off", "two words", "x\ny"], r"""['off', two words, "x\ny"]""", None),
        (1e300, "1.0e+300", "1e300"),
    ],
)
def test_on_one_line(value: Any, yaml_text: str, json_text: str | None):
    assert write_flow(value, "yaml") == yaml_text
    assert read(yaml_text, None, "yaml").value == value
    assert yaml.safe_load(yaml_text) == value
    if json_text is not None:
        assert write_flow(value, "json") == json_text
        assert json.loads(json_text) == value


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(MEANT_OTHERWISE),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_what_is_written_on_one_line_reads_back(value: Any):
    for format in ("yaml", "json"):
        written = write_flow(value, format)
        assert "\n" not in written
        assert read(written, None, format).value == value
    assert yaml.safe_load(write_flow(value, "yaml")) == value
