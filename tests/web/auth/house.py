"""An application behind doors, and what is asked of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from headrace.web.app import Application
from headrace.web.auth.accountauth import Authentication
from headrace.web.service import Service
from tests.web.auth.people import (
    JSON,
    PASSWORDS,
    session_of,
)
from tests.web.exchange import Exchange


class House:
    """An application behind doors, and what is asked of it."""

    def __init__(self, service: Service, authenticator: Authentication) -> None:
        self.authenticator = authenticator
        self.service = Service(
            service.engine,
            service.catalogue,
            service.clock,
            authenticator=authenticator,
            is_ready=True,
        )
        self.application = Application(self.service)

    async def ask(
        self, method: str, path: str, headers: Mapping[str, str] = JSON, body: Any = None
    ) -> Exchange:
        """Send a request, as a server hands it over."""
        chunk = b"" if body is None else json.dumps(body).encode()
        exchange = self.asking(method, path, headers, [chunk])
        await exchange.run()
        return exchange

    def asking(
        self, method: str, path: str, headers: Mapping[str, str], body: Iterable[bytes]
    ) -> Exchange:
        """Return a request that is not yet sent."""
        given = [(name.lower().encode(), text.encode()) for name, text in headers.items()]
        return Exchange(self.application, method, path, headers=given, body=body)

    async def session(self, name: str) -> str:
        """Sign somebody in and return the id of the session."""
        said = {"username": name, "password": PASSWORDS[name]}
        answer = await self.ask("POST", "/api/auth/login", JSON, said)
        assert answer.status == 200
        return session_of(answer.headers["set-cookie"])

    async def me(self, headers: Mapping[str, str]) -> Any:
        """Ask who somebody is."""
        answer = await self.ask("GET", "/api/auth/me", headers)
        assert answer.status == 200
        return answer.json


NOBODY = {"authentication_required": True, "username": None, "role": None}


def signed_in(name: str, role: str) -> dict[str, Any]:
    return {"authentication_required": True, "username": name, "role": role}
