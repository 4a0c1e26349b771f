"""The tests of the specs are tests like the others: what holds for every test holds here."""

from tests.conftest import pytest_configure

__all__ = ["pytest_configure"]
