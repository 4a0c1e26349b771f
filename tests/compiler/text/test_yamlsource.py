"""YAML by the rules of 1.2, and what is said of a text that is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.text.diagnostics import Fault
from headrace.compiler.text.documents import Site, Unreadable, read
from headrace.compiler.text.render import render


def refusal(text):
    """Return everything that is said of a text, one line each."""
    with pytest.raises(Unreadable) as refused:
        read(text, "a.yaml", "yaml")
    return render(refused.value.diagnostics, style="plain").splitlines()


def test_block_and_flow_style_are_values_of_json():
    text = """\
    # The press line.
    pipelines:
      - id: press
        inputs: [ { type: nats, subject: plc.>, on: yes } ]
        since: 2026-03-01
        query: |
          select 1
          from t
        note: >-
          two
          lines
        'quoted': "12"
        empty:
    """

    document = read(text, None, "yaml")

    assert document.value == {
        "pipelines": [
            {
                "id": "press",
                "inputs": [{"type": "nats", "subject": "plc.>", "on": "yes"}],
                "since": "2026-03-01",
                "query": "select 1\nfrom t\n",
                "note": "two lines",
                "quoted": "12",
                "empty": None,
            }
        ]
    }


@pytest.mark.parametrize(
    "text", ["--- 1", "%YAML 1.2\n--- 1\n", "1\n...\n", "# a\n---\n1\n...\n# b"]
)
def test_one_document_may_have_its_marks(text):
    assert read(text, None, "yaml").value == 1


def test_an_alias_repeats_a_value_and_stands_where_it_is_written():
    document = read("a: &list [1, 2]\nb: *list\n", None, "yaml")

    assert document.value == {"a": [1, 2], "b": [1, 2]}
    assert document.position(("b",)) == (2, 4)
    assert document.position(("b", 1)) == (1, 14)


def test_an_alias_means_the_last_value_of_its_name():
    text = "[&a 1, *a, &a [&a 2, *a], *a, &k {&a key: *a}, *a]"

    document = read(text, None, "yaml")

    assert document.value == [1, 1, [2, 2], [2, 2], {"key": "key"}, "key"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 'b\nc: d\n", "1:4: the quoted text that starts here does not end"),
        ('a:\n  - id: "b\n    c: d\n', "2:9: the quoted text that starts here does not end"),
        ("a:\n  - b: [\n", "2:8: the list that starts here does not end"),
        ("a: {b: 1,\n  c: 2\n", "1:4: the object that starts here does not end"),
        (
            "a: [1, 2\nb: 3",
            "2:2: before this a ',' is missing, or the ']' of the list that starts on line 1",
        ),
        (
            "a: {\n  b: 1]\n}",
            "2:7: before this a ',' is missing, or the '}' of the object that starts on line 1",
        ),
        (
            "a:\n  b: 1\n c: 2",
            "3:2: this belongs to nothing before it: check the indentation, and the quotes above",
        ),
        (
            "a: 'b' c",
            "1:8: this belongs to nothing before it: check the indentation, and the quotes above",
        ),
        ("- a\nb: 1", "2:1: this is no item of the list before it: check the indentation"),
        (
            "a: b: c",
            "1:5: a ':' cannot stand here: put the text in quotes, or check the indentation",
        ),
        ("a: - b", "1:4: a list cannot start here: put its first '-' on a line of its own"),
        ("a:\n- b\nc\n", "3:1: a ':' is missing after this key"),
        ("a: @b", "1:4: '@' cannot start a value: put the value in quotes"),
        ("a: *.log", "1:4: '&' and '*' start the name of a value: put the text in quotes"),
        ("a: !{b", "1:4: '!' starts a tag: put the text in quotes"),
        ("[a, , b]", "1:5: a value is missing before this"),
        (
            r'a: "C:\plc"',
            "1:7: this is not a YAML escape: put a text with backslashes in single quotes",
        ),
        (
            r'a: "\xzz"',
            "1:7: this is not a YAML escape: put a text with backslashes in single quotes",
        ),
        (
            r'a: "\ud83d\ude00"',
            "1:7: this escape is no character: "
            r"a character beyond U+FFFF is one escape, such as \U0001F600",
        ),
        ("a: 1\n...\nb", "3:1: text after the end of the document"),
        ("%YAML 2.0\n---\na", "1:1: only YAML 1.1 and 1.2 can be read"),
        (
            "a: > b\n c",
            "1:6: while scanning a block scalar: did not find expected comment or line break",
        ),
        ("--- a\n--- b", "2:1: a second document starts here: a config is one document"),
    ],
)
def test_what_is_not_yaml_is_refused_with_its_place(text, said):
    assert refusal(text) == [f"a.yaml:{said}"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("\ta: 1", "1:1"),
        ("a:\n\tb: 1", "2:1"),
        ("a:\r\n  b: 1\r\n\tc: 2", "3:1"),
        ("a:\n  - b\n \t- c", "3:2"),
        ("a: |\n  b\n\tc", "3:1"),
    ],
)
def test_a_tab_cannot_indent(text, place):
    assert refusal(text) == [f"a.yaml:{place}: a tab cannot indent YAML: use spaces"]


def test_a_tab_elsewhere_is_a_blank():
    assert read("a:\tb\t# c\nd: [1,\n\t2]", None, "yaml").value == {"a": "b", "d": [1, 2]}


@pytest.mark.parametrize("text", ["", " \n\n", "# nothing\n", "---\n", "--- # nothing\n...\n"])
def test_a_document_without_a_value_is_empty(text):
    assert refusal(text) == ["a.yaml:1:1: the document is empty"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: {1: x}", '1:5: a: a key has to be a string: write "1"'),
        ("null: x", '1:1: a key has to be a string: write "null"'),
        ("true: x", '1:1: a key has to be a string: write "true"'),
        ("?\n: x", "1:2: a key is missing here"),
        ("? [a]\n: x", "1:3: a list cannot be a key"),
        ("{{a: 1}: x}", "1:2: an object cannot be a key"),
        ("a: &b c\n*b : d", "2:1: an alias cannot be a key"),
        (".inf: x", "1:1: this number is not finite"),
        (
            "a:\n  <<: {b: 1}",
            "2:3: a: merge keys ('<<') are not part of YAML 1.2: write the keys out "
            "(an alias ('*name') can stand for a whole value)",
        ),
        (
            "a: !!str 1",
            "1:4: a: a tag ('!') has no meaning here: remove it, or put the text in quotes",
        ),
        (
            "a: !env [b]",
            "1:4: a: a tag ('!') has no meaning here: remove it, or put the text in quotes",
        ),
        ("!a b: c", "1:1: a tag ('!') has no meaning here: remove it, or put the text in quotes"),
        (
            "a: *b",
            "1:4: a: this alias names nothing that stands above "
            "(put a text that starts with '*' in quotes)",
        ),
        ("a: &b [1, *b]", "1:11: a[1]: this alias stands for a value that contains it"),
        ("b: 1\na: {b: 2, b: 3}", "2:11: a.b: duplicate key 'b': first given on line 2, column 5"),
        (
            "'a b': 1\n\n\"a\\x20b\": 2",
            "3:1: [\"a b\"]: duplicate key 'a b': first given on line 1, column 1",
        ),
        ("a:\n- .nan", "2:3: a[0]: this number is not finite"),
    ],
)
def test_what_a_config_cannot_mean_is_refused_with_its_path(text, said):
    assert refusal(text) == [f"a.yaml:{said}"]


def test_yes_and_on_are_keys_like_any_other():
    assert read('yes: 1\non: 2\n"1": 3\n"<<": 4\n', None, "yaml").value == {
        "yes": 1,
        "on": 2,
        "1": 3,
        "<<": 4,
    }


def test_everything_that_is_wrong_up_to_the_end_is_told():
    assert refusal("a: 1\na: 2\nb: .inf\nc: !x 1\n2: d\ne: *f\ng: 'h") == [
        "a.yaml:2:1: a: duplicate key 'a': first given on line 1, column 1",
        "a.yaml:3:4: b: this number is not finite",
        "a.yaml:4:4: c: a tag ('!') has no meaning here: remove it, or put the text in quotes",
        'a.yaml:5:1: a key has to be a string: write "2"',
        "a.yaml:6:4: e: this alias names nothing that stands above "
        "(put a text that starts with '*' in quotes)",
        "a.yaml:7:4: the quoted text that starts here does not end",
    ]


@pytest.mark.parametrize("opening", ["[", "- ", "{a: "])
def test_nesting_is_bounded(opening):
    text = opening * 10_000

    assert refusal(text) == [
        f"a.yaml:1:{128 * len(opening) + 1}: lists and objects are nested more than 128 deep"
    ]


@pytest.mark.parametrize(("levels", "accepted"), [(64, True), (65, False)])
def test_nesting_is_bounded_through_aliases(levels, accepted):
    inner = "[" * 64 + "]" * 64
    text = f"- &a {inner}\n- {'[' * (levels - 1)}*a{']' * (levels - 1)}\n"

    if accepted:
        assert read(text, None, "yaml").value
    else:
        assert refusal(text) == ["a.yaml:2:67: lists and objects are nested more than 128 deep"]


def test_aliases_cannot_multiply_without_end():
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for name, before in zip("bcdefghi", "abcdefgh", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]")

    assert refusal("\n".join(lines)) == [
        "a.yaml:6:8: the aliases up to here stand for more than 100,000 values"
    ]


@given(st.text("a:-[]{},'\"\\&*!|>%@#?~<. \n\t\r1é", max_size=20))
def test_any_text_is_read_or_refused_with_places(text):
    try:
        told = [Site(read(text, None, "yaml")).diagnose(Fault("blank", "here"))]
    except Unreadable as refused:
        told = refused.diagnostics

    assert told
    assert all(said.line and said.column for said in told)
