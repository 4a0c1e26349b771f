"""The `map` transform: rewrites every message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, Self

from headrace.compiler.code import Code
from headrace.compiler.component.branches import Branch, Took, altered
from headrace.compiler.component.buildcontext import Context, Step
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.conditions import all_counted, all_hold, outcomes, test_of_all
from headrace.compiler.component.families import PerMessage
from headrace.compiler.component.fieldflow import Demand, FieldUse, Paths
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.dottedpaths import MISSING, DottedPath, Missing, ScalarInTheWay
from headrace.compiler.errors import BatchFailed
from headrace.compiler.schema.fields import Choice
from headrace.compiler.schema.records import option
from headrace.compiler.schema.structures import ListOf
from headrace.compiler.schema.variants import VariantOf
from headrace.compiler.text.diagnostics import Codes, Fault, repeated
from headrace.compiler.text.diagnostics import Path as Place
from headrace.operators import mappingbranches
from headrace.operators.mappings import Drop, Mapping, Writing, present

CODES: Codes = {
    "scalar-in-the-way": "A path leads through a value that cannot be an object.",
}


class WrittenField(NamedTuple):
    """What a mapping wrote, as source, or dropped again."""

    target: DottedPath
    value: str | None
    """The name of the value; None: what was written there is dropped."""
    condition: str = ""
    """When; empty for always."""


class Map(
    PerMessage,
    kind="map",
    listed=8,
    elsewhere="bloblang convert mapping mutate project remap rename select transform",
):
    """Rewrite each message: one message out for each one in.

    Mappings are applied in order, and later ones see what earlier ones wrote. Paths may be dotted;
    objects on the way are created. Null counts as missing. A mapping's `default` is written when the
    field is missing; without one `on_missing` decides. A message that is not an object passes
    unchanged, with one warning.
    """

    mappings: tuple[Writing | Drop, ...] = option(
        ListOf(VariantOf(Mapping), at_least=1, noun="mapping"),
        "What to write, in order.",
        elsewhere="fields mapping rules set",
    )
    keep: str = option(
        Choice(
            "all",
            "mapped",
            never_absent=True,
            elsewhere={"all": "everything true", "mapped": "false none only selected"},
        ),
        "Whether fields that nothing maps survive, or only what is written here.",
        default="all",
    )
    on_missing: str = option(
        Choice(
            "error",
            "omit",
            "null",
            null_word=True,
            never_absent=True,
            elsewhere={"error": "fail", "omit": "drop ignore skip"},
        ),
        "What a missing field means: the batch fails, nothing is written, or null is.",
        default="error",
    )

    @property
    def writings(self) -> list[tuple[int, Writing]]:
        """The mappings that write something, with their places."""
        return [(n, each) for n, each in enumerate(self.mappings) if isinstance(each, Writing)]

    def rules(self) -> Iterator[Fault]:
        """Refuse what cannot be meant: two writers of one field, a write below a scalar."""
        yield from self._idle_drops() if self.keep == "mapped" else ()
        yield from repeated(
            self._targets(),
            said="'{name}' is written twice: {place} writes it already",
            expected="a field of its own for every mapping",
        )
        scalars: dict[str, tuple[int, Writing]] = {}
        for index, mapping in self.writings:
            if mapping.is_never_object:
                scalars.setdefault(mapping.target, (index, mapping))
        for index, mapping in self.writings:
            # the paths of the objects on the way to it
            for path in accumulate(mapping.target.split(".")[:-1], "{}.{}".format):
                if path in scalars:
                    yield _scalar_in_the_way(index, mapping, *scalars[path])

    def _targets(self) -> Iterator[tuple[str, Place]]:
        """Yield what is written always, and what is written at all for the first time."""
        seen = set[str]()
        for index, each in self.writings:
            if not each.when or each.target not in seen:
                yield each.target, _target_place(index, each)
            seen.add(each.target)

    def _idle_drops(self) -> Iterator[Fault]:
        """Yield the drops of what no mapping before them has written, where nothing else is kept."""
        written = set[str]()
        for index, mapping in enumerate(self.mappings):
            if isinstance(mapping, Writing):
                written.add(mapping.target)
            elif not written.issuperset(mapping.from_):
                yield Fault(
                    "conflict",
                    "a drop under 'keep: mapped' drops nothing: only what is mapped is kept",
                    expected="'keep: all', no drop, or one of what a mapping before it has written",
                    path=("mappings", index),
                )

    def field_use(self) -> FieldUse:
        """Every source is read, every target may be written, what is dropped is gone."""
        targets = [DottedPath(each.target) for _, each in self.writings]
        # What lies on the way to a target decides whether it can be written.
        ways = [
            way for each in targets if not each.is_plain for way in (each.text, each.segments[0])
        ]
        asked = [path for each in self.mappings for one in each.when for path in one.reads]
        return FieldUse.of(
            reads=[*ways, *asked, *(path for _, each in self.writings for path in each.sources)],
            writes=[each.text for each in targets],
            removes=[
                path for each in self.mappings if isinstance(each, Drop) for path in each.from_
            ],
            keeps=self.keep == "all",
            asks=[*asked, *(path for _, _, path, _ in self._asked())],
        )

    def demands(self) -> Iterator[Demand]:
        """Without them `on_missing` fails the batch; what an earlier mapping may have written apart."""
        for index, mapping, path, place in self._asked() if self.on_missing == "error" else ():
            if mapping.needs_all and mapping.fallback is None and not mapping.when:
                default = "give it a 'default', " if hasattr(mapping, "default") else ""
                remedy = f"{default}set 'on_missing' to null or omit here"
                yield Demand(path, ("mappings", index, *place), remedy)

    def _asked(self) -> Iterator[tuple[int, Writing, str, Place]]:
        """Yield what is read that no earlier mapping can have written: by which, and where it is spelt."""
        written = Paths()
        for index, mapping in self.writings:
            for path, place in mapping.reads:
                if path not in written:
                    yield index, mapping, path, place
            written.add(mapping.target)

    def branches(self, context: CheckContext) -> Iterator[Branch]:
        """Of each mapping: what it reads is there, or `default` or `on_missing` is taken; a cast fails.

        Of ``on_missing: error`` that is no branch: nobody has chosen that way. Each condition of `when` is
        true; it is false.
        """
        for index, mapping in enumerate(self.mappings):
            yield from outcomes(mapping.when, "mappings", index, "when")
            if isinstance(mapping, Writing):
                yield from mappingbranches.branches(mapping, self.on_missing, "mappings", index)

    def counting(self, took: Took) -> Self:
        """Return one with mappings that tell."""
        mappings = []
        for index, each in enumerate(self.mappings):
            when = all_counted(each.when, took, "mappings", index, "when")
            mapping: Writing | Drop = altered(each, when=when)
            if isinstance(mapping, Writing):
                mapping = mappingbranches.counted(mapping, took, "mappings", index)
            mappings.append(mapping)
        return altered(self, mappings=tuple(mappings))

    def step(self, ctx: Context) -> Step:
        """Return the plain form: one message after the other, one mapping after the other."""

        def rewritten(batch: Batch) -> list[Batch]:
            return [[self._rewritten(message, ctx) for message in batch]]

        return rewritten

    def _rewritten(self, message: JsonValue, ctx: Context) -> JsonValue:
        if type(message) is not dict:
            ctx.warn_once("passed on a message that is not an object, unchanged")
            return message
        made: dict[str, Any] = {}
        for index, mapping in enumerate(self.mappings):
            if not all_hold(mapping.when)(message):
                continue
            try:
                if isinstance(mapping, Drop):
                    for path in map(DottedPath, mapping.from_):
                        message, made = path.remove(message), path.remove(made)
                elif (value := self._value(mapping, message, ctx)) is not MISSING:
                    target = DottedPath(mapping.target)
                    message = target.write(message, value)
                    if self.keep == "mapped":
                        made = target.write(made, value)
            except (BatchFailed, ScalarInTheWay) as cause:
                raise BatchFailed(f"mapping {index} ('{mapping.tag}'): {cause}") from cause
        return made if self.keep == "mapped" else message

    def _value(self, mapping: Writing, message: JsonValue, ctx: Context) -> JsonValue | Missing:
        value = mapping.value(message, ctx)
        if value is not MISSING:
            return value
        if mapping.fallback is not None:
            return mapping.fallback.constant
        if self.on_missing == "error":
            absent = [path for path in mapping.sources if present(path, message) is MISSING]
            raise BatchFailed(f"{_named(absent)} missing or null")
        return None if self.on_missing == "null" else MISSING

    def generate(self, code: Code, ctx: Context) -> None:
        """Write every mapping; whatever fails is left to the plain form."""
        kept: list[WrittenField] = []
        for mapping, is_seen in zip(self.mappings, self._seen(), strict=True):
            if not mapping.when:
                kept += self._done(mapping, code, ctx, is_seen=is_seen)
                continue
            holds = code.let(test_of_all(mapping.when, code), "holds")
            if is_seen:
                code.own()  # else what is written inside copies each time
            with code.block(f"if {holds}:"):
                done = self._done(mapping, code, ctx, is_seen=is_seen)
            for target, value, condition in done:
                both = f"{holds} and ({condition})" if condition else holds
                kept.append(WrittenField(target, value, both))
        if self.keep == "mapped":
            _replace(kept, code)

    def _done(
        self, mapping: Writing | Drop, code: Code, ctx: Context, *, is_seen: bool
    ) -> list[WrittenField]:
        """Write one mapping as source; return what it wrote."""
        if isinstance(mapping, Writing):
            return [self._write(mapping, code, ctx, is_seen=is_seen)]
        paths = [*map(DottedPath, mapping.from_)]
        for path in paths if is_seen else ():
            code.remove(path)
        return [WrittenField(path, None) for path in paths]

    def _write(self, mapping: Writing, code: Code, ctx: Context, *, is_seen: bool) -> WrittenField:
        """Write a mapping that writes as source."""
        target, fallback = DottedPath(mapping.target), mapping.fallback
        is_lenient = fallback is not None or self.on_missing != "error"
        formula = mapping.source(code, ctx, optional=is_lenient)
        condition = formula.there if fallback is None and self.on_missing == "omit" else ""
        if condition and is_seen:
            is_checked = formula.check_apart(code)
            code.own()  # else every such block copies
            with code.block(f"if {condition}:"):
                if is_checked and formula.guard:
                    code.know(formula.guard)
                value = formula.write(code)
                code.write(target, value)
            return WrittenField(target, value, condition)
        if is_lenient:
            value = formula.write_or(None if fallback is None else fallback.constant, code)
        else:
            value = formula.write_demanding(code)
        if is_seen:
            code.write(target, value)
        return WrittenField(target, value, condition)

    def _seen(self) -> list[bool]:
        """Return of each mapping whether anything can tell that it changed the message itself.

        If only what is mapped is kept: whether a later mapping reads there, or something in the
        message may be in the way.
        """
        read: set[str] = set()
        seen = []
        for mapping in reversed(self.mappings):
            asked = [path for each in mapping.when for path in each.reads]
            if isinstance(mapping, Writing):
                is_seen = "." in mapping.target or mapping.target in read
                asked += mapping.sources
            else:
                is_seen = not read.isdisjoint(
                    DottedPath(path).segments[0] for path in mapping.from_
                )
            seen.append(self.keep == "all" or is_seen)
            read.update(DottedPath(path).segments[0] for path in asked)
        return seen[::-1]


def _replace(kept: Sequence[WrittenField], code: Code) -> None:
    """Put an object with all that was written in the place of the message."""
    values = {target.segments: value for target, value, _ in kept if value is not None}
    is_nested = any(each[:end] in values for each in values for end in range(1, len(each)))
    if not is_nested and all(value and not condition for _, value, condition in kept):
        code.replace(_display(values))
        return
    made = code.let("{}", "made")
    for target, value, condition in kept:
        done = (
            f"{made}[{target.text!r}] = {value}" if value else f"{made}.pop({target.text!r}, None)"
        )
        if not target.is_plain:
            path = code.constant(target, "path")
            done = f"{made} = {path}." + (f"write({made}, {value})" if value else f"remove({made})")
        code.line(f"if {condition}: {done}" if condition else done)
    code.replace(made)


def _display(values: dict[tuple[str, ...], str]) -> str:
    """Return the source of an object that has these values at these segments."""
    below: dict[str, dict[tuple[str, ...], str]] = {}
    for segments, value in values.items():
        below.setdefault(segments[0], {})[segments[1:]] = value
    members = (f"{key!r}: {inner.get(()) or _display(inner)}" for key, inner in below.items())
    return "{" + ", ".join(members) + "}"


def _scalar_in_the_way(index: int, mapping: Writing, by: int, other: Writing) -> Fault:
    return Fault(
        "scalar-in-the-way",
        f"cannot write '{mapping.target}': mappings[{by}] ({other.tag}) makes '{other.target}' "
        "a value that is no object",
        found=mapping.target,
        expected=f"a field that is not below '{other.target}'",
        path=_target_place(index, mapping),
    )


def _target_place(index: int, mapping: Writing) -> tuple[str | int, ...]:
    """Return where a mapping spells its target."""
    return "mappings", index, "as" if getattr(mapping, "as_", None) else "from"


def _named(fields: Sequence[str]) -> str:
    """Return fields as the subject of a sentence."""
    names = ", ".join(f"'{field}'" for field in fields)
    return f"field {names} is" if len(fields) == 1 else f"fields {names} are"
