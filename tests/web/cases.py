"""A case for each answer of the table of endpoints."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.compiler.buckets import Bounds
from headrace.compiler.clock import Clock
from headrace.compiler.runtime.capturing.captures import TooManyCaptures
from headrace.compiler.runtime.connectionregistry import Connections
from headrace.compiler.runtime.connectiontest import TooManyTests
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.limitedthreads import LimitedThreads, TooMany
from headrace.compiler.runtime.sampling import TooManySamples
from headrace.web.app import Application
from headrace.web.auth import passwords
from headrace.web.auth.access import Access, Caller
from headrace.web.auth.accountauth import Authentication
from headrace.web.auth.credentials import Verified
from headrace.web.files.reading import Files
from headrace.web.resources import STREAMS
from headrace.web.service import Service, ThreadQueue, TooManyBodies
from tests.web.auth.people import PASSWORDS, Issued, guarded
from tests.web.declaring import declare
from tests.web.exchange import Exchange
from tests.web.lettering import Lettering
from tests.web.storing import Storing

POST = {"id": "post", "inputs": [{"type": "http", "capacity": 1}]}


def declare_machines(service: Service) -> None:
    """Have one bucket, with an entry in it."""
    for bucket in declare(service.engine, {"machines": Bounds(500, 60)}):
        bucket.merge({"m1": {"mode": "auto"}})


JSON = {"Content-Type": "application/json"}
LONG = {"Content-Length": str(2**30)}


@dataclass
class Case:
    """A request that gets one response, sent while `POST`, `LOCKED` and `MUTE` run."""

    operation: str
    status: int
    path: str
    method: str = "GET"
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    service: dict[str, Any] = field(default_factory=dict)
    """What is different about the service."""
    query: str = ""

    def exchange(self, application: Application) -> Exchange:
        return Exchange(
            application,
            self.method,
            self.path,
            headers=[(name.lower().encode(), text.encode()) for name, text in self.headers.items()],
            query=self.query.encode(),
            body=[self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()],
            leaves=self.path in STREAMS,
        )


class BrokenConnections(Connections):
    """Connections with a fault of their own."""

    def file(self, name: str, connection: Any) -> None:
        raise ZeroDivisionError("a secret is in here")

    def remove(self, name: str) -> None:
        raise ZeroDivisionError("a secret is in here")


class Broken(Engine):
    """An engine with a fault of its own."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.connections = BrokenConnections({}, lambda name: [])

    async def compile(self, config: Any) -> Any:
        raise ZeroDivisionError("a secret is in here")

    async def dispose(self, pipeline: str) -> None:
        raise ZeroDivisionError("a secret is in here")

    async def pipeline(self, pipeline: str) -> Any:
        raise ZeroDivisionError("a secret is in here")

    def way_in(self, pipeline: str) -> Any:
        raise ZeroDivisionError("a secret is in here")

    async def discard_stored(self, id: int) -> None:
        raise ZeroDivisionError("a secret is in here")

    async def discard_aside(self, id: int) -> None:
        raise ZeroDivisionError("a secret is in here")

    async def test(self, *_: Any) -> Any:
        raise ZeroDivisionError("a secret is in here")

    async def sample(self, *_: Any) -> Any:
        raise ZeroDivisionError("a secret is in here")


class Full(Engine):
    """An engine of which no samples can be taken."""

    async def sample(self, *_: Any) -> Any:
        raise TooManySamples


class Captured(Engine):
    """An engine of which no more captures can be taken."""

    def capture(self, *_: Any) -> Any:
        raise TooManyCaptures


class Trying(Engine):
    """An engine that too many want to try connections."""

    async def test(self, *_: Any) -> Any:
        raise TooManyTests


class Crowded(LimitedThreads):
    """A place for dry runs where nobody else may wait."""

    async def run(self, work: Any) -> Any:
        raise TooMany(100)


class FullTurns(ThreadQueue):
    """Turns for which too many wait."""

    async def take(self, *_: Any, **__: Any) -> Any:
        raise TooManyBodies(100)


def full(_clock: Clock) -> ThreadQueue:
    return FullTurns()


def create(status: int, body: Any, headers: dict[str, str] = JSON, **service: Any) -> Case:
    return Case("createPipeline", status, "/api/pipelines", "POST", body, headers, service)


def ingest(status: int, pipeline: str, body: Any = 1, **rest: Any) -> Case:
    path = f"/api/pipelines/{pipeline}/messages"
    return Case("ingestMessages", status, path, "POST", body, **rest)


def dry_run(status: int, body: Any, headers: dict[str, str] = JSON, **service: Any) -> Case:
    path = "/api/pipelines/dry-run"
    return Case("dryRunPipeline", status, path, "POST", body, headers, service)


def put(status: int, pipeline: str, body: Any, headers: Any = None, **service: Any) -> Case:
    sent = {**JSON, "If-Match": "*"} if headers is None else headers
    path = f"/api/pipelines/{pipeline}"
    return Case("exchangePipeline", status, path, "PUT", body, sent, service)


def plan(
    status: int, pipeline: str, body: Any, headers: dict[str, str] = JSON, **service: Any
) -> Case:
    path = f"/api/pipelines/{pipeline}/plan"
    return Case("planExchange", status, path, "POST", body, headers, service)


def check(status: int, body: Any, headers: dict[str, str] = JSON, **service: Any) -> Case:
    return Case("checkConfig", status, "/api/config/check", "POST", body, headers, service)


def try_script(status: int, body: Any, headers: dict[str, str] = JSON, **service: Any) -> Case:
    path = "/api/scripts/dry-run"
    return Case("dryRunScript", status, path, "POST", body, headers, service)


def sample(status: int, body: Any, headers: dict[str, str] = JSON, **service: Any) -> Case:
    return Case("sampleInput", status, "/api/inputs/sample", "POST", body, headers, service)


def delete(status: int, pipeline: str, **service: Any) -> Case:
    return Case("deletePipeline", status, f"/api/pipelines/{pipeline}", "DELETE", b"", {}, service)


def file(status: int, body: Any, headers: dict[str, str] = JSON, **service: Any) -> Case:
    return Case("createConnection", status, "/api/connections", "POST", body, headers, service)


def attempt(status: int, body: Any, headers: dict[str, str] = JSON, **service: Any) -> Case:
    path = "/api/connections/test"
    return Case("testConnection", status, path, "POST", body, headers, service)


def remove(status: int, name: str, **service: Any) -> Case:
    return Case("deleteConnection", status, f"/api/connections/{name}", "DELETE", b"", {}, service)


def discard(status: int, id: str, engine: Any = Storing) -> Case:
    path = f"/api/stored/{id}"
    return Case("discardStored", status, path, "DELETE", b"", {}, {"engine": engine})


def discard_aside(status: int, id: str, engine: Any = Storing) -> Case:
    path = f"/api/stored/{id}/aside"
    return Case("discardSetAside", status, path, "DELETE", b"", {}, {"engine": engine})


LETTERS = "/api/pipelines/p/dead-letters"
EVERY = {"filter": {}}


def letters(operation: str, status: int, path: str, engine: Any, query: str = "") -> Case:
    method = "DELETE" if operation.startswith(("delete", "stop")) else "GET"
    return Case(operation, status, path, method, b"", {}, {"engine": engine}, query)


def replay(
    status: int,
    body: Any,
    headers: dict[str, str] = JSON,
    engine: Any = Lettering,
    pipeline: str = "p",
) -> Case:
    path = f"/api/pipelines/{pipeline}/dead-letters/replay"
    return Case("replayDeadLetters", status, path, "POST", body, headers, {"engine": engine})


class NoTurn:
    """Accounts that have so many ask that one more is turned away."""

    async def caller(self, username: str, password: str) -> Any:
        raise passwords.Crowded


class Bursting:
    """Accounts, tokens or sessions with a fault of their own."""

    async def caller(self, username: str, password: str) -> Any:
        raise ZeroDivisionError("a secret is in here")

    async def verify(self, token: str) -> Any:
        raise ZeroDivisionError("a secret is in here")

    def find(self, id: bytes) -> None:
        raise ZeroDivisionError("a secret is in here")


class SignedIn:
    """Sessions of which every id is one."""

    def find(self, id: bytes) -> Caller:
        return Caller(Access.READ, "ann")


def authenticator(**parts: Any) -> Any:
    """Return what makes an authenticator of which some parts are different."""

    def made(clock: Clock) -> Authentication:
        authenticator = guarded(clock, tokens=Issued({"good": Verified("ann", Access.ADMIN, 9e9)}))
        for name, part in parts.items():
            setattr(authenticator, name, part)
        return authenticator

    return made


def login(status: int, body: Any, headers: dict[str, str] = JSON, **parts: Any) -> Case:
    path = "/api/auth/login"
    return Case(
        "login", status, path, "POST", body, headers, {"authenticator": authenticator(**parts)}
    )


def token_login(status: int, body: Any, headers: dict[str, str] = JSON, **parts: Any) -> Case:
    path = "/api/auth/token"
    return Case(
        "tokenLogin", status, path, "POST", body, headers, {"authenticator": authenticator(**parts)}
    )


def logout(status: int, headers: dict[str, str], **parts: Any) -> Case:
    path = "/api/auth/logout"
    return Case(
        "logout", status, path, "POST", b"", headers, {"authenticator": authenticator(**parts)}
    )


class BrokenFiling:
    """Files with a fault of their own."""

    def __init__(self, clock: Clock) -> None:
        pass

    async def save(self, *_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("a secret is in here")

    async def arrange(self, layout: Any, check: Any) -> None:
        raise ZeroDivisionError("a secret is in here")


class OnFile:
    """Files that say that nothing is to run."""

    def __init__(self, clock: Clock) -> None:
        self.files, self.lock = Files(config=Path("on-file.json")), asyncio.Lock()
        Path("on-file.json").write_text("[]")

    async def reverted(self) -> None:
        pass


class RefusedOnFile(OnFile):
    """Files that say what cannot be run."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        Path("on-file.json").write_text('[{"id": "p", "inputs": []}]')


def revert(status: int, **service: Any) -> Case:
    return Case("revertConfig", status, "/api/config/revert", "POST", b"", {}, service)


def save(status: int, body: Any, headers: dict[str, str] = JSON, **service: Any) -> Case:
    return Case("saveConfig", status, "/api/config/save", "POST", body, headers, service)


def arrange(status: int, body: Any, headers: dict[str, str] = JSON, **service: Any) -> Case:
    return Case("replaceLayout", status, "/api/layout", "PUT", body, headers, service)


ANN = {"username": "ann", "password": PASSWORDS["ann"]}
ELSEWHERE = {"Origin": "https://elsewhere.example", "Host": "here.example", **JSON}
SESSION = {"Cookie": f"headrace_session={'0' * 64}"}
