"""A server's application over a real engine that is asked through JSON, without a socket."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import falcon.testing
import pytest
import pytest_asyncio

from headrace.authoring.configfiles import catalogue
from headrace.compiler.clock import Clock
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.datadir import DataDir
from headrace.compiler.runtime.engine import Engine
from headrace.web.app import Application
from headrace.web.asgi import Asgi, AsgiMessage, Receive, Send
from headrace.web.console import assets
from headrace.web.service import Service
from tests.web.console import build
from tests.web.jsonengine import JsonEngine


@pytest.fixture(scope="session", autouse=True)
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have a console that needs no building."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assets, "BUILT", build(tmp_path_factory.mktemp("console")))
        yield


@pytest.fixture(scope="session")
def components() -> Catalogue:
    return catalogue()


@pytest_asyncio.fixture
async def engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, components: Catalogue
) -> AsyncIterator[JsonEngine]:
    if not Path.cwd().is_relative_to(tmp_path):
        monkeypatch.chdir(tmp_path)  # where relative roots of connections start
    inner = Engine(Clock(asyncio.get_running_loop()), data_dir=DataDir(tmp_path))
    engine = JsonEngine(inner, components)
    yield engine
    await engine.close()


@pytest_asyncio.fixture
async def service(engine: JsonEngine, components: Catalogue) -> Service:
    return Service(engine, components, engine.clock, is_ready=True)


@pytest_asyncio.fixture
async def client(service: Service) -> AsyncIterator[falcon.testing.ASGIConductor]:
    async with falcon.testing.ASGIConductor(waited_for(Application(service))) as conductor:
        yield conductor


def waited_for(application: Asgi) -> Asgi:
    """Return an application whose clients stay: falcon's leave when they have sent their request."""

    async def run(scope: AsgiMessage, receive: Receive, send: Send) -> None:
        async def received() -> AsgiMessage:
            message = await receive()
            if message["type"] == "http.disconnect":
                await asyncio.get_running_loop().create_future()  # which nobody sets
            return message

        await application(scope, received, send)

    return run
