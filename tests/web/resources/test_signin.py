"""Login, logout and who is signed in, as they are answered."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from headrace.web.auth.access import Access
from headrace.web.auth.credentials import LoginRequest, SignInCredential, Verified
from headrace.web.service import Service
from tests.web.auth.house import NOBODY, House, signed_in
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
    session_of,
)

OPEN = {"authentication_required": False, "username": None, "role": None}
LOGIN = "/api/auth/login"


@pytest.fixture
def house(service: Service) -> House:
    tokens = Issued({"good": Verified("carl", Access.READ, 4_000_000_000)})
    return House(service, guarded(service.clock, tokens=tokens))


@pytest.fixture
def open_house(house: House, service: Service) -> House:
    house.service.authenticator = service.authenticator
    return house


def of(name: str) -> dict[str, str]:
    return {"username": name, "password": PASSWORDS[name]}


async def test_a_login_answers_who_is_signed_in_and_sets_the_cookie(house: House) -> None:
    answer = await house.ask("POST", LOGIN, JSON, of(READER))

    assert answer.status == 200
    assert answer.json == signed_in(READER, "read")
    assert answer.headers["cache-control"] == "no-store"
    id = session_of(answer.headers["set-cookie"])
    assert len(id) == 64
    assert answer.headers["set-cookie"] == (
        f"headrace_session={id}; HttpOnly; SameSite=Strict; Path=/"
    )
    assert (await house.ask("GET", "/api/pipelines", cookie(id))).status == 200


async def test_the_cookie_is_secure_behind_a_proxy_with_tls(house: House) -> None:
    answer = await house.ask("POST", LOGIN, JSON | {"X-Forwarded-Proto": "https"}, of(READER))

    assert answer.headers["set-cookie"].endswith("; Path=/; Secure")


async def test_every_login_makes_a_session_of_its_own(house: House) -> None:
    assert len({await house.session(READER) for _ in range(5)}) == 5


@pytest.mark.parametrize(
    ("username", "password"),
    [
        (ADMIN, "wrong"),
        (ADMIN, ""),
        (ADMIN, PASSWORDS[READER]),
        ("eve", "wrong"),
        ("", ""),
        ("carl", "good"),
        ("x" * 7_000, "x"),
        (ADMIN, "x" * 7_000),
        ("\x00\n", "\u2028"),
    ],
)
async def test_who_may_not_sign_in_is_told_the_same_whatever_was_wrong(
    house: House, username: str, password: str
) -> None:
    answer = await house.ask("POST", LOGIN, JSON, {"username": username, "password": password})

    assert answer.status == 401
    assert answer.json == {"error": "login: wrong username or password"}
    assert "set-cookie" not in answer.headers
    assert "www-authenticate" not in answer.headers


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        "hunter2",
        ["hunter2"],
        {},
        {"username": "ann"},
        {"password": "hunter2"},
        {"username": "ann", "password": None},
        {"username": "ann", "password": 1},
        {"username": {"hunter2": "hunter2"}, "password": "hunter2"},
        {"username": "ann", "password": ["hunter2"]},
        {"username": "ann", "passwort": "hunter2"},
        {"username": "ann", "password": "hunter2", "remember": "hunter2"},
    ],
)
async def test_what_is_no_login_is_refused_without_a_word_of_it(house: House, body: Any) -> None:
    answer = await house.ask("POST", LOGIN, JSON, body)

    assert answer.status == (400 if body is None else 422)
    assert answer.json["error"].startswith(
        "the body is not JSON: " if body is None else "nobody was signed in: "
    )
    assert b"hunter2" not in answer.body


@pytest.mark.parametrize(
    "body",
    [
        "hunter2",
        '{"username": "ann", "password": hunter2}',
        '{"username": "ann", "password": "hunter2}',
        '{"username": "ann", "password": \'hunter2\'}',
        '{"username": "ann", "password": "a"hunter2"}',
        '{"username": "ann", "password": "a", hunter2: 1}',
        '{"username": "ann", "password": "\\hunter2"}',
        '{"username": "ann", "password": "hunter2"} hunter2',
        '{"username": "ann", "password": [' + '"hunter2",' * 200 + "1]}",
    ],
)
async def test_what_is_no_json_is_refused_with_its_place_and_without_a_word_of_it(
    house: House, body: str
) -> None:
    asking = house.asking("POST", LOGIN, JSON, [body.encode()])
    await asking.run()

    assert asking.status == 400
    [told] = asking.json["diagnostics"]
    place = f"line 1, column {told['column']}"
    assert asking.json["error"] == f"the body is not JSON: {place}: here it cannot be read on"
    assert told["found"] is None
    assert b"hunter" not in asking.body
    assert b"\\h" not in asking.body


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (LOGIN, '{"username": "eve", "username": "bob", "password": "hunter2"}'),
        (LOGIN, '{"username": "bob", "password": "hunter1", "password": "hunter2"}'),
        ("/api/auth/token", '{"token": "hunter2", "token": "good"}'),
    ],
)
async def test_a_key_that_is_given_twice_signs_nobody_in(
    house: House, path: str, body: str
) -> None:
    asking = house.asking("POST", path, JSON, [body.encode()])
    await asking.run()

    assert (asking.status, "set-cookie" in asking.headers) == (422, False)
    assert [each["code"] for each in asking.json["diagnostics"]] == ["duplicate-key"]
    assert b"hunter" not in asking.body


async def test_a_body_that_is_made_to_be_dear_is_read_no_further_than_any_login(
    house: House,
) -> None:
    asking = house.asking("POST", LOGIN, JSON, [b'{"username": [' + b"[]," * 2_000 + b"[]]}"])
    await asking.run()

    assert asking.status == 400
    [told] = asking.json["diagnostics"]
    assert (told["code"], told["column"] < 1000) == ("too-large", True)


BODIES = [(LOGIN, of(READER), 8 * 1024), ("/api/auth/token", {"token": "good"}, 64 * 1024)]


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize(("path", "body", "most"), BODIES)
async def test_what_is_posted_to_sign_in_has_a_bound(
    house: House, service: Service, path: str, body: Any, most: int, is_open: bool
) -> None:
    if is_open:
        house.service.authenticator = service.authenticator
    largest = json.dumps(body).encode().ljust(most)
    fits = house.asking("POST", path, JSON, [largest])
    announced = house.asking("POST", path, JSON | {"Content-Length": str(most + 1)}, [b" "] * 3)
    sent = house.asking("POST", path, JSON, [largest, b" ", b" "])

    for asking in (fits, announced, sent):
        await asking.run()

    assert [asking.status for asking in (fits, announced, sent)] == [200, 413, 413]
    assert sent.json["error"].endswith(f"the body is larger than {most} bytes")
    assert sent.headers["connection"] == "close"
    assert (announced.unread, sent.unread) == (2, 1)  # it is known by then, and read no further


def test_what_is_given_shows_nowhere() -> None:
    given = LoginRequest.load({"username": "ann", "password": "hunter2"})

    assert "hunter2" not in repr(given)
    assert "hunter2" not in f"{given.password} {given}"
    assert repr(SignInCredential("hunter2")) == "Given(***)"


async def test_a_login_leaves_no_trace_in_the_log(house: House, caplog: Any) -> None:
    caplog.set_level(logging.DEBUG)
    for body in (of(READER), {"username": "ann", "password": "hunter2"}, {"password": "hunter2"}):
        await house.ask("POST", LOGIN, JSON, body)
    session = await house.session(READER)
    await house.ask("GET", "/api/pipelines", basic(ADMIN, "hunter2") | cookie(session))

    for said in ("hunter2", PASSWORDS[READER], session):
        assert said not in caplog.text


async def test_a_page_of_another_site_signs_nobody_in_or_out(house: House) -> None:
    elsewhere = {"Origin": "https://elsewhere.example", "Host": "here.example"}
    session = await house.session(READER)

    for path, body in (
        (LOGIN, of(READER)),
        ("/api/auth/token", {"token": "good"}),
        ("/api/auth/logout", None),
    ):
        refused = await house.ask("POST", path, JSON | cookie(session) | elsewhere, body)
        assert refused.status == 403
        operation = {LOGIN: "login", "/api/auth/token": "tokenLogin"}.get(path, "logout")
        assert refused.json["error"].startswith(f"{operation}: the Origin of this request")
        assert "set-cookie" not in refused.headers
    assert await house.me(cookie(session)) == signed_in(READER, "read")


async def test_without_a_session_there_is_nothing_that_another_site_could_end(house: House) -> None:
    elsewhere = {"Origin": "https://elsewhere.example", "Host": "here.example"}
    ended = await house.session(READER)
    await house.ask("POST", "/api/auth/logout", cookie(ended))

    for headers in ({}, cookie(ended), cookie("0" * 64), basic(READER)):
        assert (await house.ask("POST", "/api/auth/logout", headers | elsewhere)).status == 204


async def test_where_nobody_is_asked_it_does_not_matter_who_has_sent_it(open_house: House) -> None:
    elsewhere = JSON | {"Origin": "https://elsewhere.example", "Host": "here.example"}

    for path, body in ((LOGIN, of(ADMIN)), ("/api/auth/token", {"token": "good"})):
        answer = await open_house.ask("POST", path, elsewhere, body)
        assert (answer.status, answer.json) == (200, OPEN)
    assert (await open_house.ask("POST", "/api/auth/logout", elsewhere)).status == 204


async def test_a_login_takes_the_place_of_the_session_it_came_with(house: House) -> None:
    before = await house.session(READER)

    answer = await house.ask("POST", LOGIN, JSON | cookie(before), of(ADMIN))
    assert await house.me(cookie(session_of(answer.headers["set-cookie"]))) == signed_in(
        ADMIN, "admin"
    )
    assert await house.me(cookie(before)) == NOBODY


async def test_a_login_that_is_refused_leaves_the_session_as_it_was(house: House) -> None:
    before = await house.session(READER)

    await house.ask("POST", LOGIN, JSON | cookie(before), {"username": ADMIN, "password": "x"})
    assert await house.me(cookie(before)) == signed_in(READER, "read")


async def test_after_a_logout_every_copy_of_the_cookie_is_worth_nothing(house: House) -> None:
    session, other = await house.session(READER), await house.session(READER)

    answer = await house.ask("POST", "/api/auth/logout", cookie(session))
    assert answer.status == 204
    assert answer.headers["set-cookie"] == (
        "headrace_session=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0"
    )
    assert await house.me(cookie(session)) == NOBODY
    assert (await house.ask("GET", "/api/pipelines", cookie(session))).status == 401
    assert await house.me(cookie(other)) == signed_in(READER, "read")


@pytest.mark.parametrize(
    "headers", [{}, cookie("0" * 64), cookie(""), basic(ADMIN), basic("eve", "x"), bearer("bad")]
)
async def test_to_sign_out_nobody_has_to_be_signed_in(house: House, headers: Any) -> None:
    assert (await house.ask("POST", "/api/auth/logout", headers)).status == 204


@pytest.mark.parametrize(
    "headers", [{}, basic(ADMIN, "wrong"), bearer("bad"), cookie("0" * 64), {"Authorization": "ÿ"}]
)
async def test_who_is_signed_in_is_no_failure_for_who_is_not(house: House, headers: Any) -> None:
    assert await house.me(headers) == NOBODY


async def test_on_a_server_without_accounts_nobody_is_asked(open_house: House) -> None:
    for headers in ({}, basic(ADMIN), bearer("good"), cookie("0" * 64)):
        assert await open_house.me(headers) == OPEN
    for path, body in ((LOGIN, of(ADMIN)), (LOGIN, {"username": "", "password": ""})):
        answer = await open_house.ask("POST", path, JSON, body)
        assert (answer.status, answer.json) == (200, OPEN)
        assert "set-cookie" not in answer.headers
    assert (await open_house.ask("POST", LOGIN, JSON, {})).status == 422
    answer = await open_house.ask("POST", "/api/auth/logout", {})
    assert (answer.status, answer.body) == (204, b"")
    assert "set-cookie" not in answer.headers


async def test_a_setting_decides_when_a_browser_sends_the_cookie(service: Service) -> None:
    house = House(service, guarded(service.clock, same_site="none"))

    answer = await house.ask("POST", LOGIN, JSON, of(READER))
    assert answer.headers["set-cookie"].endswith("; HttpOnly; SameSite=None; Path=/; Secure")
