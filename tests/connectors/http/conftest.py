"""What the tests of HTTP ask for."""

import pytest_asyncio

from tests.peer import peer


@pytest_asyncio.fixture
async def server():
    async with peer() as it:
        yield it
