"""A text that is malformed by a sign or two is refused, and checked to its end all the same."""

import pytest

from headrace.compiler.text.documents import Unreadable, read
from headrace.compiler.text.render import render


def refusal(text, format="yaml"):
    """Return why a text is refused."""
    with pytest.raises(Unreadable) as refused:
        read(text, "a", format)
    assert refused.value.document is None
    return refused.value


def said(refused):
    """Return what is told, one line each."""
    return render(refused.diagnostics, style="plain").splitlines()


TAB = "a tab cannot indent YAML: use spaces"
COMMA = "a comma after a value is not YAML: remove it"


@pytest.mark.parametrize(
    ("text", "value", "path", "place"),
    [
        ("a:\n\tb: 1\n\tc: x\n", {"a": {"b": 1, "c": "x"}}, ("a", "c"), (3, 5)),
        ("a:\n  - b: 1\n\tc: x\n", {"a": [{"b": 1, "c": "x"}]}, ("a", 0, "c"), (3, 5)),
        ("a:\n  - b\n \t- c\n", {"a": ["b - c"]}, None, None),
        ("a:\n\t- b: |\n\t\tx\n\t\ty\n", {"a": [{"b": "x\ny\n"}]}, ("a", 0, "b"), (2, 7)),
    ],
)
def test_tabs_that_can_mean_one_thing_only_are_read_on(text, value, path, place):
    refused = refusal(text)

    assert [one.code for one in refused.diagnostics] == ["tab"]
    if path is None:  # a width of two makes an item of it, one of eight a text
        assert refused.mended is None
    else:
        assert refused.mended.value == value
        assert refused.mended.position(path) == place
        assert refused.mended.text == text


@pytest.mark.parametrize("text", ["\t", "a: 1\n\tb: [", "-\tx: 1\n\t\ty: 2\n"])
def test_tabs_that_can_mean_nothing_are_told_and_no_more(text):
    refused = refusal(text)

    assert refused.mended is None
    assert not refused.meanings
    assert refused.diagnostics[0].code in ("tab", "malformed-yaml", "empty-document")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a:\n  b:\n\tc: 1\n", [{"a": {"b": {"c": 1}}}, {"a": {"b": None, "c": 1}}]),
        ("a:\n  b: 1\n\tc: 2\n", [{"a": {"b": 1, "c": 2}}]),
        ("a:\n    - b: 1\n\tc: 2\n", [{"a": [{"b": 1, "c": 2}]}]),
        (
            "a:\n  b:\n    - c: 1\n\td: 2\n",
            [{"a": {"b": [{"c": 1, "d": 2}]}}, {"a": {"b": [{"c": 1}], "d": 2}}],
        ),
        (
            "a:\n  - b:\n    # of no matter\n\t\n\t- c\n",
            [{"a": [{"b": ["c"]}]}, {"a": [{"b": None}, "c"]}],
        ),
    ],
)
def test_tabs_that_can_mean_several_things_leave_each_with_the_nearest_first(text, values):
    refused = refusal(text)

    assert [one.code for one in refused.diagnostics] == ["tab"]
    meanings = [(each.document.value, each.is_nearest) for each in refused.meanings]
    if len(values) == 1:
        assert refused.mended.value == values[0]
        assert meanings == []
    else:
        assert meanings == [(value, place == 0) for place, value in enumerate(values)]


def test_what_is_wrong_in_one_meaning_only_is_told_with_that():
    refused = refusal("a:\n  b: [1],\n  c:\n    - d: 1\n\tb: 2\n")

    assert [one.code for one in refused.diagnostics] == ["malformed-yaml", "tab"]
    assert [[one.code for one in each.diagnostics] for each in refused.meanings] == [
        [],
        ["duplicate-key"],
    ]


def test_a_second_document_is_told_and_the_first_one_is_there():
    refused = refusal("a: 1\n---\nb: [\n")

    assert said(refused) == ["a:2:1: a second document starts here: a config is one document"]
    assert refused.mended.value == {"a": 1}


@pytest.mark.parametrize(
    ("text", "value", "places"),
    [
        ("a: [1],\nb: 2\n", {"a": [1], "b": 2}, ["1:7"]),
        ("- {a: 1},\n- {a: 2}, # two\n- 'x',", [{"a": 1}, {"a": 2}, "x"], ["1:9", "2:9", "3:6"]),
        ("{a: 1},\n", {"a": 1}, ["1:7"]),
        ('a: "x",\nb: 1\n', {"a": "x", "b": 1}, ["1:7"]),
    ],
)
def test_a_comma_after_a_value_is_told_and_read_over(text, value, places):
    refused = refusal(text)

    assert said(refused) == [f"a:{place}: {COMMA}" for place in places]
    assert refused.mended.value == value


def test_a_comma_in_the_middle_of_a_line_is_not_read_over():
    refused = refusal("a: [1], b\nc: 1\n")

    assert refused.mended is None
    assert len(refused.diagnostics) == 1


def test_a_comma_before_the_end_is_told_and_read_over_in_json():
    refused = refusal('{"a": [1, 2,],\n "b": {"c": 3,},}', "json")

    assert said(refused) == [
        "a:1:12: a comma before ']' is not JSON: remove it",
        "a:2:14: a comma before '}' is not JSON: remove it",
        "a:2:16: a comma before '}' is not JSON: remove it",
    ]
    assert refused.mended.value == {"a": [1, 2], "b": {"c": 3}}
    assert refused.mended.position(("b", "c")) == (2, 13)


@pytest.mark.parametrize("text", ["[,]", "[1,,2]", "{,}"])
def test_other_commas_are_not_read_over_in_json(text):
    assert refusal(text, "json").mended is None


@pytest.mark.parametrize(
    ("text", "value", "column"),
    [
        ("{ a: ${KEY} }", {"a": "${KEY}"}, 6),
        ("{ a: ${KEY}, b: 1 }", {"a": "${KEY}", "b": 1}, 6),
        ("[ Bearer ${KEY} ]", ["Bearer ${KEY}"], 3),
        (
            "{a: amqp://${KEY}:${OTHER}@h:1/x, b: 1}",
            {"a": "amqp://${KEY}:${OTHER}@h:1/x", "b": 1},
            5,
        ),
    ],
)
def test_a_reference_without_quotes_in_brackets_is_told_as_that(text, value, column):
    refused = refusal(text)

    assert said(refused) == [
        f"a:1:{column}: inside {{ }} and [ ] a text with ${{KEY}} has to be in quotes"
        ' (write "${KEY}", if a text is taken here)'
    ]
    assert refused.mended.value == value


def test_a_reference_in_a_block_needs_no_quotes():
    assert read("a: ${KEY}\nb: x ${OTHER}\n", None, "yaml").value == {
        "a": "${KEY}",
        "b": "x ${OTHER}",
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{ a: >, b: 1 }", {"a": ">", "b": 1}),
        ("{ a: *, b: 1 }", {"a": "*", "b": 1}),
        ("[ @a, b ]", ["@a", "b"]),
    ],
)
def test_a_sign_without_quotes_in_brackets_is_told_and_read_on(text, value):
    refused = refusal(text)

    assert len(refused.diagnostics) == 1
    assert refused.mended.value == value


def test_all_that_is_malformed_is_told_at_once():
    refused = refusal("a:\n\t- [1],\n\t- { b: ${KEY} },\nc: 1\nc: 2\n---\nd: 1\n")

    assert [(one.line, one.column, one.code) for one in refused.diagnostics] == [
        (2, 1, "tab"),
        (2, 7, "malformed-yaml"),
        (3, 9, "malformed-yaml"),
        (3, 17, "malformed-yaml"),
        (5, 1, "duplicate-key"),
        (6, 1, "several-documents"),
    ]
    assert refused.mended.value == {"a": [[1], {"b": "${KEY}"}], "c": 1}


def test_a_fault_of_a_value_leaves_nothing_to_check():
    assert refusal("a: .inf\nb: [1],\n").mended is None


@pytest.mark.parametrize("text", ["- [1],\n", "\t- a\n", "- { a: ${B} }\n"])
def test_a_text_that_is_all_wrong_is_read_again_a_few_times_only(text, monkeypatch):
    reads = []
    reader = read_of_yaml()
    monkeypatch.setattr(
        "headrace.compiler.text.yamlsource.read_yaml",
        lambda *given: (reads.append(1), reader(*given))[1],
    )

    refused = refusal(text * 10_000)

    assert len(refused.diagnostics) <= 32
    assert len(reads) <= 32


def read_of_yaml():
    """Return what reads YAML."""
    from headrace.compiler.text.yamlsource import read_yaml

    return read_yaml
