"""What all mappings of a `map` have in common.

Each says what it reads (`sources`), what it writes (`target`), gives its value for one message
(`value`, the plain truth) and writes the same as source (`source`). Null is missing for all of them;
what a missing field means is the map's policy, not theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from headrace.compiler.casts import CASTS, CastError
from headrace.compiler.code import Code
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.conditions import Condition
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import MISSING, Missing
from headrace.compiler.dottedpaths import DottedPath as Path
from headrace.compiler.errors import BatchFailed
from headrace.compiler.jsontext import Decoding
from headrace.compiler.schema.records import option
from headrace.compiler.schema.structures import ListOf
from headrace.compiler.schema.variants import Tagged, VariantOf
from headrace.compiler.text.diagnostics import Path as Place
from headrace.operators.formula import Formula
from headrace.operators.literals import Literal


def present(path: str, message: JsonValue) -> JsonValue | Missing:
    """Return the value of a field; null is missing."""
    found = Path(path).read(message)
    return MISSING if found is None else found


def converted(value: JsonValue, to: str, field: str, *by: Decoding) -> JsonValue:
    """Return the value of a field as another type; ``by`` is how JSON in it is decoded."""
    try:
        return CASTS[to](value, *by)
    except CastError as cause:
        raise BatchFailed(f"field '{field}': {cause}") from cause


class Mapping(Tagged):
    """Writes one field of the message, or drops some."""

    when: tuple[Condition, ...] = option(
        ListOf(VariantOf(Condition), noun="condition"),
        "Conditions that all have to hold for the message as it is by then. Otherwise nothing is done, and "
        "nobody asks whether a field is missing.",
        default=(),
        additive=True,
        elsewhere="condition conditions if where",
    )


class Writing(Mapping):
    """A mapping that writes one field."""

    is_never_object: ClassVar[bool] = False
    """Whether what it writes surely is no object, so that nothing can be written below it."""

    converts: ClassVar[bool] = False
    """Whether it takes values that may not convert, and fails their batch then."""

    needs_all: ClassVar[bool] = True
    """Whether it has no value where one of the fields that it reads is missing."""

    @property
    def reads(self) -> Sequence[tuple[str, Place]]:
        """The paths it reads, each with where it is spelt."""
        return ()

    @property
    def sources(self) -> Sequence[str]:
        """The paths it reads."""
        return [path for path, _ in self.reads]

    @property
    def target(self) -> str:
        """The path it writes."""
        return getattr(self, "as_", None) or Path(self.sources[0]).segments[-1]

    @property
    def fallback(self) -> Literal | None:
        """What is written when a field is missing, before the map's policy is asked."""
        return getattr(self, "default", None)

    def value(self, message: JsonValue, ctx: Context) -> JsonValue | Missing:
        """Return what it writes for one message, or `MISSING`.

        Raises: `BatchFailed` if what is there is not what it takes.
        """
        raise NotImplementedError

    def source(self, code: Code, ctx: Context, *, optional: bool) -> Formula:
        """Write the same as source. ``optional``: a missing field is nothing unusual here."""
        raise NotImplementedError


class OfField(Writing):
    """A mapping that reads one field."""

    if TYPE_CHECKING:  # at run time it is an option of each variant
        from_: str

    @property
    def reads(self) -> Sequence[tuple[str, Place]]:
        """The one field."""
        return [(self.from_, ("from",))]
