"""Where a large JSON text may be cut, found by its brackets and strings alone.

Nothing is decoded here. Brackets are looked at one by one; strings and all that lies between brackets is
passed over by a regular expression. What is wrong with the text shows when the slices are decoded, but for
its depth and its end.
"""

from __future__ import annotations

import re
from bisect import bisect_right, insort
from collections.abc import Generator, Iterator
from operator import itemgetter
from typing import Literal, NamedTuple

from headrace.compiler.jsontext import MAX_DEPTH, NotJson
from headrace.compiler.largejson.longnumbers import JsonBytes, shortened

SLICE = 32 * 1024
"""Bytes of text that are decoded at once: of the costliest, nested lists, about two milliseconds."""
WINDOW = 8 * 1024
"""Bytes that are looked through at once: of nothing but brackets, about two milliseconds."""

SHALLOW = 3
"""Levels of lists and objects that are passed over without a look: most messages have no more."""


_STRING = rb'"(?:[^"\\]++|\\.)*+"'


def _passed_over(levels: int, but: bytes = b"") -> bytes:
    """Return the pattern of strings, containers of so many levels, and anything else ``but`` some."""
    inside = rb'(?:[^"\[\]{}]++|%b)*+' % _STRING
    for _ in range(levels - 1):
        inside = rb'(?:[^"\[\]{}]++|%b|[\[{]%b[\]}])*+' % (_STRING, inside)
    container = rb"|[\[{]%b[\]}]" % inside if levels else b""
    return rb'(?:[^"\[\]{}%b]++|%b%b)*+' % (but, _STRING, container)


# Up to the next bracket, or to a string that is not over in this window, or to the end of it.
_TO_BRACKET = rb'([\[\]{}"]|\Z)'
_TOKEN = re.compile(_passed_over(SHALLOW) + _TO_BRACKET, re.DOTALL)
_EVERY_TOKEN = re.compile(_passed_over(0) + _TO_BRACKET, re.DOTALL)
_IN_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_BLANKS = re.compile(rb"[ \t\r\n]*+")
_WORD = re.compile(rb'[^ \t\r\n,:\[\]{}"]*+')
_LEAD = re.compile(rb"[ \t\r\n]*+,?")
_ITEM = re.compile(_passed_over(SHALLOW, b","), re.DOTALL)
_ITEMS = re.compile(rb"(?:%b,)*+" % _passed_over(SHALLOW, b","), re.DOTALL)

_QUOTE, _COMMA = b'",'
_OPENING = frozenset(b"[{")
_TRUNCATED = NotJson("Input data was truncated")


class Cut(NamedTuple):
    """What is done with a part of the text, in the order of the text.

    - ``items``: whole items of the innermost container; a comma before them if others came before.
    - ``begin``: items, and then the opening bracket at ``stop`` of one that is put together from slices.
    - ``end``: the last items, up to the closing bracket at ``stop``.
    - ``scalar``: the text is no list and no object.
    - ``rest``: what is left of a text that is not over at its end.
    """

    does: Literal["items", "begin", "end", "scalar", "rest"]
    start: int
    stop: int


class Lifted(NamedTuple):
    """A part that is longer than a slice by itself: a string, a number, or blanks."""

    start: int
    stop: int
    instead: bytes | None
    """What is decoded in its place; None: a string, which is decoded apart."""


class Cutting:
    """Looks through a text. Then ``steps`` tell how it is put together.

    ``begun`` is where the items of a list end, before a comma, that are put together already, if any are.
    ``lifted`` are the parts that are longer than a slice by themselves. Where ``keeps_digits`` says so,
    numbers stay as they are. ``containers`` is how many lists and objects there are. ``fault`` is
    what is wrong with the text if nothing before it is.
    """

    def __init__(self, text: JsonBytes, begun: int = 0, *, keeps_digits: bool = False) -> None:
        self.steps: list[Cut] = []
        self.lifted: list[Lifted] = []
        self.containers = 0
        self.fault: NotJson | None = None
        self._text = text
        self._begun = begun
        self._keeps_digits = keeps_digits
        self._opens: list[int] = []
        self._ends: list[int] = []
        """Of each open container: its bracket, and where its last whole item that is one ends."""
        self._built = 0
        """How many of them are put together from slices."""
        self._anchor = 0
        """Up to where the text has its steps."""
        self._looked = (0, 0)
        """How far an item has been looked through that begins at the anchor, and which anchor."""
        self._strings: dict[int, int] = {}
        self._numbers: list[tuple[int, int]] = []
        """Where those begin and end that are longer than a slice."""
        self._is_over = False

    def slices(self) -> Iterator[None]:
        """Look through the text, and yield now and then.

        Raises:
            NotJson: it nests deeper than `MAX_DEPTH`, or has a long number that is refused.
        """
        text, size = self._text, len(self._text)
        at = yield from self._blanks(0)
        if at == size or text[at] not in _OPENING:
            yield from self._scalar(at)
            return
        self._anchor = at
        self._open(at)
        self._step("begin", at)
        at = self._anchor = max(at + 1, self._begun)
        while not self._is_over:
            if at == size:
                self._step("rest", at)
                self.fault = _TRUNCATED
                return
            if _end(_WORD, text, at, at + WINDOW) - at == WINDOW:
                at = yield from self._over_number(at)
            else:
                at = self._window(at, min(at + WINDOW, size))
            yield
            if not self._is_over and at < size and text[at] == _QUOTE:
                at = yield from self._over_string(at)
            if not self._is_over and at < size:
                self._cut(at)
        yield from self._nothing_behind(at)

    def _blanks(self, at: int) -> Generator[None, None, int]:
        """Return where the next character is that is no blank."""
        while (end := _BLANKS.match(self._text, at, at + SLICE).end()) - at == SLICE:  # type: ignore[union-attr]
            at = end
            yield
        return end

    def _scalar(self, at: int) -> Generator[None, None, None]:
        text = self._text
        if text[at : at + 1] == b'"':
            end = yield from self._over_string(at)
            if self.fault is not None:
                return
        elif (end := _end(_WORD, text, at, at + WINDOW)) - at == WINDOW:
            end = yield from self._over_number(at)
        elif end == at:
            end = min(at + 1, len(text))
        yield from self._nothing_behind(end)
        self.steps.append(Cut("scalar", at, end))

    def _nothing_behind(self, at: int) -> Generator[None, None, None]:
        at = yield from self._blanks(at)
        if at < len(self._text):
            self.fault = NotJson(f"JSON is malformed: trailing characters (byte {at + 1})")

    def _window(self, at: int, stop: int) -> int:
        """Follow the brackets of a window; return where the next one begins."""
        text, opens, ends = self._text, self._opens, self._ends
        self.containers += text.count(b"[", at, stop) + text.count(b"{", at, stop)
        is_deep = len(opens) > MAX_DEPTH - SHALLOW
        tokens = _EVERY_TOKEN if is_deep else _TOKEN
        for found in tokens.finditer(text, at, stop):
            begin, end = found.span(1)
            if begin == end or (bracket := text[begin]) == _QUOTE:
                return begin
            if begin - self._anchor >= SLICE:
                self._cut(begin)
            if bracket in _OPENING:
                self._open(begin)
                if len(opens) > MAX_DEPTH - SHALLOW and not is_deep:
                    return end
                continue
            opens.pop()
            ends.pop()
            if len(opens) < self._built:
                self._step("end", begin)
                self._anchor, self._built = end, self._built - 1
                if not opens:
                    self._is_over = True
                    return end
            ends[-1] = end
        return stop

    def _open(self, at: int) -> None:
        self._opens.append(at)
        self._ends.append(-1)
        if len(self._opens) > MAX_DEPTH:
            raise NotJson(f"nested deeper than {MAX_DEPTH}")

    def _over_string(self, at: int) -> Generator[None, None, int]:
        """Return where a string ends that begins at ``at``."""
        text, size = self._text, len(self._text)
        inside = at + 1
        while True:
            end = _IN_STRING.match(text, inside, inside + SLICE).end()  # type: ignore[union-attr]
            if end < size and text[end] == _QUOTE:
                break
            if end == inside or end >= size:
                self.fault = _TRUNCATED
                return size
            inside = end
            yield
        if end + 1 - at >= SLICE:
            self._strings[at] = end + 1
            insort(self.lifted, Lifted(at, end + 1, None))
        return end + 1

    def _over_number(self, at: int) -> Generator[None, None, int]:
        """Return where a number ends that is still going on for all of a window."""
        text = self._text
        backwards = text[max(at - WINDOW, 0) : at][::-1]
        start = at - _end(_WORD, backwards, 0, WINDOW)
        end, instead = yield from shortened(text, start)
        if _end(_WORD, text, end, end + 1) > end:
            raise NotJson(f"JSON is malformed: invalid number (byte {end})")
        self._numbers.append((start, end))
        if not self._keeps_digits:
            insort(self.lifted, Lifted(start, end, instead))
        return end

    def _step(self, does: Literal["items", "begin", "end", "rest"], stop: int) -> None:
        self.steps.append(Cut(does, self._anchor, stop))
        if does == "begin":
            self._anchor = stop + 1
            self._built += 1
        else:
            self._anchor = stop

    def _cut(self, at: int) -> None:
        """Have less than a slice lie behind the anchor, if the text can be cut there."""
        while at - self._anchor >= SLICE:
            whole = self._ends[self._built - 1]
            if whole > self._anchor:
                self._step("items", whole)
            elif len(self._opens) > self._built:
                self._step("begin", self._opens[self._built])
            elif not self._cut_flat(at):
                return

    def _cut_flat(self, at: int) -> bool:
        """Cut what was passed over at a comma; return whether there is one, or blanks to leave out."""
        text, start = self._text, self._anchor
        if self._looked[0] != start:
            if _end(_BLANKS, text, start, min(start + SLICE, at)) - start == SLICE:
                self._anchor = start + SLICE
                return True
            item = _end(_LEAD, text, start, at)
            comma = _end(_ITEMS, text, item, min(start + SLICE, at)) - 1
            if comma > item:
                self._step("items", comma)
                return True
            self._looked = start, item
        # The item that begins here is longer than a slice.
        inside = self._looked[1]
        while at - inside >= SLICE:
            # The next long number that is not over here.
            index = bisect_right(self._numbers, inside, key=itemgetter(1))
            is_last = index == len(self._numbers)
            begin, behind = (len(text), 0) if is_last else self._numbers[index]
            if begin <= inside:
                inside = behind
                continue
            end = _end(_ITEM, text, inside, min(inside + SLICE, begin))
            if end < at and text[end] == _COMMA:
                self._step("items", end)
                return True
            if end - inside == SLICE and _BLANKS.fullmatch(text, inside, end):
                insort(self.lifted, Lifted(inside, end, b""))
            if end == inside and end not in self._strings:
                break  # no bracket closes here: decoding it tells
            inside = self._strings.get(end, end)
        self._looked = start, inside
        return False


def _end(pattern: re.Pattern[bytes], text: JsonBytes, start: int, stop: int) -> int:
    """Return where a pattern ends that matches anywhere, if only nothing."""
    return pattern.match(text, start, stop).end()  # type: ignore[union-attr]
