"""A server behind a real identity provider: its tokens, its roles, its absence, its new keys."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.clients import HOST, Answer
from tests.forked import run, serving
from tests.server import Server
from tests.services.oidc import Oidc
from tests.services.server import free_port
from tests.virtual import virtual
from tests.web.auth.guarding import guarded

LINE = [{"id": "line", "inputs": [{"type": "http"}], "outputs": [{"type": "stdout"}]}]
ALGORITHMS = ["RS256", "ES256"]
ANN = {"authentication_required": True, "username": "ann@example.com", "role": "admin"}


def auth(issuer: str, jwks_url: str) -> dict[str, Any]:
    return {
        "type": "jwt",
        "jwks_url": jwks_url,
        "issuer": issuer,
        "audience": Oidc.audience,
        "username_claim": "email",
        "roles": {"claim": "groups", "admin": ["operators"]},
    }


def settings(folder: Path, issuer: str, jwks_url: str) -> list[str]:
    """Write a settings file and return the options that name it."""
    file = folder / "server.json"
    file.write_text(json.dumps({"auth": auth(issuer, jwks_url)}))
    return ["--server-config", str(file)]


@pytest.fixture(scope="module")
def server(identity_provider: Oidc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Give a server that takes the tokens of the provider."""
    folder = tmp_path_factory.mktemp("server")
    options = settings(folder, identity_provider.url, identity_provider.jwks_url)
    with serving(folder, LINE, *options) as it:
        yield it


def asked(
    server: Server, method: str, path: str, headers: Mapping[str, str], body: Any = None
) -> Answer:
    client = server.client()
    octets = None if body is None else json.dumps(body).encode()
    return client.request(method, path, octets, headers)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def who(server: Server, token: str) -> Any:
    return asked(server, "GET", "/api/auth/me", bearer(token)).value


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_user_with_a_token_of_the_provider_is_let_in(
    server: Server, identity_provider: Oidc, algorithm: str
) -> None:
    token = identity_provider.user_token("ann", algorithm)

    listed = asked(server, "GET", "/api/pipelines", bearer(token))

    assert (listed.status, [each["id"] for each in listed.value]) == (200, ["line"])
    assert who(server, token) == ANN
    assert server.get("/api/pipelines").status == 401


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_token_signs_in_once_and_the_cookie_from_then_on(
    server: Server, identity_provider: Oidc, algorithm: str
) -> None:
    token = identity_provider.user_token("ann", algorithm)

    login = asked(server, "POST", "/api/auth/token", {}, {"token": token})
    cookie = {"Cookie": login.headers["set-cookie"].partition(";")[0]}

    assert (login.status, login.value) == (200, ANN)
    assert asked(server, "GET", "/api/auth/me", cookie).value == ANN
    assert asked(server, "GET", "/api/pipelines", cookie).status == 200
    assert asked(server, "POST", "/api/auth/logout", cookie).status == 204
    assert asked(server, "GET", "/api/pipelines", cookie).status == 401


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_program_with_credentials_of_its_own_is_let_in(
    server: Server, identity_provider: Oidc, algorithm: str
) -> None:
    token = identity_provider.client_token("deploy", algorithm)

    deleted = asked(server, "DELETE", "/api/pipelines/nobody", bearer(token))

    assert deleted.status == 404
    assert who(server, token) == ANN | {"username": "deploy@example.com"}


def test_a_role_is_a_claim_that_is_a_text_or_a_list(
    server: Server, identity_provider: Oidc
) -> None:
    roles = {}
    for user in ("ann", "bob", "eve"):
        token = identity_provider.user_token(user)
        roles[user] = who(server, token)["role"]
        may = asked(server, "DELETE", "/api/pipelines/nobody", bearer(token)).status == 404
        assert may is (roles[user] == "admin")

    assert roles == {"ann": "admin", "bob": "read", "eve": "admin"}


def test_a_token_without_the_claim_of_names_is_nobody(
    server: Server, identity_provider: Oidc
) -> None:
    token = identity_provider.client_token("probe")

    assert asked(server, "GET", "/api/pipelines", bearer(token)).status == 401
    assert asked(server, "POST", "/api/auth/token", {}, {"token": token}).status == 401


def test_a_token_of_another_provider_is_nobody(server: Server, tmp_path: Path) -> None:
    with Oidc(tmp_path) as other:
        token = other.user_token("ann")

    assert asked(server, "GET", "/api/pipelines", bearer(token)).status == 401


@pytest.mark.long
def test_no_token_is_in_what_the_server_prints(tmp_path: Path, identity_provider: Oidc) -> None:
    good = identity_provider.user_token("ann")
    bad = good[:-4] + "AAAA"
    options = settings(tmp_path, identity_provider.url, identity_provider.jwks_url)
    with serving(tmp_path, LINE, *options, "--debug") as server:
        for token in (good, bad):
            asked(server, "GET", "/api/pipelines", bearer(token))
            asked(server, "POST", "/api/auth/token", {}, {"token": token})
        server.stop()
        printed = "\n".join([*server.err.all(), *server.out.all()])

    assert (
        "a sign-in was refused, from 127.0.0.1: the token is not accepted: BadSignatureError"
        in printed
    )
    for token in (good, bad):
        assert not [part for part in token.split(".") if part in printed]


@pytest.mark.long
def test_without_its_provider_a_server_does_not_start(tmp_path: Path) -> None:
    nobody = f"http://{HOST}:{free_port()}"
    (tmp_path / "config.json").write_text(json.dumps(LINE))
    options = settings(tmp_path, nobody, f"{nobody}/jwks")

    ended = run(tmp_path, "serve", "--config", "config.json", "--listen", f"{HOST}:0", *options)

    assert (ended.returncode, ended.stdout) == (1, "")
    [line] = ended.stderr.splitlines()
    assert line.endswith(f"GET {nobody}/jwks: connection refused")


@pytest.mark.long
def test_what_is_no_set_of_keys_does_not_start_a_server(
    tmp_path: Path, identity_provider: Oidc
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LINE))
    page = f"{identity_provider.url}/.well-known/openid-configuration"
    options = settings(tmp_path, identity_provider.url, page)

    ended = run(tmp_path, "serve", "--config", "config.json", "--listen", f"{HOST}:0", *options)

    assert ended.returncode == 1
    assert (
        f"{page} answers JSON that is no set of keys: expected an object with 'keys'"
        in ended.stderr
    )


@pytest.mark.long
def test_a_provider_that_is_gone_later_takes_nobody_out(tmp_path: Path) -> None:
    with Oidc(tmp_path / "provider") as provider:
        presented, later = provider.user_token("ann"), provider.user_token("bob", "ES256")
        options = settings(tmp_path, provider.url, provider.jwks_url)
        with serving(tmp_path, LINE, *options) as server:
            assert asked(server, "GET", "/api/pipelines", bearer(presented)).status == 200

            provider.kill()

            for token in (presented, later):
                assert asked(server, "GET", "/api/pipelines", bearer(token)).status == 200
                assert asked(server, "POST", "/api/auth/token", {}, {"token": token}).status == 200


@pytest.mark.long
def test_a_provider_that_starts_anew_has_new_keys_and_the_old_ones_are_done(tmp_path: Path) -> None:
    provider = Oidc(tmp_path)

    @virtual
    async def over_a_restart() -> None:
        async with guarded(**auth(provider.url, provider.jwks_url)) as guard:
            before = [provider.user_token("ann", each) for each in ALGORITHMS]
            assert [(await guard.presented(each)).status_code for each in before] == [200, 200]

            await asyncio.to_thread(provider.restart)
            after = [provider.user_token("ann", each) for each in ALGORITHMS]
            assert (await guard.presented(after[0])).status_code == 401, "the minute is not over"
            await guard.clock.sleep(60)
            rotated = await asyncio.gather(*(guard.presented(each) for each in after * 20))

            assert {each.status_code for each in rotated} == {200}
            assert [(await guard.presented(each)).status_code for each in before] == [401, 401]

    with provider:
        over_a_restart()
