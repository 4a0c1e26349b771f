"""The ways that a component can go, and how it tells which it takes: what tests of a config cover.

A component declares its branches. What decides once a release, or waits for somebody, tells its context
(`Context.took`). What decides for each message tells nobody: `Transform.counting` gives another one that
does the same and tells. Generated code knows nothing of it, so who counts runs the plain chain.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from headrace.compiler.text.diagnostics import Path

_R = TypeVar("_R")

FAILED = "failed"
"""The branch that is taken whenever a component reports a failure; nobody else has to tell."""
SKIPPED = "skipped by error"
"""The branch of a message that `on_error: skip` leaves out; told of with `Context.lose`."""
WRITTEN = "written"
"""The branch of an output that has written a batch; who stands for its sink tells."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One way that a component can go.

    ``path`` is where in the component that is decided; ``untaken`` is what is said when no test goes that
    way, as a clause: ``'size' never let go``.
    """

    name: str
    untaken: str
    path: Path = ()


class Took(Protocol):
    """Is told of a branch that is taken: its name, and the path of it in the component."""

    def __call__(self, branch: str, *path: str | int) -> None:
        """Count it."""


def altered(record: _R, **attributes: Any) -> _R:
    """Return a copy of a record with other values, or other functions in the place of its methods."""
    other = copy(record)
    for name, value in attributes.items():
        object.__setattr__(other, name, value)
    return other


def telling(record: _R, method: str, tell: Callable[[Any], None]) -> _R:
    """Return a copy of a record of which one method tells what it answers."""
    answer: Callable[..., Any] = getattr(record, method)

    def told(*arguments: Any) -> Any:
        answered = answer(*arguments)
        tell(answered)
        return answered

    return altered(record, **{method: told})
