"""Who may see what: sign-in, its end, tokens of a provider, and those who may only look."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import expect

from tests.console.browser import Console
from tests.console.people import cookie_of, guarded
from tests.console.plant import CONFIG
from tests.console.rules import rule
from tests.forked import serving
from tests.server import Server
from tests.web.auth.issuing import AUDIENCE, ISSUER, Signer, claims_of, published
from tests.web.auth.people import ADMIN, PASSWORDS, READER

SIGNER = Signer("k1", "ES256")


@pytest.fixture
def options(tmp_path: Path) -> tuple[str, ...]:
    return guarded(tmp_path)


def sign_in(console: Console, name: str) -> None:
    page = console.page
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORDS[name])
    page.get_by_role("button", name="Sign in").click()


def test_the_screen_that_was_asked_for_shows_after_sign_in(console: Console) -> None:
    page = console.open("p/fusion/history")
    expect(page.get_by_role("heading", name="Sign in to headrace")).to_be_visible()
    expect(page.get_by_text("fusion")).to_have_count(0)
    console.picture("asked")

    sign_in(console, ADMIN)

    expect(page.get_by_role("heading", name="fusion", level=2)).to_be_visible()
    expect(page.get_by_role("link", name="history")).to_have_attribute("aria-current", "page")


def test_a_wrong_password_is_told_and_can_be_tried_again(console: Console) -> None:
    page = console.open()
    console.allow("401.*api/auth/login")
    page.get_by_label("Name").fill(ADMIN)
    page.get_by_label("Password").fill("guessed")

    page.get_by_role("button", name="Sign in").click()

    expect(page.get_by_role("alert")).not_to_be_empty()
    console.picture("refused")
    sign_in(console, ADMIN)
    expect(console.card("fusion")).to_be_visible()


def test_who_signs_out_sees_nothing_any_more(console: Console) -> None:
    page = console.open()
    sign_in(console, ADMIN)
    expect(console.card("fusion")).to_be_visible()

    page.get_by_role("button", name="more").click()
    expect(page.get_by_title(ADMIN, exact=True)).to_be_visible()
    console.picture("menu")
    page.get_by_role("button", name="Sign out").click()

    expect(page.get_by_role("heading", name="Sign in to headrace")).to_be_visible()
    expect(page.get_by_text("fusion")).to_have_count(0)


@rule(48)
@pytest.mark.parametrize("address", ["", "wall"])
def test_who_may_only_look_is_offered_nothing_that_changes(console: Console, address: str) -> None:
    page = console.open(address)

    sign_in(console, READER)

    expect(page.get_by_text("press-readings").first).to_be_visible()
    if address != "wall":
        expect(page.get_by_text("read-only")).to_have_count(2)  # a mark, and the menu's
        expect(page.get_by_text("read-only").first).to_be_visible()
    for name in ("Revert", "Save", "Pipeline", "New pipeline", "Edit", "Dry run"):
        expect(page.get_by_role("link", name=name, exact=True)).to_have_count(0)
        expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)


@rule(49)
def test_the_end_of_a_session_shows_sign_in_and_afterwards_the_same_screen(
    console: Console,
) -> None:
    page = console.open("p/fusion/stages")
    sign_in(console, ADMIN)
    expect(page.get_by_role("heading", name="fusion", level=2)).to_be_visible()
    console.allow("401")
    [cookie] = console.context.cookies()

    headers = {"Cookie": f"{cookie['name']}={cookie['value']}", "Origin": console.origin}
    ended = console.server.request("POST", "/api/auth/logout", headers=headers)

    assert ended.status == 204
    expect(page.get_by_role("heading", name="Sign in to headrace")).to_be_visible()
    sign_in(console, ADMIN)
    expect(page.get_by_role("heading", name="fusion", level=2)).to_be_visible()
    expect(page.get_by_role("link", name="stages")).to_have_attribute("aria-current", "page")


def test_a_session_of_before_is_taken_on(console: Console) -> None:
    name, _, value = cookie_of(console.server, READER)["Cookie"].partition("=")
    console.context.add_cookies([{"name": name, "value": value, "url": console.origin}])

    console.open()

    expect(console.card("fusion")).to_be_visible()


@contextmanager
def keys() -> Iterator[str]:
    """Give the address of a provider that publishes its keys."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = published(SIGNER.entry())
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as provider:
        Thread(target=provider.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{provider.server_port}/jwks"
        provider.shutdown()


class TestTokens:
    @pytest.fixture
    def server(self, tmp_path: Path) -> Iterator[Server]:
        (tmp_path / "config.connections.json").write_text(
            json.dumps({"archive": {"type": "file", "root": "data"}})
        )
        with keys() as jwks_url:
            asked = guarded(
                tmp_path, type="jwt", jwks_url=jwks_url, issuer=ISSUER, audience=AUDIENCE
            )
            with serving(tmp_path, CONFIG, "--data-dir", "data", *asked) as server:
                yield server

    @rule(50)
    def test_a_token_of_the_address_is_exchanged_and_gone_from_address_and_history(
        self, server: Server, opened: Callable[[Server], Console]
    ) -> None:
        console = opened(server)
        page, token = console.page, SIGNER.token(claims_of(time.time()))
        page.goto("about:blank")

        page.goto(f"{console.origin}/?auth_token={token}#/p/fusion/live")

        expect(page.get_by_role("heading", name="fusion", level=2)).to_be_visible()
        expect(page).to_have_url(f"{console.origin}/#/p/fusion/live")
        assert page.evaluate("history.length") == 2
        page.go_back()
        expect(page).to_have_url("about:blank")
        page.go_forward()
        expect(page).to_have_url(f"{console.origin}/#/p/fusion/live")
        stored = page.evaluate("JSON.stringify({...localStorage, ...sessionStorage})")
        assert token not in stored

    def test_a_token_that_is_not_taken_is_told_and_gone_as_well(
        self, server: Server, opened: Callable[[Server], Console]
    ) -> None:
        console = opened(server)
        console.allow("401.*api/auth/token")

        console.page.goto(f"{console.origin}/?auth_token=forged#/p/fusion")

        expect(console.page.get_by_role("heading", name="Sign in to headrace")).to_be_visible()
        expect(console.page.get_by_role("alert")).not_to_be_empty()
        expect(console.page).to_have_url(f"{console.origin}/#/p/fusion")
