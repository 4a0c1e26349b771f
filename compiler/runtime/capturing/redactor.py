"""What a capture shows in the place of values that are not to be shown: the digits of a keyed hash.

Equal values have the same digits, so what belongs together still does. The key is made for one capture and
kept nowhere, so nobody can try values.
"""

from __future__ import annotations

import hmac
import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from headrace.compiler.delivery import JsonValue, parts
from headrace.compiler.jsontext import encode, text
from headrace.compiler.largejson import are_small, pieces
from headrace.compiler.largejson.pieces import enclosed

DIGITS = 8
"""Of a hash. Of 10,000 different values two have the same ones in one of a hundred captures."""
_NUMBERS: int = 10**DIGITS
OF_METADATA = "$meta."
"""How a path begins that leads into metadata, and not into messages."""
AT_ONCE = 1024
"""Items of a list that are looked at together."""
NOT_JSON = "not JSON "
"""What stands before the digits of a payload that is not JSON: digits alone could be."""


class Redactor:
    """Replaces what some paths lead to, in one capture."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._key = secrets.token_bytes(32)
        of_messages, of_metadata = list[str](), list[str]()
        for each in paths:
            if each.startswith(OF_METADATA):
                of_metadata.append(each.removeprefix(OF_METADATA))
            else:
                of_messages.append(each)
        self._of_messages, self._of_metadata = _ways(of_messages), _ways(of_metadata)

    def pieces(self, value: JsonValue) -> Iterator[bytes]:
        """Yield the text of what is shown of a message, or of a batch, piece by piece.

        A piece takes some two milliseconds at most, whatever the paths lead to.
        """
        return self._shown(value, self._of_messages)

    def metadata(self, about: Mapping[str, Any]) -> bytes:
        """Return the text of what is shown of metadata."""
        return b"".join(self._shown(dict(about), self._of_metadata))

    def payload(self, payload: bytes) -> bytes:
        """Return what is shown of a payload that is not JSON: nothing leads to what is in it."""
        return f"{NOT_JSON}{self._digits(payload)}".encode()

    def _shown(self, value: JsonValue, ways: _Ways) -> Iterator[bytes]:
        if isinstance(value, list):
            yield from enclosed(b"[", self._items(value, ways), b"]")
        elif isinstance(value, dict) and ways.inside.keys() & value.keys():
            yield from enclosed(b"{", (self._field(*each, ways) for each in value.items()), b"}")
        else:
            yield from pieces(value)

    def _items(self, items: list[JsonValue], ways: _Ways) -> Iterator[Iterator[bytes]]:
        for some in parts(items, AT_ONCE):
            # What nothing leads into is written together.
            if are_small(some) and not any(isinstance(each, list | dict) for each in some):
                yield iter((encode(some)[1:-1],))
            else:
                yield from (self._shown(each, ways) for each in some)

    def _field(self, key: str, value: JsonValue, ways: _Ways) -> Iterator[bytes]:
        yield from pieces(key)
        yield b":"
        found = ways.inside.get(key)
        if found is None:
            yield from pieces(value)
        else:
            yield from self._hidden(value) if found.is_end else self._shown(value, found)

    def _hidden(self, value: JsonValue) -> Iterator[bytes]:
        """Yield what is shown in the place of a value: of the same type, with the same keys."""
        if isinstance(value, dict):
            fields = (self._hidden_field(key, each) for key, each in value.items())
            yield from enclosed(b"{", fields, b"}")
        elif isinstance(value, list):
            yield from enclosed(b"[", map(self._hidden, value), b"]")
        else:
            yield encode(self._digits_of(value))

    def _hidden_field(self, key: str, value: JsonValue) -> Iterator[bytes]:
        yield from pieces(key)
        yield b":"
        yield from self._hidden(value)

    def _digits_of(self, value: JsonValue) -> JsonValue:
        """Return what is shown of a text or a number; null and booleans stay, as there are too few."""
        match value:
            case None | bool():
                return value
            case str():
                return self._digits(b"text " + value.encode("utf-8", "surrogatepass"))
            case int():
                return self._number(value)
            case _:
                return float(self._number(value))

    def _number(self, value: float) -> int:
        digits = self._digits(b"number " + text(value).encode())
        return int(digits, 16) % _NUMBERS

    def _digits(self, value: bytes) -> str:
        return hmac.digest(self._key, value, "sha256").hex()[:DIGITS]


_Rests = frozenset[tuple[str, ...]]
"""What is left of some paths, in segments."""


class _Ways:
    """Where paths lead on from a place, of which these ``rests`` are left.

    No way is left out: each key may be several segments of a path. What is behind a key is looked up when
    a message has it; what is left is often the same, however a message has led there.
    """

    def __init__(self, rests: _Rests, known: dict[_Rests, _Ways]) -> None:
        self._rests, self._known = rests, known
        known[rests] = self
        self.is_end = () in rests
        """Whether a path ends here, and all below is hidden."""

    @cached_property
    def inside(self) -> Mapping[str, _Ways]:
        """Where they lead to, by keys."""
        found = defaultdict[str, set[tuple[str, ...]]](set)
        for rest in self._rests:
            for size in range(1, len(rest) + 1):
                found[".".join(rest[:size])].add(rest[size:])
        return {key: self._with(frozenset(rests)) for key, rests in found.items()}

    def _with(self, rests: _Rests) -> _Ways:
        return self._known.get(rests) or _Ways(rests, self._known)


def _ways(paths: Iterable[str]) -> _Ways:
    return _Ways(frozenset(tuple(each.split(".")) for each in paths), {})
