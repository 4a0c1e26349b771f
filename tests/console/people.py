"""Who signs in to the console in these tests, and how a server is told of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.server import Server, settled
from tests.web.auth.people import ADMIN, JSON, PASSWORDS, READER

ACCOUNTS: Mapping[str, Any] = MappingProxyType(
    {
        ADMIN: {"password": PASSWORDS[ADMIN], "role": "admin"},
        READER: {"password": PASSWORDS[READER], "role": "read"},
    }
)


def guarded(folder: Path, **auth: Any) -> tuple[str, ...]:
    """Return the options of a server that asks who somebody is: passwords, unless told otherwise."""
    return tuple(settled(folder, auth=auth or {"type": "basic", "users": dict(ACCOUNTS)}))


def cookie_of(server: Server, name: str) -> dict[str, str]:
    """Sign somebody in; return what their browser sends from then on."""
    body = json.dumps({"username": name, "password": PASSWORDS[name]}).encode()
    answer = server.request("POST", "/api/auth/login", body, JSON)
    assert answer.status == 200
    return {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
