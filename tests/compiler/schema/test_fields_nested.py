"""Fields of lists, variants and objects: what is in them is told under its place."""

import pytest
from marshmallow import ValidationError

from headrace.compiler.schema.fields import (
    AnyJson,
    Choice,
    Integer,
    MessageField,
    Text,
)
from headrace.compiler.schema.records import Record, faults_of, option
from headrace.compiler.schema.structures import ComponentOf, ListOf, ObjectOf, RecordOf
from headrace.compiler.schema.variants import VariantOf
from tests.compiler.schema.tools import Rope, Saw, Shed, Tool, fault, refused


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
