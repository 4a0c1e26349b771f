"""Texts that look like templates: which do, and what is said of them where nothing fills them in."""

import pytest

from headrace.compiler.component.catalogue import scan
from headrace.compiler.config.connectionsfile import load_connections
from headrace.compiler.config.program import load_program
from headrace.compiler.schema.templates import Fixed
from headrace.compiler.text.documents import read
from tests.compiler.catalogued import plain

CATALOGUE = scan("headrace.operators", "headrace.connectors")
PARTS = Fixed(by_field="by field", by_time="by time")
NAMES = Fixed(by_field="by field")
REMEDY = Fixed().by_field
STANDS = "is taken as it stands here: nothing puts"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{country}", "{country}"),
        ("readings/{site.line}/raw", "{site.line}"),
        ("{größe}", "{größe}"),
        ("{{ country }}", "{{ country }}"),
        ("a/{{.country}}", "{{.country}}"),
        ('${! json("country") }', '${! json("country") }'),
        ("%{country}", "%{country}"),
        ("%{[site][line]}", "%{[site][line]}"),
    ],
)
def test_a_field_in_braces_is_found_however_other_tools_write_it(text, found):
    assert list(NAMES.taken(text)) == [(found, "a field of a message", "by field")]
    assert NAMES.remedy(text) == "by field"


@pytest.mark.parametrize(
    "text", ["%Y", "year=%Y", "logs/%Y-%m-%d", "%-d.log", "x%dT%H", "%b", "%s"]
)
def test_a_word_for_the_time_is_found_where_names_are_made_of_it(text):
    [(found, meant, remedy)] = PARTS.taken(text)

    assert (found[0], meant, remedy) == ("%", "the time", "by time")
    assert list(NAMES.taken(text)) == []


def test_a_pattern_for_the_time_in_braces_is_one_of_the_time():
    assert list(PARTS.taken("logs/%{+YYYY.MM.dd}")) == [("%{+YYYY.MM.dd}", "the time", "by time")]
    assert NAMES.remedy("logs/%{+YYYY.MM.dd}") is None


def test_both_are_found_in_one_text():
    assert [found for found, _, _ in PARTS.taken("{country}/%Y/{city}/%m")] == ["{country}", "%Y"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "readings",
        "${LINE}/readings",  # a reference, which is told as one
        "{3F2504E0-4F89-11D3-9A0C-0305E82C3301}",
        "{A504E0F1-4F89-11D3-9A0C-0305E82C3301}",
        "{a,b}",
        "{a b}",
        "{}",
        "{1}",
        "a}b{c",
        "a%20b",
        "%2F",
        "%DE",
        "%C3%A9",
        "%e2%82%ac",
        "100%dry",
        "100%",
        "50%/x",
        "plant.*.temp",
        "plant/+/temp/#",
    ],
)
def test_other_texts_with_braces_and_percent_signs_are_let_be(text):
    assert list(PARTS.taken(text)) == []


# --- in a config

OUTPUTS = {
    "file": "{{ type: file, connection: archive, path: {} }}",
    "s3": "{{ type: s3, connection: lake, prefix: {}, rotate: {{ max_rows: 1 }} }}",
    "nats": "{{ type: nats, connection: nats, subject: {} }}",
    "mqtt": "{{ type: mqtt, connection: mqtt, topic: {} }}",
    "redis": "{{ type: redis, connection: redis, channel: {} }}",
    "http": "{{ type: http, url: {} }}",
}


def remarked(output, text):
    """Return code, words and remedy of what is said of an output with a text."""
    component = OUTPUTS[output].format(f"'{text}'")
    document = read(f"- inputs: [{{ type: http }}]\n  outputs: [{component}]\n", "a.yaml", "yaml")
    loaded, diagnostics = load_program(document, CATALOGUE)
    assert loaded is not None, plain(diagnostics)
    assert {each.severity.value for each in diagnostics} <= {"warning"}
    return [(each.code, each.message, each.suggestion) for each in diagnostics]


@pytest.mark.parametrize("output", ["file", "s3", "nats", "mqtt", "redis"])
def test_a_field_in_braces_is_remarked_on_wherever_messages_go(output):
    said = f"'{{country}}' {STANDS} a field of a message in its place"

    assert remarked(output, "{country}") == [("literal-template", said, REMEDY)]


def test_a_field_in_a_url_is_remarked_on_without_its_user_info():
    url = "https://{user}:{password}@example.org/{country}"

    assert remarked("http", url) == [
        ("literal-template", f"'{{country}}' {STANDS} a field of a message in its place", REMEDY)
    ]


def test_a_url_that_a_transform_posts_to_has_no_fields_either():
    transform = "{ type: http, url: 'https://a.org/{id}', verb: POST }"
    text = f"- inputs: [{{ type: http }}]\n  transforms: [{transform}]\n"
    _, [told] = load_program(read(text, "a.yaml", "yaml"), CATALOGUE)

    assert (told.code, told.path) == ("literal-template", "pipelines[0].transforms[0].url")
    assert told.suggestion.endswith("posts to its own url")


@pytest.mark.parametrize(
    ("output", "remedy"),
    [
        ("file", "each part is named for the time it is opened; 'rotate' says when one is"),
        ("s3", "put it in 'partition', as in 'partition: year=%Y/month=%m'"),
    ],
)
def test_a_word_for_the_time_is_remarked_on_where_files_and_objects_are_named(output, remedy):
    assert remarked(output, "readings/%Y/%m") == [
        ("literal-template", f"'%Y' {STANDS} the time in its place", remedy)
    ]


@pytest.mark.parametrize("output", ["nats", "mqtt", "redis"])
def test_a_percent_sign_means_nothing_in_what_is_published_to(output):
    assert remarked(output, "plant.%Y") == []


def test_the_partition_of_s3_is_made_of_the_time():
    assert remarked("s3", "a', partition: 'year=%Y") == []


def test_a_template_of_bloblang_is_no_reference_and_a_reference_is_no_template():
    assert [code for code, _, _ in remarked("redis", '${! json("a") }')] == ["literal-template"]
    assert [code for code, _, _ in remarked("redis", "${LINE}")] == ["literal-reference"]
    assert [code for code, _, _ in remarked("redis", "${LINE}.{a}")] == [
        "literal-reference",
        "literal-template",
    ]


def test_what_an_input_reads_is_let_be():
    mqtt = "{ type: mqtt, connection: m, topic: 'a/{b}' }"
    redis = "{ type: redis, connection: r, channel: '{b}' }"
    document = read(f"- inputs: [{mqtt}, {redis}]\n", "a.yaml", "yaml")
    loaded, diagnostics = load_program(document, CATALOGUE)

    assert loaded is not None
    assert diagnostics == []


def test_the_root_of_a_connection_is_remarked_on_as_well():
    document = read("disk: { type: file, root: 'data/%Y' }", "c.yaml", "yaml")
    _, diagnostics = load_connections(document, CATALOGUE)

    assert [(each.code, each.path) for each in diagnostics] == [("literal-template", "disk.root")]


@pytest.mark.parametrize(
    ("component", "hint"),
    [
        (
            "{ type: kafka, connection: k, topic: 'readings-{country}' }",
            f"{REMEDY}; in one topic, 'key' keeps what has one value together",
        ),
        ("{ type: postgres, connection: p, table: '{country}' }", REMEDY),
        ("{ type: clickhouse, connection: c, table: 'r_{country}', order_by: [] }", REMEDY),
        ("{ type: nats, connection: n, subject: 'r.{{ country }}' }", REMEDY),
    ],
)
def test_where_a_name_with_braces_is_refused_the_refusal_says_what_to_do_instead(component, hint):
    document = read(f"- inputs: [{{ type: http }}]\n  outputs: [{component}]\n", "a.yaml", "yaml")
    _, diagnostics = load_program(document, CATALOGUE)

    assert hint in [each.suggestion for each in diagnostics]
