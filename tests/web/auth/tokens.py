"""Tokens and keys for the tests of tokens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from headrace.compiler.clock import Clock
from headrace.web.auth.settingsfile import JwtAuth
from headrace.web.auth.tokens import Verifier, fetched_tokens
from tests.peer import Peer, peer, replies
from tests.web.auth.issuing import ISSUER, Signer, claims_of, published

SIGNER = Signer("k1", "ES256")


NOW = 1_767_225_600
"""Where virtual time begins."""


@asynccontextmanager
async def verifying(
    *signers: Signer, provider: Peer | None = None, **settings: Any
) -> AsyncIterator[Verifier]:
    """Give what verifies the tokens of a provider that publishes the keys of these signers."""
    async with peer() as it:
        it = provider or it
        it.answers.insert(0, replies(published(*(each.entry() for each in signers or [SIGNER]))))
        given = {"jwks_url": it.url("/jwks"), "issuer": ISSUER, **settings}
        verifier = await fetched_tokens(JwtAuth.load(given), Clock(asyncio.get_running_loop()))
        try:
            yield verifier
        finally:
            await verifier.close()


def token(**changes: Any) -> str:
    """Return a good token but for some claims."""
    return SIGNER.token(claims_of(NOW, **changes))
