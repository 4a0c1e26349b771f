"""A value put together from slices of its text."""

from __future__ import annotations

import gc
import re
import secrets
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterator
from typing import Any

from headrace.compiler.delivery import JsonValue
from headrace.compiler.jsontext import NotJson
from headrace.compiler.largejson.cutting import SLICE, Cut, Cutting
from headrace.compiler.largejson.letting_go import Built, DecodedBatch
from headrace.compiler.largejson.longnumbers import JsonBytes

_LEAD = re.compile(rb"[ \t\r\n]*+(,?)")
_BLANK = re.compile(rb"[ \t\r\n]*+")
# Whole characters of a string: both halves of a pair, and no half of an escape.
_OF_A_STRING = re.compile(
    rb'(?:[^"\\]++|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4}'
    rb"|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\[^u])*+",
    re.DOTALL,
)
_LONGEST_ESCAPE = 12
MANY_ITEMS = 16 * 1024
"""Items of a list or an object from which on it is not to be young any more.

The interpreter's search for cycles goes through all the items of a young list whenever some thousand lists
and objects were made, 19 ms for 8 million numbers; through those of an old one only in its rare full looks.
To make it old takes such a look: 0.1 µs for each item that is a list or an object, and much more on a busy
machine.
"""
_PLACE = re.compile(r" \(byte (\d+)\)")
_BRACKETS = {list: (b"[", b"]"), dict: (b"{", b"}")}

Decode = Callable[[JsonBytes], JsonValue]


class Growing:
    """Takes the steps of a text, and puts its messages into ``batch``."""

    def __init__(
        self, text: JsonBytes, cutting: Cutting, decode: Decode, batch: DecodedBatch
    ) -> None:
        self._text = text
        self._steps = cutting.steps
        self._lifted = cutting.lifted
        self._fault = cutting.fault
        self._decode = decode
        self._batch = batch
        self._open: list[Built] = []
        self._strings: dict[str, str] = {}
        # A name that no text holds: what a client writes cannot be taken for it.
        self._name = secrets.token_hex(16)

    def slices(self) -> Iterator[None]:
        """Put the messages together: the items of a list, or the one that the text is.

        Raises:
            NotJson: the text is malformed, or well-formed and refused.
        """
        for index, (start, stop, instead) in enumerate(self._lifted):
            if instead is None:
                self._strings[f"{self._name}{index}"] = yield from self._string(start, stop)
        for step in self._steps:
            getattr(self, f"_{step.does}")(step)
            yield
        if self._fault is not None:
            raise self._fault

    def _string(self, start: int, stop: int) -> Generator[None, None, str]:
        """Return a string that is longer than a slice."""
        text, pieces, at, stop = self._text, [], start + 1, stop - 1
        while at < stop:
            end = min(at + SLICE, stop)
            if end < stop:
                while text[end] & 0xC0 == 0x80 and end > at:  # in the middle of a character
                    end -= 1
                whole = _OF_A_STRING.match(text, at, end).end()  # type: ignore[union-attr]
                end = whole if whole > end - _LONGEST_ESCAPE else end
            pieces.append(self._decoded(b'"%b"' % bytes(text[at:end]), at - 1))
            at = end
            yield
        return "".join(pieces)

    def _scalar(self, step: Cut) -> None:
        value = self._decoded(self._piece(step.start, step.stop), step.start)
        self._batch.append(self._put_back(value))
        self._batch.slices.append(1)

    def _begin(self, step: Cut) -> None:
        """Begin a list or an object, behind the items before it."""
        made: Any = [] if self._text[step.stop] == ord("[") else {}
        if not self._open and type(made) is list:
            self._open.append(Built(self._batch, self._batch.slices))
            return
        if self._open:
            self._attach(step, made)
        else:
            self._batch.append(made)
            self._batch.slices.append(1)
        self._open.append(Built(made, []))
        self._batch.built.append(self._open[-1])

    def _attach(self, step: Cut, made: Any) -> None:
        # A string in place of what begins: so the comma and the key before it have to be there.
        items = self._items_of(step, b'"%b"' % self._name.encode())
        if type(items) is dict:
            key = next(key for key in reversed(items) if items[key] == self._name)
            items[key] = made
        else:
            items[-1] = made
        self._add(items)

    def _items(self, step: Cut) -> None:
        self._add(self._items_of(step))

    def _end(self, step: Cut) -> None:
        """End the innermost container."""
        if _BLANK.fullmatch(self._piece(step.start, step.stop)) is None:
            self._add(self._items_of(step))
        _, closing = _BRACKETS[dict if type(self._open.pop().container) is dict else list]
        if self._text[step.stop] != closing[0]:
            raise _malformed(f"expected ',' or '{closing.decode()}'", step.stop)

    def _rest(self, step: Cut) -> None:
        """Find what is wrong with the end of a text, unless that is a string of any length."""
        if step.stop - step.start <= 2 * SLICE:
            self._items_of(step, is_over=False)

    def _add(self, items: Any) -> None:
        container, slices = self._open[-1]
        before = len(container)
        if type(container) is dict:
            container.update(items)
        else:
            container.extend(items)
        slices.append(len(items))
        if before <= MANY_ITEMS < len(container):
            gc.collect(1)

    def _items_of(self, step: Cut, more: bytes = b"", *, is_over: bool = True) -> Any:
        """Return the items of a step, decoded as a container of their own."""
        piece = self._piece(step.start, step.stop)
        skipped = 0
        if self._open[-1].slices:  # items came before
            lead = _LEAD.match(piece)
            skipped = lead.end()  # type: ignore[union-attr]
            if not lead[1] and is_over:  # type: ignore[index]
                raise _malformed("expected ','", step.start + skipped)
        opening, closing = _BRACKETS[dict if type(self._open[-1].container) is dict else list]
        framed = b"".join((opening, piece[skipped:], more, closing if is_over else b""))
        items = self._put_back(self._decoded(framed, step.start + skipped - 1))
        if not items:
            raise _malformed("trailing comma", step.start + skipped)
        return items

    def _piece(self, start: int, stop: int) -> bytes:
        """Return a part of the text, with what stands in place of what was lifted out of it."""
        pieces: list[JsonBytes] = []
        first, last = (bisect_left(self._lifted, (at,)) for at in (start, stop))
        for index in range(first, last):
            begin, end, instead = self._lifted[index]
            name = b'"%b%d"' % (self._name.encode(), index)
            pieces += self._text[start:begin], name if instead is None else instead
            start = end
        return b"".join((*pieces, self._text[start:stop]))

    def _decoded(self, slice: bytes, begins: int) -> JsonValue:
        """Return what a slice holds; tell where in the whole text it is malformed.

        Not the place where something has been lifted out before it.
        """
        try:
            return self._decode(slice)
        except NotJson as cause:
            place = "" if self._lifted else r" (byte {})"
            said = _PLACE.sub(lambda found: place.format(begins + int(found[1])), str(cause))
            raise NotJson(said.partition(" - at `")[0]) from None

    def _put_back(self, value: Any) -> Any:
        """Return a value with the strings that were lifted out of its text."""
        if not self._strings:
            return value
        match value:
            case str():
                return self._strings.get(value, value)
            case list():
                return [self._put_back(each) for each in value]
            case dict():
                return {self._put_back(key): self._put_back(each) for key, each in value.items()}
        return value


def _malformed(what: str, at: int) -> NotJson:
    return NotJson(f"JSON is malformed: {what} (byte {at})")
