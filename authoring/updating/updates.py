"""A file of tests in which the timelines that differ are as they came."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath

from headrace.authoring.language.durations import seconds, told
from headrace.authoring.language.marbles import render
from headrace.authoring.language.testcase import TestCase
from headrace.authoring.language.testfile import TestFile
from headrace.authoring.language.timelines import Moment
from headrace.authoring.testing.running import TimelineVerdict, run_case
from headrace.authoring.testing.suites import Suite
from headrace.authoring.updating.renewal import Renewal
from headrace.authoring.updating.rewriting import NotRewritten, rewritten
from headrace.authoring.verdicts.matching import Matching
from headrace.authoring.verdicts.pairing import TimedBatches, as_batch
from headrace.compiler.delivery import JsonValue
from headrace.compiler.text.diagnostics import Path

Reader = Callable[[FilePath], Suite]
"""What reads a file of tests."""

_MOST_ROUNDS = 3
"""How often a file is written until what comes is what it says."""


@dataclass(frozen=True, slots=True)
class Update:
    """A file of tests before and after, and why some of its tests stay as they are."""

    suite: Suite
    before: str
    after: str
    left: tuple[str, ...] = ()

    def difference(self) -> str:
        """Return what changes, as a unified diff; empty: nothing does."""
        name = str(self.suite.file)
        lines = difflib.unified_diff(
            self.before.splitlines(), self.after.splitlines(), name, name, lineterm="", n=2
        )
        return "\n".join(lines)

    def write(self) -> None:
        """Write the file; what stands before its text, as a byte order mark, stays."""
        found, written = self.suite.file.read_bytes(), self.before.encode()
        mark = found.removesuffix(written) if found.endswith(written) else b""
        self.suite.file.write_bytes(mark + self.after.encode())


def updated(files: Sequence[FilePath], words: Sequence[str], read: Reader) -> Iterator[Update]:
    """Write what came into files of tests, those cases of them that some words select.

    A file is played again after a change: where a test has no ``until``, it ends with the last moment that
    is written in it.
    """
    for file in files:
        first = update = update_of(suite := read(file), suite.cases(words))
        for _ in range(_MOST_ROUNDS):
            if update is None or update.after == update.before:
                break
            update.write()
            update = update_of(suite := read(file), suite.cases(words))
        if first is not None and update is not None:
            yield replace(first, after=update.before, left=update.left)


def update_of(suite: Suite, cases: Iterable[TestCase]) -> Update | None:
    """Play some cases of a file and return it with what came; None: it could not be read."""
    if suite.tests is None or suite.config is None or suite.config.program is None:
        return None
    values: dict[Path, JsonValue] = {}
    left: list[str] = []
    for case in cases:
        if case.shape.skip is None:
            verdict = run_case(
                suite.tests, case, suite.config.program, suite.config.base, tells_why=False
            )
            found = dict(_values(suite.tests, case, verdict.timelines))
            try:
                rewritten(suite.tests.document, found)
                values |= found
            except NotRewritten as cause:
                left.append(f"{suite.file}::{case.name} is left as it is: {cause}")
    before = suite.tests.document.text
    return Update(suite, before, rewritten(suite.tests.document, values), tuple(left))


def _values(
    file: TestFile, case: TestCase, verdicts: Sequence[TimelineVerdict]
) -> Iterable[tuple[Path, JsonValue]]:
    renewal = Renewal(file.start)
    for verdict in verdicts:
        line = case.expected[verdict.name]
        expected = [(each.at, each.what) for each in line.moments]
        anew = renewal.values if verdict.name in case.buckets else renewal.timeline
        renewed = [*anew(expected, verdict.came)]
        drawn = None
        if line.line is not None:
            drawn = _drawn(line.moments, renewed, Matching(file.start), seconds(case.shape.frame))
        yield line.path, _timeline(renewed) if drawn is None else drawn


def _timeline(batches: TimedBatches) -> JsonValue:
    """Return a timeline as a map, or as a list where a moment occurs twice."""
    entries = [(told(at), what) for at, what in batches]
    by_moment: dict[str, JsonValue] = dict(entries)
    return by_moment if len(by_moment) == len(entries) else [{at: what} for at, what in entries]


def _drawn(
    moments: Sequence[Moment], batches: TimedBatches, matching: Matching, frame: float
) -> str | None:
    """Return the line of marbles that tells batches by the names it had; None: there is none."""
    names = {str(each.path[-1]): each.what for each in moments}
    named: list[tuple[float, str]] = []
    for at, batch in batches:
        name = next((name for name, what in names.items() if what is batch), None)
        if name is None:
            found = as_batch(batch)
            like = (name for name, what in names.items() if matching.holds(as_batch(what), found))
            name = next(like, None)
        if name is None:
            return None
        named.append((at, name))
    return render(named, frame) if named else None
