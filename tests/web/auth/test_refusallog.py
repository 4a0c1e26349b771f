"""What the log tells of those who were not signed in."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import pytest

from headrace.authoring.configfiles import catalogue
from headrace.compiler.clock import Clock
from headrace.compiler.runtime.engine import Engine
from headrace.web.auth.access import Access, Caller
from headrace.web.auth.accountauth import RefusalLog
from headrace.web.auth.credentials import TokenRefused, WrongPassword
from headrace.web.service import Service
from tests.virtual import virtual
from tests.web.auth.house import House
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
from tests.web.jsonengine import JsonEngine

PASSWORD = "192.0.2.1: wrong username or password"
TOKEN = "192.0.2.1: the token is not accepted: "
ELSEWHERE = "192.0.2.1: a page of another site may have sent it"
LOGIN, TOKEN_LOGIN = "/api/auth/login", "/api/auth/token"
FOREIGN = {"Origin": "https://elsewhere.example", "Host": "here.example"}


@pytest.fixture(autouse=True)
def every_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "headrace")


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.message for each in caplog.records if each.name == "headrace.web"]


@pytest.mark.parametrize(
    ("method", "path", "headers", "body", "said"),
    [
        ("POST", LOGIN, {}, {"username": ADMIN, "password": "hunter2"}, PASSWORD),
        ("POST", LOGIN, {}, {"username": "hunter2", "password": "x"}, PASSWORD),
        ("POST", LOGIN, FOREIGN, {"username": ADMIN, "password": "hunter2"}, ELSEWHERE),
        ("POST", TOKEN_LOGIN, {}, {"token": "hunter2"}, TOKEN),
        ("POST", TOKEN_LOGIN, FOREIGN, {"token": "hunter2"}, ELSEWHERE),
        ("GET", "/api/pipelines", basic(ADMIN, "hunter2"), None, PASSWORD),
        ("GET", "/api/pipelines", basic("hunter2", "x"), None, PASSWORD),
        ("GET", "/api/pipelines", {"Authorization": "Basic hunter2"}, None, PASSWORD),
        ("GET", "/api/pipelines", bearer("hunter2"), None, TOKEN),
        ("GET", "/api/auth/me", basic(ADMIN, "hunter2"), None, PASSWORD),
        ("GET", "/events", basic(ADMIN, "hunter2"), None, PASSWORD),
        ("DELETE", "/api/pipelines/p", cookie("live") | FOREIGN, None, ELSEWHERE),
        ("POST", "/api/auth/logout", cookie("live") | FOREIGN, None, ELSEWHERE),
    ],
)
async def test_who_is_refused_is_told_of_by_where_from_and_why(
    service: Service,
    caplog: pytest.LogCaptureFixture,
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: Any,
    said: str,
) -> None:
    house = House(service, guarded(service.clock, tokens=Issued({})))
    live = house.authenticator.sessions.open(Caller(Access.ADMIN, ADMIN))
    headers = {name: value.replace("live", live) for name, value in headers.items()}

    answer = await house.ask(method, path, JSON | headers, body)

    assert answer.status == (200 if path == "/api/auth/me" else answer.status)
    [entry] = [each for each in caplog.records if each.name == "headrace.web"]
    assert (entry.levelno, entry.message) == (
        logging.WARNING,
        f"a sign-in was refused, from {said}",
    )
    assert "hunter2" not in caplog.text


async def test_who_is_let_in_or_does_not_try_is_not_told_of(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    house = House(service, guarded(service.clock))
    given = {"username": READER, "password": PASSWORDS[READER]}

    for headers in ({}, cookie("0" * 64), basic(READER), {"Authorization": "Digest x"}):
        await house.ask("GET", "/api/pipelines", headers)
        await house.ask("POST", "/api/pipelines", JSON | headers, {})
    await house.ask("POST", LOGIN, JSON, given)
    await house.ask("POST", LOGIN, JSON, {"username": READER})
    await house.ask("POST", "/api/auth/logout", FOREIGN)

    assert told(caplog) == []


@virtual
async def test_of_many_the_first_is_told_at_once_and_the_others_once_a_second(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock(asyncio.get_running_loop())
    refusals = RefusalLog(clock)

    def refused(peer: int) -> None:
        refusals.add({"client": (f"192.0.2.{peer}", 4711)}, WrongPassword())

    for peer in range(1, 43):
        refused(peer)
    assert told(caplog) == ["a sign-in was refused, from " + PASSWORD]
    await clock.sleep(1.5)
    refused(7)
    refused(8)
    await clock.sleep(1)
    refused(9)
    await clock.sleep(1)
    await clock.sleep(1)
    refused(10)

    why = "wrong username or password"
    assert told(caplog)[1:] == [
        f"41 more sign-ins were refused, the last from 192.0.2.42: {why}",
        f"2 more sign-ins were refused, the last from 192.0.2.8: {why}",
        f"one more sign-in was refused, from 192.0.2.9: {why}",
        f"a sign-in was refused, from 192.0.2.10: {why}",
    ]
    refusals.close()


@virtual
async def test_a_server_that_ends_tells_what_is_left(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock(asyncio.get_running_loop())
    components = catalogue()
    engine = JsonEngine(Engine(clock), components)
    authenticator = guarded(clock)
    house = House(Service(engine, components, clock), authenticator)
    for _ in range(3):
        await house.ask("GET", "/api/pipelines", bearer("x"))

    await authenticator.close()
    await engine.close()

    said = f"{TOKEN}this server takes none"
    assert told(caplog) == [
        f"a sign-in was refused, from {said}",
        f"2 more sign-ins were refused, the last from {said}",
    ]
    await clock.sleep(10)
    assert len(told(caplog)) == 2


@virtual
async def test_a_peer_without_an_address_is_told_of_too(caplog: pytest.LogCaptureFixture) -> None:
    RefusalLog(Clock(asyncio.get_running_loop())).add({}, TokenRefused(why="it has expired"))

    why = "the token is not accepted: it has expired"
    assert told(caplog) == [f"a sign-in was refused, from an unknown address: {why}"]
