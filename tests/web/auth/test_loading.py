"""The settings file: what it may say, and how it is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.text.diagnostics import Severity
from headrace.web.auth.access import Access
from headrace.web.auth.settingsfile import BasicAuth, JwtAuth, NoAuth, ServerSettings
from headrace.web.files.reading import Files, load
from tests.web.auth.loaded import JWT, KNOWN, basic, read
from tests.web.auth.people import made


def accepted(folder: Path, **settings: Any) -> ServerSettings:
    loaded = read(folder, json.dumps(settings), "server.json")
    assert loaded.diagnostics == []
    return loaded.settings


def refused(folder: Path, **settings: Any) -> list[tuple[str, str]]:
    """Return code and path of all that is wrong."""
    loaded = read(folder, json.dumps(settings), "server.json")
    assert loaded.is_refused
    assert loaded.settings == ServerSettings()
    return [(one.code, one.path) for one in loaded.diagnostics]


def test_a_file_that_says_nothing_means_all_defaults(tmp_path: Path) -> None:
    settings = accepted(tmp_path)

    assert isinstance(settings.auth, NoAuth)
    assert settings.auth.accounts == {}
    assert settings.history.retention_secs == 86_400
    assert settings.session.same_site == "strict"
    assert settings.session.idle_secs == 604_800
    assert load(Files(), KNOWN).settings == settings


def test_everything_it_may_say(tmp_path: Path) -> None:
    loaded = read(
        tmp_path,
        """
        auth:
          type: jwt
          jwks_url: https://id.example.org/.well-known/jwks.json
          issuer: https://id.example.org/
          audience: pipelines
          username_claim: email
          roles: { claim: groups, admin: [ pipeline-admins, "*" ] }
          service_accounts:
            deploy: { password: "${DEPLOY_PASSWORD}", role: admin }
            watch: { password: s3cret }
        history: { retention_secs: 0 }
        session: { same_site: none, idle_secs: 1 }
        """,
        secrets={"DEPLOY_PASSWORD": "x"},
    )

    assert loaded.diagnostics == []
    auth = loaded.settings.auth
    assert isinstance(auth, JwtAuth)
    assert auth.jwks_url.text == "https://id.example.org/.well-known/jwks.json"
    assert (auth.issuer, auth.audience, auth.username_claim) == (
        "https://id.example.org/",
        "pipelines",
        "email",
    )
    assert auth.roles is not None
    assert (auth.roles.claim, auth.roles.admin) == ("groups", ("pipeline-admins", "*"))
    assert {name: each.access for name, each in auth.accounts.items()} == {
        "deploy": Access.ADMIN,
        "watch": Access.READ,
    }
    assert loaded.settings.history.retention_secs == 0
    assert (loaded.settings.session.same_site, loaded.settings.session.idle_secs) == ("none", 1)


def test_what_may_be_left_out_may_be_null_and_accounts_may_be_none(tmp_path: Path) -> None:
    said = {"audience": None, "roles": None, "service_accounts": None, "username_claim": None}
    auth = accepted(tmp_path, auth=JWT | said, history=None, session=None).auth

    assert isinstance(auth, JwtAuth)
    assert (auth.audience, auth.roles, auth.username_claim) == (None, None, "sub")
    assert auth.accounts == {}
    assert accepted(tmp_path, auth=JWT | {"service_accounts": {}}).auth.accounts == {}


def test_a_hash_stands_for_a_password(tmp_path: Path) -> None:
    hash = made("x")
    auth = accepted(
        tmp_path, auth={"type": "basic", "users": {"ann": {"password_hash": hash}}}
    ).auth

    assert isinstance(auth, BasicAuth)
    assert auth.users["ann"].secret.template == hash


ANN = {"password": "x"}


def _short(value: Any) -> str:
    """Return an id that is the same in every process: a hash has a salt, and is cut off."""
    return str(value).partition("$argon2id")[0][:120]


@pytest.mark.parametrize(
    ("auth", "wrong"),
    [
        ({}, [("missing-key", "auth")]),
        ([], [("wrong-type", "auth")]),
        ("basic", [("wrong-type", "auth")]),
        ({"type": "ldap"}, [("unknown-kind", "auth.type")]),
        ({"type": "Basic"}, [("unknown-kind", "auth.type")]),
        ({"type": "none", "users": {}}, [("unknown-key", "auth.users")]),
        ({"type": "basic"}, [("missing-key", "auth.users")]),
        (basic(), [("out-of-range", "auth.users")]),
        ({"type": "basic", "users": None}, [("wrong-type", "auth.users")]),
        ({"type": "basic", "users": ["ann"]}, [("wrong-type", "auth.users")]),
        ({"type": "basic", "users": "hunter2"}, [("wrong-type", "auth.users")]),
        (basic(ann=ANN) | {"realm": "x"}, [("unknown-key", "auth.realm")]),
        (basic(**{"": ANN}), [("blank", 'auth.users[""]')]),
        (basic(**{"  ": ANN}), [("blank", 'auth.users["  "]')]),
        (basic(**{"a:b": ANN}), [("not-a-user-name", 'auth.users["a:b"]')]),
        (basic(**{"a\nb": ANN}), [("not-a-user-name", 'auth.users["a\\nb"]')]),
        (basic(ann="hunter2"), [("wrong-type", "auth.users.ann")]),
        (basic(ann={}), [("missing-key", "auth.users.ann")]),
        (basic(ann={"password": None}), [("missing-key", "auth.users.ann")]),
        (basic(ann={"password": 12345}), [("wrong-type", "auth.users.ann.password")]),
        (basic(ann={"password": ""}), [("empty-credential", "auth.users.ann.password")]),
        (basic(ann={"password": "${NO_SUCH}"}), [("unresolved-secret", "auth.users.ann.password")]),
        (basic(ann={"password": "a${b"}), [("unresolved-secret", "auth.users.ann.password")]),
        (basic(ann={"password": "x" * 5000}), [("out-of-range", "auth.users.ann.password")]),
        (
            basic(ann={"password": "x", "password_hash": made("x")}),
            [("conflict", "auth.users.ann")],
        ),
        (basic(ann={"password_hash": "x"}), [("not-a-hash", "auth.users.ann.password_hash")]),
        (basic(ann={"password_hash": ""}), [("not-a-hash", "auth.users.ann.password_hash")]),
        (
            basic(ann={"password_hash": made("x").replace("t=1", "t=999")}),
            [("out-of-range", "auth.users.ann.password_hash")],
        ),
        (basic(ann=ANN | {"role": "root"}), [("not-a-choice", "auth.users.ann.role")]),
        (basic(ann=ANN | {"rol": "read"}), [("unknown-key", "auth.users.ann.rol")]),
        ({"type": "jwt"}, [("missing-key", "auth.jwks_url"), ("missing-key", "auth.issuer")]),
        (JWT | {"jwks_url": "ftp://id.example/keys"}, [("not-a-url", "auth.jwks_url")]),
        (JWT | {"jwks_url": "file:///keys.json"}, [("not-a-url", "auth.jwks_url")]),
        (JWT | {"jwks_url": "keys.json"}, [("not-a-url", "auth.jwks_url")]),
        (JWT | {"jwks_url": ""}, [("not-a-url", "auth.jwks_url")]),
        (JWT | {"issuer": " "}, [("blank", "auth.issuer")]),
        (JWT | {"issuer": 1}, [("wrong-type", "auth.issuer")]),
        (JWT | {"audience": ""}, [("blank", "auth.audience")]),
        (JWT | {"audience": ["a"]}, [("wrong-type", "auth.audience")]),
        (JWT | {"audiance": "a"}, [("unknown-key", "auth.audiance")]),
        (JWT | {"username_claim": "\t"}, [("blank", "auth.username_claim")]),
        (JWT | {"roles": {"claim": "groups"}}, [("missing-key", "auth.roles.admin")]),
        (JWT | {"roles": {"admin": ["a"]}}, [("missing-key", "auth.roles.claim")]),
        (JWT | {"roles": {"claim": "", "admin": ["a"]}}, [("blank", "auth.roles.claim")]),
        (JWT | {"roles": {"claim": "g", "admin": []}}, [("out-of-range", "auth.roles.admin")]),
        (JWT | {"roles": {"claim": "g", "admin": [""]}}, [("blank", "auth.roles.admin[0]")]),
        (
            JWT | {"roles": {"claim": "g", "admin": ["a"], "read": ["b"]}},
            [("unknown-key", "auth.roles.read")],
        ),
        (JWT | {"users": {"ann": ANN}}, [("unknown-key", "auth.users")]),
        (
            JWT | {"service_accounts": {"ann": {"password": "${NO_SUCH}"}}},
            [("unresolved-secret", "auth.service_accounts.ann.password")],
        ),
    ],
    ids=_short,
)
def test_what_is_wrong_about_auth(tmp_path: Path, auth: Any, wrong: Any) -> None:
    assert refused(tmp_path, auth=auth) == wrong


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        ({"history": {"retention_secs": -1}}, [("out-of-range", "history.retention_secs")]),
        ({"history": {"retention_secs": 604_801}}, [("out-of-range", "history.retention_secs")]),
        (
            {"history": {"retention_secs": 0, "durable": True}},
            [("conflict", "history")],
        ),
        ({"history": {"durable": 1}}, [("wrong-type", "history.durable")]),
        ({"history": {"retention_secs": 1.0}}, [("wrong-type", "history.retention_secs")]),
        ({"history": {"retention_secs": "1"}}, [("wrong-type", "history.retention_secs")]),
        ({"history": {"retention": 1}}, [("unknown-key", "history.retention")]),
        ({"history": []}, [("wrong-type", "history")]),
        ({"session": {"idle_secs": 0}}, [("out-of-range", "session.idle_secs")]),
        ({"session": {"idle_secs": 31_536_001}}, [("out-of-range", "session.idle_secs")]),
        ({"session": {"same_site": "None"}}, [("not-a-choice", "session.same_site")]),
        ({"session": {"samesite": "none"}}, [("unknown-key", "session.samesite")]),
        ({"tls": {}}, [("unknown-key", "tls")]),
        ({"auth": {"type": "none"}, "listen": ":80"}, [("unknown-key", "listen")]),
    ],
    ids=str,
)
def test_what_is_wrong_about_the_rest(tmp_path: Path, settings: Any, wrong: Any) -> None:
    assert refused(tmp_path, **settings) == wrong


@pytest.mark.parametrize("retention", [0, 1, 604_800])
def test_the_bounds_of_the_retention_are_inside(tmp_path: Path, retention: int) -> None:
    assert accepted(tmp_path, history={"retention_secs": retention}).history.retention_secs == (
        retention
    )


def test_everything_is_told_at_once_with_its_place_and_what_would_do(tmp_path: Path) -> None:
    loaded = read(
        tmp_path,
        "auth:\n"
        "  type: basic\n"
        "  users:\n"
        "    ann: { password: '${NO_SUCH}' }\n"
        "    bob: { password: '${EMPTY}', rol: admin }\n"
        "    eve: { password: '${EMPTY}' }\n"
        "histroy: { retention_secs: 1 }\n",
        secrets={"EMPTY": ""},
    )

    assert [(one.line, one.column, one.path, one.code) for one in loaded.diagnostics] == [
        (4, 22, "auth.users.ann.password", "unresolved-secret"),
        (5, 34, "auth.users.bob.rol", "unknown-key"),
        (6, 22, "auth.users.eve.password", "empty-credential"),
        (7, 1, "histroy", "unknown-key"),
    ]
    assert loaded.diagnostics[1].suggestion == "did you mean 'role'?"
    assert loaded.diagnostics[3].suggestion == "did you mean 'history'?"
    assert all(one.file == str(tmp_path / "server.yaml") for one in loaded.diagnostics)
    assert all(one.severity is Severity.ERROR for one in loaded.diagnostics)


def test_it_is_told_together_with_what_is_wrong_with_the_other_files(tmp_path: Path) -> None:
    for name in ("config.json", "config.connections.json", "server.json"):
        (tmp_path / name).write_text('{"nonsense": 1}')
    secrets = tmp_path / "secrets.json"
    secrets.write_text("[]")
    files = Files(tmp_path / "config.json", None, secrets, tmp_path / "server.json")

    told = load(files, KNOWN, is_starting=True).diagnostics
    assert {Path(one.file or "").name for one in told} == {
        "config.json",
        "config.connections.json",
        "server.json",
        "secrets.json",
    }


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    [told] = load(Files(settings=tmp_path / "nothing.yaml"), KNOWN).diagnostics

    assert (told.code, told.message) == ("missing-file", "no such file")


@pytest.mark.parametrize("name", ["server.yaml", "server.yml", "server.json", "server"])
def test_the_extension_says_what_it_is_written_in(tmp_path: Path, name: str) -> None:
    is_yaml = name.endswith(("yaml", "yml"))
    loaded = read(tmp_path, "history:\n  retention_secs: 5\n", name)

    assert loaded.is_refused != is_yaml
    assert loaded.settings.history.retention_secs == (5 if is_yaml else 86_400)


def test_a_check_only_warns_of_what_the_environment_of_a_start_may_answer(tmp_path: Path) -> None:
    file = tmp_path / "server.json"
    file.write_text(json.dumps({"auth": basic(ann={"password": "${NO_SUCH}"})}))

    loaded = load(Files(settings=file), KNOWN)
    [told] = loaded.diagnostics
    assert (told.code, told.severity) == ("unresolved-secret", Severity.WARNING)
    assert not loaded.is_refused
    file.write_text(json.dumps({"auth": basic(ann={"password": "${"})}))
    assert load(Files(settings=file), KNOWN).is_refused


def test_nothing_is_said_of_passwords_when_the_secrets_cannot_be_read(tmp_path: Path) -> None:
    secrets, file = tmp_path / "secrets.json", tmp_path / "server.json"
    secrets.write_text("{")
    file.write_text(json.dumps({"auth": basic(ann={"password": "${NO_SUCH}"})}))

    told = load(Files(secrets=secrets, settings=file), KNOWN, is_starting=True).diagnostics
    assert {one.file for one in told} == {str(secrets)}


def test_a_plain_field_that_looks_like_a_reference_is_warned_of(tmp_path: Path) -> None:
    loaded = read(tmp_path, json.dumps({"auth": JWT | {"issuer": "${ISSUER}"}}))

    [told] = loaded.diagnostics
    assert (told.code, told.path, told.severity) == (
        "literal-reference",
        "auth.issuer",
        Severity.WARNING,
    )


def test_a_password_that_lacks_its_braces_is_warned_of(tmp_path: Path) -> None:
    auth = basic(ann={"password": "$WAGTAIL_7"}, ben={"password": "${BEN}"})
    loaded = read(tmp_path, json.dumps({"auth": auth}), secrets={"BEN": "$WAGTAIL_7"})

    [told] = loaded.diagnostics
    assert (told.code, told.path, told.severity) == (
        "literal-variable",
        "auth.users.ann.password",
        Severity.WARNING,
    )
    assert "WAGTAIL" not in repr(told)
    assert not loaded.is_refused
