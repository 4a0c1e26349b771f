"""What is written in another form is answered with the right one."""

import pytest

from headrace.compiler.schema.fields import (
    Boolean,
    Choice,
    ConnectionName,
    Integer,
    MessageField,
    Number,
    SecretText,
    Text,
)
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import ComponentOf, ListOf, RecordOf
from headrace.compiler.schema.variants import VariantOf
from tests.compiler.schema.tools import Tool, fault


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
