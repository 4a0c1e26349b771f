"""The tables of the classes that failures have, as components state them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import get_args

from headrace.compiler.component.failureclasses import FailureRow
from headrace.compiler.component.families import Component
from headrace.compiler.errors import FailureClass
from headrace.web.docs.heldpromises import HeldPromises
from headrace.web.docs.markdown import code, link, table

CLASSES: tuple[FailureClass, ...] = get_args(FailureClass)


def failure_table(component: type[Component]) -> str:
    """Return the table of one component: what fails, how it shows, its class, and how that is known."""
    lines = [
        [row.what, _codes(row), code(row.failure), _mark(row), code(name)]
        for name, row in component.failure_classes.named(component)
    ]
    return table(["failure", "known by", "class", "shown", "name"], lines)


def overview(kinds: Iterable[type[Component]]) -> str:
    """Return the table of all: by which codes each knows failures of each class."""
    lines = [
        [
            _called(kind),
            *(_cell(kind, failure) for failure in CLASSES),
            code(f"{kind.kind}.{kind.family}.fails"),
        ]
        for kind in kinds
        if kind.failure_classes
    ]
    return table(["component", *map(code, CLASSES), "promises"], lines)


def tried(kinds: Iterable[type[Component]]) -> Iterator[str]:
    """Yield the names of the rows that a test has to hold."""
    for kind in kinds:
        yield from (name for name, row in kind.failure_classes.named(kind) if not row.source)


def doubtful(kinds: Iterable[type[Component]], held: HeldPromises) -> Iterator[str]:
    """Yield the rows that are said to be only documented and that a test holds."""
    for kind in kinds:
        for name, row in kind.failure_classes.named(kind):
            if row.source and name in held:
                yield f"{held[name][0]}: '{name}' is tried, so its row names no source"


def _called(kind: type[Component]) -> str:
    return link(code(kind.kind), f"components/{kind.family}/{kind.kind}.md#classes-of-failures") + (
        f" ({kind.family})" if kind.family != "output" else ""
    )


def _cell(kind: type[Component], failure: FailureClass) -> str:
    rows = [row for row in kind.failure_classes.rows if row.failure == failure]
    return (
        "; ".join(f"{row.what} ({_codes(row)})" if row.codes else row.what for row in rows) or "-"
    )


def _codes(row: FailureRow) -> str:
    return ", ".join(code(str(each)) for each in row.codes) or "-"


def _mark(row: FailureRow) -> str:
    return link("documented", row.source) if row.source else row.mark
