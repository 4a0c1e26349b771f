"""One case per response of the endpoint table; each body is what the served description says."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.runtime.connectionregistry import Connections
from headrace.compiler.runtime.dryrun.threads import LimitedThreads, TooMany
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.sampling import TooManySamples
from headrace.web.app import Application
from headrace.web.auth import passwords
from headrace.web.auth.access import Access, Caller
from headrace.web.auth.accountauth import Authentication
from headrace.web.auth.credentials import Verified
from headrace.web.endpoint import Endpoint
from headrace.web.files.reading import Files
from headrace.web.openapi import described
from headrace.web.resources import ENDPOINTS
from headrace.web.service import Service, ThreadQueue, TooManyBodies
from tests.clients import PATIENCE
from tests.web.auth.people import PASSWORDS, Issued, guarded
from tests.web.cases import POST, declare_machines
from tests.web.exchange import Exchange

LOCKED = {
    "id": "locked",
    "inputs": [{"type": "http", "auth": {"type": "bearer", "token": "sesame"}}],
}


MUTE = {"id": "mute", "inputs": [{"type": "dummy", "duration": 3600}]}


NEW = {"id": "new", "inputs": [{"type": "dummy", "duration": 3600}]}


BUS = {"id": "bus", "type": "file", "root": "bus"}


DISK = {"id": "disk", "type": "file", "root": "disk"}


USED = {"id": "used", "type": "file", "root": "used"}


WRITING = {
    "id": "writing",
    "inputs": [{"type": "dummy", "duration": 3600}],
    "outputs": [{"type": "file", "connection": "used", "path": "out"}],
}


CHAIN = {"messages": [1], "transforms": [{"type": "splitter", "out_size": 1}]}


GLANCE = {"input": {"type": "dummy", "duration": 3600}, "timeout_ms": 0}


SCRIPT = {"source": {"type": "inline", "code": "emit(msg)"}, "messages": [1]}


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

    def exchange(self, application: Application) -> Exchange:
        return Exchange(
            application,
            self.method,
            self.path,
            headers=[(name.lower().encode(), text.encode()) for name, text in self.headers.items()],
            body=[self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()],
            leaves=self.operation == "streamEvents",
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

    def way_in(self, pipeline: str) -> Any:
        raise ZeroDivisionError("a secret is in here")

    async def sample(self, *_: Any) -> Any:
        raise ZeroDivisionError("a secret is in here")


class Full(Engine):
    """An engine of which no samples can be taken."""

    async def sample(self, *_: Any) -> Any:
        raise TooManySamples


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


def try_script(status: int, body: Any, headers: dict[str, str] = JSON, **service: Any) -> Case:
    path = "/api/scripts/dry-run"
    return Case("dryRunScript", status, path, "POST", body, headers, service)


def sample(status: int, body: Any, headers: dict[str, str] = JSON, **service: Any) -> Case:
    return Case("sampleInput", status, "/api/inputs/sample", "POST", body, headers, service)


def delete(status: int, pipeline: str, **service: Any) -> Case:
    return Case("deletePipeline", status, f"/api/pipelines/{pipeline}", "DELETE", b"", {}, service)


def file(status: int, body: Any, headers: dict[str, str] = JSON, **service: Any) -> Case:
    return Case("createConnection", status, "/api/connections", "POST", body, headers, service)


def remove(status: int, name: str, **service: Any) -> Case:
    return Case("deleteConnection", status, f"/api/connections/{name}", "DELETE", b"", {}, service)


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

    async def arrange(self, layout: Any) -> None:
        raise ZeroDivisionError("a secret is in here")


class OnFile:
    """Files that say that nothing is to run."""

    def __init__(self, clock: Clock) -> None:
        self.files, self.lock = Files(config=Path("on-file.json")), asyncio.Lock()
        Path("on-file.json").write_text("[]")

    async def reverted(self) -> None:
        pass


def revert(status: int, **service: Any) -> Case:
    return Case("revertConfig", status, "/api/config/revert", "POST", b"", {}, service)


def save(status: int, body: Any, headers: dict[str, str] = JSON, **service: Any) -> Case:
    return Case("saveConfig", status, "/api/config/save", "POST", body, headers, service)


def arrange(status: int, body: Any, headers: dict[str, str] = JSON, **service: Any) -> Case:
    return Case("replaceLayout", status, "/api/layout", "PUT", body, headers, service)


ANN = {"username": "ann", "password": PASSWORDS["ann"]}


ELSEWHERE = {"Origin": "https://elsewhere.example", "Host": "here.example", **JSON}


SESSION = {"Cookie": f"headrace_session={'0' * 64}"}


CASES = [
    Case("listPipelines", 200, "/api/pipelines"),
    create(201, NEW),
    create(400, b'{"id": '),
    create(409, POST),
    create(413, NEW, LONG),
    create(415, NEW, {"Content-Type": "text/plain"}),
    create(422, {"id": "new", "inputs": []}),
    create(500, NEW, engine=Broken),
    create(503, NEW, reading=full),
    delete(204, "mute"),
    delete(404, "nobody"),
    delete(500, "mute", engine=Broken),
    ingest(202, "post"),
    ingest(400, "post", b"{"),
    ingest(401, "locked"),
    ingest(404, "mute"),
    ingest(413, "post", headers=LONG),
    ingest(415, "post", headers={"Content-Encoding": "gzip"}),
    ingest(500, "post", service={"engine": Broken}),
    ingest(503, "post"),
    dry_run(200, CHAIN),
    dry_run(400, b'{"messages": '),
    dry_run(413, CHAIN, LONG),
    dry_run(415, CHAIN, {"Content-Type": "text/plain"}),
    dry_run(500, CHAIN, clock=None),
    dry_run(503, CHAIN, dry_runs=Crowded),
    try_script(200, SCRIPT),
    try_script(400, b'{"source": '),
    try_script(413, SCRIPT, LONG),
    try_script(415, SCRIPT, {"Content-Type": "text/plain"}),
    try_script(500, SCRIPT, clock=None),
    try_script(503, SCRIPT, dry_runs=Crowded),
    Case("getPipelineHistory", 200, "/api/pipelines/post/history"),
    sample(200, GLANCE),
    sample(400, b'{"input": '),
    sample(413, GLANCE, LONG),
    sample(415, GLANCE, {"Content-Type": "text/plain"}),
    sample(500, GLANCE, engine=Broken),
    sample(503, GLANCE, engine=Full),
    Case("listConnections", 200, "/api/connections"),
    file(201, BUS),
    file(400, b'{"id": '),
    file(409, DISK),
    file(413, BUS, LONG),
    file(415, BUS, {"Content-Type": "text/plain"}),
    file(422, {"id": "bus"}),
    file(500, BUS, engine=Broken),
    file(503, BUS, reading=full),
    remove(204, "disk"),
    remove(404, "bus"),
    remove(409, "used"),
    remove(500, "disk", engine=Broken),
    Case("listStateBuckets", 200, "/api/state"),
    Case("getStateBucket", 200, "/api/state/machines"),
    Case("getStateBucket", 404, "/api/state/nothing"),
    Case("streamEvents", 200, "/events"),
    Case("getSettings", 200, "/api/settings"),
    save(200, {"name": "saved.json"}),
    save(400, b'{"name": '),
    save(409, {"name": "taken.json", "overwrite": False}),
    save(413, {"name": "saved.json"}, LONG),
    save(415, {"name": "saved.json"}, {"Content-Type": "text/plain"}),
    save(422, {"name": "../saved.json"}),
    save(500, {"name": "saved.json"}, filing=BrokenFiling),
    save(503, {"name": "saved.json"}, reading=full),
    revert(204, filing=OnFile),
    revert(500),
    revert(503, filing=OnFile, reading=full),
    Case("planRevert", 200, "/api/config/plan", service={"filing": OnFile}),
    Case("planRevert", 500, "/api/config/plan"),
    Case("getLayout", 200, "/api/layout"),
    arrange(204, {}),
    arrange(400, b'{"pipelines": '),
    arrange(413, {}, LONG),
    arrange(415, {}, {"Content-Type": "text/plain"}),
    arrange(422, {"pipelines": []}),
    arrange(500, {}, filing=BrokenFiling),
    arrange(503, {}, reading=full),
    Case("whoAmI", 200, "/api/auth/me"),
    login(200, ANN),
    login(400, b'{"username": '),
    login(401, ANN | {"password": "a secret"}),
    login(403, ANN, ELSEWHERE),
    login(413, ANN, LONG),
    login(415, ANN, {"Content-Type": "text/plain"}),
    login(422, {"username": "ann", "password": {"a secret": 1}}),
    login(500, ANN, accounts=Bursting()),
    login(503, ANN, accounts=NoTurn()),
    token_login(200, {"token": "good"}),
    token_login(400, b'{"token": '),
    token_login(401, {"token": "a secret"}),
    token_login(403, {"token": "good"}, ELSEWHERE),
    token_login(413, {"token": "good"}, LONG),
    token_login(415, {"token": "good"}, {"Content-Type": "text/plain"}),
    token_login(422, {"token": ["a secret"]}),
    token_login(500, {"token": "good"}, tokens=Bursting()),
    Case(
        *("tokenLogin", 503, "/api/auth/token", "POST", {"token": "good"}, JSON),
        {"authenticator": authenticator(), "logins": full},
    ),
    logout(204, {}),
    logout(403, SESSION | ELSEWHERE, sessions=SignedIn()),
    logout(500, SESSION, sessions=Bursting()),
    Case("listComponents", 200, "/api/docs"),
    Case("getOpenApi", 200, "/api/openapi.json"),
    Case("apiReference", 200, "/api/reference"),
    Case("referenceAsset", 200, "/api/reference/start.js"),
    Case("referenceAsset", 404, "/api/reference/..%2Findex.html"),
    Case("getRoot", 200, "/"),
    Case("getLiveness", 200, "/livez"),
    Case("getReadiness", 200, "/readyz"),
    Case("getReadiness", 503, "/readyz", service={"is_ready": False}),
    Case("getMetrics", 200, "/metrics"),
]


ROWS = {endpoint.operation: endpoint for endpoint in ENDPOINTS}


@pytest.fixture(scope="module")
def description(components: Catalogue) -> dict[str, Any]:
    return described(components)


def test_every_response_of_the_table_has_a_case() -> None:
    promised = {(row.operation, status) for row in ENDPOINTS for status in row.responses}

    assert {(case.operation, case.status) for case in CASES} == promised


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.operation}-{case.status}")
async def test_the_response(
    case: Case,
    service: Service,
    client: Any,
    description: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for connection in (DISK, USED):
        await client.simulate_post("/api/connections", json=connection)
    for config in (POST, LOCKED, MUTE, WRITING):
        await client.simulate_post("/api/pipelines", json=config)
    declare_machines(service)
    (tmp_path / "taken.json").touch()
    given = Service(service.engine, service.catalogue, service.clock, is_ready=True)
    for name, value in case.service.items():
        setattr(given, name, value(service.clock) if callable(value) else value)

    application = Application(given)
    if case.status == 503 and case.operation == "ingestMessages":
        await case.exchange(application).run()  # nothing yields, so the queue stays full
    exchange = case.exchange(application)
    async with asyncio.timeout(PATIENCE):
        await exchange.run()

    assert exchange.status == case.status, exchange.body
    _assert_described(exchange, ROWS[case.operation], description)


def _assert_described(exchange: Exchange, row: Endpoint, description: dict[str, Any]) -> None:
    answer = row.responses[exchange.status]
    if answer.schema is None:
        assert exchange.body == b""
        return
    assert exchange.headers["content-type"].partition(";")[0] in (
        answer.media_type,
        "text/javascript",
    )
    if answer.media_type == "application/json":
        operation = description["paths"][row.path][row.method.lower()]
        content = operation["responses"][str(exchange.status)]["content"][answer.media_type]
        jsonschema.validate(exchange.json, {**content["schema"], **description})
    if exchange.status >= 400:
        assert "\n" not in exchange.json["error"]
        assert "secret" not in exchange.json["error"]
