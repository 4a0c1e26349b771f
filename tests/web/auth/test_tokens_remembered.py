"""A token that was verified is known until it expires, or other keys are published."""

from __future__ import annotations

import asyncio

import pytest

from headrace.compiler.clock import Clock, run_virtual
from headrace.web.auth import credentials
from headrace.web.auth.credentials import TokenRefused
from headrace.web.auth.signingkeys import MOST_RSA_BITS
from headrace.web.auth.tokens import MOST_BYTES
from tests.peer import peer, replies
from tests.virtual import virtual
from tests.web.auth.issuing import Signer, claims_of, part, published
from tests.web.auth.tokens import NOW, token, verifying


def why(token: str) -> str:
    """Return why a token is refused, as the log has it."""

    async def main() -> str:
        async with verifying() as verifier:
            with pytest.raises(TokenRefused, match=r"^the token is not accepted$") as refused:
                await verifier.verify(token)
            return refused.value.reason

    return run_virtual(main)


@virtual
async def test_a_token_is_good_until_it_expires_however_often_it_was_presented() -> None:
    async with verifying() as verifier:
        good = token()
        first = await verifier.verify(good)
        await Clock(asyncio.get_running_loop()).sleep(359)

        assert await verifier.verify(good) is first

        await Clock(asyncio.get_running_loop()).sleep(1)
        with pytest.raises(TokenRefused):
            await verifier.verify(good)


@virtual
async def test_a_token_is_verified_anew_when_other_keys_are_published() -> None:
    new = Signer("k2", "ES256")
    async with peer() as provider, verifying(provider=provider) as verifier:
        old_token = token(exp=NOW + 3600)
        await verifier.verify(old_token)
        provider.answers = [replies(published(new.entry()))]
        await Clock(asyncio.get_running_loop()).sleep(60)

        await verifier.verify(new.token(claims_of(NOW)))

        with pytest.raises(TokenRefused):
            await verifier.verify(old_token)


@virtual
async def test_a_key_that_keeps_its_id_and_changes_is_noticed() -> None:
    changed = Signer("k1", "RS256")
    async with peer() as provider, verifying(provider=provider) as verifier:
        old_token = token(exp=NOW + 3600)
        await verifier.verify(old_token)
        provider.answers = [replies(published(changed.entry()))]
        await Clock(asyncio.get_running_loop()).sleep(60)
        with pytest.raises(TokenRefused):
            await verifier.verify(Signer("k3", "ES256").token(claims_of(NOW)))

        with pytest.raises(TokenRefused):
            await verifier.verify(old_token)
        assert await verifier.verify(changed.token(claims_of(NOW)))


@virtual
async def test_only_the_tokens_that_were_verified_last_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(credentials, "MOST_KNOWN", 2)
    first, second, third = (token(sub=name) for name in ("a", "b", "c"))
    async with verifying() as verifier:
        seen = {each: await verifier.verify(each) for each in (first, second, third)}

        assert await verifier.verify(second) is seen[second]
        assert await verifier.verify(third) is seen[third]
        assert await verifier.verify(first) is not seen[first]


@virtual
async def test_a_token_that_begins_like_a_good_one_is_another_one() -> None:
    async with verifying() as verifier:
        good = token()
        await verifier.verify(good)

        for other in (good[:-1], good + "A", good + "\n", f" {good}", good + ".", good + "\u0141"):
            with pytest.raises(TokenRefused):
                await verifier.verify(other)


def test_a_token_that_is_too_long_is_not_looked_into() -> None:
    longer, shorter = why("." * (MOST_BYTES + 1)), why("." * MOST_BYTES)

    assert longer == "the token is not accepted: it is too long"
    assert shorter != longer


def test_a_signature_may_be_as_long_as_the_longest_key_makes_it() -> None:
    said = token().rpartition(".")[0]

    fits = why(f"{said}.{part(bytes(MOST_RSA_BITS // 8))}")
    too_long = why(f"{said}.{part(bytes(MOST_RSA_BITS // 8 + 1))}")

    assert fits.startswith("the token is not accepted: BadSignatureError")
    assert too_long.startswith("the token is not accepted: ExceededSizeError")


def test_why_a_token_is_refused_is_told_without_the_token() -> None:
    wrong = token(iss="https://evil.example/", sub="mallory-the-secret")

    assert why(wrong) == "the token is not accepted: its issuer is another one"


@virtual
async def test_a_token_is_known_from_when_it_was_verified_until_it_expires() -> None:
    async with verifying() as verifier:
        good = token()
        assert verifier.known(good.encode()) is None

        first = await verifier.verify(good)
        assert verifier.known(good.encode()) is first
        assert verifier.known(good.encode()[:-1]) is None

        await Clock(asyncio.get_running_loop()).sleep(359)
        assert verifier.known(good.encode()) is first
        await Clock(asyncio.get_running_loop()).sleep(1)
        assert verifier.known(good.encode()) is None
