"""What holds for every test: it may be skipped on a user's machine, never in CI; time fails none.

And what every test may ask for: the servers of `tests/services`.
"""

import os
from collections.abc import Generator
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings

# A test that needs a server skips itself where that server is not installed. In CI everything is
# installed, so a skip there would be a test that silently stopped testing.
IN_CI = os.environ.get("CI") == "true"

# Whether a machine is busy says nothing about a property: how long an example takes is no failure.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


def pytest_configure(config: pytest.Config) -> None:
    # Not imported into this module: so a server is one and the same for the tests of every folder.
    config.pluginmanager.import_plugin("tests.services.fixtures")


Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def _failed_if_skipped(report: Report) -> Report:
    """Turn a skip into a failure with the same reason; an expected failure stays one."""
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longreprtext}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _failed_if_skipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _failed_if_skipped((yield))
