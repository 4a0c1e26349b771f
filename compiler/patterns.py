"""Regular expressions that configs name: of the extension, where each text's cost has a bound.

Python's own `re` takes time that grows with the power of two of a text for some patterns, and holds the
interpreter meanwhile. The engine of Rust's `regex` takes time that grows with the text alone, and what it
takes for each character is bounded here by the size of the pattern and of the text.

The extension is imported when the first pattern is met: most configs have none, and an installation
without Rust does not have it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import ModuleType
from typing import NamedTuple

NO_ENGINE = (
    "a pattern needs the package 'rhai-python', which is not installed: where there is Rust 1.85 or newer"
    " (https://rustup.rs), 'make run' or 'pip install ./rhai-python' in the sources of headrace installs it"
)
MOST_KEPT = 512
"""Patterns that are kept compiled, by their texts: a config is checked, explained and built with one."""


class PatternRefused(ValueError):
    """A regular expression cannot be used. ``at`` is how many characters are before the place, or None."""

    def __init__(self, message: str, at: int | None = None) -> None:
        super().__init__(message)
        self.message, self.at = message, at


class Pattern:
    """A regular expression that finds its named groups, ``(?<name>...)``, somewhere in a text.

    ``^`` and ``$`` are the ends of the text. ``\\d``, ``\\w``, ``\\s`` and ``\\b`` mean ASCII. There are no
    look-around and no back references. Groups without a name are none.

    ``names``: those of the groups, in their order. ``longest``: bytes of UTF-8 of the longest text that
    it searches, at most 1 MiB; longer ones do not match. ``is_one_pass``: it begins with ``^`` and each
    character says how to go on, so that ``longest`` is 1 MiB whatever the pattern.

    ``groups(text)`` returns the texts of the named groups as a tuple, in the order of ``names``, None for
    a group that took no part; None where the text does not match, or is too long. It raises nothing.

    Raises:
        PatternRefused: it is malformed, its program would have more than 64 KiB, it is nested more than 50
            deep, it has more than 4,096 characters; or the extension is not installed.
    """

    __slots__ = ("_made", "groups", "is_one_pass", "longest", "names")

    def __init__(self, regex: str) -> None:
        engine = _engine()
        try:
            pattern = engine.Pattern(regex)
        except engine.PatternError as error:
            raise PatternRefused(error.message, error.at) from error
        self._made = pattern
        self.names: tuple[str, ...] = pattern.names
        self.longest: int = pattern.longest
        self.is_one_pass: bool = pattern.is_one_pass
        # The extension's own method: between it and whoever calls it stands nothing.
        self.groups: Callable[[str], tuple[str | None, ...] | None] = pattern.groups

    def is_too_long(self, text: str) -> bool:
        """Return whether a text did not match because it has more than ``longest`` bytes."""
        return _has_more(text, self.longest)

    def replacement(self, with_: str, *, first: bool = False) -> Replacement:
        """Return what puts a text in the place of all matches, or of the first one.

        ``$name`` and ``${name}`` stand there for what a group matched, nothing if it took no part; ``$$``
        is a dollar. A match of nothing right behind another match is none.

        Raises:
            PatternRefused: it names a group that the pattern has not.
        """
        try:
            made = self._made.replacement(with_, first=first)
        except _engine().PatternError as error:
            raise PatternRefused(error.message, error.at) from error
        return Replacement(made.replaced, made.longest)


class Replacement(NamedTuple):
    """What replaces matches of a pattern in a text.

    ``replaced(text)`` returns the text with the matches replaced; None where it is too long, or would get
    longer than 16 MiB. ``longest``: bytes of UTF-8 of the longest text that it takes. Where all matches are
    replaced and there may be several that is 3,000, or less where the automaton is too large to be kept
    whole: each search may read the text to its end.
    """

    replaced: Callable[[str], str | None]
    longest: int

    def is_too_long(self, text: str) -> bool:
        """Return whether nothing was replaced because a text has more than ``longest`` bytes."""
        return _has_more(text, self.longest)


def _has_more(text: str, most: int) -> bool:
    """Return whether a text has more bytes of UTF-8; characters alone may tell."""
    characters = len(text)
    return characters > most or (
        4 * characters > most and len(text.encode(errors="replace")) > most
    )


class WholePattern:
    """A regular expression that a text matches somewhere, or nowhere: for conditions.

    ``is_match(text)`` looks once at each byte, in 2 to 8 ns, whatever the pattern. One of more than 1 MiB
    does not match. Patterns are written as those of `Pattern`, some of which are too large for it.

    Raises:
        PatternRefused: as those of `Pattern`, or its automaton would have more than 1 MiB.
    """

    __slots__ = ("is_match",)

    def __init__(self, regex: str) -> None:
        engine = _engine()
        try:
            matcher = engine.Matcher(regex)
        except engine.PatternError as error:
            raise PatternRefused(error.message, error.at) from error
        self.is_match: Callable[[str], bool] = matcher.is_match


@lru_cache(MOST_KEPT)
def pattern(regex: str) -> Pattern:
    """Return the pattern, compiled once.

    Raises:
        PatternRefused: see `Pattern`.
    """
    return Pattern(regex)


@lru_cache(MOST_KEPT)
def whole_pattern(regex: str) -> WholePattern:
    """Return the pattern, compiled once.

    Raises:
        PatternRefused: see `WholePattern`.
    """
    return WholePattern(regex)


def _engine() -> ModuleType:
    try:
        import rhai
    except ImportError as cause:
        raise PatternRefused(NO_ENGINE) from cause
    return rhai
