"""The keys of a provider: fetched at start, again for a key nobody has seen, kept when that fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from headrace.compiler.clock import Clock
from headrace.compiler.schema.urls import ParsedUrl
from headrace.web.auth.signingkeys import (
    BETWEEN_SECONDS,
    FETCH_SECONDS,
    MOST_BYTES,
    OLD_SECONDS,
    Keys,
    NoKeys,
)
from tests.peer import Peer, peer, replies
from tests.services.server import free_port
from tests.virtual import virtual
from tests.web.auth.issuing import Signer, published

OLD, NEW = Signer("old", "ES256"), Signer("new", "ES256")
JUST_OLD, BOTH = replies(published(OLD.entry())), replies(published(OLD.entry(), NEW.entry()))
ONLY_NEW = replies(published(NEW.entry()))


def clock() -> Clock:
    return Clock(asyncio.get_running_loop())


@asynccontextmanager
async def started(provider: Peer, *later: object) -> AsyncIterator[Keys]:
    """Give keys of a provider that published `OLD` at start, and answers so afterwards."""
    provider.answers = [JUST_OLD, *later]  # type: ignore[list-item]
    keys = Keys(ParsedUrl(provider.url("/jwks")), clock())
    await keys.start()
    try:
        yield keys
    finally:
        await keys.close()


async def refusal(provider: Peer, *answers: object, user: str = "") -> str:
    """Return why no key could be fetched at start, with the provider's address as ORIGIN."""
    provider.answers = list(answers)  # type: ignore[arg-type]
    with pytest.raises(NoKeys) as refused:
        await Keys(ParsedUrl(provider.url("/jwks", user)), clock()).start()
    return reason(refused.value).replace(provider.origin, "ORIGIN")


def reason(refused: NoKeys) -> str:
    """Return what a refusal says besides the setting that it is about."""
    setting, _, why = str(refused).partition(": ")
    assert setting == "auth.jwks_url"
    return why


@virtual
async def test_the_keys_that_are_published_at_start_are_found_without_another_fetch() -> None:
    async with peer() as provider, started(provider) as keys:
        found = await keys.find("old")

        assert found is not None
        assert found.algorithm == "ES256"
        assert [(each.method, each.path) for each in provider.received] == [("GET", "/jwks")]


@virtual
async def test_the_user_info_of_the_url_is_sent_and_not_shown() -> None:
    async with peer() as provider:
        said = await refusal(provider, replies(status=401), user="ann:open-sesame")

        assert provider.received[0].headers["Authorization"].startswith("Basic ")
        assert said == "GET ORIGIN/jwks: 401 Unauthorized"


@virtual
async def test_the_query_of_the_url_is_sent_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "headrace.web")
    path = "/jwks?tenant=a&key=sekretq34"
    moved = {"Location": f"https://other.example{path}"}
    said = []
    async with peer() as provider:
        provider.answers = [
            replies("no sekretq34", status=401),
            replies(status=302, headers=moved),
            replies("[]"),
            replies("<html>"),
            replies(published()),
            replies(published(OLD.entry(use="enc"))),
            replies(published(OLD.entry(), 7)),
        ]
        for _ in provider.answers[:-1]:
            with pytest.raises(NoKeys) as refused:
                await Keys(ParsedUrl(provider.url(path)), clock()).start()
            said.append(reason(refused.value).replace(provider.origin, "ORIGIN"))
        await Keys(ParsedUrl(provider.url(path)), clock()).start()

        assert provider.received[0].path == path
    assert said[0] == "GET ORIGIN/jwks?***: 401 Unauthorized: no ***"
    assert said[2].startswith("ORIGIN/jwks?*** answers JSON that is no set of keys")
    assert "sekretq34" not in "\n".join([*said, caplog.text])


@virtual
async def test_a_provider_that_does_not_answer_with_keys_is_refused_with_the_reason() -> None:
    page, moved = (
        "<!doctype html><title>Sign in</title>",
        {"Location": "https://other.example/jwks"},
    )
    async with peer() as provider:
        assert [
            await refusal(provider, replies("gone", status=404)),
            await refusal(provider, replies(status=503)),
            await refusal(provider, replies(status=302, headers=moved)),
            await refusal(provider, replies(status=307, headers=moved)),
            await refusal(provider, replies(page, headers={"Content-Type": "text/html"})),
            await refusal(provider, replies("")),
            await refusal(provider, replies('{"keys": [')),
            await refusal(provider, replies("[]")),
            await refusal(provider, replies('{"keys": {}}')),
            await refusal(provider, replies('{"jwks_uri": "https://id.example.org/jwks"}')),
            await refusal(provider, replies(published())),
            await refusal(provider, replies(published(OLD.entry(use="enc"), 7))),
        ] == [
            "GET ORIGIN/jwks: 404 Not Found: gone",
            "GET ORIGIN/jwks: 503 Service Unavailable",
            "GET ORIGIN/jwks: 302 Found: the server points to 'https://other.example/jwks'",
            "GET ORIGIN/jwks: 307 Temporary Redirect: "
            "the server points to 'https://other.example/jwks'",
            "ORIGIN/jwks answers HTML or XML, not JSON",
            "ORIGIN/jwks answers no JSON: Input data was truncated",
            "ORIGIN/jwks answers no JSON: Input data was truncated",
            "ORIGIN/jwks answers JSON that is no set of keys: expected an object with 'keys'",
            "ORIGIN/jwks answers JSON that is no set of keys: expected an object with 'keys'",
            "ORIGIN/jwks answers JSON that is no set of keys: expected an object with 'keys'",
            "ORIGIN/jwks publishes no key that can verify a token: the set is empty",
            "ORIGIN/jwks publishes no key that can verify a token: "
            "keys[0]: not for verifying signatures; keys[1]: no JSON object",
        ]


@virtual
async def test_a_provider_that_is_gone_is_refused_with_the_reason() -> None:
    nobody = f"http://127.0.0.1:{free_port()}/jwks"

    with pytest.raises(NoKeys) as refused:
        await Keys(ParsedUrl(nobody), clock()).start()

    assert reason(refused.value) == f"GET {nobody}: connection refused"


@virtual(patience=0.1)
async def test_a_provider_that_does_not_end_its_answer_is_given_ten_seconds() -> None:
    async def drips(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"keys": [')
        await asyncio.get_running_loop().create_future()  # which nobody sets
        return response

    async def silent(request: web.Request) -> web.StreamResponse:
        return await asyncio.get_running_loop().create_future()

    for answer in (drips, silent):
        async with peer() as provider:
            began = clock().monotonic()

            said = await refusal(provider, answer)

            assert said == f"GET ORIGIN/jwks: no answer within {FETCH_SECONDS} s"
            assert clock().monotonic() - began == pytest.approx(FETCH_SECONDS, abs=0.5)


@virtual
async def test_an_answer_without_end_is_read_no_further_than_a_set_of_keys_is_long() -> None:
    written = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal written
        response = web.StreamResponse()
        await response.prepare(request)
        while written < 1000 * MOST_BYTES:
            await response.write(b" " * 65536)
            written += 65536
        return response

    async with peer() as provider:
        said = await refusal(provider, endless)

    assert said == "GET ORIGIN/jwks: the reply is longer than 1,048,576 bytes"
    assert written < 50 * MOST_BYTES


@virtual
async def test_an_unknown_key_is_fetched_once_for_all_who_ask() -> None:
    async with peer() as provider, started(provider, BOTH) as keys:
        await clock().sleep(BETWEEN_SECONDS)

        found = await asyncio.gather(*(keys.find("new") for _ in range(100)))

        assert {key and key.algorithm for key in found} == {"ES256"}
        assert len(provider.received) == 2


@virtual
async def test_at_most_one_fetch_in_a_minute_the_one_at_start_counted() -> None:
    async with peer() as provider, started(provider, JUST_OLD, BOTH) as keys:
        await clock().sleep(59)
        assert await keys.find("new") is None
        assert len(provider.received) == 1

        await clock().sleep(1)
        assert await keys.find("new") is None
        assert await keys.find("nobody's") is None
        assert len(provider.received) == 2

        await clock().sleep(59)
        assert await keys.find("new") is None
        assert len(provider.received) == 2

        await clock().sleep(1)
        assert await keys.find("new") is not None
        assert len(provider.received) == 3


@virtual
async def test_known_keys_are_found_while_an_unknown_one_is_waited_for() -> None:
    asked, let_go = asyncio.Event(), asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        asked.set()
        await let_go.wait()
        return await BOTH(request)

    async with peer() as provider, started(provider, slow) as keys:
        await clock().sleep(BETWEEN_SECONDS)
        waiting = asyncio.create_task(keys.find("new"))
        await asked.wait()

        assert await keys.find("old") is not None
        assert not waiting.done()

        let_go.set()
        assert await waiting is not None


@virtual
async def test_whoever_stops_waiting_leaves_the_answer_to_the_others() -> None:
    asked, let_go = asyncio.Event(), asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        asked.set()
        await let_go.wait()
        return await BOTH(request)

    async with peer() as provider, started(provider, slow) as keys:
        await clock().sleep(BETWEEN_SECONDS)
        first, second = (asyncio.create_task(keys.find("new")) for _ in range(2))
        await asked.wait()

        first.cancel()
        await asyncio.wait([first])
        let_go.set()

        assert await second is not None
        assert first.cancelled()
        assert len(provider.received) == 2


@virtual
async def test_a_key_that_was_withdrawn_is_gone_after_a_fetch() -> None:
    async with peer() as provider, started(provider, ONLY_NEW) as keys:
        await clock().sleep(BETWEEN_SECONDS)

        assert await keys.find("new") is not None
        assert await keys.find("old") is None


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (replies(status=500), "500 Internal Server Error"),
        (replies("<html>"), "HTML or XML, not JSON"),
        (replies(published()), "the set is empty"),
    ],
    ids=["an error", "a page", "an empty set"],
)
def test_a_fetch_that_fails_leaves_the_keys_as_they_are(
    answer: object, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    @virtual
    async def after_a_minute() -> None:
        async with peer() as provider, started(provider, answer) as keys:
            before = keys.published()
            await clock().sleep(BETWEEN_SECONDS)

            assert await keys.find("new") is None
            assert await keys.find("old") is not None
            assert keys.published() is before

    after_a_minute()

    [entry] = caplog.records
    assert entry.levelno == logging.WARNING
    assert why in entry.message
    assert entry.message.endswith("; the signing keys that were fetched before stay")


@virtual(patience=0.1)
async def test_nobody_waits_longer_for_a_key_than_a_fetch_may_take() -> None:
    async def silent(request: web.Request) -> web.StreamResponse:
        return await asyncio.get_running_loop().create_future()

    async with peer() as provider, started(provider, silent) as keys:
        await clock().sleep(BETWEEN_SECONDS)
        began = clock().monotonic()

        assert await keys.find("new") is None
        assert clock().monotonic() - began == pytest.approx(FETCH_SECONDS, abs=0.5)


@virtual
async def test_keys_that_are_an_hour_old_are_fetched_anew_and_nobody_waits() -> None:
    fetched = asyncio.Event()

    async def withdrawn(request: web.Request) -> web.StreamResponse:
        fetched.set()
        return await ONLY_NEW(request)

    async with peer() as provider, started(provider, withdrawn) as keys:
        await clock().sleep(OLD_SECONDS - 1)
        assert await keys.find("old") is not None
        assert not fetched.is_set()

        await clock().sleep(1)
        assert await keys.find("old") is not None
        assert not fetched.is_set()

        await fetched.wait()
        await asyncio.gather(
            *(each for each in asyncio.all_tasks() if each.get_name() == "signing keys")
        )
        assert await keys.find("old") is None
        assert await keys.find("new") is not None
        assert len(provider.received) == 2


@virtual
async def test_a_fetch_that_is_going_on_ends_with_the_server() -> None:
    asked = asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        asked.set()
        return await asyncio.get_running_loop().create_future()

    async with peer() as provider, started(provider, silent) as keys:
        await clock().sleep(BETWEEN_SECONDS)
        waiting = asyncio.create_task(keys.find("new"))
        await asked.wait()

        await keys.close()

        await asyncio.wait([waiting])
        assert waiting.cancelled()


def test_keys_that_are_left_out_are_counted_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "headrace.web")

    @virtual
    async def at_start() -> None:
        async with peer() as provider:
            provider.answers = [
                replies(published(*({} for _ in range(20)), OLD.entry(use="enc"), NEW.entry()))
            ]
            await Keys(ParsedUrl(provider.url("/jwks")), clock()).start()

    at_start()

    ours = [each for each in caplog.records if each.name == "headrace.web"]
    [counted] = [each.message for each in ours if each.levelno == logging.INFO]
    told = [each.message for each in ours if each.levelno == logging.DEBUG]
    assert counted.endswith("/jwks: 21 of 22 keys cannot verify tokens")
    assert len(told) == 10
    assert told[0].endswith("keys[0]: no 'kid' that tokens could name")
