"""Which tests skip themselves, and where none may.

A test that needs a server skips itself where that server is not installed. Where the script engine is
not installed, a test is skipped that fails after it has asked for it, or with the engine's name in what it
says, and so is one that is marked `engine`; how many they were stands at the end. What is tested of an
installation without the engine takes it away by itself, and asks nobody. In CI everything is installed,
so a skip there would be a test that silently stopped testing: it fails.
"""

import os
import sys
from collections import Counter
from collections.abc import Generator, Sequence
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from typing import TypeVar

import pytest

from tests.services.programs import WANTED

IN_CI = os.environ.get("CI") == "true"
NO_ENGINE = "the script engine is not installed: it is compiled with Rust 1.85 or newer"


class Asked(MetaPathFinder):
    """Notes whether the engine was asked for, and finds nothing."""

    was_asked = False

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> None:
        """Note the name."""
        self.was_asked |= name == "rhai"


ENGINE_IS_MISSING = find_spec("rhai") is None
asked = Asked()
if ENGINE_IS_MISSING:
    sys.meta_path.append(asked)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is marked `engine` where the engine is not installed."""
    if ENGINE_IS_MISSING:
        for item in items:
            if item.get_closest_marker("engine") is not None:
                item.add_marker(pytest.mark.skip(reason=NO_ENGINE))


def pytest_runtest_logstart() -> None:
    """Forget what the test before asked for."""
    asked.was_asked = False


Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def _failed_if_skipped(report: Report) -> Report:
    """Turn a skip into a failure with the same reason; an expected failure stays one."""
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longreprtext}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    needed = asked.was_asked or "rhai-python" in report.longreprtext
    if ENGINE_IS_MISSING and report.failed and needed:
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1] or 0, f"Skipped: {NO_ENGINE}")
    return _failed_if_skipped(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _failed_if_skipped((yield))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests were skipped for which reason, and for want of which servers."""
    skipped = terminalreporter.getreports("skipped")
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    wanted: Counter[str] = Counter()
    for reason, count in reasons.most_common():
        if (missing := WANTED.search(reason)) is not None:
            wanted[missing["program"]] += count
        else:
            terminalreporter.write_line(f"{count} skipped: {reason}")
    if wanted:
        programs = ", ".join(f"{program} ({count})" for program, count in sorted(wanted.items()))
        terminalreporter.write_line(
            f"{wanted.total()} skipped for want of {programs};"
            " 'make services-install' installs what is missing (Debian, as root)"
        )
