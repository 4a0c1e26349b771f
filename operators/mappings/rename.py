"""The mapping that gives fields other names, all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as Named
from functools import cached_property
from itertools import accumulate
from typing import Any, Self

from headrace.compiler.code import USUAL, Code
from headrace.compiler.component.branches import Branch, Took, altered
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import MISSING, DottedPath
from headrace.compiler.errors import BatchFailed
from headrace.compiler.schema.records import listed, option
from headrace.compiler.text.diagnostics import Fault, repeated
from headrace.compiler.text.diagnostics import Path as Place
from headrace.operators.keptfields import ChangedFields, Kept
from headrace.operators.mappings.fieldnames import FieldNames
from headrace.operators.mappings.mapping import missing, present
from headrace.operators.mappings.root import Mapping, Policy, Rewrite

_MOST_FIELDS = 10_000
"""Fields of a message, and of the objects in it together that lead to what is renamed."""
_FIELD, _COPIED = 90, 5
"""Nanoseconds that one of them takes, and more for each name with a dot: the message is copied for it."""

_Tree = dict[str, Any]
"""Fields to take out of an object: None for the field, a tree for what is below it."""


class Rename(Mapping, tag="rename", listed=80, elsewhere="move rename_fields rename_keys"):
    """Gives fields other names, all at once, so two may swap theirs.

    A field of the top level keeps its place among the others; what has the new name already is written
    over. Of a field that is missing or null, the old name goes as well under ``on_missing: omit``.

    A message of more than 10,000 fields fails the batch, and so do as many of the objects in it, together,
    that fields are taken out of.
    """

    fields_: Named[str, str] = option(
        FieldNames(),
        "The new name of each field, by its old one: `{ old: new }`.",
        elsewhere="from map mapping names rename renames",
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse one name for two fields, one below another, and a name that stays."""
        yield from repeated(
            ((new, ("fields", old)) for old, new in self.fields_.items()),
            said="'{name}' is the new name of another field as well, at {place}",
            expected="a name of its own for every field",
        )
        news = {new: old for old, new in self.fields_.items()}
        for old, new in self.fields_.items():
            if old == new:
                yield Fault(
                    "conflict",
                    f"'{old}' has that name already",
                    found=new,
                    expected="another name",
                    path=("fields", old),
                )
            # the paths of the objects on the way to it
            for above in accumulate(DottedPath(new).segments[:-1], "{}.{}".format):
                if above in news:
                    yield Fault(
                        "scalar-in-the-way",
                        f"cannot write '{new}': '{above}' is the new name of '{news[above]}'",
                        found=new,
                        expected=f"a field that is not below '{above}'",
                        path=("fields", old),
                    )

    @property
    def reads(self) -> Sequence[tuple[str, Place]]:
        """The old names."""
        return [(old, ("fields", old)) for old in self.fields_]

    @property
    def targets(self) -> Sequence[tuple[str, Place]]:
        """The new ones."""
        return [(new, ("fields", old)) for old, new in self.fields_.items()]

    @property
    def removes(self) -> Sequence[str]:
        """The old ones."""
        return [*self.fields_]

    @cached_property
    def _paths(self) -> Sequence[tuple[DottedPath, DottedPath]]:
        return [(DottedPath(old), DottedPath(new)) for old, new in self.fields_.items()]

    def change(self, message: JsonValue, on_missing: str, ctx: Context) -> Rewrite | None:
        """Read all of them, and then take out and write."""
        values = self._values(message, on_missing)
        return lambda written: self._renamed(written, values, _Looked())

    def _values(self, message: JsonValue, on_missing: str) -> Sequence[Any]:
        """Return what is under the old names; `MISSING` for what is left out."""
        if len(message) > _MOST_FIELDS:
            raise BatchFailed(f"the message has more than {_MOST_FIELDS:,} fields")
        values = [present(old, message) for old in self.fields_]
        self.tell("on_missing" if MISSING in values else "found")
        if on_missing == "error" and MISSING in values:
            raise missing(self.sources, message)
        if on_missing == "null":
            values = [None if value is MISSING else value for value in values]
        return values

    def _renamed(
        self, written: dict[str, Any], values: Sequence[Any], looked: _Looked
    ) -> dict[str, Any]:
        """Return an object with these values under the new names; what is `MISSING` has none."""
        looked.below = 0
        pairs = [(old, new, value) for (old, new), value in zip(self._paths, values, strict=True)]
        stays = [
            old.text in written and new.is_plain and value is not MISSING
            for old, new, value in pairs
        ]
        in_place: dict[str, tuple[str, Any]] = {}
        others: list[tuple[DottedPath, JsonValue]] = []
        gone: set[str] = set()
        below: _Tree = {}
        for (old, new, value), is_in_place in zip(pairs, stays, strict=True):
            if is_in_place:
                in_place[old.text] = new.text, value
                continue
            others.append((new, value))
            if old.text in written:
                gone.add(old.text)
            else:
                _add(old.segments, below)
        if below:
            written = looked.without(written, below)
        names = {old: new for old, (new, _) in in_place.items()}
        gone.update({*names.values()} - names.keys())  # written over
        kept = {names.get(key, key): each for key, each in written.items() if key not in gone}
        kept.update(in_place.values())
        for path, value in others:
            if value is not MISSING and path.is_plain:
                kept[path.text] = value
            elif value is not MISSING:
                kept = path.write(kept, value)
        return kept

    def generate(self, code: Code, ctx: Context, policy: Policy) -> Sequence[Kept]:
        """Call what looks at the names of a message once; of what is kept, with the values."""
        kept: list[Kept] = []
        is_lenient = policy.on_missing != "error"
        message = code.message
        code.give_up_unless(f"{message}.__class__ is dict")
        each = _FIELD + _COPIED * sum("." in name for pair in self.fields_.items() for name in pair)
        code.spend(
            f"{each} * len({message})",
            f"len({message}) > {USUAL}",
            within=f"len({message}) <= {_MOST_FIELDS}",
        )
        if policy.is_kept:
            names = [code.read(old, optional=is_lenient) for old, _ in self._paths]
            if not is_lenient:
                code.give_up_unless(" and ".join(f"{name} is not None" for name in names))
            put = code.constant(self._put_under(policy.on_missing), "put")
            looked, cost = self._looked(code)
            kept.append(ChangedFields(put, [looked, *names], cost=cost))
        if policy.is_seen:
            renamed = code.constant(self._quick(policy.on_missing), "renamed")
            looked, cost = self._looked(code)
            code.replace(f"{renamed}({message}, {looked})")
            if not self._is_plain:
                code.spend(*cost)
        return kept

    def _looked(self, code: Code) -> tuple[str, tuple[str, str]]:
        """Return the name of what counts the fields of objects in a message, and what they took."""
        looked = code.name("looked")
        code.before(f"{looked} = {code.constant(_Looked, 'Looked')}()")
        return looked, (f"{_FIELD} * {looked}.below", f"{looked}.below > {USUAL}")

    def _put_under(self, on_missing: str) -> Callable[..., dict[str, Any]]:
        """Return what puts values under the new names of an object; None is missing."""
        nothing = MISSING if on_missing == "omit" else None

        def put(written: dict[str, Any], looked: _Looked, *values: Any) -> dict[str, Any]:
            if not written and self._is_plain:
                return {
                    new.text: value
                    for (_, new), value in zip(self._paths, values, strict=True)
                    if value is not None or nothing is None
                }
            found = [nothing if value is None else value for value in values]
            return self._renamed(written, found, looked)

        return put

    @property
    def _is_plain(self) -> bool:
        return all(old.is_plain and new.is_plain for old, new in self._paths)

    def _quick(self, on_missing: str) -> Callable[[dict[str, Any], _Looked], dict[str, Any]]:
        """Return what renames the fields of a message, in one go where nothing is unusual."""
        names = dict(self.fields_)
        olds = names.keys()
        is_plain = self._is_plain

        def renamed(message: dict[str, Any], looked: _Looked) -> dict[str, Any]:
            if is_plain and olds <= message.keys():
                made = {names.get(key, key): value for key, value in message.items()}
                # Less of them where a new name was there already.
                if len(made) == len(message) and (
                    None not in made.values() or all(message[old] is not None for old in olds)
                ):
                    return made
            return self._renamed(message, self._values(message, on_missing), looked)

        return renamed

    def branches(self, on_missing: str, *path: str | int) -> Iterator[Branch]:
        """All of them are there; one is missing, where that fails no batch."""
        sources = listed([*self.fields_])
        are = "were never all" if len(self.fields_) > 1 else "was never"
        yield Branch("found", f"{sources} {are} there", path)
        if on_missing != "error":
            of = "none of " if len(self.fields_) > 1 else ""
            said = f"{of}{sources} was ever missing ('on_missing' is {on_missing})"
            if not of:
                said = f"{sources} was never missing ('on_missing' is {on_missing})"
            yield Branch("on_missing", said, path)

    def counted(self, took: Took, *path: str | int) -> Self:
        """Return one that tells whether all were there."""
        return altered(self, tell=lambda branch: took(branch, *path))

    def tell(self, branch: str) -> None:
        """Tell of a branch that is taken, if anybody counts."""


def _add(segments: Sequence[str], tree: _Tree) -> None:
    """Add a field to a tree of those that are taken out; one above it takes it along."""
    first, *others = segments
    if not others:
        tree[first] = None
    elif (below := tree.setdefault(first, {})) is not None:
        _add(others, below)


class _Looked:
    """The objects of a message that fields are taken out of, and how many they have."""

    def __init__(self) -> None:
        self.below = 0
        """Fields of those below the message."""

    def without(self, parent: dict[str, Any], tree: _Tree) -> dict[str, Any]:
        """Return an object without what a tree names.

        Raises:
            BatchFailed: those below the message have too many fields.
        """
        left = {**parent}
        for name, below in tree.items():
            child = parent.get(name)
            if below is None:
                left.pop(name, None)
            elif isinstance(child, dict):
                self.below += len(child)
                if self.below > _MOST_FIELDS:
                    said = "objects in the message have more than"
                    raise BatchFailed(f"{said} {_MOST_FIELDS:,} fields together")
                left[name] = self.without(child, below)
        return left
