"""What the tests of connections that are posted to ask for."""

from __future__ import annotations

import pytest

from tests.web.resources.ingest.posting_to import Asked


@pytest.fixture
def asked() -> Asked:
    return Asked()
