"""Nothing that may be a secret is shown of a settings file that is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.schema.secrets import Secrets
from headrace.compiler.text.diagnostics import Diagnostic
from headrace.compiler.text.render import render
from tests.web.auth.loaded import JWT, basic, read

PASSWORD = "open-sesame-42"


SHAPES = st.recursive(
    st.sampled_from([PASSWORD, {"password": PASSWORD}, [PASSWORD], 1, None, "admin", ""]),
    lambda inner: st.dictionaries(
        st.sampled_from(
            ["auth", "type", "users", "ann", "password", "password_hash", "role", "session", "rol"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)


def shown(told: list[Diagnostic], sources: dict[str, str]) -> str:
    """Return everything that a refusal prints, in every style."""
    return "".join(
        render(told, style=style, sources=sources) for style in ("plain", "terminal", "json")
    )


@given(accounts=SHAPES, rest=SHAPES)
def test_no_refusal_shows_what_stands_where_a_password_may(
    tmp_path_factory: Any, accounts: Any, rest: Any
) -> None:
    folder = tmp_path_factory.mktemp("settings")
    for key, kind in (("users", "basic"), ("service_accounts", "jwt")):
        for auth in ({"type": kind, key: accounts}, {"type": kind, key: {"ann": accounts}}, rest):
            loaded = read(folder, json.dumps({"auth": auth}), "server.json")

            # What stands where a word of ours belongs is shown: a type, a role.
            told = [one for one in loaded.diagnostics if not one.path.endswith((".type", ".role"))]
            told = [one for one in told if one.path != "auth.jwks_url"]
            assert PASSWORD not in shown(told, loaded.sources)


def test_no_line_of_the_file_is_shown(tmp_path: Path) -> None:
    for text in (
        f"auth: {{ type: basic, users: {{ ann: {{ password: {PASSWORD}, rol: x }} }} }}\n",
        f"auth: {{ type: basic, users: {{ ann: {{ password: '{PASSWORD}\n",
        f"auth:\n\tpassword: {PASSWORD}\n",
        f"password: !secret {PASSWORD}\n",
        f"password: *{PASSWORD}\n" if PASSWORD.isalnum() else f"a: b: {PASSWORD}\n",
    ):
        loaded = read(tmp_path, text)
        assert loaded.is_refused
        assert PASSWORD not in shown(loaded.diagnostics, loaded.sources)


def test_what_is_resolved_at_load_is_hidden_from_then_on(tmp_path: Path) -> None:
    loaded = read(
        tmp_path,
        json.dumps({"auth": basic(ann={"password": "${ANN_PASSWORD}"})}),
        secrets={"ANN_PASSWORD": PASSWORD},
    )

    assert isinstance(loaded.secrets, Secrets)
    assert loaded.secrets.redact(f"it is {PASSWORD}") == "it is ${ANN_PASSWORD}"


HASH = "$argon2id$v=19$m=65536,t=3,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNo"


@pytest.mark.parametrize(
    "users",
    [
        f"{{ann: {{password_hash: {HASH}}}}}",
        f"{{ann: {HASH}}}",
        f"{{ann: {{password: x, {HASH}}}}}",
        f"{{ann: {{password: x, {HASH}: 1}}}}",
    ],
)
def test_nothing_is_shown_of_a_hash_that_stands_without_quotes(tmp_path: Path, users: str) -> None:
    loaded = read(tmp_path, f"auth:\n  type: basic\n  users: {users}\n")

    said = render(loaded.diagnostics, style="plain")
    told = json.dumps([each.as_json() for each in loaded.diagnostics])
    for shown in (said, told):
        assert "c2FsdH" not in shown
        assert "aGFzaG" not in shown
        assert "$" not in shown.replace("$argon2id$v=19$m=65536,t=3,p=1$...$...", "")
    assert "a hash, stands in quotes" in said
    assert loaded.is_refused


def test_a_key_that_is_a_plain_word_is_named_and_one_that_is_none_is_not(tmp_path: Path) -> None:
    account = {"password": "x", "passwort": 1, "p=1": 2, "x" * 41: 3, "a b": 4}
    loaded = read(tmp_path, json.dumps({"auth": {"type": "basic", "users": {"ann": account}}}))

    said = [(each.path, each.message) for each in loaded.diagnostics]
    hidden = "unknown key, which is not shown: it may be a part of a password or of a hash"
    assert said[0] == ("auth.users.ann.passwort", "unknown key 'passwort'")
    assert said[1:] == [("auth.users.ann", hidden)] * 3


def test_the_query_of_a_url_that_is_none_is_not_shown(tmp_path: Path) -> None:
    url = "htp://id.example/keys?key=sekretq34 "
    loaded = read(tmp_path, json.dumps({"auth": {**JWT, "jwks_url": url}}))

    [said] = loaded.diagnostics
    assert (said.path, said.found) == ("auth.jwks_url", None)
    assert said.message == (
        "this is not an absolute http or https url: it does not begin with http:// or https://"
    )
