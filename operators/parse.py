"""The `parse` transform: takes the text of a field apart into fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import Any, Self

from headrace.compiler.casts import CASTS, OTHER_NAMES, CastError
from headrace.compiler.code import Code, TakesLong
from headrace.compiler.component.branches import Branch, Took, telling
from headrace.compiler.component.buildcontext import Context, Operator, Step
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.failingmessages import FailsByMessage
from headrace.compiler.component.families import PerMessage
from headrace.compiler.component.fieldflow import Demand, FieldUse
from headrace.compiler.delivery import SLOW_BATCH, Batch, JsonValue
from headrace.compiler.dottedpaths import MISSING, DottedPath, Missing, ScalarInTheWay
from headrace.compiler.errors import BatchFailed
from headrace.compiler.schema.fields import Choice, Integer, MessageField, Text
from headrace.compiler.schema.patterntext import PatternText
from headrace.compiler.schema.records import json_type, option
from headrace.compiler.schema.structures import ListOf, ObjectOf, RecordOf
from headrace.compiler.text.diagnostics import Codes, Fault, Severity
from headrace.compiler.times.timefields import ZoneName
from headrace.compiler.times.zones import zone_named
from headrace.operators.parsing.csvline import CsvLineForm
from headrace.operators.parsing.form import Fields, TextForm
from headrace.operators.parsing.keyvalues import PairsForm
from headrace.operators.parsing.onebyone import OneByOne
from headrace.operators.parsing.presets import PRESETS
from headrace.operators.parsing.regexform import RegexForm
from headrace.operators.parsing.splitting import SplitForm
from headrace.operators.parsing.values import FieldValues, Mismatch

CODES: Codes = {
    "shorter-texts": "A pattern takes shorter texts than its transform allows, or than others of its kind.",
}

LONGEST = 262_144
"""Characters of a text that a config may allow: a line of CSV of so many takes some milliseconds."""
_MISMATCHES = (Mismatch, CastError)
_POLICIES = {"error": "fail", "skip": "drop ignore", "keep": "pass leave"}


class Parse(
    FailsByMessage,
    PerMessage,
    kind="parse",
    listed=7,
    elsewhere="dissect extract grok kv parse_regex",
):
    """Take the text of a field apart, and write what it says as fields of the message.

    Exactly one of the forms says how the text is read. What is written takes the place of fields of the
    same name; with `as` all of it is one object there. A name is a key as it is: a dot in it means nothing.

    A text that does not fit, or is too long, or of which a value will not convert to its type, is left to
    `on_mismatch`, and nothing of it is written. Null is missing, as everywhere. A value that is no text
    fails the batch, or under `on_error: skip` costs its message, which is counted as lost. So does what
    is an `error` by `on_missing` or `on_mismatch`.
    """

    one_of = ("regex", "preset", "split", "pairs", "csv")
    slow_parts = 1

    from_: str = option(
        MessageField(), "Field that holds the text.", elsewhere="field key path source"
    )
    regex: str | None = option(
        PatternText(),
        "A regular expression that is found in the text, anywhere; each group with a name, `(?<name>...)`, "
        "is a field, null where it takes no part.",
        default=None,
        elsewhere="expression match pattern",
    )
    preset: str | None = option(
        Choice(
            *PRESETS,
            elsewhere={
                "combined": "apache apache_combined httpd nginx",
                "common": "apache_common clf",
                "syslog": "rfc3164 rfc5424",
                "logfmt": "key_value kv",
            },
        ),
        "Lines as others write them.",
        default=None,
        elsewhere="format grok",
    )
    split: SplitForm | None = option(
        RecordOf(SplitForm),
        "Parts in order, with something between them.",
        default=None,
        elsewhere="dissect tokenize",
    )
    pairs: PairsForm | None = option(
        RecordOf(PairsForm),
        "Pairs of a name and a value; needs `as`, since the text chooses the names.",
        default=None,
        elsewhere="key_value kv",
    )
    csv: CsvLineForm | None = option(RecordOf(CsvLineForm), "One line of CSV.", default=None)
    zone: str | None = option(
        ZoneName(),
        "Zone of the times that tell none, for `syslog`: a name such as Europe/Berlin; UTC if left out.",
        default=None,
        elsewhere="time_zone timezone tz",
    )
    as_: str | None = option(
        MessageField(),
        "Field to write an object of all fields to, in place of fields of the message.",
        default=None,
        elsewhere="alias into output target to",
    )
    types: dict[str, str] | None = option(
        ObjectOf(Choice(*CASTS, elsewhere=OTHER_NAMES), noun="type", null_is_absent=True),
        "What fields are cast to, by name, as `cast` of a [`map`](map.md) does it; others are texts.",
        default=None,
        elsewhere="casts convert schema",
    )
    nulls: tuple[str, ...] | None = option(
        ListOf(Text(), noun="text"),
        "Texts that stand for nothing: null is written. `-` for a preset and the empty text for `csv`, "
        "unless this is given; else none.",
        default=None,
        elsewhere="na_values null_values",
    )
    keep: str = option(
        Choice(
            "all",
            "parsed",
            never_absent=True,
            elsewhere={"all": "everything true", "parsed": "false mapped none only"},
        ),
        "Whether the rest of the message survives, or only what is written here.",
        default="all",
    )
    on_missing: str = option(
        Choice("error", "skip", "keep", never_absent=True, elsewhere=_POLICIES),
        "For a message without the field: `error` fails the batch, `skip` drops the message, `keep` hands "
        "it on as it is.",
        default="error",
    )
    on_mismatch: str = option(
        Choice("error", "skip", "keep", never_absent=True, elsewhere=_POLICIES),
        "For a text that does not fit: the same.",
        default="error",
        elsewhere="on_no_match",
    )
    max_length: int = option(
        Integer(min=1, max=LONGEST),
        "Characters of a text; a longer one does not fit.",
        default=65_536,
        elsewhere="limit max_bytes max_size",
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse several forms and none, names without a bound, and types of what is not written."""
        expected = "exactly one of " + ", ".join(self.one_of)
        given = [wire for wire in self.one_of if self.values()[wire] is not None]
        if len(given) != 1:
            code, said = "missing-key", "'parse' needs a form: how the text is read"
            if given:
                code, said = (
                    "conflict",
                    f"'parse' has one form, not both '{given[0]}' and '{given[1]}'",
                )
            yield Fault(code, said, expected=expected)
            return
        form = self.form
        if self.zone is not None and not form.tells_no_zone:
            yield Fault(
                "conflict",
                f"'{form.word}' has no times without a zone",
                expected="no 'zone', or the preset syslog",
                path=("zone",),
            )
        if form.names is not None and not form.names:
            yield Fault(
                "missing-key",
                "this pattern has no group with a name, so nothing would be written",
                expected="at least one '(?<name>...)'",
                path=("regex",),
            )
            return
        if form.names is None and self.as_ is None:
            yield Fault(
                "missing-key",
                f"'{form.word}' needs 'as': the text chooses the names, and could overwrite any field",
                expected="the field that gets an object of them",
            )
        if self.types and form.knows_types:
            yield Fault(
                "conflict",
                f"the fields of '{form.word}' have their types already",
                expected="no 'types'; a map after it can cast",
                path=("types",),
            )
        elif form.names is not None:
            for name in self.types or ():
                if name not in form.names:
                    yield Fault(
                        "unknown-key",
                        f"'{name}' is no field that '{form.word}' makes",
                        found=name,
                        expected="one of " + ", ".join(form.names[:20]),
                        path=("types", name),
                        on_key=True,
                    )

    @cached_property
    def form(self) -> TextForm:
        """How the text is read."""
        if self.regex is not None:
            return RegexForm(self.regex)
        return self.split or self.pairs or self.csv or PRESETS[self.preset or ""]()

    @property
    def fuses(self) -> bool:  # type: ignore[override]  # depends on the pattern
        """Whether a text takes microseconds: a pattern that has several ways to go on may take 7 ms."""
        return not self.form.takes_milliseconds

    def examine(self, context: CheckContext) -> Iterator[Fault]:
        """Remark on a pattern that does not search texts as long as `max_length` allows."""
        longest = self.form.longest
        if longest is not None and longest < self.max_length:
            yield Fault(
                "shorter-texts",
                f"this pattern searches at most {longest:,} bytes of text: a longer one does not fit",
                expected="a pattern that begins with '^' and of which each character says how to go on",
                suggestion=f"set 'max_length' to {longest} at most",
                path=("regex",),
                severity=Severity.WARNING,
            )

    def field_use(self) -> FieldUse:
        """It reads the text, and writes the names of the form, or what is below `as`."""
        names, target = self.form.names, self.as_
        passes_on = "keep" in (self.on_missing, self.on_mismatch)
        written: dict[str, Any] = {"keys": names}
        ways: list[str] = []
        if target is not None:
            # What lies on the way decides whether it can be written; the object takes the place of another.
            path = DottedPath(target)
            ways = [] if path.is_plain else [target, path.segments[0]]
            is_told = names is not None and not any("." in name for name in names)
            below = [f"{target}.{name}" for name in names or ()] if is_told else [target]
            written = {"writes": below, "removes": () if passes_on else [target]}
        return FieldUse.of(
            reads=[self.from_, *ways],
            keeps=self.keep == "all" or passes_on,
            drops_without=[self.from_] if self.on_missing == "skip" else (),
            asks=[self.from_],
            **written,
        )

    def demands(self) -> Iterator[Demand]:
        """Without the text the batch fails, unless `on_missing` says otherwise."""
        if self.on_missing == "error":
            yield Demand(self.from_, ("from",), "set 'on_missing' to skip or keep here")

    def branches(self, context: CheckContext) -> Iterator[Branch]:
        """A text fits; there is none; it does not fit, these two not under ``error``; it is skipped."""
        yield Branch("found", f"no text in '{self.from_}' ever fitted '{self.form.word}'")
        if self.on_missing != "error":
            said = f"'{self.from_}' was never missing ('on_missing' is {self.on_missing})"
            yield Branch("missing", said)
        if self.on_mismatch != "error":
            said = f"every text fitted '{self.form.word}' ('on_mismatch' is {self.on_mismatch})"
            yield Branch("mismatch", said)
        yield from self.skipped()

    def counting(self, took: Took) -> Self:
        """Return one that tells of each message what was found."""

        def tell(found: Fields | Missing | Mismatch) -> None:
            is_other = found is MISSING or isinstance(found, Mismatch)
            took("found" if not is_other else "missing" if found is MISSING else "mismatch")

        return telling(self, "_found", tell)

    def operator(self, ctx: Context) -> Operator:
        """Return the operator; one that does not fuse looks at the clock after each message."""
        if self.fuses:
            return super().operator(ctx)
        lose = ctx.lose if self.skips_failing else None
        return ctx.lift_pausing(OneByOne(self.step(ctx), ctx.clock, lose).start)

    def step(self, ctx: Context) -> Step:
        """Return the plain form: look at one message after the other."""
        read = self._reader(ctx)

        def parsed(batch: Batch) -> list[Batch]:
            made = (self._made(message, read) for message in batch)
            kept = [message for message in made if message is not MISSING]
            return [kept] if kept else []

        return parsed

    def reason(self, message: JsonValue, ctx: Context) -> str:
        """Return that there is no text, or that it does not fit."""
        found = self._found(message, self._reader(ctx))
        if isinstance(found, Mismatch):
            return f"{found}, and 'on_mismatch' is skip"
        return f"'{self.from_}' is missing or null, and 'on_missing' is skip"

    def _made(self, message: JsonValue, read: Callable[[str], Fields]) -> JsonValue | Missing:
        """Return what is handed on of a message, `MISSING` if nothing is."""
        found = self._found(message, read)
        if found is MISSING or isinstance(found, Mismatch):
            policy = self.on_missing if found is MISSING else self.on_mismatch
            if policy == "error":
                said = str(found) if isinstance(found, Mismatch) else self._absent
                raise BatchFailed(said)
            return message if policy == "keep" else MISSING
        rest = message if self.keep == "all" else {}
        if self.as_ is None:
            return {**rest, **found}
        try:
            return DottedPath(self.as_).write(rest, found)
        except ScalarInTheWay as cause:
            raise BatchFailed(str(cause)) from cause

    @property
    def _absent(self) -> str:
        return f"field '{self.from_}' is missing or null"

    def _found(
        self, message: JsonValue, read: Callable[[str], Fields]
    ) -> Fields | Missing | Mismatch:
        """Return the fields of a message, that there is no text, or why it does not fit.

        Raises: `BatchFailed` for a value that is no text.
        """
        text = DottedPath(self.from_).read(message)
        if text is MISSING or text is None:
            return MISSING
        if type(text) is not str:
            raise BatchFailed(f"field '{self.from_}' is {json_type(text)}: expected a string")
        if len(text) > self.max_length:
            return Mismatch(
                f"'{self.from_}': the text has {len(text):,} characters, at most {self.max_length:,}"
            )
        try:
            return read(text)
        except Mismatch as cause:
            said = f"'{self.from_}' does not fit {self.form.word}"
            return Mismatch(f"{said}: {cause}" if cause.args else said)

    def _values(self, ctx: Context) -> FieldValues:
        nulls = self.form.usual_nulls if self.nulls is None else self.nulls
        decimal = "." if self.csv is None else self.csv.decimal
        zone = None if self.zone is None else zone_named(self.zone)
        return FieldValues(self.types or {}, frozenset(nulls), ctx, decimal, zone)

    def _reader(self, ctx: Context) -> Callable[[str], Fields]:
        return self.form.reader(self._values(ctx), ctx)

    def generate(self, code: Code, ctx: Context) -> None:
        """Write the form; what fails is left to the plain form."""
        values = self._values(ctx)
        with ExitStack() as within:
            text = code.read(DottedPath(self.from_), optional=self.on_missing != "error")
            if self.on_missing == "keep":
                within.enter_context(code.block(f"if {text} is not None:"))
            elif self.on_missing == "skip":
                code.keep_if(f"{text} is not None")
            code.give_up_unless(f"{text}.__class__ is str")
            if self.on_mismatch == "keep":
                found: Mapping[str, str] | str = self._fitting(text, values, code, ctx)
                within.enter_context(code.block(f"if {found} is not None:"))
            else:
                demand = code.give_up_unless if self.on_mismatch == "error" else code.keep_if
                self._bound(text, code, demand)
                with self._trying("continue", values, code):
                    found = self.form.source(code, text, values, ctx, demand)
            self._write(found, code)

    def _fitting(self, text: str, values: FieldValues, code: Code, ctx: Context) -> str:
        """Write the form for a text that may not fit; return a name that holds None then."""
        fields = code.let("None", "fields")
        with self._trying("pass", values, code), ExitStack() as within:

            def demand(condition: str) -> None:
                within.enter_context(code.block(f"if {condition}:"))

            self._bound(text, code, demand)
            found = self.form.source(code, text, values, ctx, demand)
            code.line(f"{fields} = {_display(found)}")
        return fields

    def _bound(self, text: str, code: Code, demand: Callable[[str], None]) -> None:
        """Write the bounds of the length: of any text, and of one of a batch that is worked on at once."""
        most, form = code.name("most"), self.form
        # A batch in which the last message fails alone has been gone through once by then.
        times = 2 if self.skips_failing else 1
        code.before(f"{most} = {form.at_once // times} // {code.sharing}")
        with code.only(in_slices=False), code.block(f"if len({text}) > {most}:"):
            code.line(f"raise {code.constant(TakesLong, 'TakesLong')}")
        with (
            code.only(in_slices=True),
            code.block(f"if len({text}) > {form.at_once // SLOW_BATCH}:"),
        ):
            code.line("yield")
        demand(f"len({text}) <= {self.max_length}")

    @contextmanager
    def _trying(self, otherwise: str, values: FieldValues, code: Code) -> Iterator[None]:
        """Write what may raise for a text that does not fit, and what is done then."""
        if self.on_mismatch == "error" or not self.form.may_raise(values):
            yield
            return
        with code.block("try:"):
            yield
        with code.block(f"except {code.constant(_MISMATCHES, 'mismatches')}:"):
            code.line(otherwise)

    def _write(self, found: Mapping[str, str] | str, code: Code) -> None:
        """Write the fields where they belong."""
        keeps = self.keep == "all"
        if self.as_ is not None:
            target = DottedPath(self.as_)
            if keeps:
                code.write(target, _display(found))
                return
            made = _display(found)
            for segment in reversed(target.segments):
                made = f"{{{segment!r}: {made}}}"
            code.replace(made)
        elif not keeps:
            code.replace(_display(found))
        elif isinstance(found, str):
            code.replace(f"{{**{code.message}, **{found}}}")
        else:
            for name, value in found.items():
                if "." in name:  # a key of the top level: a path with a dot would lead elsewhere
                    code.replace(f"{{**{code.message}, {name!r}: {value}}}")
                else:
                    code.write(DottedPath(name), value)


def _display(found: Mapping[str, str] | str) -> str:
    """Return the source of an object of the fields."""
    if isinstance(found, str):
        return found
    return "{" + ", ".join(f"{name!r}: {value}" for name, value in found.items()) + "}"
