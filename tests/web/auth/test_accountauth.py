"""The ways in to a server with accounts, and what each of them lets somebody do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping

import pytest

from headrace.authoring.configfiles import catalogue
from headrace.compiler.clock import Clock, run_virtual
from headrace.compiler.runtime.engine import Engine
from headrace.web.auth import passwords
from headrace.web.auth.access import Access
from headrace.web.auth.credentials import Verified
from headrace.web.auth.passwords import Crowded
from headrace.web.auth.sessions import COOKIE
from headrace.web.service import Service
from tests.clients import PATIENCE
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
    made,
)
from tests.web.exchange import Exchange
from tests.web.jsonengine import JsonEngine

TOKENS = Issued(
    {
        "of-carl": Verified("carl", Access.ADMIN, 4_000_000_000),
        "of-dora": Verified("dora", Access.READ, 4_000_000_000),
    }
)


@pytest.fixture
def house(service: Service) -> House:
    return House(service, guarded(service.clock, tokens=TOKENS))


@pytest.fixture
def basic_house(service: Service) -> House:
    return House(service, guarded(service.clock))


async def test_every_way_in_leads_to_the_same_person(house: House) -> None:
    session = await house.session(READER)

    assert await house.me(basic(READER)) == signed_in(READER, "read")
    assert await house.me(basic(ADMIN)) == signed_in(ADMIN, "admin")
    assert await house.me(cookie(session)) == signed_in(READER, "read")
    assert await house.me(bearer("of-carl")) == signed_in("carl", "admin")
    assert await house.me(bearer("of-dora")) == signed_in("dora", "read")
    assert await house.me({}) == NOBODY


@pytest.mark.parametrize("scheme", ["Basic", "basic", "BASIC", "bAsIc", "Basic "])
async def test_the_scheme_is_written_in_any_case(house: House, scheme: str) -> None:
    assert await house.me(basic(READER, scheme=scheme)) == signed_in(READER, "read")
    said = {"Authorization": scheme.replace("asic", "earer").replace("ASIC", "EARER")}
    said["Authorization"] = said["Authorization"].strip().replace("bAsIc", "bEaReR") + " of-carl"
    assert await house.me(said) == signed_in("carl", "admin")


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Basic",
        "Basic ",
        "Basic *",
        "Basic YW5u",
        "Basic /////w==",
        "Basic " + "A" * 60_000,
        "Bearer",
        "Bearer ",
        "Bearer nonsense",
        "Bearer " + "x" * 60_000,
        "Digest username=ann",
        "of-carl",
        "\x00",
        "Basic\x00",
        "ÿ",
    ],
)
async def test_what_is_no_credential_lets_nobody_in(house: House, value: str) -> None:
    assert await house.me({"Authorization": value}) == NOBODY
    refused = await house.ask("GET", "/api/pipelines", {"Authorization": value})
    assert refused.status == 401
    assert refused.json == {
        "error": "listPipelines: nobody is signed in, or the credential is not valid"
    }
    assert "www-authenticate" not in refused.headers


async def test_a_wrong_password_and_an_unknown_name_are_refused_alike(house: House) -> None:
    answers = [
        await house.ask("GET", "/api/pipelines", headers)
        for headers in ({}, basic(ADMIN, "wrong"), basic("eve", "wrong"), bearer("bad"))
    ]

    assert {answer.status for answer in answers} == {401}
    assert len({(answer.body, tuple(answer.headers)) for answer in answers}) == 1


async def test_a_role_that_is_too_low_is_told_who_and_what(house: House) -> None:
    refused = await house.ask("POST", "/api/pipelines", basic(READER) | JSON, {"id": "p"})

    assert refused.status == 403
    assert refused.json == {"error": "createPipeline: needs 'admin', 'bob' has 'read'"}


async def test_who_asks_is_settled_before_what_is_asked(house: House) -> None:
    broken = [("POST", "/api/pipelines"), ("DELETE", "/api/pipelines/nobody")]

    for method, path in broken:
        assert (await house.ask(method, path, {})).status == 401
        assert (await house.ask(method, path, basic(READER), ["nonsense"])).status == 403
        assert (await house.ask(method, path, basic(ADMIN), ["nonsense"])).status in (404, 422)
    assert (await house.ask("GET", "/api/state/nothing", {})).status == 401
    assert (await house.ask("GET", "/api/state/nothing", basic(READER))).status == 404


async def test_an_unknown_path_is_unknown_to_everybody(house: House) -> None:
    for headers in ({}, basic(READER), basic(ADMIN)):
        assert (await house.ask("GET", "/api/nothing", headers)).status == 404
        assert (await house.ask("PATCH", "/api/pipelines", headers)).status == 405
        assert (await house.ask("OPTIONS", "/api/pipelines", headers)).status == 200


async def test_head_is_checked_as_get_is(house: House) -> None:
    for path in ("/api/pipelines", "/events", "/metrics"):
        assert (await house.ask("HEAD", path, {})).status == 401
        assert (await house.ask("HEAD", path, basic(READER))).status == 200


async def test_ingest_takes_no_notice_of_any_of_it(house: House) -> None:
    await house.ask(
        "POST", "/api/pipelines", basic(ADMIN) | JSON, {"id": "p", "inputs": [{"type": "http"}]}
    )

    for headers in ({}, basic("eve", "wrong"), cookie("0" * 64), {"Origin": "https://a.example"}):
        assert (await house.ask("POST", "/api/pipelines/p/messages", headers, 1)).status == 202


async def test_a_server_without_a_provider_takes_no_tokens(basic_house: House) -> None:
    assert await basic_house.me(bearer("of-carl")) == NOBODY


async def test_the_cookie_counts_before_the_header(house: House) -> None:
    session = await house.session(READER)
    both = cookie(session) | basic(ADMIN)

    assert await house.me(both) == signed_in(READER, "read")
    assert (await house.ask("POST", "/api/pipelines", both | JSON, {})).status == 403


@pytest.mark.parametrize("stale", ["", "0" * 64, "x", "\x00", "a" * 5000])
async def test_a_cookie_that_is_worth_nothing_is_passed_over(house: House, stale: str) -> None:
    assert await house.me(cookie(stale) | basic(READER)) == signed_in(READER, "read")
    assert await house.me(cookie(stale)) == NOBODY


async def test_of_several_cookies_the_first_that_is_worth_something_counts(house: House) -> None:
    of_reader, of_admin = await house.session(READER), await house.session(ADMIN)
    several = f"a=b; {COOKIE}={'0' * 64}; {COOKIE}={of_reader}; {COOKIE}={of_admin}"

    assert await house.me({"Cookie": several}) == signed_in(READER, "read")


@pytest.mark.parametrize("second", [ADMIN, READER, None])
async def test_of_several_credentials_none_counts(
    house: House, caplog: pytest.LogCaptureFixture, second: str | None
) -> None:
    wrong = "Basic eHg6eHg="
    right = basic(ADMIN)["Authorization"].encode()
    other = (basic(second)["Authorization"] if second else wrong).encode()

    async def answered(*values: bytes) -> Exchange:
        headers = [(b"authorization", value) for value in values]
        exchange = Exchange(house.application, "GET", "/api/pipelines", headers=headers)
        await exchange.run()
        return exchange

    one_wrong = await answered(wrong.encode())
    several = [await answered(right, other), await answered(other, right)]

    assert (await answered(right)).status == 200
    assert [each.status for each in (one_wrong, *several)] == [401, 401, 401]
    assert {each.body for each in several} == {one_wrong.body}
    await house.authenticator.close()
    assert "the request has several Authorization headers" in caplog.text


# What a page of another site could have a browser send.


CHANGES = [
    ("POST", "/api/pipelines", 422),
    ("POST", "/api/connections", 422),
    ("DELETE", "/api/pipelines/nobody", 404),
]
ELSEWHERE = {"Origin": "https://elsewhere.example", "Host": "here.example"}


@pytest.mark.parametrize(("method", "path", "status"), CHANGES)
async def test_a_change_with_nothing_but_the_cookie_has_to_be_what_no_form_sends(
    house: House, method: str, path: str, status: int
) -> None:
    session = cookie(await house.session(ADMIN))
    own = {"Origin": "http://here.example", "Host": "here.example"}
    form = {"Content-Type": "application/x-www-form-urlencoded"}

    async def answered(headers: Mapping[str, str]) -> int:
        return (await house.ask(method, path, session | headers, {})).status

    assert await answered(JSON) == status
    assert await answered(JSON | own) == status
    assert await answered(JSON | ELSEWHERE) == 403
    assert await answered(JSON | own | {"Origin": "null"}) == 403
    assert await answered({}) == (status if method == "DELETE" else 403)
    assert await answered(form) == (status if method == "DELETE" else 403)


async def test_the_refusal_says_what_to_send(house: House) -> None:
    session = cookie(await house.session(ADMIN))

    refused = await house.ask("POST", "/api/pipelines", session, {})
    assert refused.json["error"].startswith("createPipeline: with nothing but the session cookie")
    assert "'Content-Type: application/json'" in refused.json["error"]
    refused = await house.ask("POST", "/api/pipelines", session | JSON | ELSEWHERE, {})
    assert "a proxy in front has to pass on the Host" in refused.json["error"]


async def test_what_is_let_in_by_a_header_as_well_is_no_forgery(house: House) -> None:
    session = cookie(await house.session(ADMIN))

    for header in (basic(ADMIN), basic(READER), bearer("of-dora")):
        assert (await house.ask("POST", "/api/pipelines", session | header, {})).status == 422
    for header in (basic(ADMIN, "wrong"), bearer("bad"), {"Authorization": "x"}):
        assert (await house.ask("POST", "/api/pipelines", session | header, {})).status == 403


async def test_a_header_needs_none_of_that(house: House) -> None:
    for header in (basic(ADMIN), bearer("of-carl")):
        assert (await house.ask("POST", "/api/pipelines", header | ELSEWHERE, {})).status == 422


async def test_reading_may_be_asked_for_from_anywhere(house: House) -> None:
    session = cookie(await house.session(READER))

    assert (await house.ask("GET", "/api/pipelines", session | ELSEWHERE)).status == 200


# How long a stream goes on.


async def stream(house: House, headers: Mapping[str, str]) -> tuple[Exchange, asyncio.Task[None]]:
    """Return an event stream that has begun, and its task."""
    exchange = house.asking("GET", "/events", headers, ())
    running = asyncio.ensure_future(exchange.run())
    assert await exchange.next_body() == b":\n\n"
    return exchange, running


async def test_a_stream_ends_when_its_session_is_signed_out(house: House) -> None:
    session = cookie(await house.session(READER))
    of_session, ended = await stream(house, session)
    of_other, going_on = await stream(house, cookie(await house.session(READER)))
    of_header, going_on_too = await stream(house, basic(READER))

    assert (await house.ask("POST", "/api/auth/logout", session)).status == 204
    async with asyncio.timeout(PATIENCE):
        await ended
    assert of_session.messages[-1] == {"type": "http.response.body"}
    assert not going_on.done()
    assert not going_on_too.done()
    for exchange, running in ((of_other, going_on), (of_header, going_on_too)):
        exchange.leave()
        await running


async def test_a_stream_ends_when_a_login_takes_the_place_of_its_session(house: House) -> None:
    session = cookie(await house.session(READER))
    _, ended = await stream(house, session)

    said = {"username": ADMIN, "password": PASSWORDS[ADMIN]}
    assert (await house.ask("POST", "/api/auth/login", session | JSON, said)).status == 200
    async with asyncio.timeout(PATIENCE):
        await ended


def test_a_stream_ends_with_its_session_and_with_its_token() -> None:
    async def main() -> None:
        clock = Clock(asyncio.get_running_loop())
        components = catalogue()
        engine = JsonEngine(Engine(clock), components)
        began = clock.seconds()
        tokens = Issued({"good": Verified("carl", Access.READ, began + 300)})
        authenticator = guarded(clock, idle=100, tokens=tokens)
        house = House(Service(engine, components, clock), authenticator)
        _, idle = await stream(house, cookie(await house.session(READER)))
        _, token = await stream(house, bearer("good"))

        async with clock.timeout(1000):
            await idle
        assert clock.seconds() - began == 100
        async with clock.timeout(1000):
            await token
        assert clock.seconds() - began == 300
        await engine.close()

    run_virtual(main())


async def test_who_cannot_be_verified_in_time_is_told_so_and_me_is_no_failure(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, is_of = threading.Event(), passwords.is_of

    def held(password: str, encoded: str) -> bool:
        goes_on.wait(PATIENCE)
        return is_of(password, encoded)

    monkeypatch.setattr(passwords, "is_of", held)
    authenticator = guarded(service.clock, hashed={READER: made(PASSWORDS[READER])})
    house = House(service, authenticator)
    attack = [
        asyncio.ensure_future(house.ask("GET", "/api/pipelines", basic(READER, str(n))))
        for n in range(60)
    ]
    await asyncio.sleep(0)

    assert await house.me(basic(READER, "another")) == NOBODY
    said = {"username": READER, "password": "another"}
    crowded = await house.ask("POST", "/api/auth/login", JSON, said)
    goes_on.set()
    assert crowded.status == 503
    assert str(Crowded()) in crowded.json["error"]
    answers = await asyncio.gather(*attack)
    assert {answer.status for answer in answers} == {401, 503}
    turned_away = next(answer.json["error"] for answer in answers if answer.status == 503)
    assert turned_away == f"listPipelines: {Crowded()}"
    assert await house.me(basic(READER)) == signed_in(READER, "read")


async def test_closed_doors_let_go_of_the_provider(service: Service) -> None:
    tokens = Issued({})

    await guarded(service.clock, tokens=tokens).close()
    await guarded(service.clock).close()
    assert tokens.is_closed
