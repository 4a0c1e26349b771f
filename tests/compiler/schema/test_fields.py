"""Fields: each takes exactly one sort of JSON value, and says what it takes."""

import math

import pytest

from headrace.compiler.schema.fields import (
    AnyJson,
    Boolean,
    Choice,
    ConnectionName,
    Identifier,
    Integer,
    MessageField,
    Name,
    Number,
    PipelineId,
    SecretText,
    Text,
)
from headrace.compiler.schema.secrets import Secret
from headrace.compiler.schema.structures import ComponentOf, ListOf, RecordOf
from headrace.compiler.schema.variants import VariantOf
from tests.compiler.schema.tools import Shed, Tool, fault, refused


@pytest.mark.parametrize("value", [0, 7, 10**400])
def test_an_integer_is_taken_as_it_is(value):
    assert Integer().deserialize(value) == value


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (1.0, "1.0"),
        ("1", '"1"'),
        (True, "true"),
        (-1, "-1"),
        (None, "null"),
        ([1], "[1]"),
        ({"a": 1}, '{"a":1}'),
    ],
)
def test_an_integer_is_a_json_integer_and_not_negative(value, found):
    assert refused(Integer(), value) == f"expected an integer of at least 0, found {found}"


@pytest.mark.parametrize("value", [-1, 0, 2.5, -1e300, 10**400])
def test_a_number_is_any_json_number_and_stays_what_it_is(value):
    read = Number().deserialize(value)

    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("value", "found"), [("1", '"1"'), (True, "true"), (None, "null"), (math.inf, "Infinity")]
)
def test_a_number_is_no_string_no_boolean_and_finite(value, found):
    assert refused(Number(), value) == f"expected a number, found {found}"


def test_bounds_are_part_of_what_is_expected():
    assert refused(Integer(min=1, max=9), 10) == (
        "expected an integer of at least 1 and of at most 9, found 10"
    )
    assert refused(Integer(min=1), 0) == "expected an integer of at least 1, found 0"
    assert refused(Number(above=0), 0) == "expected a number above 0, found 0"
    assert fault(Number(max=1.5), 2).code == "out-of-range"


def test_a_huge_number_is_not_told_in_full():
    assert refused(Integer(max=9), 10**400) == (
        "expected an integer of at least 0 and of at most 9, found 1" + "0" * 56 + "..."
    )


@pytest.mark.parametrize("value", [True, False])
def test_a_boolean_is_true_or_false(value):
    assert Boolean().deserialize(value) is value


@pytest.mark.parametrize("value", [0, 1, "true", "yes", "off"])
def test_nothing_else_is_a_boolean(value):
    assert refused(Boolean(), value).startswith("expected true or false, found ")


@pytest.mark.parametrize("value", ["", " a ", "2026-03-01", "yes"])
def test_a_text_is_taken_as_it_is(value):
    assert Text().deserialize(value) == value


@pytest.mark.parametrize(("value", "found"), [(1, "1"), (False, "false"), (["a"], '["a"]')])
def test_a_text_is_a_json_string(value, found):
    assert refused(Text(), value) == f"expected a string, found {found}"


@pytest.mark.parametrize("field", [Name(), MessageField()])
def test_a_name_is_trimmed_and_never_blank(field):
    assert field.deserialize(" a.b ") == "a.b"
    assert refused(field, " \t") == "this must not be blank"
    assert fault(field, "").code == "blank"


@pytest.mark.parametrize("field", [Identifier(), PipelineId(), ConnectionName("kafka")])
def test_what_something_is_filed_under_is_not_trimmed_and_never_blank(field):
    assert field.deserialize(" a/b ") == " a/b "
    assert refused(field, " ") == "this must not be blank"
    assert refused(field, "x" * 1001) == "a name of 1,001 characters is too long"


def test_the_name_of_a_connection_says_which_kind_is_needed():
    assert refused(ConnectionName("kafka"), 3) == (
        "expected the name of a kafka connection, found 3"
    )


def test_a_secret_is_a_template():
    assert SecretText().deserialize("Bearer ${TOKEN}") == Secret("Bearer ${TOKEN}")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (12345, "a number"),
        (["s3cret"], "a list"),
        ({"password": "s3cret"}, "an object"),
        (None, "null"),
    ],
)
def test_what_stands_in_place_of_a_secret_is_told_by_its_type_alone(value, found):
    told = fault(SecretText(), value)

    assert (told.message, told.found) == (
        f"expected a string, usually a ${{NAME}} reference, found {found}",
        found,
    )


def test_a_choice_is_one_of_its_words_spelled_exactly():
    told = fault(Choice("on_receipt", "on_delivery"), "on-delivery")

    assert Choice("a", "b").deserialize("b") == "b"
    assert (told.code, told.message, told.expected, told.suggestion) == (
        "not-a-choice",
        'expected one of on_receipt, on_delivery, found "on-delivery"',
        "one of on_receipt, on_delivery",
        "did you mean 'on_delivery'?",
    )


@pytest.mark.parametrize("value", [1, True, ["a"]])
def test_a_choice_is_a_word(value):
    assert fault(Choice("a"), value).code == "wrong-type"


def test_a_null_is_the_word_null_where_that_is_a_choice():
    field = Choice("error", "null", null_word=True)

    assert (field.deserialize(None), field.deserialize("null")) == ("null", "null")


@pytest.mark.parametrize("value", [None, True, 1.5, "a", [1, {}], {"a": None}])
def test_any_json_is_taken_as_it_is(value):
    assert AnyJson().deserialize(value) == value


@pytest.mark.parametrize("value", [None, 3, {"type": "saw"}])
def test_a_component_is_left_for_whoever_has_the_catalogue(value):
    assert ComponentOf("input").deserialize(value) == value


def test_fields_say_what_they_are_for_the_reference():
    fields = {
        "integer": Integer(),
        "number": Number(),
        "boolean": Boolean(),
        "string": Text(),
        "json": AnyJson(),
        "a | b": Choice("a", "b"),
        "list of string": ListOf(Text()),
        "list of word": ListOf(Text(), noun="word"),
        "object": RecordOf(Shed),
        "saw | rope": VariantOf(Tool),
        "pipeline id": PipelineId(),
        "kafka connection": ConnectionName("kafka"),
        "input": ComponentOf("input"),
    }

    assert {name: field.type_name for name, field in fields.items()} == {
        name: name for name in fields
    }
