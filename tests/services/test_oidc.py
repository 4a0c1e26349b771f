"""The identity provider of the tests: what it issues verifies with what it publishes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from tests.services.oidc import Oidc


def published(provider: Oidc) -> KeySet:
    return KeySet.import_key_set(provider.keys())


def said(provider: Oidc, token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return header and claims of a token that the provider has signed."""
    decoded = jwt.decode(token, published(provider), algorithms=["RS256", "ES256"])
    return decoded.header, decoded.claims


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_a_user_is_given_a_token_for_the_password(identity_provider: Oidc, algorithm: str) -> None:
    header, claims = said(identity_provider, identity_provider.user_token("ann", algorithm))

    assert header["alg"] == algorithm
    assert (claims["sub"], claims["groups"]) == ("ann", ["staff", "operators"])
    assert (claims["iss"], claims["aud"]) == (identity_provider.url, "pipelines")
    assert claims["exp"] == claims["iat"] + 300


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_a_program_is_given_a_token_for_its_secret(identity_provider: Oidc, algorithm: str) -> None:
    header, claims = said(identity_provider, identity_provider.client_token("probe", algorithm))

    assert (header["alg"], claims["sub"]) == (algorithm, "probe")
    assert "groups" not in claims


def test_nobody_gets_a_token_for_a_wrong_password(identity_provider: Oidc) -> None:
    with pytest.raises(AssertionError, match="invalid_grant"):
        identity_provider.user_token("ann", password="wrong")


def test_every_start_makes_new_keys(tmp_path: Path) -> None:
    with Oidc(tmp_path) as provider:
        before = {key.kid for key in published(provider)}

        provider.restart()

        assert not before & {key.kid for key in published(provider)}
