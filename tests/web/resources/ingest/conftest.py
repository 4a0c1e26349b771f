"""What the tests of posts ask for."""

from __future__ import annotations

import asyncio

import pytest
import pytest_asyncio

from headrace.compiler.clock import Clock
from headrace.web.service import Service
from tests.web.resources.ingest.posting_to import Asked, ToTheApplication, ToTheProtocol, Way


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest_asyncio.fixture(params=[ToTheApplication, ToTheProtocol])
async def way(request: pytest.FixtureRequest, asked: Asked) -> Way:
    """Return one way and the other on which posts are answered: nothing differs."""
    clock = Clock(asyncio.get_running_loop())
    made: Way = request.param(Service(asked, None, clock))  # type: ignore[arg-type]
    return made
