"""What somebody writes who knows other tools, or has read nothing, and what they are told to write."""

from __future__ import annotations

import pytest

from headrace.authoring.configfiles import catalogue
from headrace.compiler.config.connectionsfile import load_connections
from headrace.compiler.config.program import load_program
from headrace.compiler.text.documents import read

KNOWN = catalogue()


def told(text: str) -> list[tuple[str, str | None]]:
    """Return what is wrong with a config: the last key of its path and what is suggested."""
    _, diagnostics = load_program(read(text, None, "yaml"), KNOWN)
    return [(one.path.rpartition(".")[2], one.suggestion) for one in diagnostics]


def pipeline(transform: str) -> str:
    return f"- inputs: [{{ type: http }}]\n  transforms:\n    - {transform}\n"


def mapping(text: str) -> str:
    return pipeline(f"{{ type: map, mappings: [ {text} ] }}")


@pytest.mark.parametrize(
    ("family", "word", "kind"),
    [
        ("transforms", "window", "buffer"),
        ("transforms", "remap", "map"),
        ("transforms", "mapping", "map"),
        ("transforms", "batch", "buffer"),
        ("transforms", "aggregate", "reducer"),
        ("transforms", "group", "reducer"),
        ("transforms", "where", "filter"),
        ("transforms", "javascript", "script"),
        ("outputs", "console", "stdout"),
        ("outputs", "postgresql", "postgres"),
        ("outputs", "aws_s3", "s3"),
        ("inputs", "webhook", "http"),
    ],
)
def test_a_kind_from_elsewhere_is_answered_with_ours(family: str, word: str, kind: str) -> None:
    inputs = "" if family == "inputs" else "inputs: [{ type: http }], "

    assert told(f"[{{ {inputs}{family}: [{{ type: {word} }}] }}]") == [
        ("type", f"did you mean '{kind}'?")
    ]


@pytest.mark.parametrize("word", ["dedupe", "throttle", "parquet"])
def test_what_there_is_nothing_like_is_answered_with_nothing(word: str) -> None:
    assert told(pipeline(f"type: {word}")) == [("type", None)]


@pytest.mark.parametrize(
    ("text", "key", "suggestion"),
    [
        ("{ type: move, from: a, as: b }", "type", "did you mean 'rename'?"),
        ("{ type: set, as: a, value: { type: null } }", "type", "did you mean 'constant'?"),
        ("{ type: delete, from: [a] }", "type", "did you mean 'drop'?"),
        ("{ kind: rename, from: a }", "mappings[0]", "write 'type' instead of 'kind'"),
        ("{ copy: { from: a } }", "mappings[0]", "write { type: copy, from: ... }"),
        ("{ type: copy, from: a, to: b }", "to", "did you mean 'as'?"),
        ("{ type: drop, fields: [a] }", "fields", "did you mean 'from'?"),
        ("{ type: drop, from: a }", "from", 'write ["a"]'),
        ("{ type: cast, from: a, to: datetime }", "to", "did you mean 'timestamp'?"),
        ("{ type: cast, from: a, to: string }", "to", "did you mean 'text'?"),
        ("{ type: constant, as: a, value: 5 }", "value", "write { type: number, value: 5 }"),
        ("{ type: constant, as: a, value: x }", "value", 'write { type: text, value: "x" }'),
        ("{ type: constant, as: a, value: true }", "value", "write { type: boolean, value: true }"),
        ("{ type: constant, as: a, value: null }", "value", "write { type: null }"),
        (
            "{ type: constant, as: a, value: { value: 5 } }",
            "value",
            "write { type: number, value: ... }",
        ),
    ],
)
def test_a_mapping_from_elsewhere_is_answered_with_ours(
    text: str, key: str, suggestion: str
) -> None:
    assert told(mapping(text)) == [(key, suggestion)]


@pytest.mark.parametrize(
    ("sign", "word"),
    [("+", "add"), ("-", "subtract"), ("'*'", "multiply"), ("/", "divide"), ("plus", "add")],
)
def test_a_sign_that_calculates_is_answered_with_its_word(sign: str, word: str) -> None:
    text = f"{{ type: arithmetic, as: a, left: celsius, operator: {sign}, right: 1.8 }}"

    assert told(mapping(text)) == [
        ("left", 'write { type: field, field: "celsius" }'),
        ("operator", f"did you mean '{word}'?"),
        ("right", "write { type: value, value: 1.8 }"),
    ]


@pytest.mark.parametrize(
    ("sign", "word"),
    [
        ("'>'", "greater_than"),
        ("gt", "greater_than"),
        ("<", "less_than"),
        ("==", "equal_to"),
        ("eq", "equal_to"),
        (">\n", "greater_than"),  # to YAML, a text that begins on the next line
    ],
)
@pytest.mark.parametrize(
    "around",
    [
        "type: filter\n      Numeric:\n",
        "type: remember\n      remember: [{ field: a, as: a }]\n      when:\n        - type: numeric\n",
        "type: buffer\n      max_messages: 9\n      until:\n        bucket: b\n"
        "        conditions:\n        - type: numeric\n",
    ],
)
def test_a_sign_that_compares_is_answered_with_its_word(around: str, sign: str, word: str) -> None:
    compared = f"          field: a\n          operator: {sign}\n          value: '5'\n"
    text = pipeline(around + compared).replace("- inputs", "- state: { bucket: b }\n  inputs")
    text = "state: { b: {} }\npipelines:\n" + text

    assert told(text) == [
        ("operator", f"did you mean '{word}'?"),
        ("value", "write 5, without quotes"),
    ]


@pytest.mark.parametrize("sign", ["'>='", "'!='", "not_equal", "regex"])
def test_a_comparison_that_is_not_there_is_answered_with_nothing(sign: str) -> None:
    text = f"{{ type: filter, Numeric: {{ field: a, operator: {sign}, value: 5 }} }}"

    assert told(pipeline(text)) == [("operator", None)]


def test_aggregations_from_elsewhere_are_answered_with_ours() -> None:
    text = """\
- inputs: [{ type: http, buffer: 10 }]
  transforms:
    - type: reducer
      group_by: machine
      aggregations:
        - { function: average, field: a, as: a }
        - { function: mean, field: b, as: b }
        - { func: sum, column: c, alias: c }
        - { type: count, as: d }
"""

    assert told(text) == [
        (
            "buffer",
            "write { type: static, size: 10 } or { type: tumbling, window_seconds: 10 }",
        ),
        ("group_by", 'write ["machine"]'),
        ("function", "did you mean 'avg'?"),
        ("function", "did you mean 'avg'?"),
        ("func", "did you mean 'function'?"),
        ("column", "did you mean 'field'?"),
        ("alias", "did you mean 'as'?"),
        ("type", "did you mean 'function'?"),
    ]


def test_what_belongs_in_a_connection_is_told_so() -> None:
    text = """\
- inputs: [{ type: kafka, brokers: "a:9092", topics: [a], group_id: g, max_batch: "1000" }]
  outputs: [{ type: mqtt, url: "mqtt://a", topic: t, qos: 1 }]
"""

    assert told(text) == [
        ("connection", None),
        ("brokers", "'brokers' belongs in the kafka connection that 'connection' names"),
        ("topics", "did you mean 'topic'?"),
        ("group_id", "did you mean 'group'?"),
        ("max_batch", "write 1000, without quotes"),
        ("connection", None),
        ("url", "'url' belongs in the mqtt connection that 'connection' names"),
        ("qos", "did you mean 'at_least_once'?"),
    ]


def test_files_from_elsewhere_are_answered_with_ours() -> None:
    text = """\
- inputs: [{ type: dummy, interval: "1" }]
  outputs:
    - { type: file, connection: disk, path: a, format: jsonl, rotate: { every: 60 } }
    - { type: s3, connection: store, key_prefix: a, rotate: { count: 9 }, compression: gz }
"""

    assert told(text) == [
        ("interval", "did you mean 'duration'?"),
        ("format", "did you mean 'ndjson'?"),
        ("every", "did you mean 'interval_secs'?"),
        ("key_prefix", "did you mean 'prefix'?"),
        ("count", "did you mean 'max_rows'?"),
        ("compression", "did you mean 'gzip'?"),
    ]


def test_a_credential_is_in_no_suggestion() -> None:
    text = """\
- inputs: [{ type: http, auth: s3cret }]
  outputs: [{ type: http, url: "https://a", auth: { type: bearer, value: s3cret } }]
"""
    filed = 'bus: { type: mqtt, host: a, user: s3cret, pass: s3cret }\npg: "s3cret"\n'

    _, of_connections = load_connections(read(filed, None, "yaml"), KNOWN)
    suggested = [*told(text), *((one.path, one.suggestion) for one in of_connections)]

    assert suggested == [
        ("auth", "write { type: bearer, token: ... }"),
        ("value", "did you mean 'token'?"),
        ("bus.user", "did you mean 'username'?"),
        ("bus.pass", "did you mean 'password'?"),
        ("pg", None),
    ]


def test_a_file_that_is_one_pipeline_is_checked_all_the_same() -> None:
    assert told("input: { mqtt: {} }\noutputs: [{ type: console }]\n") == [
        (
            "",
            "put it in a list: in YAML '- ' before its first key and the rest indented,"
            " in JSON [ ... ]",
        ),
        ("input", "did you mean 'inputs'?"),
        ("type", "did you mean 'stdout'?"),
    ]


def test_a_misspelt_key_is_one_mistake_for_the_rules_as_well() -> None:
    text = "{ type: buffer, period: 10, limit: 100 }"
    without_bound = "{ type: buffer, period: 10 }"

    assert told(pipeline(text)) == [
        ("period", "did you mean 'seconds'?"),
        ("limit", "did you mean 'max_messages'?"),
    ]
    assert told(pipeline(without_bound)) == [
        ("transforms[0]", None),
        ("period", "did you mean 'seconds'?"),
    ]


def test_a_file_laid_out_as_elsewhere_is_told_how_it_is_here() -> None:
    text = "connections: { bus: { type: mqtt } }\npipelines: { press: { inputs: [] } }\n"

    assert told(text) == [
        ("connections", "put them in 'config.connections.yaml', beside the config"),
        (
            "pipelines",
            "write a list, each name as the 'id' of its pipeline: [{ id: ..., inputs: [ ... ] }]",
        ),
    ]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{ type: splitter, out_size: "${SIZE}" }', "out_size"),
        ("{ type: splitter, out_size: '5${SIZE.ALL}' }", "out_size"),
        ('{ type: map, mappings: "${ALL}" }', "mappings"),
    ],
)
def test_a_reference_where_no_text_is_taken_is_told_where_references_stand(
    text: str, key: str
) -> None:
    assert told(pipeline(text)) == [(key, "references stand only in texts: write the value itself")]
