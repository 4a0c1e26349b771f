"""`pairs`: names and values that the text chooses, and how many."""

import pytest

from tests.operators.parsed import read


def pairs(text, types=None, nulls=None, **form):
    made = read({"pairs": form}, text, as_="x", types=types, nulls=nulls)
    return made["x"] if isinstance(made, dict) else made


@pytest.mark.parametrize(
    ("text", "form", "made"),
    [
        ("a=1;b=2", {}, {"a": "1", "b": "2"}),
        (" a = 1 ; b= 2 ;", {}, {"a": "1", "b": "2"}),
        ("", {}, {}),
        (" ; ;", {}, {}),
        ("a=", {}, {"a": ""}),
        ("a=b=c", {}, {"a": "b=c"}),
        ("a=1;a=2", {}, {"a": "2"}),
        ("a b: 1, c: 2", {"between": ",", "within": ":"}, {"a b": "1", "c": "2"}),
        ("a=1  b=2", {"between": " "}, {"a": "1", "b": "2"}),
        ("a->1&&b->2", {"between": "&&", "within": "->"}, {"a": "1", "b": "2"}),
    ],
)
def test_each_pair_is_a_field(text, form, made):
    assert pairs(text, **form) == made


@pytest.mark.parametrize(
    ("text", "how"), [("a", "a pair without a value"), ("a=1;=2", "a pair without a name")]
)
def test_half_a_pair_does_not_fit(text, how):
    assert pairs(text) == f"'value' does not fit pairs: {how}"


def test_values_have_types_by_name_and_some_stand_for_nothing():
    made = pairs("a=7;b=-;c=x", types={"a": "integer", "b": "integer", "d": "float"}, nulls=["-"])

    assert made == {"a": 7, "b": None, "c": "x"}


def test_more_than_a_thousand_pairs_are_not_taken():
    def text(count):
        return ";".join(f"k{n}={n}" for n in range(count))

    assert len(pairs(text(1_000))) == 1_000
    assert pairs(text(1_001)) == "'value' does not fit pairs: more than 1,000 pairs"
    assert pairs(";" * 65_536) == "'value' does not fit pairs: more than 1,000 pairs"
