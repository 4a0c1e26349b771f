"""The tests of the specs are tests like the others: what holds for every test holds here."""

from importlib.util import find_spec

from tests.conftest import pytest_configure

__all__ = ["collect_ignore", "pytest_configure"]

collect_ignore = (
    [] if find_spec("rhai") else ["machines/config.tests.yaml", "plant/config.tests.yaml"]
)
"""Tests of configs with a script, where its engine was not compiled."""
