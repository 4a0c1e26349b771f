"""The `map` transform: rewrites every message."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, Self

from headrace.compiler.code import Code
from headrace.compiler.component.branches import Branch, Took, altered
from headrace.compiler.component.buildcontext import Context, PacedStep, Step
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.conditions import all_counted, all_hold, outcomes, test_of_all
from headrace.compiler.component.failingmessages import FailsByMessage
from headrace.compiler.component.families import PerMessage
from headrace.compiler.component.fieldflow import Demand, FieldUse, Paths
from headrace.compiler.delivery import Batch, JsonValue, at_once
from headrace.compiler.dottedpaths import DottedPath, ScalarInTheWay
from headrace.compiler.errors import BatchFailed, BuildRefused
from headrace.compiler.schema.fields import Choice
from headrace.compiler.schema.records import option
from headrace.compiler.schema.structures import ListOf
from headrace.compiler.schema.variants import VariantOf
from headrace.compiler.text.diagnostics import Codes, Fault, repeated
from headrace.compiler.text.diagnostics import Path as Place
from headrace.operators.keptfields import Kept, replace_by
from headrace.operators.mappings import Mapping, Policy

CODES: Codes = {
    "scalar-in-the-way": "A path leads through a value that cannot be an object.",
}


class Map(
    FailsByMessage,
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

    mappings: tuple[Mapping, ...] = option(
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
    def slow_parts(self) -> int:  # type: ignore[override]  # depends on the mappings
        """How many of its mappings take long."""
        return sum(mapping.takes_long for mapping in self.mappings)

    def rules(self) -> Iterator[Fault]:
        """Refuse what cannot be meant: two writers of one field, a write below a scalar."""
        yield from self._idle_drops() if self.keep == "mapped" else ()
        yield from repeated(
            self._written_always(),
            said="'{name}' is written twice: {place} writes it already",
            expected="a field of its own for every mapping",
        )
        scalars: dict[str, tuple[int, Mapping]] = {}
        for index, mapping, target, _ in self._targets():
            if mapping.is_never_object:
                scalars.setdefault(target, (index, mapping))
        for _, _, target, place in self._targets():
            # the paths of the objects on the way to it
            for path in accumulate(target.split(".")[:-1], "{}.{}".format):
                if path in scalars:
                    yield _scalar_in_the_way(target, place, path, *scalars[path])

    def examine(self, context: CheckContext) -> Iterator[Fault]:
        """Tell what is odd about a mapping."""
        for index, mapping in enumerate(self.mappings):
            for fault in mapping.examine():
                yield replace(fault, path=("mappings", index, *fault.path))

    def _targets(self) -> Iterator[tuple[int, Mapping, str, Place]]:
        """Yield what is written: by which mapping, and where that spells it."""
        for index, each in enumerate(self.mappings):
            for target, place in each.targets:
                yield index, each, target, ("mappings", index, *place)

    def _written_always(self) -> Iterator[tuple[str, Place]]:
        """Yield what is written always, and what is written at all for the first time.

        What reads a field and writes it again loses nothing of what was written there.
        """
        seen = set[str]()
        for _, each, target, place in self._targets():
            if target not in seen or not (each.when or target in each.sources):
                yield target, place
            seen.add(target)

    def _idle_drops(self) -> Iterator[Fault]:
        """Yield the drops of what no mapping before them has written, where nothing else is kept."""
        written = set[str]()
        for index, each in enumerate(self.mappings):
            written.update(target for target, _ in each.targets)
            if not each.targets and not written.issuperset(each.removes):
                yield Fault(
                    "conflict",
                    "a drop under 'keep: mapped' drops nothing: only what is mapped is kept",
                    expected="'keep: all', no drop, or one of what a mapping before it has written",
                    path=("mappings", index),
                )

    def field_use(self) -> FieldUse:
        """Every source is read, every target may be written, what is dropped is gone."""
        targets = [DottedPath(target) for _, _, target, _ in self._targets()]
        # What lies on the way to a target decides whether it can be written.
        ways = [
            way for each in targets if not each.is_plain for way in (each.text, each.segments[0])
        ]
        asked = [path for each in self.mappings for one in each.when for path in one.reads]
        return FieldUse.of(
            reads=[*ways, *asked, *(path for each in self.mappings for path in each.sources)],
            writes=[each.text for each in targets],
            removes=[path for each in self.mappings for path in each.removes],
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

    def _asked(self) -> Iterator[tuple[int, Mapping, str, Place]]:
        """Yield what is read that no earlier mapping can have written: by which, and where it is spelt."""
        written = Paths()
        for index, mapping in enumerate(self.mappings):
            for path, place in mapping.reads:
                if path not in written:
                    yield index, mapping, path, place
            for target, _ in mapping.targets:
                written.add(target)

    def branches(self, context: CheckContext) -> Iterator[Branch]:
        """Of each mapping: what it reads is there, or `default` or `on_missing` is taken; a cast fails.

        Of ``on_missing: error`` that is no branch: nobody has chosen that way. Each condition of `when` is
        true; it is false. Under `on_error: skip` also that a message is skipped.
        """
        for index, mapping in enumerate(self.mappings):
            yield from outcomes(mapping.when, "mappings", index, "when")
            yield from mapping.branches(self.on_missing, "mappings", index)
        yield from self.skipped()

    def counting(self, took: Took) -> Self:
        """Return one with mappings that tell."""
        mappings = []
        for index, each in enumerate(self.mappings):
            when = all_counted(each.when, took, "mappings", index, "when")
            mappings.append(altered(each, when=when).counted(took, "mappings", index))
        return altered(self, mappings=tuple(mappings))

    def step(self, ctx: Context) -> Step:
        """Return the plain form: one message after the other, one mapping after the other."""
        begin = self.for_each_batch(ctx)
        return lambda batch: begin()(batch)

    def for_each_batch(self, ctx: Context) -> Callable[[], Step]:
        """Return what settles for a batch what its mappings ask once."""
        mappings = self._built(ctx)

        def begun() -> Step:
            settled = [each.for_batch(ctx) for each in mappings]
            return lambda batch: [[self._rewritten(message, settled, ctx) for message in batch]]

        return begun

    def paced_for_each_batch(self, ctx: Context) -> Callable[[], PacedStep]:
        """Return the same for one message at a time, with a pause between its mappings."""
        mappings = self._built(ctx)

        def begun() -> PacedStep:
            settled = [each.for_batch(ctx) for each in mappings]

            def paced(batch: Batch) -> Iterator[Batch | None]:
                made: Batch = []
                for message in batch:
                    made.append((yield from self._rewritten_in_slices(message, settled, ctx)))
                yield made

            return paced

        return begun

    def _rewritten(
        self, message: JsonValue, mappings: Sequence[Mapping], ctx: Context
    ) -> JsonValue:
        return at_once(self._rewritten_in_slices(message, mappings, ctx))

    def _rewritten_in_slices(
        self, message: JsonValue, mappings: Sequence[Mapping], ctx: Context
    ) -> Generator[None, None, JsonValue]:
        if type(message) is not dict:
            ctx.warn_once("passed on a message that is not an object, unchanged")
            return message
        made: dict[str, Any] = {}
        for index, mapping in enumerate(mappings):
            if index:
                yield
            if not all_hold(mapping.when)(message):
                continue
            try:
                change = mapping.change(message, self.on_missing, ctx)
                if change is not None:
                    message = change(message)
                    if self.keep == "mapped":
                        made = change(made)
            except (BatchFailed, ScalarInTheWay) as cause:
                raise BatchFailed(f"mapping {index} ('{mapping.tag}'): {cause}") from cause
        return made if self.keep == "mapped" else message

    def generate(self, code: Code, ctx: Context) -> None:
        """Write every mapping; whatever fails is left to the plain form."""
        kept: list[Kept] = []
        for mapping, is_seen in zip(self._built(ctx), self._seen(), strict=True):
            policy = Policy(self.on_missing, is_seen, self.keep == "mapped")
            if not mapping.when:
                kept += mapping.generate(code, ctx, policy)
                continue
            holds = code.let(test_of_all(mapping.when, code), "holds")
            if is_seen:
                code.own()  # else what is written inside copies each time
            with code.block(f"if {holds}:"):
                done = mapping.generate(code, ctx, policy)
            for each in done:
                both = f"{holds} and ({each.condition})" if each.condition else holds
                kept.append(each.where(both))
        if self.keep == "mapped":
            replace_by(kept, code)

    def _built(self, ctx: Context) -> list[Mapping]:
        """Return the mappings with what only a build can tell.

        Raises:
            BuildRefused: one of them cannot be built.
        """
        built = []
        for index, mapping in enumerate(self.mappings):
            try:
                built.append(mapping.built(ctx))
            except BuildRefused as cause:
                where = ("mappings", index, *cause.fault.path)
                cause.fault = replace(cause.fault, path=where)
                raise
        return built

    def _seen(self) -> list[bool]:
        """Return of each mapping whether anything can tell that it changed the message itself."""
        read: set[str] = set()
        seen = []
        for mapping in reversed(self.mappings):
            seen.append(self.keep == "all" or mapping.is_seen_by(read))
            asked = [path for each in mapping.when for path in each.reads]
            read.update(DottedPath(path).segments[0] for path in (*asked, *mapping.sources))
        return seen[::-1]


def _scalar_in_the_way(target: str, place: Place, scalar: str, by: int, other: Mapping) -> Fault:
    return Fault(
        "scalar-in-the-way",
        f"cannot write '{target}': mappings[{by}] ({other.tag}) makes '{scalar}' "
        "a value that is no object",
        found=target,
        expected=f"a field that is not below '{scalar}'",
        path=place,
    )
