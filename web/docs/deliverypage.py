"""The page about delivery: what components promise, from their records, and the tests that hold it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.families import Component, Output
from headrace.compiler.component.promises import (
    InputPromises,
    OutputPromises,
    Promises,
    Waiting,
)
from headrace.compiler.delivery import BATCHES_UNDER_WAY
from headrace.compiler.describe.reference import promised_rows
from headrace.compiler.runtime.pump import MESSAGES_UNDER_WAY
from headrace.web.docs import failuretables
from headrace.web.docs.heldpromises import HeldPromises, held_promises, unmatched
from headrace.web.docs.markdown import RegionTexts, code, filled, table

PAGE = "delivery.md"
_ON_THE_PAGE = re.compile(r"`(delivery(?:\.[a-z0-9_]+)+)`")
"""The name of a promise that no component makes: the page itself declares it, beside what it says."""

Row = tuple[type[Component], Promises]

INPUTS = {
    "away": "lost while its other side is away",
    "kill": "lost by `kill -9`",
    "twice": "comes twice",
}
OUTPUTS = {
    "written": "counts as written when",
    "away": "while the other side is away",
    "twice": "comes twice",
}
WAITING = {"waits": "most that waits in memory before the pipeline", "beyond": "beyond that"}
"""The columns of the tables: what each promise is about, and its head."""


def pages(docs: Path, catalogue: Catalogue) -> dict[str, RegionTexts]:
    """Return the generated parts of the page."""
    rows = [*_rows(catalogue)]
    parts = {
        "inputs": _table(
            "input", INPUTS, [row for row in rows if isinstance(row[1], InputPromises)]
        ),
        "outputs": _table(
            "output", OUTPUTS, [row for row in rows if isinstance(row[1], OutputPromises)]
        ),
        "under-way": _under_way(),
        "waiting": _table("input", WAITING, [row for row in rows if isinstance(row[1], Waiting)]),
        "held": table(["holds", "most", "promise"], _held(rows)),
        "classes": failuretables.overview(catalogue),
        "at-fault": _at_fault(catalogue),
        "tests": "",
    }
    declared = _declared(filled((docs / PAGE).read_text(), parts), rows, catalogue)
    return {PAGE: {**parts, "tests": _tests(declared, held_promises(docs.parent))}}


def complaints(docs: Path, catalogue: Catalogue) -> Iterator[str]:
    """Yield each promise that no test holds, and each mark of a promise that nobody makes."""
    said = filled((docs / PAGE).read_text(), {"tests": ""})
    held = held_promises(docs.parent)
    yield from failuretables.doubtful(catalogue, held)
    yield from unmatched(_declared(said, _rows(catalogue), catalogue), held)


def _rows(catalogue: Catalogue) -> Iterator[Row]:
    """Yield the rows of promises with their kinds, in the order of the reference."""
    for kind in catalogue:
        yield from ((kind, row) for row in promised_rows(kind))


def _declared(said: str, rows: Iterable[Row], catalogue: Catalogue) -> list[str]:
    """Return the names of all that tests hold: promises and failures of components, then the page's own."""
    of_components = [name for kind, row in rows for name, _, _ in row.named(kind)]
    of_failures = failuretables.tried(catalogue)
    told_apart = (name for name, _ in _telling_apart(catalogue))
    return [*of_components, *of_failures, *told_apart, *dict.fromkeys(_ON_THE_PAGE.findall(said))]


def _table(noun: str, columns: Mapping[str, str], rows: Iterable[Row]) -> str:
    """Return a table of rows: what they count for, their columns, and what their names begin with."""
    lines = []
    for kind, row in rows:
        texts = dict(row.texts(kind))
        cells = [texts[about] or "-" for about in columns]
        lines.append([_called(kind, row), *cells, code(f"{kind.kind}.{row.row}")])
    return table([noun, *columns.values(), "promises"], lines)


def _called(kind: type[Component], row: Promises) -> str:
    return f"{code(kind.kind)}{row.when}"


def _telling_apart(catalogue: Catalogue) -> Iterator[tuple[str, type[Output]]]:
    """Yield the outputs that tell messages at fault apart, each with the name of that promise."""
    for kind in catalogue:
        if issubclass(kind, Output) and kind.bisection.how != "never":
            yield f"{kind.kind}.output.at_fault", kind


def _at_fault(catalogue: Catalogue) -> str:
    """Return how the messages of a batch are told apart that are at fault."""
    telling = [*_telling_apart(catalogue)]
    lines = [[code(kind.kind), kind.bisection.says, code(name)] for name, kind in telling]
    apart = {kind for _, kind in telling}
    others = [
        code(each.kind) for each in catalogue if issubclass(each, Output) and each not in apart
    ]
    return (
        table(["output", "halves of a batch that is refused are tried", "promises"], lines)
        + f"\n\nThe others ({', '.join(others)}) never tell: what they refuse is put down as a whole."
    )


def _held(rows: Iterable[Row]) -> Iterator[list[str]]:
    """Yield what holds messages on purpose: transforms, and outputs of what counts as written."""
    for kind, row in rows:
        for name, about, text in row.named(kind):
            if about in ("holds", "held"):
                yield [f"{code(kind.kind)} ({kind.family})", text, code(name)]


def _under_way() -> str:
    batches, messages = BATCHES_UNDER_WAY, MESSAGES_UNDER_WAY
    return (
        f"Nothing that has been read is dropped to keep up. An input has {batches} batches under way (with"
        f" a\n`max_batch` below {batches} as many as come to {messages} messages), one more waits at its"
        " door, and then it reads\nno further (`delivery.blocked.window`). What still may come goes where"
        " the kind has room for it:"
    )


def _tests(declared: Iterable[str], held: HeldPromises) -> str:
    """Return the tests of each promise, a line each."""
    lines = [
        [code(name) if place == 0 else "", code(test)]
        for name in declared
        for place, test in enumerate(held.get(name, ()))
    ]
    return table(["promise", "test"], lines)
