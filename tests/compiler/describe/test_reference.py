"""The component reference as data (contract 12.8), told by small components of this test's own."""

from __future__ import annotations

from typing import Any, ClassVar

from headrace.compiler.component.catalogue import Catalogue, scan
from headrace.compiler.component.families import Connection, Input, Output, Transform
from headrace.compiler.describe.reference import component_doc, component_docs, prose
from headrace.compiler.schema.fields import (
    AnyJson,
    Boolean,
    Choice,
    ConnectionName,
    Integer,
    MessageField,
    Number,
    PipelineId,
    SecretText,
    Text,
)
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import ListOf, RecordOf
from headrace.compiler.schema.variants import Tagged, VariantOf


class Column(Record):
    """A column."""

    name: str = option(Text(), "Its name.")


class Shape(Tagged):
    """What is drawn."""


class Circle(Shape, tag="circle"):
    """A circle."""

    radius: float = option(Number(), "Its radius.")


class Point(Shape, tag="point"):
    """A point."""


class Plotter(Output, kind="plotter", listed=2):
    """Draw each batch as ``shape``.

    A second paragraph.

    Units: centimetres.
    """

    zoom: int = option(Integer(), "How much larger.", default=1)
    shape: Shape = option(VariantOf(Shape), "What to draw.")
    columns: tuple[Column, ...] = option(ListOf(RecordOf(Column), noun="column"), "Columns.")
    axis: Column | None = option(RecordOf(Column), "The axis.", default=None)


class Reading(Input, kind="reading", listed=1):
    """Read."""

    attaches: ClassVar = {"depth": "How deep."}

    where: str = option(ConnectionName("plotter"), "Connection.")
    upstream: str = option(PipelineId(), "Upstream.")
    b: bool = option(Boolean(), "B.", default=False)
    a: Any = option(AnyJson(), "A.", default=None)


class Either(Transform, kind="either", listed=1):
    """One of two."""

    one_of = ("Left", "Right")

    left: Column | None = option(RecordOf(Column), "Left.", default=None, wire="Left")
    right: Shape | None = option(RecordOf(Circle), "Right.", default=None, wire="Right")
    mode: str = option(Choice("fast", "slow"), "Mode.", default="fast")
    field: str = option(MessageField(), "Field.", default="x")


class Account(Connection, kind="account"):
    password: Any = option(SecretText(), "Secret.")


def field(doc: dict[str, Any], name: str) -> dict[str, Any]:
    [found] = [one for one in doc["fields"] if one["name"] == name]
    return dict(found)


def test_components_stand_in_the_order_of_families_and_places() -> None:
    docs = component_docs(Catalogue([Plotter, Account, Either, Reading]))

    assert [(doc["family"], doc["kind"]) for doc in docs] == [
        ("input", "reading"),
        ("transform", "either"),
        ("output", "plotter"),
        ("connection", "account"),
    ]


def test_a_component_doc_has_its_eight_keys() -> None:
    assert list(component_doc(Plotter)) == [
        "kind",
        "family",
        "description",
        "fields",
        "variants",
        "metadata",
        "promises",
        "failures",
    ]


def test_what_a_component_promises_is_told_with_when_it_counts() -> None:
    kafka = scan("headrace.connectors").family("input")["kafka"]

    promises = component_doc(kafka)["promises"]

    assert promises[1] == {
        "name": "kafka.on_delivery.kill",
        "when": "`on_delivery`",
        "about": "kill",
        "text": "nothing",
    }
    assert [each["about"] for each in promises[-2:]] == ["waits", "beyond"]


def test_the_description_is_the_prose_of_the_docstring() -> None:
    assert prose(Plotter) == "Draw each batch as `shape`.\n\nA second paragraph."
    assert prose(Account) is None


def test_required_fields_come_as_declared_then_optional_ones_by_name() -> None:
    assert [one["name"] for one in component_doc(Plotter)["fields"]] == [
        "shape",
        "columns",
        "axis",
        "retry",
        "when",
        "zoom",
    ]


def test_inputs_close_with_what_all_inputs_have() -> None:
    doc = component_doc(Reading)

    assert [one["name"] for one in doc["fields"]] == [
        "where",
        "upstream",
        "a",
        "b",
        "ack",
        "buffer",
        "envelope",
    ]


def test_each_field_says_what_it_takes() -> None:
    reading, plotter, account = map(component_doc, (Reading, Plotter, Account))

    said = {
        one["name"]: (one["type_name"], one["field_type"])
        for one in [*reading["fields"], *plotter["fields"], *account["fields"]]
    }

    assert said["where"] == ("plotter connection", {"connection": "plotter"})
    assert said["upstream"] == ("pipeline id", "pipeline_id")
    assert said["a"] == ("json", "json")
    assert said["b"] == ("boolean", "boolean")
    assert said["zoom"] == ("integer", "integer")
    assert said["password"] == ("string", "text")
    assert said["ack"] == ("on_receipt | on_delivery", {"enum": ["on_receipt", "on_delivery"]})


def test_an_object_lists_its_fields() -> None:
    assert field(component_doc(Plotter), "axis") == {
        "name": "axis",
        "type_name": "object",
        "field_type": {
            "object": [
                {
                    "name": "name",
                    "type_name": "string",
                    "field_type": "text",
                    "description": "Its name.",
                    "required": True,
                }
            ]
        },
        "description": "The axis.",
        "required": False,
    }


def test_a_list_describes_its_element_without_a_name() -> None:
    columns = field(component_doc(Plotter), "columns")

    assert columns["type_name"] == "list of column"
    element = columns["field_type"]["list"]
    assert (element["name"], element["type_name"]) == ("", "object")
    assert [one["name"] for one in element["field_type"]["object"]] == ["name"]


def test_a_union_lists_its_variants_under_their_tag() -> None:
    shape = field(component_doc(Plotter), "shape")

    assert shape["type_name"] == "circle | point"
    union = shape["field_type"]["union"]
    assert union["tag"] == "type"
    assert [
        (one["name"], [each["name"] for each in one["fields"]]) for one in union["variants"]
    ] == [
        ("circle", ["radius"]),
        ("point", []),
    ]


def test_a_variant_key_is_a_variant_and_no_field() -> None:
    doc = component_doc(Either)

    assert [one["name"] for one in doc["fields"]] == ["field", "mode"]
    assert [(one["name"], [each["name"] for each in one["fields"]]) for one in doc["variants"]] == [
        ("Left", ["name"]),
        ("Right", ["radius"]),
    ]


def test_metadata_is_what_an_input_attaches_and_empty_for_others() -> None:
    reading = component_doc(Reading)["metadata"]

    assert [one["name"] for one in reading] == ["pipeline", "input", "received_at", "depth"]
    assert reading[-1] == {"name": "depth", "description": "How deep."}
    assert component_doc(Plotter)["metadata"] == []


def test_the_real_filter_has_variants_and_a_list_of_conditions() -> None:
    catalogue = scan("headrace.operators")
    doc = component_doc(catalogue.family("transform")["filter"])

    assert [one["name"] for one in doc["fields"]] == ["when"]
    assert [one["name"] for one in doc["variants"]] == ["Numeric", "String"]


def test_every_component_and_every_field_has_its_words() -> None:
    def wordless(fields: list[dict[str, Any]]) -> list[str]:
        found = [one["name"] for one in fields if one["name"] and not one["description"]]
        for one in fields:
            match one["field_type"]:
                case {"list": element}:
                    found += wordless([element])
                case {"object": inner}:
                    found += wordless(inner)
                case {"union": {"variants": variants}}:
                    found += [name for each in variants for name in wordless(each["fields"])]
        return found

    for doc in component_docs(scan("headrace.operators", "headrace.connectors")):
        assert doc["description"], doc["kind"]
        assert wordless(doc["fields"]) == [], doc["kind"]
