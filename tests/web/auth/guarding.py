"""A server's application that takes the tokens of a provider, without a socket of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import falcon.testing

from headrace.authoring.configfiles import catalogue
from headrace.compiler.clock import Clock
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.schema.secrets import Secrets
from headrace.web.app import Application
from headrace.web.asgi import Asgi, AsgiMessage, Receive, Send
from headrace.web.auth.accountauth import opened
from headrace.web.auth.settingsfile import ServerSettings
from headrace.web.service import Service
from tests.web.auth.issuing import AUDIENCE, ISSUER
from tests.web.conftest import waited_for
from tests.web.jsonengine import JsonEngine

ROLES = {"claim": "groups", "admin": ["operators"]}
ACCOUNTS = {"deploy": {"password": "open-sesame", "role": "admin"}}
JWT = {
    "type": "jwt",
    "issuer": ISSUER,
    "audience": AUDIENCE,
    "roles": ROLES,
    "service_accounts": ACCOUNTS,
}
"""Settings but for the url of the keys."""


@dataclass(frozen=True)
class Guard:
    """The application of a server with accounts, on the running loop."""

    client: falcon.testing.ASGIConductor
    clock: Clock

    async def presented(self, token: str) -> falcon.testing.Result:
        """Ask for the pipelines with a token."""
        headers = {"Authorization": f"Bearer {token}"}
        return await self.client.simulate_get("/api/pipelines", headers=headers)

    async def login(self, token: Any) -> falcon.testing.Result:
        """Sign in with a token."""
        return await self.client.simulate_post("/api/auth/token", json={"token": token})

    async def me(self, token: str) -> Any:
        """Ask who a token stands for."""
        headers = {"Authorization": f"Bearer {token}"}
        return (await self.client.simulate_get("/api/auth/me", headers=headers)).json


@asynccontextmanager
async def guarded(**auth: Any) -> AsyncIterator[Guard]:
    """Give an application with these settings of `auth`."""
    clock = Clock(asyncio.get_running_loop())
    authenticator = await opened(ServerSettings.load({"auth": auth}), Secrets({}, {}), clock)
    components = catalogue()
    engine = JsonEngine(Engine(clock), components)
    service = Service(engine, components, clock, authenticator=authenticator, is_ready=True)
    try:
        async with falcon.testing.ASGIConductor(
            as_served(waited_for(Application(service)))
        ) as client:
            yield Guard(client, clock)
    finally:
        await authenticator.close()
        await engine.close()


def as_served(application: Asgi) -> Asgi:
    """Return an application that is given headers as a list: falcon's clients let them be read once."""

    async def run(scope: AsgiMessage, receive: Receive, send: Send) -> None:
        if "headers" in scope:
            scope["headers"] = [tuple(pair) for pair in scope["headers"]]
        await application(scope, receive, send)

    return run
