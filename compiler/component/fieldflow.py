"""Which fields of a message a component touches, and what is left of them along a chain.

`FieldUse` is what one component says of itself. `Passing` is what is known of the batches at one
place of a chain: the fields their messages can have, how large a batch can be, whether one can come
at all. It only ever says what is certain: a field is *missing* when no message can have it there.

A path is written as in a config: the literal key of the top level if a message has it, else keys
that lead down through objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Self, TypeVar

from headrace.compiler.text.diagnostics import Path

_T = TypeVar("_T")

_DEEPEST = 32
"""Segments of a path that are looked at; what lies deeper is not told apart."""
_MOST_KEYS = 1000
"""Keys of an object that are told apart."""
_MOST_VALUES = 20
"""Fields of which something is known, and how much of each: older knowledge is forgotten."""


@dataclass(frozen=True, slots=True)
class FieldUse:
    """What one component reads, writes and removes. What is claimed has to hold for every message.

    - ``reads``: nothing outside these paths influences what the component does, apart from handing
      the rest on as it is.
    - ``asks``: those of them that only what comes in can answer; what the component may have
      written itself before it reads it is left out. All of ``reads``, unless it says otherwise.
    - ``writes``: it may write these paths and no others; ``keys`` the same for keys of the top
      level that are written whole, dots and all, as a `reducer` does.
    - ``removes``: these are taken out, as far as they are not written. As ever, the literal key is
      taken where there is one, and then the path below may still lead somewhere.
    - ``keeps``: what it does not write or remove is handed on as it was. A `map` with
      ``keep: mapped`` and a `reducer` keep nothing.
    - ``drops_without``: a message that lacks one of these is not handed on.
    - ``is_open``: what it hands on may have any other field as well, of where it came from or not.
    - ``by_key``: it also reads the field that `state.key` of its pipeline names.
    """

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    removes: frozenset[str] = frozenset()
    keeps: bool = True
    is_known: bool = True
    asks: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()
    drops_without: frozenset[str] = frozenset()
    by_key: bool = False
    is_open: bool = False

    @classmethod
    def of(
        cls,
        *,
        reads: Iterable[str] = (),
        writes: Iterable[str] = (),
        removes: Iterable[str] = (),
        keeps: bool = True,
        asks: Iterable[str] | None = None,
        keys: Iterable[str] = (),
        drops_without: Iterable[str] = (),
        by_key: bool = False,
        is_open: bool = False,
    ) -> Self:
        """Return the use of a component that knows."""
        read = frozenset(reads)
        return cls(
            read,
            frozenset(writes),
            frozenset(removes),
            keeps,
            True,
            read if asks is None else frozenset(asks),
            frozenset(keys),
            frozenset(drops_without),
            by_key,
            is_open,
        )

    @classmethod
    def unknown(cls) -> Self:
        """Return the use of a component that cannot tell: it may read and write anything."""
        return cls(is_known=False)


@dataclass(frozen=True, slots=True)
class Demand:
    """A field without which a component fails a batch.

    ``place`` is where the component spells it, ``remedy`` what to write there so that it fails no more.
    """

    path: str
    place: Path
    remedy: str


class Paths:
    """Paths that were touched, to ask which others lead to, through or below one of them."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._touched: set[str] = set()
        self._above: set[str] = set()
        for path in paths:
            self.add(path)

    def add(self, path: str) -> None:
        """Take one more."""
        self._touched.add(path)
        self._above.update(_above(path))

    def __contains__(self, path: str) -> bool:
        return (
            path in self._touched
            or path in self._above
            or any(each in self._touched for each in _above(path))
        )


Who = tuple[str, ...]
"""The components that saw to it that something is not there, in words for a message."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Which keys an object can have. Whether there is an object at all is not known.

    ``keys`` has the shape below each key that is told apart, or whoever took that key away. Others
    are possible if it ``is_open``; if not, ``closed_by`` saw to it. So many keys that nobody would
    write them are no longer told apart.
    """

    keys: Mapping[str, Shape | Who]
    is_open: bool = False
    closed_by: Who = ()

    @classmethod
    def of(cls, keys: Iterable[str], by: str) -> Self:
        """Return the shape of an object that has no other keys."""
        return cls(dict.fromkeys(keys, ANYTHING), closed_by=(by,))

    def below(self, key: str) -> Shape | Who:
        """Return the shape below a key, or who saw to it that it is not there."""
        return self.keys.get(key, ANYTHING if self.is_open else self.closed_by)

    def missing(self, steps: Iterable[str]) -> Who | None:
        """Return who saw to it that these keys lead nowhere; None if they may lead somewhere."""
        shape = self
        for step in steps:
            below = shape.below(step)
            if not isinstance(below, Shape):
                return below
            shape = below
        return None

    def with_key(self, key: str, below: Shape | Who) -> Shape:
        """Return the shape with something else below one key."""
        if key not in self.keys and len(self.keys) >= _MOST_KEYS:
            return ANYTHING
        return replace(self, keys={**self.keys, key: below})

    def written(self, steps: Sequence[str]) -> Shape:
        """Return the shape when something may be written there, objects on the way included."""
        key, *rest = steps
        if not rest:
            return self.with_key(key, ANYTHING)
        below = self.below(key)
        # An object made for the purpose holds nothing else, and who took away the rest still did.
        made = below if isinstance(below, Shape) else Shape({}, closed_by=below)
        return self.with_key(key, made.written(rest))

    def without(self, steps: Sequence[str], by: str) -> Shape:
        """Return the shape when what is there is taken out."""
        key, *rest = steps
        below = self.below(key)
        if not isinstance(below, Shape):
            return self
        return self.with_key(key, below.without(rest, by) if rest else (by,))

    def blamed_on(self, who: Who) -> Shape:
        """Return the shape with somebody else in place of everybody who took something."""
        keys: dict[str, Shape | Who] = {
            key: below.blamed_on(who) if isinstance(below, Shape) else who
            for key, below in self.keys.items()
        }
        return Shape(keys, self.is_open, who)

    def listed(self, before: str = "") -> Iterator[str]:
        """Yield the paths that are told apart and may be there."""
        for key, below in self.keys.items():
            if isinstance(below, Shape):
                yield before + key
                yield from below.listed(f"{before}{key}.")


ANYTHING = Shape({}, is_open=True)
"""What nothing is known of."""


def either(one: Shape | Who, other: Shape | Who) -> Shape | Who:
    """Return what is possible where two streams meet."""
    if not isinstance(one, Shape) or not isinstance(other, Shape):
        if isinstance(one, Shape):
            return one
        return other if isinstance(other, Shape) else (*dict.fromkeys((*one, *other)),)
    keys = dict.fromkeys((*one.keys, *other.keys))
    if ANYTHING in (one, other) or len(keys) > _MOST_KEYS:
        return ANYTHING
    return Shape(
        {key: either(one.below(key), other.below(key)) for key in keys},
        is_open=one.is_open or other.is_open,
        closed_by=(*dict.fromkeys((*one.closed_by, *other.closed_by)),),
    )


@dataclass(frozen=True, slots=True)
class ValueRange:
    """Numbers beyond, within or at a number; or strings that are, or contain, a string."""

    above: float | None = None
    below: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    equal: float | str | None = None
    containing: str | None = None

    def excludes(self, others: ValueRange) -> bool:
        """Return whether it is certain that no value is among these and among the others."""
        return (
            self._are_strings != others._are_strings
            or self._lie_apart(others)
            or others._lie_apart(self)
        )

    @property
    def _are_strings(self) -> bool:
        return self.containing is not None or isinstance(self.equal, str)

    def _lie_apart(self, others: ValueRange) -> bool:
        """Compare in one direction. Numbers exactly: as doubles they can only be nearer."""
        if isinstance(self.equal, str):
            if isinstance(others.equal, str):
                return self.equal != others.equal
            return others.containing is not None and others.containing not in self.equal
        if self.equal is not None:
            if isinstance(others.equal, int | float):
                try:  # also as doubles, which is how they may be compared
                    return float(self.equal) != float(others.equal)
                except OverflowError:
                    return False
            return not others._has(self.equal)
        highest = others.below if others.at_most is None else others.at_most
        if highest is None:
            return False
        if self.at_least is not None:
            return self.at_least > highest or (self.at_least == highest == others.below)
        return self.above is not None and self.above >= highest

    def _has(self, number: float) -> bool:
        """Return whether a number is within the bounds there are."""
        return (
            (self.above is None or number > self.above)
            and (self.below is None or number < self.below)
            and (self.at_least is None or number >= self.at_least)
            and (self.at_most is None or number <= self.at_most)
        )


@dataclass(frozen=True, slots=True)
class Passing:
    """What is known of the batches at one place of a chain.

    ``largest``: most messages of a batch, None if nobody knows; ``cut_by``: who hands on one
    message at a time although more came in. ``values``: what is known of the values of fields, and
    who sees to it. ``stopped``: why nothing comes here at all. ``by``: the component that is
    looked at, in words. ``key``: the field that messages are filed under in the pipeline's bucket.
    ``nulls``: fields that somebody in this chain writes as null for want of anything better, and who.
    """

    fields: Shape = ANYTHING
    largest: int | None = None
    cut_by: str | None = None
    values: Mapping[str, tuple[tuple[str, ValueRange], ...]] = field(default_factory=dict)
    stopped: str | None = None
    by: str = ""
    key: str | None = None
    nulls: Mapping[str, str] = field(default_factory=dict)

    def missing(self, path: str) -> Who | None:
        """Return who saw to it that no message has this field; None if one may have it."""
        literal = self.fields.missing((path,))
        return literal if literal is None else self.fields.missing(_segments(path))

    def after(self, use: FieldUse) -> Passing:
        """Return what is known after a component that uses fields like this."""
        if not use.is_known:
            return replace(self, fields=ANYTHING, values={}, nulls={})
        for path in sorted(use.drops_without):
            if self.missing(path) is not None:
                return self.stop(f"{self.by} hands on nothing without '{path}'")
        touched = use.writes | use.removes | use.keys
        return replace(
            self,
            fields=self._shape(use),
            values=_outside(touched, self.values) if use.keeps else {},
            nulls=_outside(touched | use.drops_without, self.nulls) if use.keeps else {},
        )

    def _shape(self, use: FieldUse) -> Shape:
        nothing = ANYTHING if use.is_open else Shape({}, closed_by=(self.by,))
        fields = self.fields if use.keeps else nothing
        for path in sorted(use.removes) if use.keeps else ():
            segments = path.split(".")
            is_literal = fields.missing((path,)) is None
            fields = fields.without((path,), self.by)
            # Where both are there, only the literal key goes.
            if not is_literal and len(segments) <= _DEEPEST:
                fields = fields.without(segments, self.by)
        for path in sorted(use.writes):
            if fields.missing((path,)) is None:
                fields = fields.written((path,))
            fields = fields.written(_segments(path))
        for key in sorted(use.keys):
            fields = fields.written((key,))
        return fields

    def at_most(self, largest: int | None) -> Passing:
        """Return the same with batches of so many messages; None: nobody knows how many."""
        cut_by = self.by if largest == 1 and self.largest != 1 else self.cut_by
        return replace(self, largest=largest, cut_by=cut_by if largest == 1 else None)

    def where(self, path: str, values: ValueRange) -> Passing:
        """Return the same with only the messages that have such a value there."""
        for by, others in self.values.get(path, ()):
            if values.excludes(others):
                return self.stop(f"{self.by} drops every message that {by} hands on")
        told = (*self.values.get(path, ()), (self.by, values))[-_MOST_VALUES:]
        kept = self.values if len(self.values) < _MOST_VALUES else {}
        return replace(self, values={**kept, path: told})

    def or_null(self, paths: Iterable[str]) -> Passing:
        """Return the same where these fields are null for want of anything better."""
        return replace(self, nulls={**self.nulls, **dict.fromkeys(paths, self.by)})

    def surely(self, paths: Iterable[str]) -> Passing:
        """Return the same where these fields are there, and not null."""
        settled = frozenset(paths)
        kept = {path: who for path, who in self.nulls.items() if path not in settled}
        return replace(self, nulls=kept)

    def stop(self, why: str) -> Passing:
        """Return the same with nothing coming through at all."""
        return self if self.stopped else replace(self, stopped=why)

    def seen_by(self, component: str) -> Passing:
        """Return the same, for the component that comes next."""
        return replace(self, by=component)


def merged(streams: Iterable[Passing]) -> Passing:
    """Return what is known where streams meet: what holds for each of those that flow."""
    flowing = [stream for stream in streams if not stream.stopped]
    if not flowing:
        return Passing(stopped="none of the inputs hands on anything")
    if len(flowing) == 1:
        return flowing[0]
    shapes: Iterator[Shape | Who] = (stream.fields for stream in flowing)
    fields = reduce(either, shapes)
    assert isinstance(fields, Shape)
    sizes = [stream.largest for stream in flowing if stream.largest is not None]
    return Passing(fields, max(sizes) if len(sizes) == len(flowing) else None)


def _outside(touched: Iterable[str], told: Mapping[str, _T]) -> Mapping[str, _T]:
    """Return what is told of fields that these paths neither are, nor lead to, through or below."""
    paths = Paths(touched if told else ())
    return {path: known for path, known in told.items() if path not in paths}


def _segments(path: str) -> tuple[str, ...]:
    return tuple(path.split(".", _DEEPEST)[:_DEEPEST])


def _above(path: str) -> Iterator[str]:
    """Yield the paths of the objects on the way to this one."""
    segments = _segments(path)
    return (".".join(segments[:length]) for length in range(1, len(segments)))
