"""What a `map` asks of each of its mappings, whatever they do to a message."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Self

from headrace.compiler.code import Code
from headrace.compiler.component.branches import Branch, Took
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.conditions import Condition, when_taken
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import DottedPath
from headrace.compiler.schema.variants import Tagged
from headrace.compiler.text.diagnostics import Fault
from headrace.compiler.text.diagnostics import Path as Place
from headrace.operators.keptfields import Kept
from headrace.operators.literals import Literal

Rewrite = Callable[[dict[str, Any]], dict[str, Any]]
"""Returns an object with what a mapping does to it done; what it is given stays as it is."""


class Policy(NamedTuple):
    """What a map has decided for the source of one of its mappings."""

    on_missing: str
    is_seen: bool
    """Whether anything can tell that the message itself is changed."""
    is_kept: bool
    """Whether what is written is asked for by itself, as only that is kept."""


class Mapping(Tagged, package="headrace.operators.mappings"):
    """Writes fields of the message, or takes some out."""

    is_never_object: ClassVar[bool] = False
    """Whether what it writes surely is no object, so that nothing can be written below it."""

    takes_long: ClassVar[bool] = False
    """Whether it takes microseconds for a message, or longer for a long text."""

    needs_all: ClassVar[bool] = True
    """Whether it has nothing to write where one of the fields that it reads is missing."""

    when: tuple[Condition, ...] = when_taken(
        "Conditions that all have to hold for the message as it is by then. Otherwise nothing is done, and "
        "nobody asks whether a field is missing.",
        elsewhere="condition conditions if where",
    )

    @property
    def reads(self) -> Sequence[tuple[str, Place]]:
        """The paths it reads, each with where it is spelt."""
        return ()

    @property
    def sources(self) -> Sequence[str]:
        """The paths it reads."""
        return [path for path, _ in self.reads]

    @property
    def targets(self) -> Sequence[tuple[str, Place]]:
        """The paths it writes, each with where it is spelt."""
        return ()

    @property
    def removes(self) -> Sequence[str]:
        """The paths it takes out."""
        return ()

    @property
    def fallback(self) -> Literal | None:
        """What is written when a field is missing, before the map's policy is asked."""
        return getattr(self, "default", None)

    def for_batch(self, ctx: Context) -> Self:
        """Return what is asked for each message of one batch: what is the same for all is settled."""
        return self

    def is_seen_by(self, read: set[str]) -> bool:
        """Return whether a change of the message can be told by who reads below these keys of it.

        Also where something in the message may be in the way of a write.
        """
        written = [path for path, _ in self.targets]
        touched = (DottedPath(path).segments[0] for path in self.removes)
        is_written = any("." in path or path in read for path in written)
        return is_written or not read.isdisjoint(touched)

    def examine(self) -> Iterator[Fault]:
        """Yield what is odd about it. Warnings."""
        return iter(())

    def built(self, ctx: Context) -> Self:
        """Return one that knows what only a build can tell, such as its secrets.

        Raises:
            BuildRefused: it cannot be built.
        """
        return self

    def change(self, message: JsonValue, on_missing: str, ctx: Context) -> Rewrite | None:
        """Return what it does for one message, to that and to what is kept of it; None: nothing.

        Raises:
            BatchFailed: what is there is not what it takes, or is missing under such a policy.
        """
        raise NotImplementedError

    def generate(self, code: Code, ctx: Context, policy: Policy) -> Sequence[Kept]:
        """Write the same as source; return what it does to what is kept."""
        raise NotImplementedError

    def branches(self, on_missing: str, *path: str | int) -> Iterator[Branch]:
        """Yield its branches, of one that stands at a path of its map, under the policy of that."""
        return iter(())

    def counted(self, took: Took, *path: str | int) -> Self:
        """Return one that does the same and tells what became of it."""
        return self
