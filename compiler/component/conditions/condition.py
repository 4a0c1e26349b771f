"""What a condition is: it holds for a message or does not, and says what follows from that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from headrace.compiler.code import Code
from headrace.compiler.component.branches import Branch, Took, telling
from headrace.compiler.component.fieldflow import ValueRange
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import MISSING, DottedPath
from headrace.compiler.schema.fields import MessageField
from headrace.compiler.schema.records import option
from headrace.compiler.schema.variants import Tagged
from headrace.compiler.text.diagnostics import shown


class Condition(Tagged):
    """Holds for a message or does not. Of a list of conditions all have to hold.

    A field that is missing, null, or of another type than is asked for makes a condition false, silently.
    """

    @property
    def reads(self) -> Sequence[str]:
        """The fields it looks at."""
        raise NotImplementedError

    @property
    def needs(self) -> Sequence[str]:
        """The fields that every message has which it holds for, null being none."""
        return ()

    @property
    def ranges(self) -> Iterable[tuple[str, ValueRange]]:
        """What is known of the values of fields where it holds."""
        return ()

    def holds(self, message: JsonValue) -> bool:
        """Return whether it holds for a message: the plain truth."""
        raise NotImplementedError

    def source(self, code: Code) -> str:
        """Return the same as source, which raises nothing for an object; write what it reads."""
        raise NotImplementedError

    def learn(self, code: Code) -> None:
        """Have code take for granted what follows where it holds; its fields have been read."""

    def unmet(self, message: JsonValue) -> str:
        """Return why it does not hold for a message, as a clause."""
        raise NotImplementedError

    @property
    def said(self) -> str:
        """All of it in words: ``'temp' at_least 80``."""
        raise NotImplementedError

    @property
    def subject(self) -> str:
        """What it is a condition on, as the end of ``the condition ...``."""
        raise NotImplementedError

    def branches(self, *path: str | int) -> Iterator[Branch]:
        """Yield its branches, of one that stands at a path of its component."""
        for outcome in ("true", "false"):
            yield Branch(outcome, f"the condition {self.subject} was never {outcome}", path)

    def counted(self, took: Took, *path: str | int) -> Self:
        """Return one that does the same and tells whether it held."""
        return telling(self, "holds", lambda holds: took("true" if holds else "false", *path))


def field_option() -> Any:
    """Return the option of a field that a condition looks at."""
    return option(MessageField(), "Field to look at.", elsewhere="column key path source")


class OnField(Condition):
    """A condition on the value of one field: its `test` alone tells the kinds apart."""

    if TYPE_CHECKING:  # at run time it is an option of each variant, and the first one there
        field: str

    @property
    def reads(self) -> Sequence[str]:
        """The one field."""
        return (self.field,)

    @property
    def needs(self) -> Sequence[str]:
        """The one field: without it, it does not hold."""
        return (self.field,)

    @property
    def said(self) -> str:
        """The field, and what it asks of it."""
        return f"'{self.field}' {self.wanted}"

    @property
    def subject(self) -> str:
        """The field."""
        return f"on '{self.field}'"

    @cached_property
    def path(self) -> DottedPath:
        """Where the field is."""
        return DottedPath(self.field)

    def holds(self, message: JsonValue) -> bool:
        """Look at the value that is there."""
        found = self.path.read(message)
        return found is not MISSING and self.matches(found)

    def matches(self, found: JsonValue) -> bool:
        """Return whether it holds for a value."""
        raise NotImplementedError

    def source(self, code: Code) -> str:
        """Read the field, and test it."""
        return self.test(code, code.read(self.path, optional=True))

    def test(self, code: Code, found: str) -> str:
        """Return `matches` as source, for a name that holds None where nothing is."""
        raise NotImplementedError

    def unmet(self, message: JsonValue) -> str:
        """Return the value it found, and what is wanted."""
        return (
            f"'{self.field}' is {found_at(self.field, message)}, and the condition is {self.wanted}"
        )

    @property
    def wanted(self) -> str:
        """What it asks of the value, as its config has it: ``at_least 80``."""
        raise NotImplementedError


def found_at(field: str, message: JsonValue) -> str:
    """Return how a value is told that a message has at a path."""
    found = DottedPath(field).read(message)
    return "missing" if found is MISSING else shown(found)
