"""What came of a run of tests, as plain data: it crosses processes, and is told as text, JSON or JUnit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from headrace.authoring.language.durations import told
from headrace.authoring.language.testcase import TestCase
from headrace.authoring.playing.played import TakenBranch
from headrace.authoring.testing.running import CaseVerdict, lines_of
from headrace.authoring.testing.suites import Suite
from headrace.authoring.verdicts.junit import CaseResult, Outcome
from headrace.compiler.text.diagnostics import printable
from headrace.compiler.text.render import Style, render

_SIGNS: dict[Outcome, str] = {"passed": "ok", "failed": "FAIL", "skipped": "skip", "error": "ERROR"}
WIDTH = 60
"""Columns of a line that tells of a case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseOutcome:
    """What came of one case, or of a file that could not be read.

    Units: ``seconds`` of real time; ``lasts`` is how long the case is, as text.
    """

    file: str
    line: int | None
    name: str
    outcome: Outcome
    seconds: float = 0.0
    lasts: str = ""
    lines: tuple[str, ...] = ()
    """What is wrong, or why it was skipped."""
    differences: tuple[dict[str, Any], ...] = ()
    """The same as data."""
    taken: Mapping[TakenBranch, int] = field(default_factory=dict)
    """How often which branches of the config were taken, if that was counted."""

    def text(self) -> list[str]:
        """Return the lines that tell it."""
        head = f"{_SIGNS[self.outcome]:<5} {printable(self.name)}"
        if self.outcome in ("passed", "failed"):
            took = f"{self.lasts} in {self.seconds * 1000:.0f} ms"
            head = aligned(head, took)
        elif self.outcome == "skipped":
            return [f"{head}: {printable(self.lines[0])}"]
        if self.outcome == "failed":  # messages of failures may have anything in them
            return [head, *map(printable, self.lines)]
        return [head, *self.lines]

    def as_json(self) -> dict[str, Any]:
        """Return it as an object."""
        said: dict[str, Any] = {
            "file": self.file,
            "line": self.line,
            "name": self.name,
            "outcome": self.outcome,
            "seconds": round(self.seconds, 6),
        }
        if self.outcome in ("skipped", "error"):
            said["reason"] = "\n".join(self.lines)
        return {**said, "differences": [*self.differences]}

    def result(self) -> CaseResult:
        """Return it as JUnit has it."""
        return CaseResult(
            file=self.file,
            line=self.line,
            name=self.name,
            outcome=self.outcome,
            seconds=self.seconds,
            text="\n".join(self.lines),
        )


def outcome_of(suite: Suite, verdict: CaseVerdict) -> CaseOutcome:
    """Return what came of a case that was run."""
    assert suite.tests is not None
    assert suite.config is not None
    case = verdict.case
    if verdict.unbuilt:
        text = render(verdict.unbuilt, style="plain", sources=suite.sources)
        return _outcome(suite, case, verdict, "error", text.splitlines(), ())
    program = suite.config.program
    assert program is not None
    lines = lines_of(verdict, suite.tests, program)
    outcome: Outcome = "passed" if verdict.has_passed else "failed"
    return _outcome(suite, case, verdict, outcome, lines, _differences(verdict))


def skipped(suite: Suite, case: TestCase, why: str) -> CaseOutcome:
    """Return that a case was not run."""
    line = None if suite.tests is None else suite.tests.line(case.path)
    return CaseOutcome(
        file=str(suite.file), line=line, name=case.name, outcome="skipped", lines=(why,)
    )


def not_read(suite: Suite, style: Style = "plain") -> CaseOutcome:
    """Return that a file, or its config, could not be read; in a style, why."""
    text = render(suite.diagnostics, style=style, sources=suite.sources)
    return CaseOutcome(
        file=str(suite.file),
        line=None,
        name=str(suite.file),
        outcome="error",
        lines=tuple(text.splitlines()),
    )


def summary(outcomes: Sequence[CaseOutcome], seconds: float) -> str:
    """Return the last line: how many of which, and how long it took."""
    counts = Counter(each.outcome for each in outcomes)
    words: dict[Outcome, str] = {
        "failed": "failed",
        "error": "refused",
        "passed": "passed",
        "skipped": "skipped",
    }
    told_of = ", ".join(f"{counts[kind]} {word}" for kind, word in words.items() if counts[kind])
    return aligned(told_of, f"{seconds:.1f} s")


def aligned(said: str, took: str) -> str:
    """Return a line that ends with how long something took, as far right as the others."""
    return f"{said}{took:>{max(WIDTH - len(said), len(took) + 2)}}"


def has_failed(outcomes: Iterable[CaseOutcome]) -> bool:
    """Return whether something is wrong."""
    return any(each.outcome in ("failed", "error") for each in outcomes)


def _outcome(
    suite: Suite,
    case: TestCase,
    verdict: CaseVerdict,
    outcome: Outcome,
    lines: Sequence[str],
    differences: Iterable[dict[str, Any]],
) -> CaseOutcome:
    return CaseOutcome(
        file=str(suite.file),
        line=verdict.line,
        name=case.name,
        outcome=outcome,
        seconds=verdict.seconds,
        lasts=told(case.until),
        lines=tuple(lines),
        differences=tuple(differences),
        taken=verdict.taken,
    )


def _differences(verdict: CaseVerdict) -> Iterator[dict[str, Any]]:
    for timeline in verdict.timelines:
        for each in timeline.difference.as_json():
            yield {"of": timeline.name, "line": timeline.line, **each}
    yield from (each.as_json() for each in verdict.said)
    yield from (each.as_json() for each in verdict.letters)
    yield from (each.as_json() for each in verdict.amounts)
    for kill, _ in verdict.survived:
        yield {"kind": "not killed", "at": told(kill.at), "commit": kill.commit}
    if (stopped := verdict.too_long) is not None:
        done = None if stopped.busiest is None else asdict(stopped.busiest)
        yield {
            "kind": "too long",
            "at": told(round(stopped.at, 6)),
            "moments": stopped.moments,
            "busiest": done,
        }
