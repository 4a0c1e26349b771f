"""Marble lines: what happens when, drawn as text: ``a-b---c 60s (de)x3 | f``.

A column is a frame. ``-`` is an empty one. A duration between blanks stands in for the step to the next
column, and several add up. ``(ab)`` is one column. ``(...)x400`` is written out 400 times. ``#`` loses
the connection. Behind ``|`` is the end. Blanks between columns mean nothing.

A word is a name, or else each of its letters is one. Moments are counted in microseconds, so that a
year of them is as exact as the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from headrace.authoring.language.durations import (
    END,
    LONGEST,
    LONGEST_DAYS,
    SECOND,
    NotADuration,
    microseconds,
    not_a_time,
    told,
)
from headrace.compiler.text.diagnostics import Codes, Fault, Spot, shown
from headrace.compiler.text.positions import LineIndex
from headrace.compiler.text.suggest import did_you_mean, nearest, one_of

CODES: Codes = {
    "not-marbles": "A marble line is not written as one, or names what is called nothing.",
}

LOSS = "#"
"""What loses the connection."""
MOST_MOMENTS = 1_000_000
"""How many moments a line has at most, and all the timelines of a file of tests together."""
DEEPEST = 16
"""How deep groups may be nested."""
MOST_FAULTS = 10
"""How many unknown names of one line are told."""

_MOST_DASHES = 10
"""A longer pause is written as a duration."""
_DIGITS = len(str(MOST_MOMENTS))
_DECIMALS = "0123456789"

_TOKEN = re.compile(
    r"(?P<blank>\s+)|(?P<opening>\()|(?P<closing>\)(?:x(?P<times>[0-9]+))?)|(?P<empty>-)|(?P<loss>#)"
    r"|(?P<end>\|)|(?P<word>[^\s()|#-]+)"
)
_NAME = re.compile(r"[^\s()|#-]+")


class Marble(NamedTuple):
    """Something that happens: when, what it is called, and the offset in the line at which it is.

    Units: seconds.
    """

    at: float
    name: str
    offset: int


class NotMarbles(ValueError):
    """A line is not drawn as marbles are; ``faults`` say why, each with its place in the line."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__(faults[0].message)
        self.faults = faults


def marbles(
    line: str, names: Mapping[str, object], frame: float = 1.0, most: int = MOST_MOMENTS
) -> list[Marble]:
    """Return what a line tells, in the order of time.

    Units: ``frame`` is the length of a column in seconds.

    Raises:
        NotMarbles: it is malformed, names what is not in ``names``, or has more than ``most`` moments.
    """
    return _Line(line, names, round(frame * SECOND), most).read()


def name_fault(name: str) -> Fault | None:
    """Return why nothing in a marble line can be called so, if that is the case."""
    try:
        microseconds(name)
    except NotADuration:
        if _NAME.fullmatch(name):
            return None
        said = f"no marble line can name {shown(name)}"
        return Fault("not-marbles", said, shown(name), "a name without blanks, (, ), |, # and -")
    said = f"'{name}' is a duration in a marble line"
    return Fault("not-marbles", said, shown(name), "a name that is no duration")


@dataclass(slots=True)
class _Columns:
    """A part of a line. Moments count from its first column, if it has one.

    ``lead`` is the time that stands before that one, ``trail`` the one behind the last, ``None`` where
    nothing is written and so a frame passes. ``passing`` is the offset of what lets time pass.
    """

    start: int
    marbles: list[tuple[int, str, int]] = field(default_factory=list)
    has_column: bool = False
    lead: int | None = None
    last: int = 0
    trail: int | None = None
    passing: int | None = None

    @property
    def is_empty(self) -> bool:
        return not self.has_column and self.lead is None

    def pause(self, micros: int, offset: int) -> None:
        """Have a duration stand in for the step to the next column, or add it to such a one."""
        if self.has_column:
            self.trail = micros + (self.trail or 0)
        else:
            self.lead = micros + (self.lead or 0)
        self.passes(offset)

    def passes(self, offset: int | None) -> None:
        self.passing = offset if self.passing is None else self.passing

    def next(self, lead: int | None, frame: int) -> int:
        """Return where a part begins that comes next and says so much of the time before it."""
        if not self.has_column:
            self.lead = _sum(self.lead, lead)
            return 0
        step = _sum(self.trail, lead)
        return self.last + (frame if step is None else step)

    def column(self, names: Iterable[tuple[str, int]], frame: int) -> None:
        """Add one column with what happens in it."""
        at = self.next(None, frame)
        self.marbles += [(at, name, offset) for name, offset in names]
        self.has_column, self.last, self.trail = True, at, None

    def follow(self, other: _Columns, times: int, frame: int) -> None:
        """Add another part, written out so many times."""
        self.passes(other.passing)
        if not other.has_column:
            self.pause((other.lead or 0) * times, other.start)
            return
        at = self.next(other.lead, frame)
        step = other.next(other.lead, frame)
        for _ in range(times if other.marbles else 0):
            self.marbles += [(at + since, name, offset) for since, name, offset in other.marbles]
            at += step
        at += 0 if other.marbles else step * times
        self.has_column, self.last, self.trail = True, at - step + other.last, other.trail


def _sum(one: int | None, other: int | None) -> int | None:
    return one if other is None else other + (one or 0)


class _Line:
    """One line being read, from its beginning to its end, once."""

    def __init__(self, line: str, names: Mapping[str, object], frame: int, most: int) -> None:
        self.line, self.names, self.frame, self.most = line, names, frame, most
        self.open = [_Columns(0)]
        """The groups that have begun and not ended, in the line itself."""
        self.ends: list[tuple[str, int]] | None = None
        """What happens at the end, once it has come."""
        self.unknown: dict[str, Fault] = {}
        self.asked = 0
        """For how many words a similar name was looked for."""

    def read(self) -> list[Marble]:
        """Return what the line tells."""
        for found in _TOKEN.finditer(self.line):
            offset = found.start()
            match found.lastgroup:
                case "word":
                    self._word(found[0], offset)
                case "empty":
                    self.open[-1].passes(offset)
                    self._column([], offset)
                case "loss":
                    self._column([(LOSS, offset)], offset)
                case "opening":
                    self._open(offset)
                case "closing":
                    self._close(offset, found["times"])
                case "end":
                    self._end(offset)
        if len(self.open) > 1:
            raise self._wrong("this '(' is not closed", self.open[-1].start)
        if self.unknown:
            raise NotMarbles([*self.unknown.values()])
        return self._told()

    def _told(self) -> list[Marble]:
        whole = self.open[0]
        first = whole.lead or 0
        if first + whole.last + (whole.trail or 0) > LONGEST:
            raise self._wrong(f"this lasts longer than {LONGEST_DAYS:,} days", 0)
        told = [Marble((first + at) / SECOND, name, offset) for at, name, offset in whole.marbles]
        return told + [Marble(END, name, offset) for name, offset in self.ends or ()]

    def _word(self, word: str, offset: int) -> None:
        is_number = word not in self.names and word[0] in _DECIMALS
        if is_number and self._pause(word, offset):
            return
        for name, at in self._names_in(word, offset):
            self._column([(name, at)], at)

    def _pause(self, word: str, offset: int) -> bool:
        """Let a duration pass; whether it is one."""
        try:
            micros = microseconds(word)
        except NotADuration:
            return False
        before = self.line[max(offset - 1, 0) : offset]
        after = self.line[offset + len(word) : offset + len(word) + 1]
        if not (_is_blank(before, "(") and _is_blank(after, ")")):
            raise self._no_duration(word, offset)
        if self.ends is not None:
            raise self._wrong("nothing takes any time behind '|'", offset, word)
        self.open[-1].pause(micros, offset)
        return True

    def _names_in(self, word: str, offset: int) -> Iterator[tuple[str, int]]:
        """Yield the names that a word consists of; of those that nothing is called, note it."""
        if word in self.names:
            yield word, offset
        elif word[0] not in _DECIMALS and len(word) > 1 and self._is_one_name(word):
            self._unknown(word, offset)
        else:
            for index, letter in enumerate(word):
                if letter not in self.names:
                    if letter in _DECIMALS:
                        raise self._no_duration(word[index:], offset + index)
                    self._unknown(letter, offset + index)
                yield letter, offset + index

    def _is_one_name(self, word: str) -> bool:
        """Return whether a word is more likely a name that is misspelt than several letters."""
        if not any(letter in self.names for letter in word):
            return True
        self.asked += 1  # a line made to be wrong must not cost more than that
        long = (name for name in self.names if len(name) > 1)
        return self.asked <= MOST_FAULTS and nearest(word, long) is not None

    def _unknown(self, name: str, offset: int) -> None:
        if name in self.unknown:
            return
        self.unknown[name] = Fault(
            "not-marbles",
            f"nothing is called '{name}'",
            found=shown(name),
            expected=one_of(self.names) if self.names else "a name of 'messages', which has none",
            # One letter is near to any other.
            suggestion=did_you_mean(name, self.names) if len(name) > 1 else None,
            spot=self._spot(offset),
        )
        if len(self.unknown) == MOST_FAULTS:
            raise NotMarbles([*self.unknown.values()])

    def _no_duration(self, word: str, offset: int) -> NotMarbles:
        """Return the error of what begins with a number, and is no name."""
        fault = not_a_time(word, "a name or a duration")
        try:
            microseconds(word)
        except NotADuration:
            # Without what would do in its place: that is the whole line.
            said, hint = fault.message, fault.suggestion
        else:
            said, hint = f"'{word}' is a duration only between blanks", None
        return self._wrong(said, offset, word, hint)

    def _column(self, names: list[tuple[str, int]], offset: int) -> None:
        here = self.open[-1]
        if self.ends is None or len(self.open) > 1:
            here.column(names, self.frame)
            self._bound(len(here.marbles), offset)
        elif names and names[0][0] != LOSS:
            self.ends += names
            self._bound(len(here.marbles) + len(self.ends), offset)
        else:
            raise self._wrong("nothing takes any time behind '|'", offset)

    def _bound(self, count: int, offset: int) -> None:
        if count > self.most:
            others = (
                "" if self.most == MOST_MOMENTS else " with those of other timelines of the file"
            )
            raise self._wrong(f"these are more than {MOST_MOMENTS:,} moments{others}", offset)

    def _open(self, offset: int) -> None:
        if len(self.open) > DEEPEST:
            raise self._wrong(f"groups are nested more than {DEEPEST} deep", offset)
        self.open.append(_Columns(offset))

    def _close(self, offset: int, times: str | None) -> None:
        if len(self.open) == 1:
            raise self._wrong("this ')' closes nothing", offset)
        group, around = self.open.pop(), self.open[-1]
        if group.is_empty:
            raise self._wrong("there is nothing in this group", group.start)
        is_over = self.ends is not None and len(self.open) == 1
        if group.passing is not None and (times is None or is_over):
            said = "nothing takes any time behind '|'" if is_over else _ONE_COLUMN
            raise self._wrong(said, group.passing)
        count = 1 if times is None else self._times(times, offset + len(")x"))
        self._bound(len(around.marbles) + len(group.marbles) * count, group.start)
        inside = [(name, at) for _, name, at in group.marbles]
        if is_over:
            for each in inside * count:
                self._column([each], each[1])
        elif times is None:
            self._column(inside, group.start)
        else:
            around.follow(group, count, self.frame)

    def _times(self, times: str, offset: int) -> int:
        count = int(times.lstrip("0")[: _DIGITS + 1] or "0")
        if not 1 <= count <= MOST_MOMENTS:
            said = f"a group is written out 1 to {MOST_MOMENTS:,} times"
            raise self._wrong(said, offset, times)
        return count

    def _end(self, offset: int) -> None:
        if len(self.open) > 1:
            raise self._wrong("the end cannot come inside a group", offset)
        if self.ends is not None:
            raise self._wrong("the end comes once", offset)
        self.ends = []

    def _wrong(
        self, why: str, offset: int, found: str | None = None, hint: str | None = None
    ) -> NotMarbles:
        said = None if found is None else shown(found)
        fault = Fault("not-marbles", why, said, suggestion=hint, spot=self._spot(offset))
        return NotMarbles([*self.unknown.values(), fault])

    def _spot(self, offset: int) -> Spot:
        return Spot(*LineIndex(self.line).at(offset))


_ONE_COLUMN = (
    "a group is one column, in which no time passes, unless it ends with ')x2' or another number"
)


def _is_blank(beside: str, border: str) -> bool:
    """Return whether nothing but a blank, or the border of a group, stands beside a word."""
    return not beside or beside.isspace() or beside == border


def render(moments: Iterable[tuple[float, str]], frame: float = 1.0) -> str:
    """Return the line that tells moments and names, in the order of time. `marbles` reads it back.

    Units: ``frame`` is the length of a column in seconds.
    """
    step = round(frame * SECOND)
    line, last = "", -step
    for now, inside in groupby(moments, key=lambda each: _micros(each[0])):
        names = [name for _, name in inside]
        if now is None:
            line += f" | {' '.join(names)}"
            break
        line += _gap(now - last, step, now if last < 0 else None)
        line += names[0] if len(names) == 1 else f"({' '.join(names)})"
        last = now
    return line.strip()


def _micros(at: float) -> int | None:
    """Return a moment in microseconds; the end has none."""
    return None if at == END else round(at * SECOND)


def _gap(micros: int, step: int, since_start: int | None) -> str:
    """Return what stands between two columns, or before the first one."""
    columns, rest = divmod(micros, step)
    if not rest and columns <= _MOST_DASHES:
        return "-" * (columns - 1) or " "
    return f" {told((micros if since_start is None else since_start) / SECOND)} "
