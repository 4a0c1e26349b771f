"""What the mappings have in common that write one field.

Each says what it reads (`sources`), what it writes (`target`), gives its value for one message
(`value`, the plain truth) and writes the same as source (`source`). Null is missing for all of them;
what a missing field means is the map's policy, not theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from headrace.compiler.casts import CASTS, CastError
from headrace.compiler.code import USUAL, Code
from headrace.compiler.component.branches import FAILED, Branch, Took, altered
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import MISSING, Missing
from headrace.compiler.dottedpaths import DottedPath as Path
from headrace.compiler.errors import BatchFailed
from headrace.compiler.jsontext import Decoding
from headrace.compiler.schema.fields import MessageField
from headrace.compiler.schema.records import json_type, listed, option
from headrace.compiler.schema.variants import VariantOf
from headrace.compiler.text.diagnostics import Path as Place
from headrace.operators.formula import Formula
from headrace.operators.keptfields import Kept, WrittenField
from headrace.operators.literals import Literal
from headrace.operators.mappings.root import Mapping, Policy, Rewrite

_T = TypeVar("_T")


def present(path: str, message: JsonValue) -> JsonValue | Missing:
    """Return the value of a field; null is missing."""
    found = Path(path).read(message)
    return MISSING if found is None else found


def converted(value: JsonValue, to: str, field: str) -> JsonValue:
    """Return the value of a field as another type."""
    return cast_by(CASTS[to], value, field)


def cast_by(
    cast: Callable[..., JsonValue], value: JsonValue, field: str, *by: Decoding
) -> JsonValue:
    """Return what a cast makes of the value of a field; ``by`` is how JSON in it is decoded."""
    try:
        return cast(value, *by)
    except CastError as cause:
        raise BatchFailed(f"field '{field}': {cause}") from cause


def missing(paths: Sequence[str], message: JsonValue) -> BatchFailed:
    """Return the failure of a message that lacks some of these fields."""
    absent = [path for path in paths if present(path, message) is MISSING]
    names = ", ".join(f"'{path}'" for path in absent)
    subject = f"field {names} is" if len(absent) == 1 else f"fields {names} are"
    return BatchFailed(f"{subject} missing or null")


class Writing(Mapping):
    """A mapping that writes one field."""

    converts: ClassVar[bool] = False
    """Whether it takes values that may not convert, and fails their batch then."""

    conversion: ClassVar[str] = "cast"
    """What that is called."""

    @property
    def target(self) -> str:
        """The path it writes."""
        return getattr(self, "as_", None) or Path(self.sources[0]).segments[-1]

    @property
    def targets(self) -> Sequence[tuple[str, Place]]:
        """The one field."""
        return [(self.target, ("as" if getattr(self, "as_", None) else "from",))]

    def value(self, message: JsonValue, ctx: Context) -> JsonValue | Missing:
        """Return what it writes for one message, or `MISSING`.

        Raises: `BatchFailed` if what is there is not what it takes.
        """
        raise NotImplementedError

    def source(self, code: Code, ctx: Context, *, optional: bool) -> Formula:
        """Write the same as source. ``optional``: a missing field is nothing unusual here."""
        raise NotImplementedError

    def absence(self, message: JsonValue) -> BatchFailed:
        """Return the failure of a message for which it has no value."""
        return missing(self.sources, message)

    def change(self, message: JsonValue, on_missing: str, ctx: Context) -> Rewrite | None:
        """Write its value, else `default`, else what the policy says."""
        try:
            value = self.value(message, ctx)
        except BatchFailed:
            self.tell(FAILED)
            raise
        absent = "on_missing" if self.fallback is None else "default"
        self.tell(absent if value is MISSING else "found")
        if value is MISSING and self.fallback is not None:
            value = self.fallback.constant
        elif value is MISSING and on_missing == "error":
            raise self.absence(message)
        elif value is MISSING and on_missing == "null":
            value = None
        if value is MISSING:
            return None
        target = Path(self.target)
        return lambda written: target.write(written, value)

    def generate(self, code: Code, ctx: Context, policy: Policy) -> Sequence[Kept]:
        """Write it as source; whatever fails is left to the plain form."""
        target, fallback = Path(self.target), self.fallback
        is_lenient = fallback is not None or policy.on_missing != "error"
        formula = self.source(code, ctx, optional=is_lenient)
        condition = formula.there if fallback is None and policy.on_missing == "omit" else ""
        if condition and policy.is_seen:
            is_checked = formula.check_apart(code)
            code.own()  # else every such block copies
            with code.block(f"if {condition}:"):
                if is_checked and formula.guard:
                    code.know(formula.guard)
                value = formula.write(code)
                code.write(target, value)
            return [WrittenField(target, value, condition)]
        if is_lenient:
            value = formula.write_or(None if fallback is None else fallback.constant, code)
        else:
            value = formula.write_demanding(code)
        if policy.is_seen:
            code.write(target, value)
        return [WrittenField(target, value, condition)]

    def branches(self, on_missing: str, *path: str | int) -> Iterator[Branch]:
        """What it reads is there or missing, and a cast fails.

        Under ``on_missing: error`` a missing field fails the batch, as many other faults do: nobody has
        chosen a way for it, so it is no branch.
        """
        if not self.sources:
            return
        sources = listed([*dict.fromkeys(self.sources)])
        verb = "was" if len({*self.sources}) == 1 else "were"
        yield Branch("found", f"{sources} {verb} never there", path)
        if self.fallback is not None:
            said = f"{sources} {verb} never missing, so 'default' was never written"
            yield Branch("default", said, path)
        elif on_missing != "error":
            said = f"{sources} {verb} never missing ('on_missing' is {on_missing})"
            yield Branch("on_missing", said, path)
        if self.converts:
            yield Branch(FAILED, f"the {self.conversion} of {sources} never failed", path)

    def counted(self, took: Took, *path: str | int) -> Self:
        """Return one that tells whether there was a value."""
        return altered(self, tell=lambda branch, *inside: took(branch, *path, *inside))

    def tell(self, branch: str, *path: str | int) -> None:
        """Tell of a branch that is taken, if anybody counts."""


class OfField(Writing):
    """A mapping that reads one field."""

    if TYPE_CHECKING:  # at run time it is an option of each variant
        from_: str

    @property
    def reads(self) -> Sequence[tuple[str, Place]]:
        """The one field."""
        return [(self.from_, ("from",))]

    def made(self, found: JsonValue) -> JsonValue:
        """Return what it makes of the value that is there, where it does nothing else.

        Raises:
            BatchFailed: it is not what it takes.
        """
        raise NotImplementedError

    def value(self, message: JsonValue, ctx: Context) -> JsonValue | Missing:
        """Return what it makes of the field."""
        found = present(self.from_, message)
        return MISSING if found is MISSING else self.made(found)

    def called(
        self,
        function: Callable[[JsonValue], JsonValue],
        code: Code,
        optional: bool,
        *,
        nanoseconds: int = 0,
        longest: int = 0,
    ) -> Formula:
        """Return the call of what does the same as `made`, quickly; whatever it raises, `made` is asked.

        With ``nanoseconds`` it takes so many for a character of a text, which is at most the ``longest``.
        """
        found = code.read(Path(self.from_), optional=optional)
        if nanoseconds:
            code.spend_on(found, nanoseconds, within=f"len({found}) <= {longest}")
        quick = code.constant(function, self.tag)
        return Formula(f"{quick}({found})", [found], raises_on_none=True)

    def spend(
        self, code: Code, found: str, nanoseconds: int, longest: int, *, optional: bool
    ) -> None:
        """Write what a text takes for each character; one that is too long is left to `made`."""
        there = f"{found} is not None and " if optional else ""
        code.spend(
            f"{nanoseconds} * len({found})",
            f"{there}len({found}) > {USUAL}",
            within=f"len({found}) <= {longest}",
        )

    def string_in(self, found: JsonValue, longest: int) -> str:
        """Return the value that is there, which has to be a string of at most so many characters."""
        return short(expected(found, str, self.from_, "a string"), self.from_, longest)


def expected(found: JsonValue, kind: type[_T], field: str, wanted: str) -> _T:
    """Return the value of a field.

    Raises:
        BatchFailed: it is of another type than is wanted.
    """
    if type(found) is not kind:
        raise BatchFailed(f"field '{field}' is {json_type(found)}: expected {wanted}")
    return found


def short(text: str, field: str, longest: int) -> str:
    """Return the text of a field.

    Raises:
        BatchFailed: it is longer.
    """
    if len(text) > longest:
        raise BatchFailed(f"field '{field}' has more than {longest:,} characters")
    return text


def from_option(doc: str, *, elsewhere: str = "field key path source") -> Any:
    """Return the option of the one field that a mapping reads."""
    return option(MessageField(), doc, elsewhere=elsewhere)


def as_option() -> Any:
    """Return the option of the field that a mapping of one field writes."""
    return option(
        MessageField(),
        "Field to write; the last segment of `from` when absent.",
        default=None,
        elsewhere="alias into name output target",
    )


def default_option() -> Any:
    """Return the option of what is written in place of what is missing."""
    return option(VariantOf(Literal), "Written, as it is, when the field is missing.", default=None)


LONGEST_READ = 1024 * 1024
"""Characters of a string that a mapping reads from one end to the other: some milliseconds."""
LONGEST_CHANGED = 256 * 1024
"""Characters of a string that a mapping looks at one by one, in any script: some milliseconds."""
