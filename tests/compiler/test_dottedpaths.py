"""Dotted paths, as section 9.1 of the contract has them."""

import pytest

from headrace.compiler.dottedpaths import MISSING, DottedPath, ScalarInTheWay


@pytest.mark.parametrize(
    ("message", "path", "value"),
    [
        ({"temp": 21.5}, "temp", 21.5),
        ({"temp": None}, "temp", None),
        ({}, "temp", MISSING),
        ({"_meta": {"subject": "plc.1"}}, "_meta.subject", "plc.1"),
        ({"_meta.subject": "literal", "_meta": {"subject": "below"}}, "_meta.subject", "literal"),
        ({"_meta.subject": None, "_meta": {"subject": "below"}}, "_meta.subject", None),
        ({"a": {"b.c": 1}}, "a.b.c", MISSING),
        ({"a.b": {"c": 1}}, "a.b.c", MISSING),
        ({"items": {"0": "zero"}}, "items.0", "zero"),
        ({"items": ["zero"]}, "items.0", MISSING),
        ({"a": {"b": 1}}, "a.*", MISSING),
        ({"a": {"": {"b": 1}}}, "a..b", 1),
        ({"": {"": 2}}, ".", 2),
        ({"": 3}, "", 3),
        ({"a": "text"}, "a.b", MISSING),
        ({"a": None}, "a.b", MISSING),
        (["temp"], "temp", MISSING),
        ("temp", "temp", MISSING),
        (None, "temp", MISSING),
        (5, "a.b", MISSING),
    ],
)
def test_a_path_is_a_literal_key_or_leads_down_through_objects(message, path, value):
    assert DottedPath(path).read(message) == value


@pytest.mark.parametrize(
    ("message", "path", "written"),
    [
        ({"temp": 1, "x": 2}, "temp", {"temp": 9, "x": 2}),
        ({}, "temp", {"temp": 9}),
        ({}, "a.b.c", {"a": {"b": {"c": 9}}}),
        ({"a": {"x": 1}}, "a.b", {"a": {"x": 1, "b": 9}}),
        ({"a.b": 1, "a": {"b": 2}}, "a.b", {"a.b": 9, "a": {"b": 2}}),
        ({"a.b": 1}, "a.b", {"a.b": 9}),
        ({"a.b": {"c": 1}}, "a.b.c", {"a.b": {"c": 1}, "a": {"b": {"c": 9}}}),
        ({"a": 1}, "a", {"a": 9}),
        ({}, "a..b", {"a": {"": {"b": 9}}}),
    ],
)
def test_writing_follows_the_path_and_creates_missing_objects(message, path, written):
    assert DottedPath(path).write(message, 9) == written


def test_a_new_key_goes_to_the_end_and_a_written_one_keeps_its_place():
    message = {"a": 1, "b": {"x": 1, "y": 2}, "c": 3}

    written = DottedPath("b.x").write(message, 9)
    longer = DottedPath("d").write(message, 9)

    assert list(written) == ["a", "b", "c"]
    assert list(written["b"]) == ["x", "y"]
    assert list(longer) == ["a", "b", "c", "d"]


def test_writing_copies_along_the_path_and_shares_the_rest():
    message = {"a": {"b": {"x": 1}, "other": {"y": 2}}, "else": {"z": 3}}

    written = DottedPath("a.b.x").write(message, 9)

    assert message == {"a": {"b": {"x": 1}, "other": {"y": 2}}, "else": {"z": 3}}
    assert written["a"]["other"] is message["a"]["other"]
    assert written["else"] is message["else"]


@pytest.mark.parametrize("scalar", [1, "text", True, None, [{"b": 1}], 2.5])
def test_a_value_that_is_no_object_is_not_written_through(scalar):
    message = {"a": {"b": scalar}}

    with pytest.raises(ScalarInTheWay) as refusal:
        DottedPath("a.b.c.d").write(message, 9)

    assert str(refusal.value) == "cannot write 'a.b.c.d': 'b' is not an object"
    assert (refusal.value.path, refusal.value.segment) == (DottedPath("a.b.c.d"), "b")


@pytest.mark.parametrize(
    ("message", "path", "left"),
    [
        ({"temp": 1, "x": 2}, "temp", {"x": 2}),
        ({"a": {"b": 1}}, "a.b", {"a": {}}),
        ({"a": {"b": {"c": 1, "d": 2}}}, "a.b.c", {"a": {"b": {"d": 2}}}),
        ({"a.b": 1, "a": {"b": 2}}, "a.b", {"a": {"b": 2}}),
        ({"temp": None}, "temp", {}),
    ],
)
def test_removing_takes_the_literal_key_or_follows_the_path_and_keeps_emptied_parents(
    message, path, left
):
    before = repr(message)

    assert DottedPath(path).remove(message) == left
    assert repr(message) == before


@pytest.mark.parametrize("message", [{}, {"a": 1}, {"a": {"x": 1}}, {"a": ["b"]}, [1], "a.b", None])
def test_removing_what_is_not_there_gives_the_message_itself(message):
    assert DottedPath("a.b").remove(message) is message


def test_a_path_without_a_dot_is_plain():
    assert DottedPath("temp").is_plain
    assert not DottedPath("_meta.subject").is_plain
    assert DottedPath("a..b").segments == ("a", "", "b")


def test_missing_is_not_null_and_says_its_name():
    assert MISSING is not None
    assert repr(MISSING) == "MISSING"


@pytest.mark.parametrize(
    ("value", "path", "changed"),
    [
        ({"a": 1, "b": 2}, "a", {"a": "x", "b": 2}),
        ({"a": {"b": 1, "c": 2}}, "a.b", {"a": {"b": "x", "c": 2}}),
        ({"a": [{"b": 1}, {"b": 2}, 3]}, "a.b", {"a": [{"b": "x"}, {"b": "x"}, 3]}),
        ([{"a": 1}], "a", [{"a": "x"}]),
        ({"a.b": 1, "a": {"b": 2}}, "a.b", {"a.b": "x", "a": {"b": "x"}}),
        ({"a": {"b.c": 1}, "a.b": {"c": 2}}, "a.b.c", {"a": {"b.c": "x"}, "a.b": {"c": "x"}}),
        ({"a": None}, "a.b", {"a": None}),
        ({"a": {"b": [1, 2]}}, "a.b", {"a": {"b": "x"}}),
        ("a", "a", "a"),
    ],
)
def test_all_that_a_path_may_lead_to_can_be_changed(value, path, changed):
    before = repr(value)

    assert DottedPath(path).changed(value, lambda _: "x") == changed
    assert repr(value) == before


def test_what_becomes_nothing_is_removed():
    message = {"a": [{"b": 1, "c": 2}], "b": 3}

    assert DottedPath("a.b").changed(message, lambda _: MISSING) == {"a": [{"c": 2}], "b": 3}
