"""`headrace test`: the tests of configs, offline, in virtual time."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TextIO

from headrace.authoring.testing.coverage import (
    ConfigCoverage,
    coverage,
    json_of,
    text_of,
    total,
)
from headrace.authoring.testing.outcomes import CaseOutcome, has_failed, summary
from headrace.authoring.testing.runs import RunOptions, known, run, suites_of
from headrace.authoring.testing.suites import NothingThere, Suite, found, load_suite
from headrace.authoring.testing.watching import polls, watch
from headrace.authoring.updating.updates import updated
from headrace.authoring.verdicts.junit import junit
from headrace.compiler.clock import stopwatch
from headrace.compiler.text.diagnostics import printable
from headrace.compiler.text.render import render, style_for
from headrace.web.commands.exitcodes import FINE, NOTHING, REFUSED
from headrace.web.commands.printing import print_json, print_text


def run_tests(
    paths: Sequence[Path],
    options: RunOptions,
    *,
    is_json: bool,
    junit_file: Path | None,
    updates: bool = False,
    fail_under: float = 0.0,
) -> int:
    """Run what is selected, print what came of it, and return the exit code.

    Where branches are counted, their coverage as well; with less than ``fail_under`` percent it fails.
    Before that, with ``updates``, timelines that differ are written as they came, and the change printed.
    """
    began = stopwatch()
    try:
        files = found(paths)
    except NothingThere as cause:
        print(printable(str(cause)), file=sys.stderr)
        return NOTHING
    if updates:
        _update(files, options, sys.stderr if is_json else sys.stdout)
    suites = suites_of(files)
    _warn(suites)
    outcomes = _told(run(suites, options), is_json=is_json, is_alone=len(suites) == 1)
    if not outcomes:
        if is_json:
            _print_json(outcomes, [] if options.counts else None)
        else:
            print("no test there that is meant", file=sys.stderr)
        return NOTHING
    covered = coverage(suites, outcomes) if options.counts else None
    if is_json:
        _print_json(outcomes, covered)
    else:
        print_text(summary(outcomes, stopwatch() - began))
        if covered is not None:
            print_text(*text_of(covered))
    if junit_file is not None:
        try:
            junit_file.write_text(junit(each.result() for each in outcomes), encoding="utf-8")
        except OSError as cause:
            said = f"{junit_file} cannot be written: {cause.strerror}"
            print(printable(said), file=sys.stderr)
            return REFUSED
    is_below = covered is not None and total(covered).is_below(fail_under)
    if is_below:
        print(f"covered less than {fail_under:g} %", file=sys.stderr)
    return REFUSED if has_failed(outcomes) or is_below else FINE


def _print_json(outcomes: Sequence[CaseOutcome], covered: Sequence[ConfigCoverage] | None) -> None:
    """Print an array of tests; with coverage, an object that has it beside them."""
    tests = [each.as_json() for each in outcomes]
    print_json(tests if covered is None else {"tests": tests, "coverage": json_of(covered)})


def watch_tests(
    paths: Sequence[Path], options: RunOptions, looks: Iterable[None] | None = None
) -> None:
    """Run what is selected, and what depends on a file again each time that it changes, for ever.

    ``looks`` tell when to look; left out, every 0.2 s.
    """
    began = stopwatch()
    for each in watch(paths, options, polls() if looks is None else looks):
        if each.changed:
            began = stopwatch()
            print_text("", f"{printable(', '.join(map(_called, each.changed)))} changed")
        _warn(each.suites)
        outcomes = _told(each.outcomes, is_json=False, is_alone=len(each.suites) == 1)
        said = summary(outcomes, stopwatch() - began) if outcomes else "no test there that is meant"
        print_text(said)


def _called(file: Path) -> str:
    """Return the name of a file from the working directory, if it is below that."""
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)


def _update(files: Sequence[Path], options: RunOptions, out: TextIO) -> None:
    for update in updated(files, options.words, lambda file: load_suite(file, known())):
        if difference := update.difference():
            print_text(difference, out=out)
        for each in update.left:
            print(each, file=sys.stderr)


def _told(outcomes: Iterable[CaseOutcome], *, is_json: bool, is_alone: bool) -> list[CaseOutcome]:
    """Print each as it comes, under its file where there are several; return all of them."""
    listed: list[CaseOutcome] = []
    for each in outcomes:
        if not is_json:
            if not is_alone and (not listed or listed[-1].file != each.file):
                print_text(printable(each.file))
            print_text(*each.text())
        listed.append(each)
    return listed


def _warn(suites: Iterable[Suite]) -> None:
    """Tell what is odd about files that can be run, on standard error."""
    for suite in suites:
        if suite.tests is not None and suite.diagnostics:
            style = style_for(sys.stderr)
            print(render(suite.diagnostics, style=style, sources=suite.sources), file=sys.stderr)
