"""A server's application over a real engine, without a socket."""

import asyncio
from collections.abc import AsyncIterator

import falcon.testing
import pytest
import pytest_asyncio

from headrace.compiler.clock import Clock
from headrace.compiler.language.catalogue import Catalogue
from headrace.compiler.runtime.engine import Engine
from headrace.web.app import Application
from headrace.web.reading import catalogue
from headrace.web.service import Service


@pytest.fixture(scope="session")
def components() -> Catalogue:
    return catalogue()


@pytest_asyncio.fixture
async def engine() -> AsyncIterator[Engine]:
    engine = Engine(Clock(asyncio.get_running_loop()))
    yield engine
    await engine.close()


@pytest_asyncio.fixture
async def service(engine: Engine, components: Catalogue) -> Service:
    return Service(engine, components, engine.clock, is_ready=True)


@pytest_asyncio.fixture
async def client(service: Service) -> AsyncIterator[falcon.testing.ASGIConductor]:
    async with falcon.testing.ASGIConductor(Application(service)) as conductor:
        yield conductor
