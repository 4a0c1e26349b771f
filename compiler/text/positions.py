"""Where the values of a document stand, and where the characters of a string do in the text that spells it.

A string of several lines is written with indentation, with escapes, or folded, so its third line is
not the third line of anything. Who objects to a place inside a string means the string; who reads the
objection looks for it in the file.

Source: https://yaml.org/spec/1.2.2/ (6.5 line folding, 7.3 flow scalars, 8.1 block scalars), and
libyaml for what it leaves open.
"""

from __future__ import annotations

import bisect
import re
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice

_BREAK = r"(?:\r\n|\r|\n)"
_BLANKS = r"[ \t\r\n]"
_BREAKS = re.compile(_BREAK)
_ANCHOR = re.compile(rf"&\S++(?:{_BLANKS}++|#[^\r\n]*+)*+")

# One step along a string that is not a block. An escaped break is none, and neither are the blanks
# behind it; two halves of a surrogate pair in JSON are one character.
_PLAIN = re.compile(rf"(?P<blanks>{_BLANKS}++)|(?P<one>.)")
_SINGLE_QUOTED = re.compile(rf"(?P<blanks>{_BLANKS}++)|(?P<escape>'')|(?P<end>')|(?P<one>.)")
_DOUBLE_QUOTED = re.compile(
    rf"(?P<blanks>{_BLANKS}++)|(?P<joined>\\{_BREAK}{_BLANKS}*+)"
    r"|(?P<escape>\\(?:x..|u[dD][89abAB]..\\u....|u....|U........|.))|(?P<end>\")|(?P<one>.)"
)

_HEADER = re.compile(rf"[|>][-+0-9]*+[ \t]*+(?:#[^\r\n]*+)?{_BREAK}")
_INDENTED = re.compile(r"(?:\A|[\r\n])( *+)[^ \r\n]")
_LINE = re.compile(rf"(?P<spaces> *+)(?P<rest>[^\r\n]*+)(?P<break>{_BREAK}|\Z)")


Span = int
"""Where something begins and where it has ended, as `span` puts both into one number: each of the million
values that a document may have keeps one, and two would take more."""


def span(start: int, end: int) -> Span:
    """Return the span from an offset up to another one."""
    return start | end << 32


def bounds(span: Span) -> tuple[int, int]:
    """Return the offset at which a span begins, and the one at which it has ended."""
    return span & 0xFFFFFFFF, span >> 32


def lines_of(text: str) -> list[str]:
    """Return the lines of a text as they are counted here, without their ends."""
    return _BREAKS.split(text)


class LineIndex:
    """Turns an offset in a text into a line and a column, both counted from 1, and back.

    Lines are looked for when somebody asks, and no further than that takes: most texts have nothing
    to tell, and one may be nothing but line breaks.
    """

    def __init__(self, text: str) -> None:
        self._length = len(text)
        self._starts = array("I", [0])
        self._breaks = _BREAKS.finditer(text)

    @property
    def known(self) -> int:
        """How many lines have been looked for."""
        return len(self._starts)

    def at(self, offset: int) -> tuple[int, int]:
        """Return line and column of a character; those of the end for an offset beyond it."""
        offset = min(offset, self._length)
        while self._starts[-1] <= offset and self._has_another():
            pass
        line = bisect.bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a character; that of the line's last for a column beyond it."""
        while len(self._starts) <= line and self._has_another():
            pass
        if line > len(self._starts):
            return self._length
        ends = self._starts[line] - 1 if line < len(self._starts) else self._length
        return min(self._starts[line - 1] + column - 1, ends)

    def _has_another(self) -> bool:
        """Look for the next line; whether there is one."""
        found = next(self._breaks, None)
        if found is None:
            return False
        self._starts.append(found.end())
        return True


@dataclass(slots=True)
class Position:
    """Where a value stands, where its key in the object it is in does, and what is inside.

    ``spelt`` is the offset at which the value is written out, if it stands here under a name only (an
    alias).
    """

    span: Span
    key: Span | None = None
    inside: dict[str, Position] | list[Position] | None = None
    spelt: int | None = None

    @property
    def offset(self) -> int:
        """Where the value begins."""
        return bounds(self.span)[0]

    @property
    def end(self) -> int:
        """Where the value has ended."""
        return bounds(self.span)[1]

    def last(self) -> Position:
        """Return the place of the last value inside, or its own where nothing is."""
        inside = self.inside.values() if isinstance(self.inside, dict) else self.inside or ()
        return next(reversed(inside), self)

    def member(self, step: str | int) -> Position | None:
        """Return the place of one member, or nothing if there is no such member."""
        if isinstance(self.inside, dict) and isinstance(step, str):
            return self.inside.get(step)
        if (
            isinstance(self.inside, list)
            and isinstance(step, int)
            and step in range(len(self.inside))
        ):
            return self.inside[step]
        return None

    def members(self) -> Iterator[tuple[Position, Position]]:
        """Yield each place inside, also further in, after the one around it; of aliases nothing."""
        waiting = [self]
        while waiting:
            around = waiting.pop()
            inside = around.inside
            if inside is None or around.spelt is not None:
                continue
            members = list(inside.values() if isinstance(inside, dict) else inside)
            yield from ((around, place) for place in members)
            waiting += members

    def scalars(self) -> int:
        """Return how many values that contain no others are inside; none of one that contains none."""
        return sum(place.inside is None for _, place in self.members())


def spelt_at(text: str, start: int, string: str, index: int) -> int:
    """Return the offset in ``text`` of one character of a ``string`` that is written at ``start``.

    ``text`` is JSON or YAML. Behind the last character it is where the string ends; of one that ends
    with a line break, the end of that line.
    """
    if anchor := _ANCHOR.match(text, start):
        start = anchor.end()
    if index >= len(string) and string.endswith("\n"):
        index = len(string) - 1
    offsets = _STYLES.get(text[start : start + 1], _plain)(text, start, string)
    return next(islice(offsets, min(index, len(string)), None), start)


def spelling_of(text: str, start: int, string: str) -> tuple[int, int]:
    """Return where all of a ``string`` that is written at ``start`` begins and ends.

    That is with its quotes, or with the header of a block, and without an anchor.
    """
    if anchor := _ANCHOR.match(text, start):
        start = anchor.end()
    end = spelt_at(text, start, string, len(string))
    return start, end + (text[start] in "'\"")


# Each style yields where the characters of a string are, one after the other, and then its end.


def _plain(text: str, start: int, string: str) -> Iterator[int]:
    end = start
    for offset in islice(_flow(_PLAIN, text, start), len(string)):
        end = offset + 1
        yield offset
    yield end


def _quoted(token: re.Pattern[str], text: str, start: int, _: str) -> Iterator[int]:
    return _flow(token, text, start + 1)


def _flow(token: re.Pattern[str], text: str, at: int) -> Iterator[int]:
    while found := token.match(text, at):
        if found.lastgroup == "blanks":
            # What is left of them: all, a blank for one break, breaks for more of them.
            breaks = _breaks(text, *found.span())
            yield from breaks[1:] or breaks or range(*found.span())
        elif found.lastgroup == "joined":
            yield from _breaks(text, *found.span())[1:]
        else:
            yield at
        if found.lastgroup == "end":
            return
        at = found.end()


def _breaks(text: str, start: int, end: int) -> list[int]:
    return [found.start() for found in _BREAKS.finditer(text, start, end)]


def _block(text: str, start: int, string: str) -> Iterator[int]:
    """Put the lines together as libyaml does: folding keeps breaks around lines that begin blank."""
    header, meant = _HEADER.match(text, start), _INDENTED.search(string)
    written = _INDENTED.search(text, header.end() - 1) if header else None
    if header is None or written is None or meant is None:  # it consists of blanks
        return
    is_folding, was_blank = text[start] == ">", False
    ended: int | None = None
    empty: list[int] = []
    for at, end in _lines(text, header.end(), len(written[1]) - len(meant[1])):
        if at == end:
            empty.append(end)
            continue
        is_blank = text[at] in " \t"
        if ended is not None and (was_blank or is_blank or not (is_folding and empty)):
            yield ended
        yield from empty
        yield from range(at, end)
        ended, empty, was_blank = end, [], is_blank
    if ended is not None:
        yield ended
    yield from empty


def _lines(text: str, at: int, indent: int) -> Iterator[tuple[int, int]]:
    """Yield the lines of a block, without indentation and break; one has nothing in it if it is empty."""
    for line in _LINE.finditer(text, at):
        begin = line.start() + min(len(line["spaces"]), indent)
        is_empty = begin == line.start("break")
        if not (line["break"] if is_empty else len(line["spaces"]) >= indent):
            return
        yield begin, line.start("break")


_STYLES: Mapping[str, Callable[[str, int, str], Iterator[int]]] = {
    "'": partial(_quoted, _SINGLE_QUOTED),
    '"': partial(_quoted, _DOUBLE_QUOTED),
    "|": _block,
    ">": _block,
}
