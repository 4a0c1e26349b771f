"""Generated source: what neighbouring transforms do to one message, as one loop over a batch.

A transform writes its part in ``generate(code, ctx)``; `fuse` of the chain has the parts written one after
the other, and compiles the loop. The whole is optimistic: whatever it raises, the batch runs again through
the plain steps, which say what is wrong. So nothing here reports, but nothing may silently differ.

    temp = code.read(path)                  # a name; holds None where the field is null or missing
    double = code.let(f"{temp} * 2")        # a fresh name; names are never bound again
    code.keep_if(f"{temp} > 80.0")          # else the message is dropped
    code.give_up_unless(code.is_number(temp))        # else the plain steps take over
    code.constant(warn)                     # an expression for anything known at build
    with code.block(f"if {temp} is None:"): code.line(...)     # statements, where it takes some
    code.own(); code.write(path, double); code.remove(path)    # copied first, and only once
    code.replace(f"{{'f': {double}}}")      # the message is this new object from here on
    code.message                            # the name of the message, all writes done
    code.before("groups = {}"); code.returns("finish(groups)")  # for what gathers messages
    code.after("commit(rows)")              # once the last message is through
    code.let_go()                           # ... and has read all it needs of one
    code.spend(f"2 * len({text})", f"len({text}) > 500")    # what follows takes so many ns then
    code.know(code.is_number(temp))         # what a condition above implies is not tested again

Every part is written twice. The hopeful source (``code.is_hopeful``) reads with ``m["temp"]``, a
quarter faster than ``m.get``; a KeyError or TypeError leads to the careful source, which reads None
there. A part may use that: ``v > 80.0 or <v is no number> and warn()`` looks at types on the way
out only, and lets ``"x" > 80.0`` raise (but mind booleans: ``True > 0.5`` holds). What it calls may
be called again for the same message. Give ``optional=True`` to `read` where a missing field is
usual. Call `own` before a `block` that writes, or each such block copies. No expression may contain
``:=``: while only filters are fused, lets become clauses of a comprehension. Compare a field with
``80.0`` rather than ``80``: readings are doubles, and a mixed comparison costs 17 ns more.

Measured on 3.11 (ns per message of six fields, batches of 100; in brackets by hand, a comprehension
with ``m.get`` and ``type()``): filter 31 (63), five filters 110 (240), one map 145 (174). For a
filter a comprehension beats a loop with ``out.append`` by 10 %; for a map ``m = {**m}; m[k] = v``
in a loop beats any ``{**m, k: v}`` (190): a dict that is only copied is cloned, not rehashed.
"""

from __future__ import annotations

import linecache
import math
import re
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, count
from typing import Any, NamedTuple

from headrace.compiler.decimals import Written
from headrace.compiler.delivery import PART, parts
from headrace.compiler.dottedpaths import DottedPath
from headrace.compiler.largejson import LargeList

MOST_LINES = 10_000
"""Lines of one generated function. Python takes 60 µs to compile one, and all pipelines wait."""

MOST_IN_PLACE = 20
"""Values of one function that are looked at in place, with their types: each takes 0.2 ms to compile."""

INDENT = "    "
_MESSAGE, _OUT, _PART, _LARGE = "m", "out", "part", "results"
_GIVEN, _FAILED, _LEFT, _SPENT = "given", "failed", "left", "spent"
_MOST_APART = 20
"""Messages of a batch that are done to by themselves at once, where each takes long: a few milliseconds."""
_MOST_SPENT = 4_000_000
"""Nanoseconds that are spent at once on what takes long for some messages (`Code.spend`)."""
USUAL = 100
"""Characters of a text, or items of a list, that take too little for a message to be added up."""
_BITS_IN_A_NANOSECOND = 800
"""Of an integer that becomes a text, with the square of which the time grows: 230 µs for 4,300 digits."""
_LOW, _HIGH = -(10**300), 10**300
"""Between them, one becomes a text without being added up."""


class FunctionTooLong(Exception):
    """What is to be generated is more than is compiled as one function."""


class GiveUp(Exception):
    """The generated code met what it was not written for: the plain steps have to say what."""


class _Apart(NamedTuple):
    """The names of what a message that raises is left to."""

    alone: str
    alone_in_slices: str
    lose: str


class TakesLong(BaseException):
    """What was to be done with a batch at once takes long: it is worked on in slices instead.

    It is no `Exception`: it says nothing of a message, and whoever catches what a message raises lets it
    through.
    """


GLOBALS: dict[str, Any] = {
    kind.__name__: kind for kind in (GiveUp, Written, bool, dict, float, int, list, str)
} | {"parts": parts, "large": LargeList}
"""What the source of a loop names. In the function's own globals, a name costs one check instead of two."""


class Code:
    """The source for one message, as far as it is written.

    ``constants`` is the namespace it will run in, ``slow_parts`` says how many parts of it take long.
    Writes of plain keys are put off until something looks at the message, so that what a later filter drops
    is never copied.
    """

    def __init__(self, constants: dict[str, Any], *, is_hopeful: bool, slow_parts: int = 0) -> None:
        self.is_hopeful = is_hopeful
        self._slow_parts = slow_parts
        self._constants = constants
        self._constant_names = {id(value): name for name, value in constants.items()}
        self._names = count(1)
        self._lines: list[str] = []
        # Those of them that stand only where a batch is worked on at once, and only in slices.
        self._only: dict[bool, set[int]] = {False: set(), True: set()}
        self._clauses: list[str] | None = []  # the same as a comprehension, while it can be one
        self._depth = 0
        self._before: list[str] = []
        self._after: list[str] = []
        self._paced_after: list[str] = []
        self._returns: str | None = None
        self._returns_each: tuple[str, str, str] | None = None
        self._messages = "batch"
        self._apart: _Apart | None = None
        self._spends = False
        # What holds at this point: names of values read, writes put off, and what the message is.
        # A plain path is remembered by its segments, a dotted one by its text: the segments of a
        # dotted one stand for the way down alone, without the literal key.
        self._known: dict[str | tuple[str, ...], str] = {}
        self._near: defaultdict[str, list[str | tuple[str, ...]]] = defaultdict(list)
        self._facts: set[str] = set()
        self._unwritten: dict[str, str] = {}
        self._is_owned = self._is_object = False
        self.may_have_dropped = False
        """Whether fewer messages get here than the batch has."""
        self._in_place = 0

    @property
    def message(self) -> str:
        """The name of the message, with everything written that was put off."""
        self._flush()
        return _MESSAGE

    def constant(self, value: object, hint: str = "c") -> str:
        """Return an expression for a value known now: a literal where one is safe, else a name."""
        if value is None or type(value) in (str, bool) or _is_short_number(value):
            return repr(value)
        if known := self._constant_names.get(id(value)):
            return known
        name = f"{_identifier(hint)}_c{len(self._constants)}"  # `_c` parts it from local names
        self._constants[name], self._constant_names[id(value)] = value, name
        return name

    def name(self, hint: str = "v") -> str:
        """Return a local name nobody else uses."""
        return f"{_identifier(hint)}_{next(self._names)}"

    def let(self, expression: str, hint: str = "v") -> str:
        """Bind a fresh name to an expression and return it."""
        name = self.name(hint)
        self._emit(f"{name} = {expression}")
        if self._clauses is not None:
            self._clauses.append(f"for {name} in ({expression},)")
        return name

    def takes_in_place(self, values: int) -> bool:
        """Return whether so many more values may be looked at in place, and count them if so.

        Else a function is to be called: with few values it takes longer, and with many it does not matter.
        """
        if self._in_place + values > MOST_IN_PLACE:
            return False
        self._in_place += values
        return True

    def keep_if(self, condition: str) -> None:
        """Drop the message unless the condition holds."""
        self.may_have_dropped = True
        self._emit(f"if not ({condition}):", f"{INDENT}continue")
        if self._clauses is not None:
            self._clauses.append(f"if ({condition})")

    def give_up_unless(self, condition: str) -> None:
        """Leave the batch to the plain steps unless the condition holds."""
        if condition not in self._facts:
            self._clauses = None
            self._emit(f"if not ({condition}):", f"{INDENT}raise GiveUp")
            self._facts.add(condition)

    @contextmanager
    def only(self, *, in_slices: bool) -> Iterator[None]:
        """Write whole statements that stand only where a batch is worked on in slices, or at once.

        A transform that has `slow_parts` raises a constant `TakesLong` at once, where a message takes long
        by itself; in slices it may `yield`, so that others have a turn.
        """
        self._flush()
        with self._marked(in_slices=in_slices):
            yield
            self._flush()

    @contextmanager
    def _marked(self, *, in_slices: bool) -> Iterator[None]:
        start = len(self._lines)
        yield
        self._only[in_slices].update(range(start, len(self._lines)))

    @property
    def sharing(self) -> str:
        """How many share the time that may be taken at once: each message, in each part that takes long."""
        return f"(len(batch) * {self._slow_parts})" if self._slow_parts > 1 else "len(batch)"

    @property
    def takes_long(self) -> bool:
        """Whether something in it may take long for a message."""
        return self._spends or self._slow_parts > 0

    def spend(self, nanoseconds: str, where: str, *, within: str = "") -> None:
        """Write that something takes so long for a message, or less, where a condition holds for it.

        Where the messages of a batch take too long together, it is worked on in slices, and others may have
        a turn before the message there. Where the condition does not hold, nothing is added up. Where it
        does, the batch is left to the plain steps unless ``within`` holds as well.
        """
        if not self._spends:
            self._spends = True
            self.before(f"{_SPENT} = 0")
        self._clauses = None
        # It looks at no message: what is to be written to it is still put off.
        self._emit(f"if {where}:")
        if within:
            self._emit(f"{INDENT}if not ({within}):", f"{INDENT * 2}raise GiveUp")
        cost = self.name("cost")
        self._emit(f"{INDENT}{cost} = {nanoseconds}")
        self._emit(f"{INDENT}if {_SPENT} and {_SPENT} + {cost} > {_MOST_SPENT}:")
        takes_long = self.constant(TakesLong, "TakesLong")
        with self._marked(in_slices=False):
            self._emit(f"{INDENT * 2}raise {takes_long}")
        with self._marked(in_slices=True):
            self._emit(f"{INDENT * 2}yield", f"{INDENT * 2}{_SPENT} = 0")
        self._emit(f"{INDENT}{_SPENT} += {cost}")

    def spend_on(self, value: str, nanoseconds: int, *, within: str = "") -> None:
        """Write that for each character of a value so many nanoseconds are taken, if it has many.

        That is a text, or an integer that becomes one. Anything else takes next to nothing. A text is left
        to the plain steps unless ``within`` holds as well, as in `spend`.
        """
        low, high = self.constant(_LOW, "low"), self.constant(_HIGH, "high")
        self.spend(
            f"{nanoseconds} * len({value}) if {value}.__class__ is str"
            f" else {value}.bit_length() ** 2 // {_BITS_IN_A_NANOSECOND}",
            f"(len({value}) > {USUAL} if {value}.__class__ is str"
            f" else {value}.__class__ is int and not {low} < {value} < {high})",
            within=f"{value}.__class__ is int or {within}" if within else "",
        )

    def know(self, condition: str) -> None:
        """Take for granted what follows from what is written so far."""
        self._facts.add(condition)

    def drop(self) -> None:
        """Drop the message."""
        self.may_have_dropped = True
        self.line("continue")

    def let_go(self) -> None:
        """Hand the message on to nobody: what was written and put off need not be done."""
        self._unwritten.clear()

    def line(self, *lines: str) -> None:
        """Write statements as they are."""
        self._flush()
        self._clauses = None
        self._emit(*lines)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Indent what is written inside under ``header``; what only holds inside is forgotten."""
        self.line(header)
        known, facts = dict(self._known), set(self._facts)
        is_owned, is_object = self._is_owned, self._is_object
        start = len(self._lines)
        self._depth += 1
        yield
        self._flush()
        if len(self._lines) == start:
            self._emit("pass")
        self._depth -= 1
        self._known = dict(known.items() & self._known.items())
        self._facts = facts
        self._is_owned = is_owned and self._is_owned
        self._is_object = is_object and self._is_object

    def is_number(self, name: str) -> str:
        """Return the test whether a name holds a JSON number; a boolean is none."""
        # In this order: of most numbers it is the first test that holds.
        classes = ("float", "int", "Written")
        return f"({' or '.join(f'{name}.__class__ is {each}' for each in classes)})"

    def read(self, path: DottedPath, *, optional: bool = False) -> str:
        """Return a name that holds the value, or None where it is null or missing.

        A path that was read before costs nothing as long as nothing near it was written. With
        ``optional`` a missing field does not send the batch to the careful source.
        """
        key = path.segments if path.is_plain else path.text
        if key not in self._known:
            if path.segments[0] in self._unwritten:
                self._flush()
            is_hopeful = self.is_hopeful and not optional
            access = subscripts(path) if is_hopeful else self._careful(path)
            self._learn(key, path.segments[0], self.let(access, path.segments[-1]))
            self._is_object = True  # both raise for anything else
        return self._known[key]

    def own(self) -> None:
        """Make the message a fresh copy of ours on its top level, if it is not one already."""
        if not self._is_owned:
            self._is_owned = self._is_object = True
            self._clauses = None
            self._emit(f"{_MESSAGE} = {{**{_MESSAGE}}}")  # unlike `m.copy()`, raises for a list

    def write(self, path: DottedPath, expression: str) -> None:
        """Write a value; gives up at run time where something on the way is not an object."""
        if not expression.isidentifier():  # what is known has to be a name
            expression = self.let(expression, path.segments[-1])
        self._forget(path)
        if path.is_plain:
            self._be_object()
            self._unwritten[path.text] = expression
            self._learn(path.segments, path.text, expression)
        else:
            self._write_below(path, expression)
            self._learn(path.text, path.segments[0], expression)

    def remove(self, path: DottedPath) -> None:
        """Remove a field, if it is there."""
        self._flush()
        self._forget(path)
        if path.is_plain:
            self.own()
            self.line(f"{_MESSAGE}.pop({path.text!r}, None)")
        else:
            self._be_object()
            self.line(f"{_MESSAGE} = {self.constant(path, 'path')}.remove({_MESSAGE})")

    def replace(self, expression: str) -> None:
        """Put a new object, which nobody else holds, in the place of the message."""
        self._be_object()
        self._unwritten.clear()
        self._known.clear()
        self.line(f"{_MESSAGE} = {expression}")
        self._is_owned = True

    def before(self, *lines: str) -> None:
        """Write statements ahead of the loop."""
        self._clauses = None
        self._before += lines

    def after(self, *lines: str, paced: str | None = None) -> None:
        """Write statements behind the loop: they run once, if nothing before has raised.

        ``paced`` is what stands for them where others may have a turn: ``yield from merging(rows)``.
        """
        self._clauses = None
        self._after += lines
        self._paced_after += lines if paced is None else (paced,)

    def last_first(self) -> None:
        """Look at the last message of the batch first: for what is alone in its loop."""
        self._clauses = None
        self._messages = "reversed(batch)"

    def leave_each(
        self,
        alone: Callable[..., object],
        alone_in_slices: Callable[..., object],
        lose: Callable[..., object],
    ) -> None:
        """Leave a message that raises to ``alone``, and not its batch; it is told by itself.

        ``alone(message, failed)`` returns what it becomes, or adds it to a dict that ``lose`` gets in the
        end, if something is in it; ``alone_in_slices`` is a generator that does the same. Where something
        takes long, a batch of which several raise is worked on in slices, with a pause before and after
        each of them.
        """
        self._clauses = None
        self._apart = _Apart(
            self.constant(alone, "alone"),
            self.constant(alone_in_slices, "alone_in_slices"),
            self.constant(lose, "lose"),
        )

    def returns(self, expression: str) -> None:
        """Return this after the last message, in place of the list of messages."""
        self._returns = expression

    def returns_each(self, expression: str, item: str, items: str) -> None:
        """Return a list of this for each ``item`` of ``items``, in place of the list of messages."""
        self._returns = f"[{expression} for {item} in {items}]"
        self._returns_each = expression, item, items

    def source(self) -> list[str]:
        """Return the lines that turn ``batch`` into what is returned."""
        if self._clauses is not None and self._returns is None and not self._unwritten:
            clauses = [INDENT + clause for clause in self._clauses]
            head = [INDENT + _MESSAGE, f"{INDENT}for {_MESSAGE} in batch"]
            return ["return [", *head, *clauses, "]"]
        result, begin, body = self._loop(in_slices=False)
        return [
            *begin,
            *([] if self._returns else [f"{result} = []"]),
            f"for {_MESSAGE} in {self._messages}:",
            *body,
            *self._after,
            *self._told(),
            f"return {result}",
        ]

    def paced_source(self) -> list[str]:
        """Return the same for a large batch: the lines of a generator that pauses after each part.

        It yields None there, and in the end what is made of the batch. ``parts`` yields the parts of
        something, ``large`` makes an empty list for many messages.
        """
        result, begin, body = self._loop(in_slices=True)
        size = max(1, PART // (self._slow_parts or 1))
        sized = f", {size}" if size < PART else ""
        last = [f"yield {result}", "return"]
        if self._returns_each is not None:
            expression, item, items = self._returns_each
            last = [
                f"{_LARGE} = large()",
                f"for {_PART} in parts({items}):",
                f"{INDENT}{_LARGE} += [{expression} for {item} in {_PART}]",
                f"{INDENT}yield",
                f"yield {_LARGE}",
                "return",
            ]
        return [
            *begin,
            *([] if self._returns else [f"{result} = large()"]),
            f"for {_PART} in parts({self._messages}{sized}):",
            f"{INDENT}for {_MESSAGE} in {_PART}:",
            *(INDENT + line for line in body),
            f"{INDENT}yield",
            *self._paced_after,
            *self._told(),
            *last,
        ]

    def _loop(self, *, in_slices: bool) -> tuple[str, list[str], list[str]]:
        """Return the name of what is made, what comes before the loop, and what is done in it."""
        self._flush()
        left_out = self._only[not in_slices]
        lines = [INDENT + line for at, line in enumerate(self._lines) if at not in left_out]
        if self._returns is not None:
            return self._returns, self._before, lines or [f"{INDENT}pass"]
        lines = [*lines, f"{INDENT}{_OUT}.append({_MESSAGE})"]
        if self._apart is None:
            return _OUT, self._before, lines
        before = [*self._before, f"{_FAILED} = {{}}"]
        ahead, behind, stopped = [], [], []
        made = f"{self._apart.alone}({_GIVEN}, {_FAILED})"
        if in_slices:
            made = f"yield from {self._apart.alone_in_slices}({_GIVEN}, {_FAILED})"
        if self.takes_long and in_slices:
            ahead, behind = ["yield"], ["yield"]  # what took long has been done to it already
        elif self.takes_long:
            before.append(f"{_LEFT} = {_MOST_APART}")
            # What failed has the function in its traceback: a circle.
            clear = f"{INDENT}{_FAILED}.clear()"
            takes_long = self.constant(TakesLong, "TakesLong")
            ahead = [f"{_LEFT} -= 1", f"if {_LEFT} < 0:", clear, f"{INDENT}raise {takes_long}"]
            stopped = [f"except {takes_long}:", clear, f"{INDENT}raise"]
        alone = [*ahead, f"{_OUT} += {made}", *behind]
        return _OUT, before, self._each_apart(lines, alone, stopped)

    def _each_apart(
        self, lines: Sequence[str], alone: Sequence[str], stopped: Sequence[str]
    ) -> list[str]:
        """Return what is done in the loop, each message apart; with one that raises; where it stops."""
        return [
            f"{INDENT}{_GIVEN} = {_MESSAGE}",
            f"{INDENT}try:",
            *(INDENT + line for line in lines),
            *(INDENT + line for line in stopped),
            f"{INDENT}except Exception:",
            *(INDENT + INDENT + line for line in alone),
        ]

    def _told(self) -> list[str]:
        """Return what is done once the last message is through: those that failed are told of."""
        if self._apart is None:
            return []
        return [f"if {_FAILED}:", f"{INDENT}{self._apart.lose}({_FAILED})"]

    def _emit(self, *lines: str) -> None:
        if len(self._lines) + len(lines) > MOST_LINES:
            raise FunctionTooLong
        self._lines += [INDENT * self._depth + line for line in lines]

    def _flush(self) -> None:
        if self._unwritten:
            writes = [f"{_MESSAGE}[{key!r}] = {value}" for key, value in self._unwritten.items()]
            self._unwritten.clear()
            self.own()
            self.line(*writes)

    def _learn(self, key: str | tuple[str, ...], head: str, name: str) -> None:
        """Remember the name of a value, and by the first segment where it was read."""
        self._known[key] = name
        self._near[head].append(key)

    def _forget(self, path: DottedPath) -> None:
        """Forget what was read near a path: all that starts with the same segment."""
        for key in self._near.pop(path.segments[0], ()):
            self._known.pop(key, None)

    def _be_object(self) -> None:
        if not self._is_object:
            self.give_up_unless(f"{_MESSAGE}.__class__ is dict")
            self._is_object = True

    def _careful(self, path: DottedPath) -> str:
        way = self._below(path.segments[:-1], path.segments[-1])
        literal = f"{_MESSAGE}[{path.text!r}] if {path.text!r} in {_MESSAGE}"
        return way if path.is_plain else f"{literal} else {way}"

    def _below(self, parents: tuple[str, ...], segment: str) -> str:
        """Return the expression for one key of what the parents lead to."""
        if not parents:
            return f"{_MESSAGE}.get({segment!r})"
        if parents not in self._known:
            above = self._below(parents[:-1], parents[-1])
            self._learn(parents, parents[0], self.let(above, parents[-1]))
        parent = self._known[parents]
        return f"{parent}.get({segment!r}) if {parent}.__class__ is dict else None"

    def _write_below(self, path: DottedPath, expression: str) -> None:
        """Write where the literal key is, else copy every object on the way down."""
        self._flush()
        self.own()
        literal = f"{path.text!r} in {_MESSAGE}"
        lines = [f"if {literal}:", f"{INDENT}{_MESSAGE}[{path.text!r}] = {expression}", "else:"]
        parent = _MESSAGE
        for segment in path.segments[:-1]:
            child, place = self.name(segment), f"{parent}[{segment!r}]"
            there = f"{segment!r} in {parent}"
            lines.append(f"{INDENT}{child} = {place} = {{**{place}}} if {there} else {{}}")
            parent = child
        self.line(*lines, f"{INDENT}{parent}[{path.segments[-1]!r}] = {expression}")


class _Source(NamedTuple):
    """A source as the interpreter keeps those of files."""

    size: int
    changed: None
    lines: list[str]
    file: str


def compile_source(
    name: str, source: str, namespace: dict[str, Any], place: str
) -> Callable[..., Any]:
    """Return the function ``name`` of a source; tracebacks show its lines while it lives.

    Where another function of that place lives, the file gets a number: what takes over is built beside
    what runs, so is a dry run, and several engines may share a process.
    """
    kept = _registered(place, source)
    try:
        exec(compile(source, kept.file, "exec"), namespace)
    except BaseException:
        _forget(kept)
        raise
    function: Callable[..., Any] = namespace.pop(name)  # else a cycle outlives the pipeline
    weakref.finalize(function, _forget, kept).atexit = False
    return function


def _registered(place: str, source: str) -> _Source:
    """Have a source found under the name of a file that no other one has."""
    # An id may hold a null character, the name of a file may not.
    called = f"headrace {place}".replace("\0", "\N{SYMBOL FOR NULL}")
    files = chain([f"<{called}>"], (f"<{called} ({number})>" for number in count(2)))
    lines = source.splitlines(keepends=True)
    sources = (_Source(len(source), None, lines, file) for file in files)
    # Looked for and taken in one step: dry runs are built in threads.
    return next(each for each in sources if linecache.cache.setdefault(each.file, each) is each)


def _forget(kept: _Source) -> None:
    # Somebody may have emptied the cache, and another have the name by now.
    if linecache.cache.get(kept.file) is kept:
        del linecache.cache[kept.file]


def subscripts(path: DottedPath) -> str:
    """Return the access to a path of the message `m` that raises where nothing is.

    It raises KeyError or TypeError; for anything that is no object as well.
    """
    way = _MESSAGE + "".join(f"[{segment!r}]" for segment in path.segments)
    literal = f"{_MESSAGE}[{path.text!r}]"
    return way if path.is_plain else f"{literal} if {path.text!r} in {_MESSAGE} else {way}"


def _is_short_number(value: object) -> bool:
    """Return whether a number has a literal: infinity has none, a huge integer no quick one."""
    if type(value) is int:
        return value.bit_length() <= 64
    return type(value) is float and math.isfinite(value)


def _identifier(hint: str) -> str:
    """Return a hint as the start of a name."""
    return re.sub(r"\W|^(?=\d)", "_", hint, flags=re.ASCII)[:32]
