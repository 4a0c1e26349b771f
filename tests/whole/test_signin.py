"""A server with accounts, as a process: how it starts, whom it lets in, and what it never says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.forked import run, serving
from tests.server import Server, settled
from tests.web.auth.people import ADMIN, JSON, PASSWORDS, READER, basic, cookie, session_of

AUTH = {
    "type": "basic",
    "users": {
        ADMIN: {"password": PASSWORDS[ADMIN], "role": "admin"},
        READER: {"password": "${BOB_PASSWORD}"},
    },
}
CONFIG = [{"id": "p1", "inputs": [{"type": "http"}]}]


def guarded(folder: Path) -> list[str]:
    """Put secrets and settings into a working directory; return the options."""
    (folder / "secrets.json").write_text(json.dumps({"BOB_PASSWORD": PASSWORDS[READER]}))
    return ["--secrets", "secrets.json", *settled(folder, auth=AUTH)]


def login(server: Server, name: str, **headers: str) -> dict[str, str]:
    """Sign in and return the header of the browser from then on."""
    body = json.dumps({"username": name, "password": PASSWORDS[name]}).encode()
    answer = server.request("POST", "/api/auth/login", body, JSON | headers)
    assert answer.status == 200
    return cookie(session_of(answer.headers["set-cookie"]))


def test_people_sign_in_work_and_sign_out(tmp_path: Path) -> None:
    with serving(tmp_path, CONFIG, *guarded(tmp_path)) as server:
        assert server.get("/api/pipelines").status == 401
        assert server.get("/api/pipelines", basic(READER)).status == 200
        assert server.post("p1", {"n": 1}).status == 202  # ingest asks nobody

        browser = login(server, READER)
        assert server.get("/api/pipelines", browser).status == 200
        events = server.events(browser)
        server.post("p1", {"n": 2})
        events.next(stage="input")
        refused = server.request("DELETE", "/api/pipelines/p1", headers=browser)
        assert (refused.status, refused.value["error"]) == (
            403,
            "deletePipeline: needs 'admin', 'bob' has 'read'",
        )

        assert server.request("POST", "/api/auth/logout", headers=browser).status == 204
        events.read_out()  # which comes to an end
        assert server.get("/api/pipelines", browser).status == 401

        admin = login(server, ADMIN, **{"X-Forwarded-Proto": "https"})
        assert server.request("DELETE", "/api/pipelines/p1", headers=admin).status == 204
        server.end()
        said = server.told()
    for secret in (*PASSWORDS.values(), browser["Cookie"], basic(ADMIN)["Authorization"]):
        assert secret not in said
    assert f"curl http://127.0.0.1:{server.port}/\n" in f"{said}\n"
    assert "there are no accounts" not in said


def test_the_origin_of_a_page_is_compared_with_the_address_that_was_asked(tmp_path: Path) -> None:
    with serving(tmp_path, CONFIG, *guarded(tmp_path)) as server:
        admin = login(server, ADMIN) | JSON

        def deleted(origin: str) -> int:
            headers = admin | {"Origin": origin}
            return server.request("DELETE", "/api/pipelines/nobody", headers=headers).status

        assert deleted(f"http://127.0.0.1:{server.port}") == 404
        assert deleted("http://127.0.0.1") == 403
        assert deleted("null") == 403


@pytest.mark.long
@pytest.mark.parametrize(
    ("auth", "said"),
    [
        (
            {"type": "basic", "users": {}},
            "server.json:1:37: auth.users: there is no account: nobody could sign in",
        ),
        (
            {"type": "basic", "users": {"ann": {"password": "${NO_SUCH}"}}},
            "server.json:1:58: auth.users.ann.password: nothing resolves '${NO_SUCH}'",
        ),
        (
            {"type": "jwt", "jwks_url": "http://127.0.0.1:9/keys", "issuer": "i"},
            "headrace: auth.jwks_url: GET http://127.0.0.1:9/keys: connection refused",
        ),
    ],
)
def test_a_server_that_cannot_tell_who_asks_does_not_start(
    tmp_path: Path, auth: Any, said: str
) -> None:
    ended = run(tmp_path, "--listen", "127.0.0.1:0", *settled(tmp_path, auth=auth))

    assert ended.returncode == 1
    assert ended.stdout == ""
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_server_whose_settings_are_not_there_does_not_start(tmp_path: Path) -> None:
    ended = run(tmp_path, "--listen", "127.0.0.1:0", "--server-config", "nothing.yaml")

    assert ended.returncode == 1
    assert ended.stderr == "nothing.yaml: no such file\n"


def test_all_that_is_wrong_with_all_files_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('[{"inputs": []}]')
    options = settled(tmp_path, auth=AUTH | {"realm": "x"})

    ended = run(tmp_path, "--config", "config.json", "--listen", "127.0.0.1:0", *options)
    assert ended.returncode == 1
    lines = ended.stderr.splitlines()
    assert [line.partition(": ")[2].partition(": ")[0] for line in lines] == [
        f"auth.users.{READER}.password",
        "auth.realm",
        "pipelines[0].inputs",
    ]


def test_check_looks_at_settings_too(tmp_path: Path) -> None:
    settled(tmp_path, auth=AUTH | {"realm": "x"})

    ended = run(tmp_path, "check", "--server-config", "server.json")
    assert ended.returncode == 1
    assert "unknown key 'realm'" in ended.stdout
    assert "1 file checked: 1 error, 1 warning" in ended.stderr
    assert run(tmp_path, "check").returncode == 2


@pytest.mark.parametrize(
    "password",
    [
        "correct hörse",
        *(pytest.param(each, marks=pytest.mark.long) for each in (" x ", "x" * 4096)),
    ],
)
def test_the_printed_hash_of_a_password_lets_its_owner_in(tmp_path: Path, password: str) -> None:
    made = run(tmp_path, "hash-password", given=f"{password}\n")
    assert made.stderr == ""
    auth = {"type": "basic", "users": {ADMIN: {"password_hash": made.stdout.strip()}}}

    with serving(tmp_path, CONFIG, *settled(tmp_path, auth=auth)) as server:
        assert server.get("/api/pipelines", basic(ADMIN, password)).status == 200
        assert server.get("/api/pipelines", basic(ADMIN, password[:-1])).status == 401


@pytest.mark.parametrize("password", ["", "\n", "x" * 4097])
def test_what_is_no_password_is_not_hashed(tmp_path: Path, password: str) -> None:
    refused = run(tmp_path, "hash-password", given=password)

    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr == "Error: a password has 1 to 4,096 characters\n"


@pytest.mark.parametrize("given", ["one\ntwo\n", "one\n\n", "\none"])
def test_of_several_lines_none_is_taken_for_the_password(tmp_path: Path, given: str) -> None:
    refused = run(tmp_path, "hash-password", given=given)

    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == "Error: a password is one line, and there is more than one\n"


def test_nobody_is_asked_is_said_where_others_can_reach_the_server(tmp_path: Path) -> None:
    listening = ("--listen", "0.0.0.0:0")
    with serving(tmp_path, CONFIG, *listening) as server:
        server.end()
        assert "there are no accounts: whoever reaches 0.0.0.0" in server.told()
    with serving(tmp_path, CONFIG, *listening, *guarded(tmp_path)) as server:
        server.end()
        assert "there are no accounts" not in server.told()
