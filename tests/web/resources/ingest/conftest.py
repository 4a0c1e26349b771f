"""What the tests of posts ask for."""

from __future__ import annotations

import pytest

from headrace.web.app import Application
from headrace.web.service import Service
from tests.web.resources.ingest.posting_to import Asked


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
def application(asked: Asked) -> Application:
    return Application(Service(asked, None, None))  # type: ignore[arg-type]
