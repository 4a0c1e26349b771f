"""Patterns mean what Python's `re` means by them, and none of them takes long, whatever the text."""

from __future__ import annotations

import random
import re
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.patterns import Pattern, PatternRefused, WholePattern
from tests.examples import examples
from tests.slowness import slowness

LONGEST_SECONDS = 0.02
"""What anybody may hold the loop for."""
ATOMS = ["a", "b", "é", ".", "[ab]", "[^a]", "[a-z]", r"\w", r"\d", r"\s", r"\W", r"\S", "x", r"\."]
ENDS = ["^", "$", r"\b", r"\B"]
TEXTS = st.text(
    "aabbxé1_ .-", min_size=1, max_size=12
)  # in an empty one, `\B` is nowhere until Python 3.14

pytestmark = pytest.mark.engine


@st.composite
def regexes(draw, depth=3):
    """Draw a pattern that both know, and whether it can match nothing.

    What can match nothing is not repeated: which of its rounds a group tells of is nowhere written.
    """
    form = draw(st.sampled_from(["atom", "end", "sequence", "choice", "repeated", "group"]))
    if form == "end":
        return draw(st.sampled_from(ENDS)), True
    if form == "atom" or depth == 0:
        return draw(st.sampled_from(ATOMS)), False
    inner = regexes(depth=depth - 1)
    if form in ("sequence", "choice"):
        parts = draw(st.lists(inner, min_size=2, max_size=3))
        texts = [text for text, _ in parts]
        can_be_empty = [is_empty for _, is_empty in parts]
        if form == "sequence":
            return "".join(texts), all(can_be_empty)
        return f"(?:{'|'.join(texts)})", any(can_be_empty)
    text, can_be_empty = draw(inner)
    if form == "group":
        return f"(?P<NAME>{text})", can_be_empty
    if can_be_empty:
        return text, True
    times = draw(st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{2,}?"]))
    return f"(?:{text}){times}", times[0] in "*?"


def named(regex: str) -> str:
    """Return a pattern whose groups have names of their own."""
    first, *rest = regex.split("NAME")
    return first + "".join(f"g{number}{part}" for number, part in enumerate(rest))


@examples(500)
@given(st.data())
def test_what_matches_is_what_matches_for_python(data: st.DataObject) -> None:
    regex, _ = data.draw(regexes())
    text = data.draw(TEXTS)
    pattern = f"(?P<whole>{named(regex)})"
    expected = re.compile(pattern, re.ASCII).search(text)

    found = Pattern(pattern).groups(text)

    assert WholePattern(pattern).is_match(text) == (expected is not None) == (found is not None)
    if found is not None and expected is not None:
        assert found == expected.groups()


@examples(300)
@given(st.data())
def test_what_is_replaced_is_what_python_replaces(data: st.DataObject) -> None:
    regex, _ = data.draw(regexes().filter(lambda drawn: not drawn[1]))
    text, first = data.draw(TEXTS), data.draw(st.booleans())
    pattern = f"(?P<whole>{named(regex)})"

    expected = re.compile(pattern, re.ASCII).sub(r"<\g<whole>>$", text, count=int(first))

    replacement = Pattern(pattern).replacement("<${whole}>$$", first=first)
    assert replacement.replaced(text) == expected


HOSTILE = [
    "(a+)+$",
    r"(\w+\s?)*$",
    "(a|a)*$",
    "(a|aa)+$",
    "(?:a?){50}a{50}",
    "(.*)(.*)(.*)(.*)x",
    "[ab]*a[ab]{200}x",
    "[ab]*a[ab]{600}x|.",
    ".*[^A-Z]|[A-Z]",
    "a.{30}b|.",
    r"\b(\w+@)+x|\w",
    "^(a+)+$",
    "^([ab]*)([^x]*)$",
]
PIECES = [*ATOMS, *ENDS, "(a|ab)", "(?:[ab]{9})", "[^x]*"]


@st.composite
def hostile_regexes(draw):
    """Draw a pattern with much in it that can be repeated in many ways."""
    text = "".join(draw(st.lists(st.sampled_from(PIECES), min_size=1, max_size=5)))
    for _ in range(draw(st.integers(0, 2))):
        times = draw(st.sampled_from(["*", "+", "{2,9}", "{30}", "{1,60}", "*?"]))
        more = draw(st.sampled_from(PIECES))
        text = f"(?:{text}){times}{draw(st.sampled_from(['', '|.', more, '$']))}"
    return draw(st.sampled_from(["", "", "^"])) + text


def hostile_texts(size: int) -> list[str]:
    """Return texts of so many bytes."""
    chance = random.Random(size)
    letters = "".join(chance.choices("abx 1", k=min(size, 1000)))
    return [
        ("a" * (size - 1) + "!")[-size:],
        ("ab" * size)[:size],
        (letters * (size // len(letters) + 1))[:size],
        "é" * (size // 2),
    ]


def seconds(work, text: str) -> float:
    """Return the time it takes, of this thread alone: the better of two, as the machine is others', too."""
    taken = []
    for _ in range(2):
        began = time.thread_time()
        work(text)
        taken.append(time.thread_time() - began)
    return min(taken)


def is_quick(work, text: str) -> bool:
    """Return whether a text takes no longer than it may, on a machine as slow as this one is now."""
    taken = seconds(work, text)
    return taken < LONGEST_SECONDS or taken < LONGEST_SECONDS * slowness()


def assert_quick(regex: str) -> None:
    """Assert that no text takes long, of which nobody says beforehand that it is too long."""
    try:
        pattern = Pattern(regex)
    except PatternRefused:
        return
    ways = [(pattern.groups, pattern.longest)]
    for first in (True, False):
        replacement = pattern.replacement("<>", first=first)
        ways.append((replacement.replaced, replacement.longest))
    with suppress(PatternRefused):
        ways.append((WholePattern(regex).is_match, 2**20))
    for work, longest in ways:
        for text in hostile_texts(longest):
            assert is_quick(work, text), (regex, work, len(text))


@pytest.mark.timed
@pytest.mark.parametrize("regex", HOSTILE)
def test_a_pattern_known_to_be_hostile_takes_no_long_time(regex: str) -> None:
    assert_quick(regex)


@pytest.mark.timed
@examples(100)
@given(hostile_regexes())
def test_no_pattern_takes_long(regex: str) -> None:
    assert_quick(regex)


@pytest.mark.timed
@pytest.mark.parametrize("characters", [28, 10_000, 1_000_000])
def test_what_holds_python_for_ages_is_known_at_once(characters: int) -> None:
    text = "a" * characters + "!"

    assert is_quick(Pattern("(a+)+$").groups, text)
    assert is_quick(WholePattern("(a+)+$").is_match, text)
    assert Pattern("^(a+)+$").groups(text) is None


@pytest.mark.timed
@pytest.mark.parametrize(
    "regex", [r"(?:\p{L}\p{N}){500}", "(?i)" + r"[\p{L}]" * 500, "(a{1000}){1000}"]
)
def test_what_is_too_large_is_refused_before_it_takes_long(regex: str) -> None:
    began = time.thread_time()

    with pytest.raises(PatternRefused, match="this pattern is too large"):
        Pattern(regex)

    assert time.thread_time() - began < 5 * LONGEST_SECONDS
