"""The items that `explode` found in one message, and how messages are made of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, NamedTuple

from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.dottedpaths import MISSING, DottedPath, ScalarInTheWay
from headrace.compiler.errors import BatchFailed
from headrace.compiler.schema.records import json_type

_ITEMS_AT_ONCE = 256
_FIELDS_AT_ONCE = 20_000
"""Fields that are copied before somebody looks whether the slice is over: a millisecond."""

Make = Callable[[Sequence[JsonValue], int], Batch]
"""Returns the messages of some items, the first of which has this place in its list."""
LeaveMessageOut = Callable[[JsonValue, Exception], None]
"""Takes a message of which nothing is made, and why."""
ReadField = Callable[[dict[str, Any]], JsonValue]
"""Returns what a message has at a path, or `MISSING`."""


class FoundItems(NamedTuple):
    """The items of one message, and what makes messages of them."""

    items: Sequence[JsonValue]
    make: Make
    shared: JsonValue
    """What of the message each of them gets, in a list or an object."""
    copied: int = 0
    """Fields that are copied for each of them."""
    copies_items: bool = False
    """Whether the fields of the items are copied as well."""

    def fields(self, items: Sequence[JsonValue]) -> int:
        """Return how many fields are copied for some of the items, and at least that there are items."""
        fields = (self.copied + 1) * len(items)
        return fields + _lengths(items) if self.copies_items else fields


def beside(
    field: str, items: Sequence[JsonValue], kept: dict[str, Any], place: DottedPath | None
) -> FoundItems:
    """Return the items of a field as messages, with what is kept beside their own fields."""

    def made(some: Sequence[JsonValue], start: int) -> Batch:
        try:
            rows = [{**item, **kept} for item in some]
        except TypeError:  # nothing but an object has fields
            wrong = next(json_type(item) for item in some if item.__class__ is not dict)
            expected = "expected objects, or an 'as' to put anything in"
            raise BatchFailed(f"field '{field}' holds {wrong}: {expected}") from None
        return rows if place is None else _numbered(rows, place, start)

    return FoundItems(items, made, kept, len(kept), copies_items=True)


def inside(
    rest: dict[str, Any], items: Sequence[JsonValue], at: DottedPath, place: DottedPath | None
) -> FoundItems:
    """Return items that are put into the rest of their message."""
    name = at.text
    is_plain = at.is_plain or name in rest

    def made(some: Sequence[JsonValue], start: int) -> Batch:
        if is_plain:
            rows = [rest.copy() for _ in some]  # `{**rest}` hashes where a field was taken out
            for row, item in zip(rows, some, strict=True):
                row[name] = item
        else:
            rows = [_written(rest, at, item) for item in some]
        return rows if place is None else _numbered(rows, place, start)

    copied = sum(_fields_on(path, rest) for path in (at, place) if path is not None)
    return FoundItems(items, made, rest, copied)


def as_it_is(message: JsonValue) -> FoundItems:
    """Return a message as the only one that is made of it."""
    return FoundItems([message], lambda some, _: [*some], [])


def made_of_all(
    found: Iterable[tuple[JsonValue, FoundItems]],
    made: Batch,
    leave_out: LeaveMessageOut | None = None,
) -> Generator[None, None, None]:
    """Add the messages of several that came; pause on the way.

    With ``leave_out`` nothing is added of one that cannot be done.

    Raises:
        BatchFailed: one cannot be done, and is not left out.
    """
    left = _FIELDS_AT_ONCE
    for message, rows in found:
        start = len(made)
        try:
            left -= rows.fields(rows.items)
            if left >= 0:
                made += rows.make(rows.items, 0)
                continue
            yield from _in_parts(rows, made)
        except BatchFailed as cause:
            if leave_out is None:
                raise
            leave_out(message, cause)
            yield from _cut_off(made, start)
        left = _FIELDS_AT_ONCE


def _cut_off(made: Batch, start: int) -> Generator[None, None, None]:
    """Let go of what was made from ``start`` on, as slowly as it was made; pause at least once."""
    yield
    while len(made) > start:
        del made[max(start, len(made) - _ITEMS_AT_ONCE) :]
        yield


def _in_parts(rows: FoundItems, made: Batch) -> Generator[None, None, None]:
    for start in range(0, len(rows.items), _ITEMS_AT_ONCE):
        some = rows.items[start : start + _ITEMS_AT_ONCE]
        if rows.fields(some) <= _FIELDS_AT_ONCE:
            made += rows.make(some, start)
            yield
            continue
        for at, item in enumerate(some, start):
            made += rows.make([item], at)
            yield


def reader(path: DottedPath) -> ReadField:
    """Return what reads a path of an object as `DottedPath.read` does, and quickly."""
    text, (first, *rest) = path.text, path.segments

    def read(message: dict[str, Any]) -> JsonValue:
        found = message.get(text, MISSING)
        if found is MISSING and rest:
            found = message.get(first, MISSING)
            for segment in rest:
                if found.__class__ is not dict:
                    return MISSING
                found = found.get(segment, MISSING)
        return found

    return read


def _numbered(rows: Batch, place: DottedPath, start: int) -> Batch:
    return [_written(row, place, at) for at, row in enumerate(rows, start)]


def _written(row: dict[str, Any], path: DottedPath, value: JsonValue) -> dict[str, Any]:
    try:
        return path.write(row, value)
    except ScalarInTheWay as cause:
        raise BatchFailed(str(cause)) from cause


def _lengths(items: Sequence[JsonValue]) -> int:
    """Return how many fields some objects have; that one of them is none is told elsewhere."""
    try:
        return sum(map(len, items))
    except TypeError:
        return sum(len(each) for each in items if each.__class__ is dict)


def _fields_on(path: DottedPath, message: JsonValue) -> int:
    """Return how many fields have to be copied to write at a path."""
    fields = 0
    for segment in path.segments:
        if type(message) is not dict:
            break
        fields += len(message)
        message = message.get(segment)
    return fields
