"""The template language: how it is read, what it is refused for, and the texts it makes."""

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marshmallow import ValidationError

from headrace.compiler import jsontext
from headrace.compiler.batchloops import of_each
from headrace.compiler.casts import CASTS
from headrace.compiler.code import MOST_IN_PLACE, Code
from headrace.compiler.decimals import Written
from headrace.compiler.dottedpaths import MISSING, DottedPath
from headrace.compiler.errors import BatchFailed
from headrace.compiler.schema.records import faults_of
from headrace.compiler.texttemplates import (
    ESCAPES,
    LONGEST_TEXT,
    MOST_FIELDS,
    PLAIN_TEXT,
    TemplateText,
    TextTemplate,
    made_texts,
    put_in,
)
from tests.compiler.lowering.drawn import values, written_template
from tests.examples import examples
from tests.slowness import slowness

PLACE = "p1 outputs[0]"


def template(text: str) -> TextTemplate:
    read = TemplateText().deserialize(text)
    assert isinstance(read, TextTemplate)
    return read


def filled(text: str, message, escape="none"):
    return template(text).fill(message, escape)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("{a}", [DottedPath("a")]),
        ("a {b.c} d", ["a ", DottedPath("b.c"), " d"]),
        ("{a}{b}", [DottedPath("a"), DottedPath("b")]),
        ("{ a }", [DottedPath("a")]),
        ("{{{a}}}", ["{", DottedPath("a"), "}"]),
        ("{{a}} {b}", ["{a} ", DottedPath("b")]),
        ("}}{{{a}", ["}{", DottedPath("a")]),
        ("${a}", ["$", DottedPath("a")]),
        ("{a b}", [DottedPath("a b")]),
        ("{a:b}", [DottedPath("a:b")]),
    ],
)
def test_a_template_is_texts_and_fields(text, pieces):
    assert template(text).pieces == tuple(pieces)
    assert template(text).dump() == str(template(text)) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{a", "a '{' is not closed: character 1"),
        ("ab{", "a '{' is not closed: character 3"),
        ("{a{b}", "a '{' is not closed: character 1"),
        ("{a{{b}", "a '{' is not closed: character 1"),
        ("a}", "a '}' closes nothing: character 2"),
        ("{a}}", "a '}' closes nothing: character 4"),
        ("{{a}", "a '}' closes nothing: character 4"),
        ("x\n {a", "a '{' is not closed: line 2, character 2"),
        ("a {}", "no field is named between braces: character 3"),
        ("{ }", "no field is named between braces: character 1"),
        ("{" + "a." * 128 + "a}", "a path of 129 segments leads nowhere: messages nest at most"),
        ("", "names no field, so the text would be the same for every message"),
        ("{{ a }}", "names no field, so the text would be the same for every message"),
        ("{a}" * 101, "more than 100 fields: character 301"),
    ],
)
def test_what_is_no_template_is_refused_with_the_place(text, said):
    with pytest.raises(ValidationError) as refused:
        template(text)

    [fault] = faults_of(refused.value)
    assert fault.code == "not-a-template"
    assert fault.message.startswith(said)
    assert fault.expected


def test_who_writes_two_braces_is_told_to_write_one():
    with pytest.raises(ValidationError) as refused:
        template("{{ machine }} is hot")

    [fault] = faults_of(refused.value)
    assert fault.suggestion == "a field has one brace on each side; two are a brace that is written"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", "x"),
        ("{b}", "{b}"),
        (5, "5"),
        (-7.25, "-7.25"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1e16, "1e16"),
        (1e-5, "0.00001"),
        (True, "true"),
        (Written("1.10"), "1.1"),
        (10**400, str(10**400)),
        ("é 🚀 '\"\\\n", "é 🚀 '\"\\\n"),
    ],
)
def test_a_value_is_text_as_a_cast_makes_it(value, text):
    assert filled("<{a}>", {"a": value}) == f"<{text}>"
    assert made_texts(template("<{a}>"), PLACE)([{"a": value}] * 2) == [f"<{text}>".encode()] * 2


@pytest.mark.parametrize("message", [{}, {"a": None, "b": 1}, {"a": 1}, [1], "x", None, 5])
def test_without_one_of_the_fields_there_is_no_text(message):
    assert filled("{a} {b}", message) is MISSING


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"b": 1}, "field 'a' is missing or null"),
        ({"a": 1, "b": None}, "field 'b' is missing or null"),
        ("secret", "fields 'a' and 'b' are missing or null"),
        ({"a": [1]}, "field 'a': cannot read a list as text: expected a string, number or boolean"),
        (
            {"a": 1, "b": {"c": "secret"}},
            "field 'b': cannot read an object as text: expected a string, number or boolean",
        ),
        (
            {"a": 10**4400, "b": 1},
            "field 'a': cannot read a number as text: expected at most 4,300 digits",
        ),
    ],
)
def test_a_batch_with_a_message_that_has_no_text_fails_and_says_why(message, said):
    made = made_texts(template("{a} {b} {a}"), PLACE)

    with pytest.raises(BatchFailed) as failed:
        made([{"a": 1, "b": 2}, message])

    assert str(failed.value) == said


@pytest.mark.parametrize(
    ("escape", "value", "text"),
    [
        ("none", 'a"b', 'a"b'),
        ("json", 'a"b\\\n\x01é', 'a\\"b\\\\\\n\\u0001é'),
        ("json", 1.5, "1.5"),
        ("url", "a b/ü?&=~-._", "a%20b%2F%C3%BC%3F%26%3D~-._"),
        ("url", True, "true"),
    ],
)
def test_fields_are_escaped_and_the_text_around_them_is_not(escape, value, text):
    assert filled('"/? {a}', {"a": value}, escape) == f'"/? {text}'


def test_what_is_escaped_for_json_is_a_string_of_it():
    text = filled('{{"text": "{a}"}}', {"a": 'say "\\{x}"\n'}, "json")

    assert jsontext.decode(text.encode()) == {"text": 'say "\\{x}"\n'}


@pytest.mark.parametrize(("escape", "longest"), [("json", 262_144), ("url", 65_536)])
def test_what_is_escaped_is_bounded(escape, longest):
    half = "x" * (longest // 2)

    assert len(filled("{a}{b}", {"a": half, "b": half}, escape)) == longest
    with pytest.raises(BatchFailed) as failed:
        filled("{a}{b}", {"a": half, "b": half + "x"}, escape)

    said = f"the fields to escape are longer than {longest:,} characters together"
    assert str(failed.value) == said


@pytest.mark.timed
@pytest.mark.parametrize(
    ("escape", "worst"), [("json", "\x01"), ("json", "é"), ("url", "\U0001f680"), ("url", "ab%")]
)
def test_escaping_the_longest_takes_less_than_twenty_milliseconds(escape, worst):
    text = (worst * ESCAPES[escape].longest)[: ESCAPES[escape].longest]
    took = []
    for _ in range(5):
        began = time.process_time()
        filled("{a}", {"a": text}, escape)
        took.append(time.process_time() - began)

    assert min(took) < 0.02 * slowness(), took


def test_a_text_is_no_longer_than_a_message_may_be():
    half = "x" * (LONGEST_TEXT // 2)
    made = made_texts(template("{a}{a}"), PLACE)

    assert len(made([{"a": half}])[0]) == LONGEST_TEXT
    with pytest.raises(BatchFailed, match="the result is longer than 16,777,216 characters"):
        made([{"a": half + "x"}])


def test_what_is_put_in_unseen_stays_below_the_longest_text():
    assert MOST_FIELDS * PLAIN_TEXT < LONGEST_TEXT


def test_few_fields_of_a_function_are_looked_at_in_place_and_others_left_to_another_one():
    code = Code({}, is_hopeful=True)
    half = template("{a}" * (MOST_IN_PLACE // 2))

    made = [half.expression(code).expression for _ in range(3)]

    in_place = MOST_IN_PLACE // 2
    assert [each.count("__class__ is float") for each in made] == [in_place, in_place, 0]
    assert len(made[2]) < 30


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.text(max_size=9))
def test_a_plain_value_is_formatted_as_it_is_cast(value):
    found = eval(put_in("v", "True", "None"), {"v": value})

    assert found is None or f"{found}" == CASTS["text"](value)
    assert found is not None or type(value) is float
    assert found is not None or not 1e-4 < math.fabs(value) < 1e15


drawn_messages = st.dictionaries(st.sampled_from(["a", "b", "a.b"]), values | st.text()) | values
pieces = st.lists(st.sampled_from(["a", "b", "a.b", "}x'{"]), min_size=1, max_size=4)


@examples(300)
@given(pieces, st.sampled_from([1, MOST_IN_PLACE + 1]), st.sampled_from([*ESCAPES]), drawn_messages)
def test_the_generated_form_gives_what_the_plain_one_does(pieces, times, escape, message):
    made = template(written_template(pieces * times))
    generated = of_each(lambda code: made.expression(code, escape=escape).expression, PLACE)

    try:
        expected = made.fill(message, escape)
    except BatchFailed:
        expected = MISSING

    try:
        found = generated([message])
    except Exception:
        found = [MISSING]  # the plain form has to say why
    assert found == [expected]
