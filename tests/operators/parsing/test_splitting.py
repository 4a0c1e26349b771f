"""`split`: as many parts as names, what is left out, and what the last one takes."""

import pytest

from tests.operators.parsed import read


def split(*into, by="/", **options):
    return {"split": {"by": by, "into": [*into], **options}}


@pytest.mark.parametrize(
    ("form", "text", "made"),
    [
        (split("a", "b"), "x/y", {"a": "x", "b": "y"}),
        (split("a"), "x", {"a": "x"}),
        (split("a"), "", {"a": ""}),
        (split("a", "b"), "/", {"a": "", "b": ""}),
        (split(None, "b", None), "x/y/z", {"b": "y"}),
        (split("a", "b", by="::"), "x:::y", {"a": "x", "b": ":y"}),
        (split("a", "b", by=" "), "x y", {"a": "x", "b": "y"}),
        (split("a", "b"), "x/y/z", "'value' does not fit split: 3 parts for 2 names"),
        (split("a", "b"), "x", "'value' does not fit split: 1 part for 2 names"),
        (split("a"), "x/y", "'value' does not fit split: 2 parts for 1 name"),
    ],
)
def test_there_are_as_many_parts_as_names(form, text, made):
    assert read(form, text) == made


@pytest.mark.parametrize(
    ("form", "text", "made"),
    [
        (split("a", "b", rest=True), "x/y/z/", {"a": "x", "b": "y/z/"}),
        (split("a", "b", rest=True), "x/y", {"a": "x", "b": "y"}),
        (split("a", None, rest=True), "x/y/z", {"a": "x"}),
        (split("a", rest=True), "x/y", {"a": "x/y"}),
        (split("a", "b", rest=True), "x", "'value' does not fit split: 1 part for 2 names"),
    ],
)
def test_the_last_one_may_take_the_rest(form, text, made):
    assert read(form, text) == made


def test_a_text_of_nothing_but_separators_costs_no_more_than_its_names():
    said = read(split("a", "b"), "/" * 65_536)

    assert said == "'value' does not fit split: 65,537 parts for 2 names"
    assert read(split("a", "b", rest=True), "/" * 65_536) == {"a": "", "b": "/" * 65_535}
