"""Requests while the provider changes its keys, or does not answer."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from tests.peer import Answer, peer, replies
from tests.virtual import virtual
from tests.web.auth.guarding import JWT, guarded
from tests.web.auth.issuing import Signer, claims_of, published

OLD, NEW = Signer("old", "ES256"), Signer("new", "ES256")
NOW = 1_767_225_600
"""Where virtual time begins."""
A_MINUTE = 60


async def silent(request: web.Request) -> web.StreamResponse:
    return await asyncio.get_running_loop().create_future()  # which nobody sets


def tokens(signer: Signer, count: int) -> list[str]:
    """Return as many tokens, each another."""
    return [signer.token(claims_of(NOW + 3600, sub=f"user {n}")) for n in range(count)]


@virtual
async def test_a_key_is_rotated_while_a_hundred_requests_arrive() -> None:
    asked, let_go = asyncio.Event(), asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        asked.set()
        await let_go.wait()
        return await replies(published(NEW.entry()))(request)

    async with peer() as provider:
        provider.answers = [replies(published(OLD.entry())), slow]
        async with guarded(**JWT, jwks_url=provider.url("/jwks")) as guard:
            await guard.clock.sleep(A_MINUTE)

            presented = [guard.presented(each) for each in tokens(NEW, 100)]
            before = asyncio.gather(*presented[:50])
            await asked.wait()
            meanwhile = asyncio.gather(*presented[50:])
            await asyncio.sleep(0)
            let_go.set()
            answers = [*await before, *await meanwhile]

            assert [each.status_code for each in answers] == [200] * 100
            assert len(provider.received) == 2
            [old] = tokens(OLD, 1)
            assert (await guard.presented(old)).status_code == 401


@virtual
async def test_a_hundred_logins_during_a_rotation_get_a_session_each() -> None:
    async with peer() as provider:
        provider.answers = [replies(published(OLD.entry())), replies(published(NEW.entry()))]
        async with guarded(**JWT, jwks_url=provider.url("/jwks")) as guard:
            await guard.clock.sleep(A_MINUTE)

            answers = await asyncio.gather(*(guard.login(each) for each in tokens(NEW, 100)))

            assert [each.status_code for each in answers] == [200] * 100
            assert len({each.cookies["headrace_session"].value for each in answers}) == 100
            assert len(provider.received) == 2


@pytest.mark.parametrize(
    "answer",
    [
        replies(status=500),
        replies("<!doctype html>"),
        replies(published()),
        replies(published(OLD.entry(use="enc"))),
        silent,
    ],
    ids=["an error", "a page", "an empty set", "a set without a usable key", "nothing"],
)
def test_a_provider_that_fails_later_costs_those_with_a_new_key_and_nobody_else(
    answer: Answer,
) -> None:
    @virtual(patience=0.1)
    async def presented_while_it_fails() -> None:
        async with peer() as provider:
            provider.answers = [replies(published(OLD.entry())), answer]
            async with guarded(**JWT, jwks_url=provider.url("/jwks")) as guard:
                await guard.clock.sleep(A_MINUTE)
                began = guard.clock.monotonic()
                [new], [first, second] = tokens(NEW, 1), tokens(OLD, 2)
                waiting = asyncio.create_task(guard.presented(new))

                assert (await guard.presented(first)).status_code == 200
                assert (await waiting).status_code == 401
                assert guard.clock.monotonic() - began < 10.5
                assert (await guard.presented(second)).status_code == 200
                assert (await guard.presented(new)).status_code == 401
                assert len(provider.received) == 2

    presented_while_it_fails()


@virtual
async def test_a_session_made_from_a_token_ends_when_the_token_does() -> None:
    async with peer() as provider:
        provider.answers = [replies(published(OLD.entry()))]
        async with guarded(**JWT, jwks_url=provider.url("/jwks")) as guard:
            token = OLD.token(claims_of(NOW, exp=NOW + 300.9))
            login = await guard.login(token)
            cookie = {"Cookie": f"headrace_session={login.cookies['headrace_session'].value}"}

            async def status() -> int:
                answer = await guard.client.simulate_get("/api/pipelines", headers=cookie)
                return answer.status_code

            assert login.json == {
                "authentication_required": True,
                "username": "ann",
                "role": "read",
            }
            await guard.clock.sleep(299)
            assert await status() == 200
            await guard.clock.sleep(1)
            assert await status() == 401
            assert (await guard.presented(token)).status_code == 200, "the token has its leeway"
            assert (await guard.login(token)).status_code == 401


@virtual
async def test_an_admin_by_role_may_change_things_and_others_may_not() -> None:
    async with peer() as provider:
        provider.answers = [replies(published(OLD.entry()))]
        async with guarded(**JWT, jwks_url=provider.url("/jwks")) as guard:
            for groups, status in [("operators", 404), (["x", "operators"], 404), ("x", 403)]:
                token = OLD.token(claims_of(NOW, groups=groups))
                headers = {"Authorization": f"bearer  {token}"}
                answer = await guard.client.simulate_delete("/api/pipelines/p", headers=headers)
                assert answer.status_code == status


@virtual
async def test_a_server_that_takes_no_tokens_says_so_as_for_any_other() -> None:
    users = {"ann": {"password": "open-sesame"}}
    token = OLD.token(claims_of(NOW))
    async with guarded(type="basic", users=users) as guard:
        assert (await guard.presented(token)).status_code == 401
        basic = await guard.login(token)
    async with peer() as provider:
        provider.answers = [replies(published(NEW.entry()))]
        async with guarded(**JWT, jwks_url=provider.url("/jwks")) as guard:
            refused = await guard.login(token)
    async with guarded(type="none") as guard:
        nobody = await guard.login("whatever")

    assert (basic.status_code, basic.json) == (
        401,
        {"error": "tokenLogin: the token is not accepted"},
    )
    assert (refused.status_code, refused.json) == (basic.status_code, basic.json)
    assert (nobody.status_code, "set-cookie" in nobody.headers) == (200, False)
    assert nobody.json == {"authentication_required": False, "username": None, "role": None}


@virtual
async def test_a_body_that_holds_no_token_is_refused_without_showing_what_it_holds() -> None:
    async with peer() as provider:
        provider.answers = [replies(published(OLD.entry()))]
        async with guarded(**JWT, jwks_url=provider.url("/jwks")) as guard:
            for value in (None, 7, ["open-sesame"], {"open-sesame": 1}):
                answer = await guard.login(value)
                assert answer.status_code == 422
                assert "open-sesame" not in answer.text
