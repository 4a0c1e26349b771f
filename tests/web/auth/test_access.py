"""Every operation asked in every way by everybody: the table's answer in every cell, and no way round."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
import pytest_asyncio

from headrace.compiler.clock import Clock
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.runtime.engine import Engine
from headrace.web.app import Application
from headrace.web.auth.access import Access, Authenticator, Caller, OpenAccess
from headrace.web.auth.accountauth import Authentication
from headrace.web.auth.accounts import BasicHeaders
from headrace.web.auth.credentials import Verified
from headrace.web.auth.passwords import Crowded
from headrace.web.endpoint import Endpoint
from headrace.web.files.reading import Files, load
from headrace.web.openapi import described
from headrace.web.resources import ENDPOINTS
from headrace.web.service import Service
from tests.web.auth.everybody import (
    ADMINS,
    ANYBODY,
    ASKED,
    CELLS,
    COLUMNS,
    LEVELS,
    NAMED,
    NAMES,
    NOBODY,
    PUBLIC,
    READ,
    SPECIFIED,
    TOKENS,
    expected,
)
from tests.web.auth.people import (
    ADMIN,
    JSON,
    PASSWORDS,
    READER,
    Issued,
    basic,
    bearer,
    cookie,
    guarded,
)
from tests.web.exchange import Exchange
from tests.web.jsonengine import JsonEngine


class House:
    """A server that was started from a file, behind doors, and what is asked of it."""

    def __init__(self, folder: Path, service: Service, authenticator: Authenticator) -> None:
        self.folder, self.authenticator = folder, authenticator
        service.authenticator = authenticator
        self.service = service
        self.application = Application(service)

    async def ask(
        self, method: str, path: str, headers: Mapping[str, str], body: Any = None
    ) -> Exchange:
        """Send a request, read the beginning of its answer, and leave."""
        exchange = Exchange(
            self.application,
            method,
            path,
            headers=[(n.lower().encode(), v.encode("latin-1")) for n, v in headers.items()],
            body=[b"" if body is None else json.dumps(body).encode()],
        )
        asking = asyncio.ensure_future(exchange.run())
        await exchange.sent.get()
        exchange.leave()
        await asking
        return exchange

    def credential(self, who: str, way: str) -> dict[str, str]:
        """Return the headers of somebody who comes in by a way, or tries to."""
        if way == "none":
            return {}
        if who in NAMES:
            return {
                "basic": lambda: basic(NAMES[who]),
                "bearer": lambda: bearer(TOKENS[who]),
                "cookie": lambda: cookie(self.session(who)),
            }[way]()
        return {
            "basic": basic(ADMIN, "guessed"),
            "bearer": bearer("forged"),
            "cookie": cookie("0" * 64),
        }[way]

    def session(self, who: str) -> str:
        """Return the id of a session of somebody."""
        assert isinstance(self.authenticator, Authentication)
        level = {READ: Access.READ, ADMINS: Access.ADMIN}[who]
        return self.authenticator.sessions.open(Caller(level, NAMES[who]))

    def state(self) -> Any:
        """Return what requests can change."""
        return (
            [*self.service.engine.names()],
            dict(self.service.engine.connections),
            self.service.filing.layout,
            {file.name: file.read_bytes() for file in self.folder.iterdir() if file.is_file()},
        )


Build = Callable[[Authenticator | None], House]


@pytest_asyncio.fixture
async def build(tmp_path: Path, components: Catalogue) -> AsyncIterator[Build]:
    """Give a function that returns the server, behind the doors it is given or those of accounts."""
    config = {"state": {"seen": {}}, "pipelines": [{"id": "p", "inputs": [{"type": "http"}]}]}
    (tmp_path / "plant.json").write_text(json.dumps(config))
    filed = {"disk": {"type": "file", "root": "data"}}
    (tmp_path / "plant.connections.json").write_text(json.dumps(filed))
    loaded = load(Files(config=tmp_path / "plant.json"), components)
    assert loaded.program is not None
    inner = Engine(
        Clock(asyncio.get_running_loop()), connections=loaded.connections, base=loaded.base
    )
    engine = JsonEngine(inner, components)
    await engine.load(loaded.program)
    service = Service(engine, components, engine.clock, is_ready=True, files=loaded.files)
    service.filing.loaded(loaded.layout)

    def made(authenticator: Authenticator | None = None) -> House:
        issued = {
            TOKENS[READ]: Verified("dora", Access.READ, 4_000_000_000),
            TOKENS[ADMINS]: Verified("carl", Access.ADMIN, 4_000_000_000),
        }
        return House(
            tmp_path,
            service,
            authenticator or guarded(engine.clock, tokens=Issued(issued), idle=3600),
        )

    yield made
    await engine.close()


def test_the_table_has_the_levels_of_the_specification_and_a_cell_for_every_caller() -> None:
    levels = {each.operation: each.access.name.lower() for each in ENDPOINTS}
    levels |= {each.operation: PUBLIC for each in ENDPOINTS if each.takes_anybody}

    assert levels == LEVELS
    assert ASKED.keys() == LEVELS.keys()
    assert len(LEVELS) > SPECIFIED
    assert len(COLUMNS) == 14
    assert len(CELLS) == 14 * len(LEVELS)


def _named(cell: Any) -> str:
    return cell.operation if isinstance(cell, Endpoint) else str(cell)


@pytest.mark.parametrize(("endpoint", "who", "way"), CELLS, ids=_named)
async def test_everybody_gets_the_answer_of_the_table(
    build: Build, endpoint: Endpoint, who: str, way: str
) -> None:
    house = build(OpenAccess() if who == ANYBODY else None)
    before = house.state()
    _, body = ASKED[endpoint.operation]
    headers = house.credential(who, way) | (JSON if endpoint.method in ("POST", "PUT") else {})

    answer = await house.ask(endpoint.method, endpoint.path.format_map(NAMED), headers, body)

    assert answer.status == expected(endpoint.operation, who), answer.body
    assert "www-authenticate" not in answer.headers
    if answer.status in (401, 403):
        assert answer.json.keys() == {"error"}
        assert house.state() == before


class NoTurn:
    """Accounts that have so many ask that one more is turned away."""

    async def caller(self, username: str, password: str) -> Any:
        raise Crowded


async def test_where_too_many_wait_what_is_protected_says_so_as_it_is_described(
    build: Build, components: Catalogue
) -> None:
    house = build(None)
    assert isinstance(house.authenticator, Authentication)
    house.authenticator._basic = BasicHeaders(cast(Any, NoTurn()))
    before = house.state()
    paths = described(components)["paths"]
    for endpoint in ENDPOINTS:
        headers = basic(READER) | JSON
        answer = await house.ask(endpoint.method, endpoint.path.format_map(NAMED), headers)
        operation = paths[endpoint.path][endpoint.method.lower()]
        if LEVELS[endpoint.operation] == PUBLIC:
            assert answer.status != 503, endpoint.operation
        else:
            assert answer.status == 503, endpoint.operation
            assert answer.json == {"error": f"{endpoint.operation}: {Crowded()}"}
            said = operation["responses"]["503"]["description"]
            assert said.endswith("Too many wait to sign in; try again later.")
            if 503 in endpoint.responses:
                assert said.startswith(endpoint.responses[503].meaning)
    assert house.state() == before


PROTECTED = [endpoint for endpoint in ENDPOINTS if LEVELS[endpoint.operation] != PUBLIC]
SPELLINGS: Mapping[str, Callable[[str], str]] = {
    "a slash at its end": lambda path: f"{path}/",
    "two slashes first": lambda path: f"/{path}",
    "two slashes within": lambda path: "/".join([*path.split("/")[:-1], "", path.split("/")[-1]]),
    "a letter escaped": lambda path: f"{path[:-1]}%{ord(path[-1]):02x}",
    "the first letter escaped": lambda path: f"/%{ord(path[1]):02X}{path[2:]}",
    "slashes escaped": lambda path: f"/{path[1:].replace('/', '%2f')}",
    "through a public one": lambda path: f"/livez/..{path}",
    "through a public one, escaped": lambda path: f"/livez/%2e%2e{path}",
    "through the reference": lambda path: f"/api/reference/..%2f..{path}",
    "a dot first": lambda path: f"/.{path}",
    "capitals": str.upper,
    "parameters": lambda path: f"{path};a=b",
    "a NUL": lambda path: f"{path}%00",
    "an escape of an escape": lambda path: path.replace("a", "%2561"),
    "a line break": lambda path: f"{path}%0d%0a",
    "a backslash": lambda path: path.replace("/", "\\"),
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
async def test_no_spelling_of_a_path_leads_round_the_table(
    build: Build, spelling: Callable[[str], str]
) -> None:
    house = build(None)
    before = house.state()
    for endpoint in PROTECTED:
        path = spelling(endpoint.path.format_map(NAMED))
        for who, way in ((NOBODY, "none"), (READ, "basic")):
            if who == READ and LEVELS[endpoint.operation] == READ:
                continue
            headers = house.credential(who, way) | JSON
            answer = await house.ask(endpoint.method, path, headers, ASKED[endpoint.operation][1])
            assert answer.status in (401, 403, 404, 405), (endpoint.operation, path)
    assert house.state() == before


OVERRIDES = (
    "X-HTTP-Method-Override",
    "X-HTTP-Method",
    "X-Method-Override",
)
REWRITES = ("X-Original-URL", "X-Rewrite-URL", "X-Forwarded-Prefix", "X-Forwarded-Uri")
CLAIMS = {
    "X-Forwarded-User": ADMIN,
    "X-Remote-User": ADMIN,
    "Remote-User": ADMIN,
    "X-Forwarded-For": "127.0.0.1",
    "X-Real-IP": "127.0.0.1",
    "Forwarded": "for=127.0.0.1",
    "X-Forwarded-Host": "localhost",
    "Host": "localhost",
}


async def test_no_header_of_a_proxy_makes_somebody_of_nobody(build: Build) -> None:
    house = build(None)
    for endpoint in PROTECTED:
        path = endpoint.path.format_map(NAMED)
        body = ASKED[endpoint.operation][1]
        for headers in (CLAIMS | JSON, CLAIMS | JSON | house.credential(READ, "cookie")):
            answer = await house.ask(endpoint.method, path, headers, body)
            who = READ if "Cookie" in headers else NOBODY
            assert answer.status == expected(endpoint.operation, who), endpoint.operation


async def test_no_header_makes_another_request_of_one(build: Build) -> None:
    house = build(None)
    before = house.state()
    reader = house.credential(READ, "basic")
    for name in OVERRIDES:
        answer = await house.ask("GET", "/api/pipelines", reader | {name: "POST"})
        assert (answer.status, isinstance(answer.json, list)) == (200, True)
        answer = await house.ask("POST", "/api/pipelines/p/messages", {name: "DELETE"}, {})
        assert answer.status == 202
    for name in REWRITES:
        answer = await house.ask("GET", "/livez", {name: "/api/pipelines"})
        assert isinstance(answer.json, dict)
    assert house.state() == before


async def test_head_asks_as_much_as_get_does_and_options_tells_and_does_nothing(
    build: Build,
) -> None:
    house = build(None)
    before = house.state()
    for endpoint in PROTECTED:
        path = endpoint.path.format_map(NAMED)
        if endpoint.method == "GET":
            refused = await house.ask("HEAD", path, {})
            level = LEVELS[endpoint.operation]
            let_in = await house.ask("HEAD", path, house.credential(level, "basic"))
            assert (refused.status, refused.body) == (401, b""), endpoint.operation
            status, _ = ASKED[endpoint.operation]
            assert (let_in.status, let_in.body) == (status, b""), endpoint.operation
        told = await house.ask("OPTIONS", path, JSON, ASKED[endpoint.operation][1])
        assert told.status == 200
        assert endpoint.method in told.headers["allow"]
    assert house.state() == before


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (cookie("0" * 64) | basic(ADMIN), 200),
        (cookie("0" * 64) | basic(ADMIN, "guessed"), 401),
        (cookie("") | bearer(TOKENS[READ]), 200),
        (basic(ADMIN, ""), 401),
        (basic("", ""), 401),
        (basic("nobody", PASSWORDS[ADMIN]), 401),
        (basic(ADMIN.upper(), PASSWORDS[ADMIN]), 401),
        (basic(ADMIN, f"{PASSWORDS[ADMIN]}\0"), 401),
        (basic(ADMIN, PASSWORDS[ADMIN], scheme="Bearer"), 401),
        (bearer(""), 401),
        ({"Authorization": ""}, 401),
        ({"Authorization": "Basic"}, 401),
        ({"Authorization": "Basic !!!"}, 401),
        ({"Authorization": f"Digest {basic(ADMIN)['Authorization'][6:]}"}, 401),
        ({"Authorization": f"Bearer {basic(ADMIN)['Authorization'][6:]}"}, 401),
        ({"Authorization": f"Basic {TOKENS[ADMINS]}"}, 401),
        ({"Proxy-Authorization": basic(ADMIN)["Authorization"]}, 401),
        ({"Cookie": f"headrace_session={TOKENS[ADMINS]}"}, 401),
        ({"Cookie": "headrace_session"}, 401),
        ({"Cookie": "=;;headrace_session=;=" * 1000}, 401),
    ],
)
async def test_only_what_is_worth_something_lets_somebody_in(
    build: Build, headers: dict[str, str], status: int
) -> None:
    answer = await build(None).ask("GET", "/api/pipelines", headers)

    assert answer.status == status


async def test_a_session_that_is_over_lets_nobody_in_and_no_other_goes_with_it(
    build: Build,
) -> None:
    house = build(None)
    ended, other = cookie(house.session(ADMINS)), cookie(house.session(ADMINS))
    assert (await house.ask("GET", "/api/pipelines", ended)).status == 200

    assert (await house.ask("POST", "/api/auth/logout", ended | JSON)).status == 204

    assert (await house.ask("GET", "/api/pipelines", ended)).status == 401
    assert (await house.ask("GET", "/events", ended)).status == 401
    assert (await house.ask("GET", "/api/pipelines", other)).status == 200
