"""`regex`: each named group is a field."""

import pytest

from headrace.compiler.patterns import pattern
from tests.operators.parsed import read

pytestmark = pytest.mark.engine

LEVEL = {"regex": r"^(?<level>[A-Z]+)(?: \[(?P<thread>\d+)\])? (?<text>.*)$"}
SOMEWHERE = {"regex": r"(?<user>[a-z]+)@(?<host>[a-z.]+)"}


@pytest.mark.parametrize(
    ("form", "text", "made"),
    [
        (LEVEL, "WARN [12] low", {"level": "WARN", "thread": "12", "text": "low"}),
        (LEVEL, "WARN low", {"level": "WARN", "thread": None, "text": "low"}),
        (LEVEL, "low", "'value' does not fit regex"),
        (LEVEL, "WARN a\nb", "'value' does not fit regex"),
        (SOMEWHERE, "from ann@shop.example, twice", {"user": "ann", "host": "shop.example"}),
        (SOMEWHERE, "", "'value' does not fit regex"),
        ({"regex": "(?<a>)"}, "x", {"a": ""}),
        ({"regex": "^(?<a>\\d+)$"}, "\u0661", "'value' does not fit regex"),
        ({"regex": "^(?<a>.)$"}, "\ud800", "'value' does not fit regex"),
        ({"regex": "^(?<a>.+)$"}, "\U0001f600é", {"a": "\U0001f600é"}),
        ({"regex": "^(?<a.b>.)$"}, "x", {"a.b": "x"}),
    ],
)
def test_each_group_with_a_name_is_a_field(form, text, made):
    assert read(form, text) == made


def test_groups_have_types_and_some_stand_for_nothing():
    types = {"thread": "integer", "text": "json"}

    made = read(LEVEL, "- [007] [1]".replace("-", "A"), types=types, nulls=["A"])

    assert made == {"level": None, "thread": 7, "text": [1]}
    assert read(LEVEL, "A [1]", types=types)["thread"] is None


def test_a_text_that_is_longer_than_the_pattern_searches_does_not_fit():
    longest = pattern(SOMEWHERE["regex"]).longest

    assert read(SOMEWHERE, "a@b".ljust(longest))["user"] == "a"
    assert read(SOMEWHERE, "a@b".ljust(longest + 1)) == (
        f"'value' does not fit regex: this pattern searches at most {longest:,} bytes of text"
    )


def test_a_pattern_that_takes_hours_elsewhere_is_searched_at_once():
    assert read({"regex": "^(?<a>(a+)+)$"}, "a" * 28 + "!") == "'value' does not fit regex"
