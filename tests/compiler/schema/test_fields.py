"""Fields: each takes exactly one sort of JSON value, and says what it takes."""

import math

import pytest
from marshmallow import ValidationError

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
from headrace.compiler.schema.records import Record, faults_of, option
from headrace.compiler.schema.secrets import Secret
from headrace.compiler.schema.structures import ComponentOf, ListOf, ObjectOf, RecordOf
from headrace.compiler.schema.variants import Tagged, VariantOf


class Tool(Tagged):
    """Something to work with."""


class Saw(Tool, tag="saw"):
    """Cuts."""

    teeth: int = option(Integer(), "How many.")


class Rope(Tool, tag="rope"):
    """Binds."""


class Shed(Record):
    """Where tools are."""

    tool: Tool = option(VariantOf(Tool), "The best one.")
    tools: tuple[Tool, ...] = option(ListOf(VariantOf(Tool)), "The others.", default=())
    labels: tuple[str, ...] = option(ListOf(Text()), "What is written on it.", default=())


def fault(field, value):
    """Return the one fault of a value: its code, message, found and expected."""
    with pytest.raises(ValidationError) as caught:
        field.deserialize(value)
    (only,) = faults_of(caught.value)
    return only


def refused(field, value):
    """Return what a value is refused with."""
    return fault(field, value).message


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


def test_a_list_is_read_as_a_tuple():
    assert ListOf(Text()).deserialize(["a", "b"]) == ("a", "b")


def test_every_wrong_element_of_a_list_is_told_under_its_place():
    with pytest.raises(ValidationError) as caught:
        ListOf(Integer()).deserialize([1, "a", 2, None])

    assert [(told.path, told.message) for told in faults_of(caught.value)] == [
        ((1,), 'expected an integer of at least 0, found "a"'),
        ((3,), "expected an integer of at least 0, found null"),
    ]


@pytest.mark.parametrize(
    ("least", "value", "message"),
    [
        (1, [], "expected a list of at least one string, found an empty list"),
        (2, ["a"], "expected a list of at least two strings, found a list of 1"),
        (3, ["a"], "expected a list of at least 3 strings, found a list of 1"),
        (0, "a", 'expected a list of strings, found "a"'),
    ],
)
def test_a_list_may_have_a_least_length(least, value, message):
    assert refused(ListOf(Text(), at_least=least), value) == message


@pytest.mark.parametrize(
    ("field", "expects"),
    [
        (ListOf(MessageField(), at_least=2), "a list of at least two dotted paths"),
        (ListOf(Choice("a", "b")), "a list of words"),
        (ListOf(VariantOf(Tool)), "a list of objects"),
        (ListOf(ComponentOf("input"), at_least=1), "a list of at least one input"),
        (ListOf(VariantOf(Tool), at_least=1, noun="tool"), "a list of at least one tool"),
    ],
)
def test_a_list_says_what_it_is_a_list_of(field, expects):
    told = fault(field, None)

    assert (told.message, told.expected) == (f"expected {expects}, found null", expects)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (ListOf(VariantOf(Tool)), {"type": "rope"}),
        (ListOf(ComponentOf("input")), {"type": "http"}),
    ],
)
def test_one_element_that_stands_alone_is_to_be_put_in_a_list(field, value):
    assert fault(field, value).suggestion == "put it in a list: [ ... ]"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (ListOf(Text()), 3),
        (ListOf(Text()), None),
        (ListOf(ComponentOf("input")), {"oven": {"type": "http"}}),
        (ListOf(AnyJson()), {"a": 1}),
    ],
)
def test_what_is_no_element_is_not_to_be_put_in_a_list(field, value):
    assert fault(field, value).suggestion is None


def test_an_object_tagged_by_type_is_the_variant_of_that_name():
    assert VariantOf(Tool).deserialize({"type": "saw", "teeth": 30}) == Saw(teeth=30)


def test_a_variant_is_echoed_with_its_tag_first():
    assert [*Saw(teeth=30).dump().items()] == [("type", "saw"), ("teeth", 30)]
    assert Rope().dump() == {"type": "rope"}


def test_an_unknown_variant_lists_the_known_ones():
    told = fault(VariantOf(Tool), {"type": "sow"})

    assert (told.path, told.code, told.message, told.expected, told.suggestion) == (
        ("type",),
        "unknown-kind",
        'unknown type "sow"',
        "one of saw, rope",
        "did you mean 'saw'?",
    )


def test_a_missing_tag_lists_the_known_variants():
    told = fault(VariantOf(Tool), {"teeth": 30})

    assert (told.path, told.code, told.message, told.expected) == (
        (),
        "missing-key",
        "'type' is required",
        "one of saw, rope",
    )


@pytest.mark.parametrize(
    ("value", "suggestion"),
    [
        ({"saw": {"teeth": 30}}, "write { type: saw, teeth: ... }"),
        ({"Saw": {}}, "write { type: saw, teeth: ... }"),
        ({"saw": {"length": "s3cret"}}, "write { type: saw, teeth: ... }"),
        ({"rop": None}, "write { type: rope }"),
        ({"teeth": "s3cret"}, "write { type: saw, teeth: ... }"),
        ({"teeth": 30, "length": 3}, None),
        ({"hammer": {}}, None),
        ({}, None),
    ],
)
def test_a_missing_tag_is_suggested_where_one_is_meant(value, suggestion):
    told = fault(VariantOf(Tool), value)

    assert (told.message, told.suggestion) == ("'type' is required", suggestion)


@pytest.mark.parametrize(
    ("value", "suggestion"),
    [("saw", "write { type: saw, teeth: ... }"), ("rope", "write { type: rope }"), ("sow", None)],
)
def test_a_tag_that_stands_alone_is_written_in_an_object(value, suggestion):
    told = fault(VariantOf(Tool), value)

    assert (told.message, told.suggestion) == (
        "expected an object whose 'type' is one of saw, rope, found a string",
        suggestion,
    )


@pytest.mark.parametrize("tag", [None, 3, True, ["saw"], {"saw": 1}])
def test_a_tag_is_a_word(tag):
    assert fault(VariantOf(Tool), {"type": tag}).code == "unknown-kind"


def test_a_variant_refuses_what_it_does_not_know():
    with pytest.raises(ValidationError) as caught:
        VariantOf(Tool).deserialize({"type": "saw", "teeth": "many", "length": 3})

    assert [told.path for told in faults_of(caught.value)] == [("teeth",), ("length",)]


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (VariantOf(Tool), "an object whose 'type' is one of saw, rope"),
        (RecordOf(Shed), "an object with 'tool'"),
    ],
)
def test_what_stands_in_place_of_an_object_is_told_by_its_type_alone(field, expected):
    told = fault(field, "nats://app:s3cret@bus")

    assert (told.message, told.found, told.expected, told.suggestion) == (
        f"expected {expected}, found a string",
        "a string",
        expected,
        None,
    )


def test_null_in_place_of_an_object_is_told():
    assert refused(RecordOf(Shed), None) == "expected an object with 'tool', found null"
    assert refused(VariantOf(Tool), None) == (
        "expected an object whose 'type' is one of saw, rope, found null"
    )


class Label(Record):
    """What is written on a shed."""

    text: str | None = option(Text(), "The text.", default=None)
    size: int = option(Integer(), "Its size.", default=1)


def test_an_object_that_needs_no_key_says_which_it_may_have_and_how_nothing_is_said():
    told = fault(RecordOf(Label), None)

    assert (told.message, told.suggestion) == (
        "expected an object with any of 'text', 'size', found null",
        "write {}",
    )
    assert fault(RecordOf(Label), "s3cret").suggestion is None
    assert fault(RecordOf(Shed), None).suggestion is None


@pytest.mark.parametrize(
    ("field", "value", "suggestion"),
    [
        (ObjectOf(RecordOf(Label), noun="label"), "door", 'write { "door": {} }'),
        (ObjectOf(RecordOf(Shed), noun="shed"), "door", None),
        (ObjectOf(RecordOf(Label), noun="label"), " ", None),
        (ObjectOf(RecordOf(Label), noun="label"), ["door"], 'write { "door": {} }'),
        (ObjectOf(RecordOf(Label), noun="label"), ["a", "b"], 'write { "a": {}, "b": {} }'),
        (ObjectOf(RecordOf(Label), noun="label"), ["a", 1], None),
        (ObjectOf(RecordOf(Label), noun="label"), [], None),
    ],
)
def test_a_name_that_stands_alone_is_written_in_an_object(field, value, suggestion):
    assert fault(field, value).suggestion == suggestion


def test_an_object_of_named_values_reads_each_of_them():
    tools = ObjectOf(VariantOf(Tool), noun="tool")

    read = tools.deserialize({"b": {"type": "rope"}, " a ": {"type": "saw", "teeth": 3}})

    assert read == {"b": Rope(), " a ": Saw(teeth=3)}
    assert list(read) == ["b", " a "]


@pytest.mark.parametrize(
    ("value", "found"), [(None, "null"), ([], "[]"), ("a", '"a"'), (3, "3"), (False, "false")]
)
def test_anything_else_is_no_object_of_named_values(value, found):
    told = fault(ObjectOf(Integer(), noun="size"), value)

    assert told.message == f"expected an object of sizes by name, found {found}"


def test_what_is_wrong_with_named_values_is_told_at_the_value_and_with_names_at_the_name():
    with pytest.raises(ValidationError) as caught:
        ObjectOf(Integer(), noun="size").deserialize({"a": "1", " ": 1, "b": 2, "c": None})

    assert [(each.path, each.on_key, each.code) for each in faults_of(caught.value)] == [
        (("a",), False, "wrong-type"),
        ((" ",), True, "blank"),
        (("c",), False, "wrong-type"),
    ]


def test_of_a_thousand_wrong_values_a_hundred_are_told():
    with pytest.raises(ValidationError) as caught:
        ObjectOf(Integer(), noun="size").deserialize({str(n): "1" for n in range(1000)})

    assert len([*faults_of(caught.value)]) == 100


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


class Size(Record):
    """How large something is."""

    width: int = option(Integer(), "From left to right.")
    height: int = option(Integer(), "From top to bottom.")


class Rack(Record):
    """What is in a rack."""

    places: int = option(Integer(), "How many.")
    label: str | None = option(Text(), "What is written on it.", default=None)


@pytest.mark.parametrize(
    ("field", "value", "suggestion"),
    [
        (Integer(), "1000", "write 1000, without quotes"),
        (Integer(), " 7 ", "write 7, without quotes"),
        (Integer(), 1.0, "write 1"),
        (Integer(), "1.5", None),
        (Integer(min=1), "0", None),
        (Integer(), "1,000", "write 1000"),
        (Integer(), "1_000_000", "write 1000000"),
        (Integer(), "1,", "write 1"),
        (Integer(), "1,00", None),
        (Integer(), "5s", "write the number alone, without a unit"),
        (Integer(), "s", None),
        (Integer(), [1], None),
        (Integer(), "9" * 5000, None),
        (Number(), "1.5", "write 1.5, without quotes"),
        (Number(), "-2e3", "write -2000.0, without quotes"),
        (Number(), ".inf", None),
        (Number(), True, None),
        (Boolean(), "true", "write true, without quotes"),
        (Boolean(), "False", "write false, without quotes"),
        (Boolean(), "yes", "write true"),
        (Boolean(), "off", "write false"),
        (Boolean(), 0, "write false"),
        (Boolean(), 2, None),
        (Boolean(), None, None),
        (Text(), 5, "put it in quotes"),
        (Text(), True, "put it in quotes"),
        (Text(), None, None),
        (Text(), ["a"], 'write "a", without a list'),
        (Text(), ["a", "b"], None),
        (Text(), [["a"]], None),
        (SecretText(), 12345, "put it in quotes"),
        (SecretText(), ["s3cret"], None),
    ],
)
def test_a_value_in_the_wrong_spelling_is_answered_with_the_right_one(field, value, suggestion):
    assert fault(field, value).suggestion == suggestion


@pytest.mark.parametrize(
    ("field", "value", "suggestion"),
    [
        (ListOf(MessageField()), "machine", 'write ["machine"]'),
        (ListOf(MessageField()), "machine, line", 'write ["machine","line"]'),
        (ListOf(MessageField()), " ", None),
        (ListOf(Text()), "x" * 100, "write ..."),
        (ListOf(SecretText()), "s3cret", "write [...]"),
        (ListOf(RecordOf(Size)), {"oven": 1}, "write [{ width: ..., height: ... }]"),
        (ListOf(RecordOf(Size)), "oven", "write [{ width: ..., height: ... }]"),
        (ListOf(RecordOf(Size)), None, None),
        (ListOf(VariantOf(Tool)), {"teeth": 4}, "write [{ type: saw, teeth: ... }]"),
        (ListOf(VariantOf(Tool)), {"oven": 4, "press": 5}, "write [{ type: ..., ... }]"),
        (ListOf(ComponentOf("output")), "stdout", "write [{ type: stdout }]"),
        (ListOf(ComponentOf("output")), "a b", None),
        (RecordOf(Rack), 3, "write { places: ... }"),
        (RecordOf(Rack), "3", None),
        (RecordOf(Size), 3, None),
        (VariantOf(Tool), 4, "write { type: saw, teeth: 4 }"),
        (VariantOf(Tool), None, "write { type: rope }"),
        (VariantOf(Tool), "four", None),
        (VariantOf(Tool), [4], None),
    ],
)
def test_a_value_that_stands_alone_is_answered_with_what_belongs_around_it(
    field, value, suggestion
):
    assert fault(field, value).suggestion == suggestion


@pytest.mark.parametrize(
    ("value", "suggestion"),
    [
        ("lower", "did you mean 'below'?"),
        ("LOWER", "did you mean 'below'?"),
        ("<", "did you mean 'below'?"),
        ("", "did you mean 'above'?"),  # what YAML makes of `>` without quotes
        (1, "did you mean 'above'?"),
        (["<"], None),
        ("beside", None),
    ],
)
def test_what_a_word_is_called_elsewhere_is_answered_with_ours(value, suggestion):
    field = Choice("above", "below", elsewhere={"above": "> 1", "below": "< lower"})

    assert fault(field, value).suggestion == suggestion


def test_a_connection_in_place_of_its_name_is_not_told():
    told = fault(ConnectionName("kafka"), {"type": "kafka", "password": "s3cret"})

    assert (told.message, told.found) == (
        "expected the name of a kafka connection, found an object",
        "an object",
    )
    assert told.suggestion == (
        "put it in the connections file beside the config, and write its name here"
    )
