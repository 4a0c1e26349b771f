"""The mappings `text` and `mask`."""

import pytest

from headrace.operators.map import Map
from tests.doubles import refusals
from tests.operators.mappings import a_map


def text(*apply, **options):
    return {"type": "text", "from": "x", "apply": [*apply], **options}


def mask(**options):
    return {"type": "mask", "from": "x", **options}


@pytest.mark.parametrize(
    ("mapping", "value", "changed"),
    [
        (text("trim"), " \ta b\n", "a b"),
        (text("lower"), "Ab Ä", "ab ä"),
        (text("upper"), "Straße", "STRASSE"),
        (text("upper", "trim", "lower"), " Ab ", "ab"),
        (text("trim"), "", ""),
    ],
)
def test_a_text_is_changed_in_order(mapped, mapping, value, changed):
    assert mapped(a_map(mapping), {"x": value}) == {"x": changed}


@pytest.mark.parametrize(
    ("mapping", "value", "shown"),
    [
        (mask(), "secret", "***"),
        (mask(keep_start=2), "secret", "se***"),
        (mask(keep_end=2), "secret", "***et"),
        (mask(keep_start=1, keep_end=1), "secret", "s***t"),
        (mask(keep_start=1, keep_from="@"), "ann@shop.example", "a***@shop.example"),
        (mask(keep_from="@"), '"a@b"@shop.example', "***@shop.example"),
        (mask(keep_start=1, keep_from="@"), "nobody", "n***"),
        (mask(keep_end=4), 4111111111111111, "***1111"),
        (mask(keep_start=1, **{"with": "…"}), "secret", "s…"),
        (mask(), True, "***"),
    ],
)
def test_a_part_shows_and_the_length_of_the_rest_does_not(mapped, mapping, value, shown):
    assert mapped(a_map(mapping), {"x": value}) == {"x": shown}


@pytest.mark.parametrize(
    ("mapping", "value"),
    [
        (mask(keep_start=3, keep_end=3), "secret"),
        (mask(keep_start=3, keep_end=3), "ab"),
        (mask(keep_end=4), "1234"),
        (mask(keep_start=1, keep_from="@"), "a@shop.example"),
        (mask(keep_from="@"), "@shop.example"),
        (mask(keep_start=6), "secret"),
        (mask(keep_start=1), ""),
    ],
)
def test_where_nothing_would_be_hidden_all_of_it_is(mapped, mapping, value):
    assert mapped(a_map(mapping), {"x": value}) == {"x": "***"}


@pytest.mark.parametrize(
    ("mapping", "value", "failure"),
    [
        (text("trim"), 5, "('text'): field 'x' is a number: expected a string"),
        (text("trim"), True, "('text'): field 'x' is a boolean: expected a string"),
        (text("trim"), " " * 262_145, "('text'): field 'x' has more than 262,144 characters"),
        (
            mask(),
            ["a"],
            "('mask'): field 'x': cannot read a list as text: expected a string, number or boolean",
        ),
        (mask(), "a" * 262_145, "('mask'): field 'x' has more than 262,144 characters"),
    ],
)
def test_what_does_not_fit_fails_the_batch(mapped, mapping, value, failure):
    assert mapped(a_map(mapping), {"x": value}) == f"mapping 0 {failure}"


@pytest.mark.parametrize(
    ("mapping", "reasons"),
    [
        (
            mask(keep_end=1, keep_from="@"),
            ["mappings[0]: 'keep_from' and 'keep_end' both say what shows at the end"],
        ),
        (mask(keep_from=""), ["mappings[0].keep_from: this must not be empty"]),
        (
            text(),
            ["mappings[0].apply: expected a list of at least one word, found an empty list"],
        ),
        (
            text("capitalize"),
            ['mappings[0].apply[0]: expected one of trim, lower, upper, found "capitalize"'],
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(mapping, reasons):
    assert refusals(Map, a_map(mapping)) == reasons
