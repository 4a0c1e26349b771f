"""An identity provider: npm's oidc-provider, which signs tokens with RSA and with a curve."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.clients import PATIENCE
from tests.services.node_packages import modules
from tests.services.programs import program
from tests.services.server import Service

PROGRAM = Path(__file__).with_name("oidc_program.mjs")


@dataclass(frozen=True)
class Party:
    """A user or a program: how it proves itself, and what its tokens say besides the usual."""

    secret: str
    claims: Mapping[str, Any] = field(default_factory=dict)


USERS = {
    "ann": Party("open-sesame", {"email": "ann@example.com", "groups": ["staff", "operators"]}),
    "bob": Party("abracadabra", {"email": "bob@example.com", "groups": ["staff"]}),
    "eve": Party("let-me-in", {"email": "eve@example.com", "groups": "operators"}),
}
CLIENTS = {
    "deploy": Party("deploy-secret", {"email": "deploy@example.com", "groups": ["operators"]}),
    "probe": Party("probe-secret"),
}


class Oidc(Service):
    """A provider of `USERS` and `CLIENTS`. Every start makes new keys; nothing else is kept either."""

    ready = "ready"
    patience = 60.0
    audience = "pipelines"

    def command(self) -> Sequence[str | Path]:
        node = program("node", "install Node.js 18 or newer")
        options = {
            "port": self.port,
            "modules": str(modules("oidc-provider")),
            "audience": self.audience,
            "users": {
                name: {"password": user.secret, "claims": user.claims}
                for name, user in USERS.items()
            },
            "clients": {
                name: {"secret": client.secret, "claims": client.claims}
                for name, client in CLIENTS.items()
            },
        }
        return [node, PROGRAM, json.dumps(options)]

    def prepare(self) -> None:
        """Nothing is read from files."""

    def answers(self) -> bool:
        return len(self.keys()["keys"]) == 2

    @property
    def url(self) -> str:
        """The issuer: what its tokens have as `iss`."""
        return f"http://{self.address}"

    @property
    def jwks_url(self) -> str:
        """Where it publishes its keys, as its discovery document says."""
        found: str = self._asked("GET", "/.well-known/openid-configuration")["jwks_uri"]
        return found

    def keys(self) -> Any:
        """Return the set of keys that it publishes."""
        return self._asked("GET", "/jwks")

    def user_token(
        self, user: str, algorithm: str = "RS256", *, password: str | None = None
    ) -> str:
        """Return a token that a user is given for the password."""
        given = {"username": user, "password": password or USERS[user].secret}
        return self._token("deploy", {"grant_type": "password", **given}, algorithm)

    def client_token(self, client: str, algorithm: str = "RS256") -> str:
        """Return a token that a program is given for its own secret."""
        return self._token(client, {"grant_type": "client_credentials"}, algorithm)

    def _token(self, client: str, given: Mapping[str, str], algorithm: str) -> str:
        form = {**given, "resource": f"urn:signed:{algorithm}"}
        credentials = f"{client}:{CLIENTS[client].secret}".encode()
        headers = {
            "Authorization": f"Basic {base64.b64encode(credentials).decode()}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        token: str = self._asked("POST", "/token", urlencode(form), headers)["access_token"]
        return token

    def _asked(
        self, method: str, path: str, body: str | None = None, headers: Mapping[str, str] = {}
    ) -> Any:
        connection = HTTPConnection(self.host, self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, dict(headers))
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        assert response.status == 200, f"{method} {path}: {response.status} {answer.decode()}"
        return json.loads(answer)
