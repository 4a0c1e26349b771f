"""What a `parse` refuses, and what is known of what it hands on."""

import pytest

from headrace.compiler.component.catalogue import scan
from headrace.compiler.config.program import load_program
from headrace.compiler.text.documents import read
from headrace.operators.parse import Parse
from tests.doubles import refusals

SPLIT = {"by": "/", "into": ["a"]}


@pytest.mark.parametrize(
    ("document", "reasons"),
    [
        ({}, ["from: this key is required"]),
        ({"from": "v"}, [": 'parse' needs a form: how the text is read"]),
        (
            {"from": "v", "split": SPLIT, "preset": "common"},
            [": 'parse' has one form, not both 'preset' and 'split'"],
        ),
        (
            {"from": "v", "split": {"by": "", "into": []}},
            [
                "split.by: this must not be empty",
                "split.into: expected a list of at least one name, found an empty list",
            ],
        ),
        (
            {"from": "v", "split": {"by": "/", "into": ["a", None, "a"]}},
            ["split.into[2]: 'a' is the name of into[0] already"],
        ),
        (
            {"from": "v", "csv": {"columns": [None, None]}},
            ["csv.columns: 'columns' has no name: every one is left out"],
        ),
        (
            {"from": "v", "split": {"by": "-" * 21, "into": ["a"]}},
            ["split.by: a text of 21 characters is too long here"],
        ),
        (
            {"from": "v", "as": "o", "pairs": {"between": "", "within": "-" * 21}},
            [
                "pairs.between: this must not be empty",
                "pairs.within: a text of 21 characters is too long here",
            ],
        ),
        (
            {"from": "v", "csv": {"columns": ["a"], "separator": '"'}},
            [
                'csv.separator: expected one character that is no quote and ends no line, found "\\""'
            ],
        ),
        (
            {"from": "v", "csv": {"columns": ["a"], "separator": ", "}},
            ['csv.separator: expected one character that is no quote and ends no line, found ", "'],
        ),
        (
            {"from": "v", "split": {"by": "/", "into": [f"n{n}" for n in range(1001)]}},
            ["split.into: expected at most 1,000 names, found a list of 1,001"],
        ),
        (
            {"from": "v", "pairs": {}},
            [": 'pairs' needs 'as': the text chooses the names, and could overwrite any field"],
        ),
        (
            {"from": "v", "preset": "logfmt"},
            [": 'logfmt' needs 'as': the text chooses the names, and could overwrite any field"],
        ),
        (
            {"from": "v", "preset": "combined", "types": {"status": "text"}},
            ["types: the fields of 'combined' have their types already"],
        ),
        (
            {"from": "v", "split": SPLIT, "types": {"b": "integer"}},
            ["types.b: 'b' is no field that 'split' makes"],
        ),
        (
            {"from": "v", "split": SPLIT, "types": {"a": "int"}},
            [
                "types.a: expected one of text, integer, float, boolean, timestamp, date, uuid, json, "
                'found "int"'
            ],
        ),
        (
            {"from": "v", "split": SPLIT, "max_length": 262_145},
            ["max_length: expected an integer of at least 1 and of at most 262144, found 262145"],
        ),
        (
            {"from": "v", "preset": "combined", "zone": "UTC"},
            ["zone: 'combined' has no times without a zone"],
        ),
        *(
            ({"from": "v", "preset": "syslog", "zone": zone}, [f'zone: there is no zone "{zone}"'])
            for zone in ("Berlin", "localtime", "../etc/passwd", "Europe/Nowhere", "")
        ),
        (
            {"from": "v", "preset": "grok"},
            ['preset: expected one of combined, common, syslog, logfmt, found "grok"'],
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(document, reasons):
    assert refusals(Parse, document) == reasons


@pytest.mark.engine
@pytest.mark.parametrize(
    ("regex", "reason"),
    [
        ("^(?<a>x", "regex: "),
        ("^x$", "regex: this pattern has no group with a name, so nothing would be written"),
        ("(x)", "regex: this pattern has no group with a name, so nothing would be written"),
        (r"^(?<a>x)\1$", "regex: "),
    ],
)
def test_a_pattern_compiles_and_names_a_group(regex, reason):
    [said] = refusals(Parse, {"from": "v", "regex": regex})

    assert said.startswith(reason)


@pytest.mark.engine
@pytest.mark.parametrize(
    ("options", "remarks"),
    [
        ("regex: '^(?<a>[a-z]+) (?<b>.*)$'", []),
        ("regex: '(?<a>[a-z]+)@(?<b>[a-z.]+)', max_length: 10000", []),
        ("regex: '(?<a>[a-z]+)@(?<b>[a-z.]+)'", ["shorter-texts"]),
    ],
)
def test_a_pattern_that_does_not_search_texts_as_long_as_may_come_is_told(options, remarks):
    text = CHAIN.format(parse=f"{{ type: parse, from: v, {options} }}", read="a")

    known = scan("headrace.operators", "headrace.connectors")
    _, said = load_program(read(text, "mill.yaml", "yaml"), known)

    assert [each.code for each in said if each.code == "shorter-texts"] == remarks


def test_the_echo_is_what_was_written():
    document = {
        "type": "parse",
        "from": "v",
        "split": {"by": "/", "into": ["a", None]},
        "types": {"a": "integer"},
        "on_mismatch": "skip",
    }

    assert Parse.load({k: v for k, v in document.items() if k != "type"}).dump() == document


CHAIN = """\
pipelines:
  - inputs: [{{ type: http }}]
    transforms:
      - {parse}
      - {{ type: map, mappings: [{{ type: copy, from: {read}, as: x }}] }}
"""


@pytest.mark.parametrize(
    ("options", "path", "remarks"),
    [
        ("csv: { columns: [a] }", "b", []),
        ("csv: { columns: [a] }, keep: parsed", "a", []),
        ("csv: { columns: [a] }, keep: parsed", "b", ["not-handed-on"]),
        ("csv: { columns: [a] }, keep: parsed, on_mismatch: keep", "b", []),
        ("csv: { columns: [a] }, as: o, keep: parsed", "o.a", []),
        ("csv: { columns: [a] }, as: o, keep: parsed", "o.b", ["not-handed-on"]),
        ("csv: { columns: [a.b] }, as: o, keep: parsed", "o.b", []),
        ("pairs: {}, as: o", "o.b", []),
        ("preset: combined, keep: parsed", "request", []),
        ("preset: common, keep: parsed", "agent", ["not-handed-on"]),
    ],
)
def test_what_is_read_behind_it_and_cannot_be_there_is_told(options, path, remarks):
    text = CHAIN.format(parse=f"{{ type: parse, from: v, {options} }}", read=path)

    known = scan("headrace.operators", "headrace.connectors")
    _, said = load_program(read(text, "mill.yaml", "yaml"), known)

    assert [each.code for each in said if each.code == "not-handed-on"] == remarks


def test_a_text_that_surely_is_missing_is_told():
    first = "{ type: map, keep: mapped, mappings: [{ type: copy, from: a, as: b }] }"
    second = "{ type: parse, from: v, preset: common }"
    text = f"pipelines: [{{ inputs: [{{ type: http }}], transforms: [{first}, {second}] }}]"

    _, said = load_program(
        read(text, "mill.yaml", "yaml"), scan("headrace.operators", "headrace.connectors")
    )

    assert [(each.code, each.path) for each in said if each.code == "not-handed-on"] == [
        ("not-handed-on", "pipelines[0].transforms[1]")
    ]
