"""Regular expressions that configs name: what they mean, and what is refused."""

from __future__ import annotations

import sys
import tracemalloc

import pytest

from headrace.compiler import patterns
from headrace.compiler.patterns import Pattern, PatternRefused, WholePattern

LONGEST = 2**20
ONE_PASS = r"^(?<level>[A-Z]+) (?<text>.*)$"
REFUSED = {
    "(a": ("unclosed group", 0),
    "a{2": ("unclosed counted repetition", 1),
    "é[z-a]": ("invalid character class range, the start must be <= the end", 2),
    r"(?=a)": ("look-around ((?=, (?!, (?<=, (?<!) is not supported", 0),
    r"(a)\1": ("back references are not supported: no pattern looks for what a group matched", 3),
    "(?<n>a)(?<n>b)": ("duplicate capture group name", 10),
    "(" * 51 + "a" + ")" * 51: (
        "more than 50 groups, repetitions and classes inside each other",
        50,
    ),
    "a" * 4_097: ("this pattern has 4097 characters, at most 4096 are accepted", None),
    r"x|\p{L}{50}": (r"this pattern is too large: \p{L}{50} stands for 50 times \p{L}", None),
    "((a{100}){100}){10}": (
        "this pattern is too large: ((a{100}){100}){10} stands for 10 times ((a{100}){100})",
        None,
    ),
}

pytestmark = pytest.mark.engine


def test_a_text_is_taken_apart_by_the_groups_that_have_names():
    found = Pattern(r"(?<first>\d+)(x)?(?P<second>[a-z]+)?(;(?<third>.*))?")

    assert found.names == ("first", "second", "third")
    assert found.groups("..12ab;é") == ("12", "ab", "é")
    assert found.groups("12") == ("12", None, None)
    assert found.groups("none") is None


def test_the_ends_of_a_text_are_its_ends():
    whole = Pattern("^a$")

    assert whole.groups("a") == ()
    assert whole.groups("a\n") is None
    assert whole.groups("b\na") is None
    assert Pattern("(?m)^a$").groups("b\na") == ()


@pytest.mark.parametrize("text", ["٣", "é", "\u00a0"])
@pytest.mark.parametrize("regex", [r"\d", r"\w", r"\s", r"[\d\w\s]", r"\b", r"[[\d]]"])
def test_classes_are_of_ascii(regex, text):
    assert Pattern(regex).groups(text) is None
    assert not WholePattern(regex).is_match(text)


@pytest.mark.parametrize("text", ["٣", "é", "日"])
@pytest.mark.parametrize(
    "regex", [r"^\D$", r"^\W$", r"^\S$", r"^[^\d\s]$", r"^\B.\B$", "^.$", r"^[\W]$"]
)
def test_what_is_not_in_them_is_a_character(regex, text):
    assert Pattern(regex).groups(text) == ()
    assert WholePattern(regex).is_match(text)


def test_a_class_of_unicode_can_be_named():
    assert Pattern(r"^\p{L}+$").groups("héé") == ()
    assert Pattern(r"(?i)^É$").groups("é") == ()


def test_one_that_begins_at_the_start_and_is_unambiguous_takes_long_texts():
    pattern = Pattern(ONE_PASS)
    text = "INFO " + "x" * (LONGEST - 5)

    assert pattern.is_one_pass
    assert pattern.longest == LONGEST
    assert pattern.groups(text) == ("INFO", text[5:])
    assert not pattern.is_too_long(text)
    assert pattern.groups(text + "x") is None
    assert pattern.is_too_long(text + "x")


@pytest.mark.parametrize("regex", ["x", "(^a|b)", "^(a|ab)(c|bcd)", "(?m)^a"])
def test_any_other_takes_texts_by_its_size(regex):
    pattern = Pattern(regex)

    assert not pattern.is_one_pass
    assert pattern.longest < 2**24 / 100


def test_the_bytes_of_a_text_count():
    pattern = Pattern(r"(?<word>\w{30})\W")
    most = pattern.longest // 2
    text = "é" * (most - 32) + "x" * 30 + "é"

    assert pattern.groups(text) == ("x" * 30,)
    assert pattern.groups("é" * 40 + text) is None
    assert pattern.is_too_long("é" * 40 + text)


@pytest.mark.parametrize(
    ("regex", "said"),
    [
        (
            r"(\w+|\p{L}+)\p{L}\p{L}",
            r"\p{L} stands for all that it matches, written out",
        ),
        (
            f"(?<x>deadbeef{''.join(f'|{n:08x}' for n in range(400))})",
            "deadbeef|00000000|00000001|00000002|00000003|00000004|000000... stands for 401 alternatives",
        ),
        (
            "abcdefgh" * 500,
            f"{'abcdefgh' * 7}abcd... stands for 4000 parts in a row",
        ),
    ],
    ids=["class", "alternatives", "row"],
)
def test_what_makes_one_too_large_is_told(regex, said):
    with pytest.raises(PatternRefused) as error:
        Pattern(regex)

    assert error.value.message == f"this pattern is too large: {said}"


LOOKING = {
    "any": lambda: Pattern("(?<a>a)").groups,
    "one pass": lambda: Pattern("^(?<a>é*)$").groups,
    "replaced": lambda: Pattern("a").replacement("").replaced,
    "replaced first": lambda: Pattern("a").replacement("", first=True).replaced,
    "condition": lambda: WholePattern("a").is_match,
    "told": lambda: Pattern("a").is_too_long,
    "told of a replacement": lambda: Pattern("a").replacement("").is_too_long,
}


@pytest.mark.parametrize("way", LOOKING)
def test_no_bytes_are_made_of_a_text_that_has_more_characters_than_are_searched(way):
    look = LOOKING[way]()
    text = "é" * (2 * LONGEST)
    size = sys.getsizeof(text)  # with its bytes, once there are some

    tracemalloc.start()
    try:
        look(text)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert sys.getsizeof(text) == size
    assert most < 64 * 1024


def test_a_lone_surrogate_matches_nothing():
    assert Pattern(".").groups("\ud800") is None
    assert not Pattern(".").is_too_long("\ud800")
    assert not WholePattern(".").is_match("\ud800")


@pytest.mark.parametrize("regex", REFUSED)
@pytest.mark.parametrize("made", [Pattern, WholePattern])
def test_one_that_cannot_be_used_is_refused(made, regex):
    with pytest.raises(PatternRefused) as refused:
        made(regex)

    assert (refused.value.message, refused.value.at) == REFUSED[regex]


@pytest.mark.parametrize("regex", ["[ab]*a[ab]{200}x", "a[^x]{30}b"])
def test_one_that_is_too_large_for_a_condition_is_refused_there(regex):
    assert Pattern(regex).groups("") is None

    with pytest.raises(
        PatternRefused, match=r"too large for a condition, .* write a class of ASCII"
    ):
        WholePattern(regex)


def test_it_matches_somewhere_unless_the_text_is_too_long():
    whole = WholePattern(r"\bfoo\d+$")

    assert whole.is_match("a foo12")
    assert not whole.is_match("a foo12 ")
    assert whole.is_match(" " * (LONGEST - 4) + "foo1")
    assert not whole.is_match(" " * (LONGEST - 3) + "foo1")


def test_without_the_engine_it_is_refused_with_the_reason(monkeypatch):
    monkeypatch.setitem(sys.modules, "rhai", None)

    with pytest.raises(PatternRefused, match=r"needs the package 'rhai-python'.* Rust 1\.85"):
        Pattern("a")


def test_a_pattern_is_compiled_once():
    assert patterns.pattern("once") is patterns.pattern("once")
    assert patterns.whole_pattern("once") is patterns.whole_pattern("once")
