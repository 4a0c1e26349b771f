"""One case per response of the endpoint table; each body is what the served description says."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from headrace.compiler.component.catalogue import Catalogue
from headrace.web.app import Application
from headrace.web.endpoint import Endpoint
from headrace.web.openapi import described
from headrace.web.resources import ENDPOINTS
from headrace.web.service import Service
from tests.clients import PATIENCE
from tests.web.cases import (
    ANN,
    ELSEWHERE,
    EVERY,
    JSON,
    LETTERS,
    LONG,
    POST,
    SESSION,
    Broken,
    BrokenFiling,
    Bursting,
    Captured,
    Case,
    Crowded,
    Full,
    NoTurn,
    OnFile,
    RefusedOnFile,
    SignedIn,
    Trying,
    arrange,
    attempt,
    authenticator,
    check,
    create,
    declare_machines,
    delete,
    discard,
    discard_aside,
    dry_run,
    file,
    full,
    ingest,
    letters,
    login,
    logout,
    plan,
    put,
    remove,
    replay,
    revert,
    sample,
    save,
    token_login,
    try_script,
)
from tests.web.exchange import Exchange
from tests.web.lettering import BrokenLetters, Lettering, NoDisk
from tests.web.storing import NotWriting, Storing

LOCKED = {
    "id": "locked",
    "inputs": [{"type": "http", "auth": {"type": "bearer", "token": "sesame"}}],
}
MUTE = {"id": "mute", "inputs": [{"type": "dummy", "duration": 3600}]}
NEW = {"id": "new", "inputs": [{"type": "dummy", "duration": 3600}]}
BUS = {"id": "bus", "type": "file", "root": "bus"}
DISK = {"id": "disk", "type": "file", "root": "disk"}
ROOM = {"type": "file", "root": "disk"}
USED = {"id": "used", "type": "file", "root": "used"}
WRITING = {
    "id": "writing",
    "inputs": [{"type": "dummy", "duration": 3600}],
    "outputs": [{"type": "file", "connection": "used", "path": "out"}],
}
CHAIN = {"messages": [1], "transforms": [{"type": "splitter", "out_size": 1}]}
DRAFT = {"text": "- inputs: [ { type: http } ]"}
GLANCE = {"input": {"type": "dummy", "duration": 3600}, "timeout_ms": 0}
SCRIPT = {"source": {"type": "inline", "code": "emit(msg)"}, "messages": [1]}
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
    Case("getPipeline", 200, "/api/pipelines/post"),
    Case("getPipeline", 404, "/api/pipelines/nobody"),
    put(200, "post", {**POST, "transforms": CHAIN["transforms"]}),
    put(400, "post", POST, {"If-Match": "mine"}),
    put(404, "nobody", POST),
    put(412, "post", POST, {"If-Match": '"0"'}),
    put(413, "post", POST, {**LONG, "If-Match": "*"}),
    put(415, "post", POST, {"Content-Type": "text/plain", "If-Match": "*"}),
    put(422, "post", NEW),
    put(428, "post", POST, {}),
    put(500, "post", POST, engine=Broken),
    put(503, "post", POST, reading=full),
    plan(200, "post", POST),
    plan(400, "post", b'{"id": '),
    plan(404, "nobody", POST),
    plan(413, "post", POST, LONG),
    plan(415, "post", POST, {"Content-Type": "text/plain"}),
    plan(422, "post", NEW),
    plan(500, "post", POST, engine=Broken),
    plan(503, "post", POST, reading=full),
    delete(204, "mute"),
    delete(404, "nobody"),
    delete(500, "mute", engine=Broken),
    ingest(202, "post"),
    ingest(400, "post", b"{"),
    ingest(401, "locked"),
    ingest(404, "mute"),
    ingest(413, "post", headers=LONG),
    ingest(415, "post", headers={"Content-Encoding": "br"}),
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
    Case("getPipelineHistory", 400, "/api/pipelines/post/history", query="after=now"),
    Case("getRecentHistory", 200, "/api/history"),
    Case("getRecentHistory", 400, "/api/history", query="limit=0"),
    Case("listFailures", 200, "/api/failures"),
    Case("listFailures", 400, "/api/failures", query="limit=all"),
    Case("getConfigText", 200, "/api/config/text"),
    Case("getConfigText", 400, "/api/config/text", query="of=disk"),
    Case("getConfigText", 404, "/api/config/text", query="of=file"),
    Case(
        *("getConfigText", 409, "/api/config/text"),
        service={"filing": RefusedOnFile},
        query="of=file",
    ),
    Case("getConfigText", 500, "/api/config/text", service={"filing": None}),
    Case("getConfigText", 503, "/api/config/text", service={"reading": full}),
    Case("getServer", 200, "/api/server"),
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
    Case("listConnections", 400, "/api/connections", query="used_by=1"),
    attempt(200, ROOM),
    attempt(400, b'{"type": '),
    attempt(413, ROOM, LONG),
    attempt(415, ROOM, {"Content-Type": "text/plain"}),
    attempt(422, {"type": "file"}),
    attempt(500, ROOM, engine=Broken),
    attempt(503, ROOM, engine=Trying),
    remove(204, "disk"),
    remove(404, "bus"),
    remove(409, "used"),
    remove(500, "disk", engine=Broken),
    Case("listStateBuckets", 200, "/api/state"),
    Case("getStateBucket", 200, "/api/state/machines"),
    Case("getStateBucket", 400, "/api/state/machines", query="after=m1"),
    Case("getStateBucket", 404, "/api/state/nothing"),
    Case("listStored", 200, "/api/stored", service={"engine": Storing}),
    discard(204, "3"),
    discard(404, "9"),
    discard(409, "1"),
    discard(500, "3", Broken),
    discard(503, "3", NotWriting),
    discard_aside(204, "1"),
    discard_aside(404, "3"),
    discard_aside(500, "1", Broken),
    discard_aside(503, "1", NotWriting),
    letters("listDeadLetters", 200, "/api/dead-letters", Lettering),
    letters("listDeadLetters", 400, "/api/dead-letters", Lettering, "pipeline=p&pipeline=q"),
    letters("listDeadLetters", 503, "/api/dead-letters", NoDisk),
    letters("listPipelineDeadLetters", 200, LETTERS, Lettering),
    letters("listPipelineDeadLetters", 400, LETTERS, Lettering, "before=-1"),
    letters("listPipelineDeadLetters", 503, LETTERS, NoDisk),
    letters("getDeadLetter", 200, f"{LETTERS}/1", Lettering),
    letters("getDeadLetter", 404, f"{LETTERS}/2", Lettering),
    letters("getDeadLetter", 503, f"{LETTERS}/1", NoDisk),
    letters("deleteDeadLetters", 200, LETTERS, Lettering, "ids=1,2"),
    letters("deleteDeadLetters", 400, LETTERS, Lettering),
    letters("deleteDeadLetters", 500, LETTERS, BrokenLetters, "ids=1"),
    letters("deleteDeadLetters", 503, LETTERS, NoDisk, "ids=1"),
    replay(200, {"ids": [1], "dry_run": True}),
    replay(202, EVERY),
    replay(400, b'{"ids": '),
    replay(404, EVERY, pipeline="nobody"),
    replay(409, {**EVERY, "input_index": 7}),
    replay(413, EVERY, LONG),
    replay(415, EVERY, {"Content-Type": "text/plain"}),
    replay(422, {}),
    replay(500, EVERY, engine=BrokenLetters),
    replay(503, EVERY, engine=NoDisk),
    letters("getReplay", 200, f"{LETTERS}/replay", Lettering),
    letters("stopReplay", 204, f"{LETTERS}/replay", Lettering),
    letters("stopReplay", 404, "/api/pipelines/nobody/dead-letters/replay", Lettering),
    letters("stopReplay", 500, f"{LETTERS}/replay", BrokenLetters),
    Case("streamEvents", 200, "/events"),
    Case("streamEvents", 400, "/events", query="limit=some"),
    Case("captureMessages", 200, "/api/capture"),
    Case("captureMessages", 400, "/api/capture", query="seconds=0"),
    Case("captureMessages", 404, "/api/capture", query="pipeline=nobody"),
    Case("captureMessages", 503, "/api/capture", service={"engine": Captured}),
    Case("getSettings", 200, "/api/settings"),
    save(200, {"name": "saved.json"}),
    save(400, b'{"name": '),
    save(409, {"name": "taken.json", "overwrite": False}),
    save(413, {"name": "saved.json"}, LONG),
    save(415, {"name": "saved.json"}, {"Content-Type": "text/plain"}),
    save(422, {"name": "../saved.json"}),
    save(500, {"name": "saved.json"}, filing=BrokenFiling),
    save(503, {"name": "saved.json"}, reading=full),
    check(200, DRAFT),
    check(400, b'{"text": '),
    check(404, {"text": "{}", "document": "pipeline", "id": "nobody"}),
    check(413, DRAFT, LONG),
    check(415, DRAFT, {"Content-Type": "text/plain"}),
    check(500, DRAFT, catalogue=None),
    check(503, DRAFT, checks=Crowded),
    revert(204, filing=OnFile),
    revert(500),
    revert(503, filing=OnFile, reading=full),
    Case("planRevert", 200, "/api/config/plan", service={"filing": OnFile}),
    Case("planRevert", 500, "/api/config/plan"),
    Case("getLayout", 200, "/api/layout"),
    arrange(204, {}),
    arrange(400, b'{"pipelines": '),
    arrange(412, {}, JSON | {"If-Match": '"another"'}),
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
    Case("consoleAsset", 200, "/console/start.js"),
    Case("consoleAsset", 404, "/console/..%2Findex.html"),
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
