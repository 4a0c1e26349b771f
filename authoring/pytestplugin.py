"""pytest collects files of tests: each test of a ``*.tests.yaml`` is an item, at its line.

Nothing of headrace is imported before such a file is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from headrace.authoring.language.testcase import TestCase
    from headrace.authoring.testing.suites import Suite

ENDS = (".tests.yaml", ".tests.yml", ".tests.json")
"""How the names of files of tests end."""


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SuiteFile | None:
    """Collect a file of tests."""
    if not file_path.name.endswith(ENDS):
        return None
    found: SuiteFile = SuiteFile.from_parent(parent, path=file_path)
    return found


class SuiteFile(pytest.File):
    """A file of tests."""

    def collect(self) -> Iterator[SuiteItem]:
        """Yield its tests; what is wrong with the file, or its config, is an error of collection."""
        from headrace.authoring.testing.outcomes import not_read
        from headrace.authoring.testing.runs import known
        from headrace.authoring.testing.suites import load_suite

        suite = load_suite(self.path, known())
        if suite.tests is None:
            raise self.CollectError("\n".join(not_read(suite).lines))
        for case in suite.cases():
            item: SuiteItem = SuiteItem.from_parent(self, name=case.name, suite=suite, case=case)
            yield item


class FailedCase(Exception):
    """A test did not pass; its text tells why."""


class SuiteItem(pytest.Item):
    """One test of a file."""

    def __init__(self, *, suite: Suite, case: TestCase, **keywords: Any) -> None:
        super().__init__(**keywords)
        self._suite, self._case = suite, case
        if case.shape.skip is not None:
            self.add_marker(pytest.mark.skip(reason=case.shape.skip))
        self.extra_keyword_matches |= {*case.shape.tags}  # what `-k` looks at

    def runtest(self) -> None:
        """Play it, and compare."""
        from headrace.authoring.testing.runs import one

        outcome = one(self._suite, self._case)
        if outcome.outcome != "passed":
            raise FailedCase("\n".join(outcome.lines))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return what is wrong, without the stack that leads there."""
        if isinstance(excinfo.value, FailedCase):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return where the test is written."""
        line = None if self._suite.tests is None else self._suite.tests.line(self._case.path)
        return self.path, None if line is None else line - 1, self.name
