"""Records that a field may hold, and why a field refuses a value."""

import pytest
from marshmallow import ValidationError

from headrace.compiler.schema.fields import (
    Integer,
    Text,
)
from headrace.compiler.schema.records import Record, faults_of, option
from headrace.compiler.schema.structures import ListOf
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
