"""What the tests of posts ask for."""

from __future__ import annotations

import asyncio

import pytest
import pytest_asyncio

from headrace.compiler.clock import Clock
from headrace.web.app import Application
from headrace.web.service import Service
from tests.web.resources.ingest.posting_to import Asked


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest_asyncio.fixture
async def application(asked: Asked) -> Application:
    clock = Clock(asyncio.get_running_loop())
    return Application(Service(asked, None, clock))  # type: ignore[arg-type]
