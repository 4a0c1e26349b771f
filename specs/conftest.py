"""The tests of the specs are tests like the others: what holds for every test holds here."""

from tests.conftest import (
    pytest_configure,
    pytest_make_collect_report,
    pytest_runtest_makereport,
)

__all__ = ["pytest_configure", "pytest_make_collect_report", "pytest_runtest_makereport"]
