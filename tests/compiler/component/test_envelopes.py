"""Envelopes: how they are written, and which fields messages have with them."""

import pytest

from headrace.compiler.component.envelopes import Envelope, Merge, Wrap
from headrace.compiler.component.fieldflow import ANYTHING, Shape
from headrace.compiler.schema.variants import VariantOf
from tests.doubles import refusals

METADATA = Shape.of(["input", "pipeline"], "inputs[0]")


def enclosed(envelope, fields, *, is_added=False):
    """Return the paths that may be there, and whether others may be."""
    shape = envelope.enclose(fields, METADATA, is_added=is_added)
    return [*shape.listed()], shape.is_open


@pytest.mark.parametrize(
    ("document", "envelope"),
    [
        ({"type": "merge"}, Merge(meta="_meta")),
        ({"type": "merge", "meta": "about"}, Merge(meta="about")),
        ({"type": "wrap"}, Wrap(meta="_meta", payload="value")),
        ({"type": "wrap", "payload": "p", "meta": None}, Wrap(payload="p")),
    ],
)
def test_an_envelope_is_read(document, envelope):
    assert VariantOf(Envelope).deserialize(document) == envelope


@pytest.mark.parametrize("blank", ["", "  "])
def test_a_blank_name_is_the_default_one(blank):
    assert Merge(meta=blank).meta_field == "_meta"
    assert Wrap(meta=blank, payload=blank).meta_field == "_meta"
    assert Wrap(meta=blank, payload=blank).payload_field == "value"


@pytest.mark.parametrize(
    ("document", "name"),
    [
        ({"meta": "m", "payload": "m"}, "m"),
        ({"meta": "value"}, "value"),
        ({"payload": "_meta", "meta": " "}, "_meta"),
    ],
)
def test_one_name_for_both_is_refused(document, name):
    assert refusals(Wrap, document) == [
        f"payload: 'meta' and 'payload' both name '{name}', so one would overwrite the other"
    ]


def test_merge_adds_the_metadata_and_replaces_what_is_there():
    there = Shape({"_meta": Shape.of(["x"], "inputs[0]"), "a": ANYTHING})

    assert enclosed(Merge(), there) == (
        ["_meta", "_meta.input", "_meta.pipeline", "a"],
        False,
    )
    assert enclosed(Merge(meta="m"), ANYTHING) == (["m", "m.input", "m.pipeline"], True)


def test_merge_behind_another_pipeline_keeps_what_is_there():
    there = Shape({"_meta": Shape.of(["x"], "inputs[0]")})

    assert enclosed(Merge(), there, is_added=True) == (
        ["_meta", "_meta.input", "_meta.pipeline", "_meta.x"],
        False,
    )


def test_wrap_makes_an_object_of_two_fields():
    assert enclosed(Wrap(), Shape.of(["a"], "inputs[0]"), is_added=True) == (
        ["_meta", "_meta.input", "_meta.pipeline", "value", "value.a"],
        False,
    )
