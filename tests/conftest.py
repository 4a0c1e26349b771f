"""What every test may ask for: the servers of `tests/services`; and how many examples are tried."""

import gc
from collections.abc import Generator

import pytest

from tests.examples import register

register()


def pytest_configure(config: pytest.Config) -> None:
    # Not imported into this module: so a server is one and the same for the tests of every folder,
    # and what is skipped is judged in every folder.
    config.pluginmanager.import_plugin("tests.services.fixtures")
    config.pluginmanager.import_plugin("tests.skipping")
    config.pluginmanager.import_plugin("tests.sharing")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect thousands of tests without looking for garbage among them, then or ever after."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
