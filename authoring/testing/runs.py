"""A run of tests: the cases of some files, one after the other, or in several processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from headrace.authoring.configfiles import catalogue
from headrace.authoring.language.testcase import TestCase
from headrace.authoring.testing.outcomes import (
    CaseOutcome,
    has_failed,
    not_read,
    outcome_of,
    skipped,
)
from headrace.authoring.testing.running import run_case
from headrace.authoring.testing.suites import Suite, load_suite
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.text.render import Style

MANY = 200
"""Cases from which on several processes are worth their start."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Which cases are run, and how.

    ``words`` select them; ``stops`` at the first that fails. ``jobs`` is how many processes there are;
    None: one, or one for each core where the cases are many.
    """

    words: tuple[str, ...] = ()
    stops: bool = False
    jobs: int | None = None
    tells_why: bool = True
    counts: bool = False
    """Whether the branches of configs are counted that are taken."""
    style: Style = "plain"
    """How diagnostics are shown."""


ONE = RunOptions()
"""How a case by itself is run."""


@cache
def known() -> Catalogue:
    """Return every component there is, scanned once in a process."""
    return catalogue()


def suites_of(files: Sequence[Path]) -> list[Suite]:
    """Read files of tests."""
    return [load_suite(file, known()) for file in files]


def run(suites: Sequence[Suite], options: RunOptions) -> Iterator[CaseOutcome]:
    """Run what is selected, and yield what came of it, in the order of the files."""
    chosen = [(suite, [*suite.cases(options.words)]) for suite in suites]
    count = sum(len(cases) for _, cases in chosen)
    jobs = options.jobs or (1 if count < MANY else os.cpu_count() or 1)
    jobs = min(jobs, max(count, 1))  # a pool starts all of its processes, however few have work
    outcomes = _in_one(chosen, options) if jobs == 1 else _in_several(chosen, options, jobs)
    for outcome in outcomes:
        yield outcome
        if options.stops and has_failed([outcome]):
            return


def _in_one(
    chosen: Sequence[tuple[Suite, Sequence[TestCase]]], options: RunOptions
) -> Iterator[CaseOutcome]:
    for suite, cases in chosen:
        if suite.tests is None:
            yield not_read(suite, options.style)
        for case in cases:
            yield one(suite, case, options)


def _in_several(
    chosen: Sequence[tuple[Suite, Sequence[TestCase]]], options: RunOptions, jobs: int
) -> Iterator[CaseOutcome]:
    """Each process reads the files it has cases of, and each case is a piece of work."""
    work = partial(_named, options)
    with ProcessPoolExecutor(jobs) as pool:
        coming: list[Callable[[], CaseOutcome]] = []
        for suite, cases in chosen:
            if suite.tests is None:
                coming.append(partial(not_read, suite, options.style))
            coming += [pool.submit(work, suite.file, case.name).result for case in cases]
        try:
            for each in coming:
                yield each()
        finally:
            pool.shutdown(cancel_futures=True)


def one(suite: Suite, case: TestCase, options: RunOptions = ONE) -> CaseOutcome:
    """Run one case, and return what came of it."""
    if case.shape.skip is not None:
        return skipped(suite, case, case.shape.skip)
    assert suite.tests is not None
    assert suite.config is not None
    assert suite.config.program is not None
    verdict = run_case(
        suite.tests,
        case,
        suite.config.program,
        suite.config.base,
        tells_why=options.tells_why,
        counts=options.counts,
    )
    return outcome_of(suite, verdict)


@cache
def _suite(file: Path) -> Suite:
    return load_suite(file, known())


def _named(options: RunOptions, file: Path, name: str) -> CaseOutcome:
    """Run a case of a file in a process of its own."""
    suite = _suite(file)
    [case] = [each for each in suite.cases() if each.name == name]
    return one(suite, case, options)
