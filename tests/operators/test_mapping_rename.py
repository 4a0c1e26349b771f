"""The mapping `rename`: many fields at once."""

import pytest

from headrace.compiler.component.fieldflow import FieldUse
from headrace.operators.map import Map
from tests.doubles import refusals
from tests.operators.mappings import a_map, constant, copy


def rename(**fields):
    return {"type": "rename", "fields": fields}


def dotted(fields):
    return {"type": "rename", "fields": fields}


@pytest.mark.parametrize(
    ("mapping", "message", "renamed"),
    [
        (rename(a="x"), {"a": 1, "b": 2}, {"x": 1, "b": 2}),
        (rename(b="x"), {"a": 1, "b": 2, "c": 3}, {"a": 1, "x": 2, "c": 3}),
        (rename(a="b", b="a"), {"a": 1, "c": 0, "b": 2}, {"b": 1, "c": 0, "a": 2}),
        (rename(a="b", b="c", c="a"), {"a": 1, "b": 2, "c": 3}, {"b": 1, "c": 2, "a": 3}),
        (rename(a="b"), {"b": 1, "c": 0, "a": 2}, {"c": 0, "b": 2}),
        (rename(a="b"), {"a": False, "c": None}, {"b": False, "c": None}),
        (dotted({"a": "x.y"}), {"a": 1, "b": 2}, {"b": 2, "x": {"y": 1}}),
        (dotted({"d.id": "id"}), {"d": {"id": 1, "n": 2}}, {"d": {"n": 2}, "id": 1}),
        (dotted({"d.id": "d"}), {"d": {"id": 1, "n": 2}}, {"d": 1}),
        (dotted({"d": "d.id"}), {"d": 1}, {"d": {"id": 1}}),
        (dotted({"d.a": "d.b", "d.b": "d.a"}), {"d": {"a": 1, "b": 2}}, {"d": {"b": 1, "a": 2}}),
        (dotted({"a.b": "x"}), {"a.b": 1, "c": 2}, {"x": 1, "c": 2}),
        (dotted({"a": "x", "a.b": "y"}), {"a": {"b": 1}}, {"x": {"b": 1}, "y": 1}),
        (dotted({" a ": " b "}), {"a": 1}, {"b": 1}),
    ],
)
def test_fields_have_other_names_and_keep_their_places(mapped, mapping, message, renamed):
    assert repr(mapped(a_map(mapping), message)) == repr(renamed)


def test_where_only_what_is_mapped_is_kept_that_is_the_new_names(mapped):
    document = a_map(rename(a="b", b="a", c="d"), keep="mapped")

    assert mapped(document, {"a": 1, "b": 2, "c": 3, "e": 4}) == {"b": 1, "a": 2, "d": 3}
    before = a_map(constant(5, "a"), constant(6, "z"), rename(a="b"), keep="mapped")
    assert mapped(before, {"q": 0}) == {"b": 5, "z": 6}


@pytest.mark.parametrize("keep", ["all", "mapped"])
@pytest.mark.parametrize("message", [{"b": 2, "z": 0}, {"a": None, "b": 2, "z": 0}])
def test_what_is_missing_is_answered_by_the_policy(mapped, keep, message):
    document = a_map(rename(a="x", b="y"), keep=keep)
    rest = {"z": 0} if keep == "all" else {}

    assert mapped(document, message) == "mapping 0 ('rename'): field 'a' is missing or null"
    assert mapped(document | {"on_missing": "omit"}, message) == {"y": 2} | rest
    assert mapped(document | {"on_missing": "null"}, message) == {"x": None, "y": 2} | rest


def test_under_omit_nothing_is_written_over_by_what_is_missing(mapped):
    document = a_map(rename(a="b"), on_missing="omit")

    assert mapped(document, {"b": 1}) == {"b": 1}


def test_a_message_with_too_many_fields_fails_its_batch(mapped):
    wide = dict.fromkeys(map(str, range(10_001)), 0)

    for keep in ("all", "mapped"):
        assert mapped(a_map(rename(**{"1": "x"}), keep=keep), wide) == (
            "mapping 0 ('rename'): the message has more than 10,000 fields"
        )


def test_so_does_one_with_too_many_fields_in_an_object_that_one_is_taken_out_of(mapped):
    document = a_map(dotted({"d.1": "x"}))

    assert mapped(document, {"d": dict.fromkeys(map(str, range(10_001)), 0)}) == (
        "mapping 0 ('rename'): objects in the message have more than 10,000 fields together"
    )


def test_where_an_object_would_have_to_be_the_batch_fails(mapped):
    document = a_map(dotted({"a": "b.c"}))

    assert mapped(document, {"a": 1, "b": 5}) == (
        "mapping 0 ('rename'): cannot write 'b.c': 'b' is not an object"
    )


@pytest.mark.parametrize(
    ("mapping", "reasons"),
    [
        (
            rename(a="x", b="x"),
            [
                "mappings[0].fields.b: 'x' is the new name of another field as well, at fields.a",
            ],
        ),
        (
            rename(),
            [
                "mappings[0].fields: expected an object of at least one field, found an empty one",
            ],
        ),
        (
            dotted({"a": "x", "a ": "y"}),
            ["mappings[0].fields: a field is named twice, once with blanks around it"],
        ),
        (dotted({"": "x"}), ['mappings[0].fields[""]: this must not be blank']),
        (dotted({"a": ""}), ["mappings[0].fields.a: this must not be blank"]),
        (dotted({"a": 5}), ["mappings[0].fields.a: expected a string that is not blank, found 5"]),
        (rename(a="a"), ["mappings[0].fields.a: 'a' has that name already"]),
        (
            dotted({"a": "b.c", "d": "b"}),
            ["mappings[0].fields.a: cannot write 'b.c': 'b' is the new name of 'd'"],
        ),
        (
            dotted({"d": "b.c", "a": "b.c.d.e"}),
            ["mappings[0].fields.a: cannot write 'b.c.d.e': 'b.c' is the new name of 'd'"],
        ),
    ],
)
def test_names_that_cannot_be_meant_are_refused(mapping, reasons):
    assert refusals(Map, a_map(mapping)) == reasons


def test_no_other_mapping_writes_a_new_name():
    assert refusals(Map, a_map(copy("q", "x"), rename(a="y", b="x"))) == [
        "mappings[1].fields.b: 'x' is written twice: mappings[0] writes it already"
    ]


def test_it_reads_and_takes_out_the_old_names_and_writes_the_new_ones():
    renaming = Map.load(a_map(rename(a="b", c="x.y")))

    assert renaming.field_use() == FieldUse.of(
        reads=["a", "c", "x", "x.y"], writes=["b", "x.y"], removes=["a", "c"], asks=["a", "c"]
    )
    assert [(each.path, each.place) for each in renaming.demands()] == [
        ("a", ("mappings", 0, "fields", "a")),
        ("c", ("mappings", 0, "fields", "c")),
    ]
    assert [*Map.load(a_map(rename(a="b"), on_missing="omit")).demands()] == []
