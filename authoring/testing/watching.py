"""Tests that are run again when a file changes that they were read from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headrace.authoring.testing.openedfiles import FileState, file_state, opened_files
from headrace.authoring.testing.outcomes import CaseOutcome
from headrace.authoring.testing.runs import RunOptions, run, suites_of
from headrace.authoring.testing.suites import NothingThere, Suite, found
from headrace.compiler.clock import pause

POLL_SECONDS = 0.2
"""How often files are looked at."""
_POLLS_TO_FIND = 10
"""After so many looks, it is also looked which files of tests there are."""


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """Suites that were run because something changed, and what came of them."""

    changed: Sequence[Path]
    """Empty at first."""
    suites: Sequence[Suite]
    outcomes: Iterable[CaseOutcome]
    """As they come; they have to be taken before the next run."""


def polls() -> Iterator[None]:
    """Yield each time when it is time to look, for ever."""
    while True:
        pause(POLL_SECONDS)
        yield


def watch(
    paths: Sequence[Path], options: RunOptions, looks: Iterable[None]
) -> Iterator[WatchedRun]:
    """Run what is selected, and with each look that finds a change what depends on it.

    ``options`` say how; all is run in this process.
    """
    watched = _Watched(options)
    yield watched.run(_found(paths), ())
    for number, _ in enumerate(looks, 1):
        changed = watched.changed()
        files = [file for file, read in watched.depends_on.items() if changed & read.keys()]
        if number % _POLLS_TO_FIND == 0:
            files += [file for file in _found(paths) if file not in watched.depends_on]
        if there := [file for file in files if file.exists()]:
            yield watched.run(there, sorted(changed))
        for file in {*files} - {*there}:
            del watched.depends_on[file]


@dataclass(slots=True)
class _Watched:
    """Files of tests, and the files that each was read from, as they were then."""

    options: RunOptions
    depends_on: dict[Path, dict[Path, FileState]] = field(default_factory=dict)

    def run(self, files: Sequence[Path], changed: Sequence[Path]) -> WatchedRun:
        suites = [self._suite(file) for file in files]
        return WatchedRun(changed, suites, self._outcomes(suites))

    def changed(self) -> set[Path]:
        """Return the files that are no longer as they were read."""
        read = [each for files in self.depends_on.values() for each in files.items()]
        now = {path: file_state(path) for path, _ in read}
        return {path for path, state in read if now[path] != state}

    def _suite(self, file: Path) -> Suite:
        with opened_files() as opened:
            [suite] = suites_of([file])
        beside = {} if suite.config is None else dict(suite.config.files.purposes())
        missing = {path.absolute(): file_state(path) for path in beside}
        self.depends_on[file] = missing | opened
        return suite

    def _outcomes(self, suites: Iterable[Suite]) -> Iterator[CaseOutcome]:
        """Yield what comes of suites; scripts are read when a test is built."""
        for suite in suites:
            with opened_files() as opened:
                outcomes = [*run([suite], self.options)]
            self.depends_on[suite.file] = opened | self.depends_on[suite.file]
            yield from outcomes


def _found(paths: Sequence[Path]) -> list[Path]:
    """Return the files of tests that are there now: none that is named has to be."""
    files: list[Path] = []
    for path in paths:
        try:
            files += found([path])
        except NothingThere:
            continue
    return [*dict.fromkeys(files)]
