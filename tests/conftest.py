"""What every test may ask for: the servers of `tests/services`; and that time fails no example."""

import pytest
from hypothesis import HealthCheck, settings

# Whether a machine is busy says nothing about a property: how long an example takes is no failure.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


def pytest_configure(config: pytest.Config) -> None:
    # Not imported into this module: so a server is one and the same for the tests of every folder,
    # and what is skipped is judged in every folder.
    config.pluginmanager.import_plugin("tests.services.fixtures")
    config.pluginmanager.import_plugin("tests.skipping")
