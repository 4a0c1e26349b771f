"""The console is served as built, under its policy; without it all else is."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest

from headrace.web.auth.consolesettings import ConsoleSettings
from headrace.web.console import assets
from headrace.web.service import Service
from tests.web.console import FONT, SCRIPT, build

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
NONCE = re.compile(r'<meta name="csp-nonce" content="([\w-]{22})"')


async def test_whoever_is_no_browser_is_told_where_to_read_on(client: Any) -> None:
    lines = await client.simulate_get("/")

    assert lines.headers["content-type"] == "text/plain; charset=utf-8"
    named = re.findall(r"^/(\S+)", lines.text, re.MULTILINE)
    assert "api/reference" in named
    for path in named:
        assert (await client.simulate_get(f"/{path}")).status_code == 200


async def test_a_browser_gets_the_page_with_a_nonce_of_its_own(client: Any) -> None:
    pages = [await client.simulate_get("/", headers=BROWSER) for _ in range(2)]

    nonces = [NONCE.search(page.text)[1] for page in pages]
    assert nonces[0] != nonces[1]
    for page, nonce in zip(pages, nonces, strict=True):
        policy = page.headers["content-security-policy"]
        assert f"style-src 'self' 'nonce-{nonce}';" in policy
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "require-trusted-types-for 'script'" in policy
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert page.headers["cache-control"] == "no-store"
        assert page.headers["vary"] == "Accept"


async def test_a_page_that_is_not_built_is_no_failure_and_says_what_builds_it(
    client: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(assets, "BUILT", tmp_path)
    lines = await client.simulate_get("/")

    page = await client.simulate_get("/", headers=BROWSER)

    assert page.status_code == 200
    assert "make console" in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    named = re.findall(r"^/(\S+)", lines.text, re.MULTILINE)
    assert re.findall(r'href="(api[^"]*)"', page.text) == named
    assert (await client.simulate_get("/console/start.js")).status_code == 404


async def test_a_console_that_is_disabled_is_not_there_and_all_else_is(
    client: Any, service: Service
) -> None:
    service.console = ConsoleSettings(enabled=False)

    page = await client.simulate_get("/", headers=BROWSER)

    assert NONCE.search(page.text) is None
    assert "make console" not in page.text
    assert "api/reference" in page.text
    assert (await client.simulate_get("/console/start.js")).status_code == 404


async def test_the_settings_say_which_pages_may_show_it_in_a_frame(
    client: Any, service: Service
) -> None:
    service.console = ConsoleSettings(frame_ancestors=["https://portal.example"])

    page = await client.simulate_get("/", headers=BROWSER)

    assert "frame-ancestors https://portal.example;" in page.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("accepted", "is_compressed"),
    [("gzip, deflate, br", True), ("GZIP", True), ("br", False), ("", False), ("gzip;q=0", False)],
)
async def test_text_is_sent_compressed_to_who_takes_it(
    client: Any, accepted: str, is_compressed: bool
) -> None:
    got = await client.simulate_get("/console/start.js", headers={"Accept-Encoding": accepted})

    assert got.headers.get("content-encoding") == ("gzip" if is_compressed else None)
    assert (gzip.decompress(got.content) if is_compressed else got.content) == SCRIPT
    assert got.headers["content-type"] == "text/javascript; charset=utf-8"
    assert got.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert got.headers["vary"] == "Accept-Encoding"


async def test_what_is_compressed_already_is_sent_as_it_is(client: Any) -> None:
    got = await client.simulate_get("/console/letters.woff2", headers={"Accept-Encoding": "gzip"})

    assert got.content == FONT
    assert got.headers["content-type"] == "font/woff2"
    assert "content-encoding" not in got.headers


@pytest.mark.parametrize(
    "name",
    ["nope.js", "..%2Findex.html", "%2e%2e", "index.html", "", "start.js.gz", "notes.txt", "%00"],
)
async def test_no_other_file_is_served(client: Any, name: str) -> None:
    assert (await client.simulate_get(f"/console/{name}")).status_code == 404


async def test_a_page_that_is_built_while_the_server_runs_is_served(
    client: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(assets, "BUILT", tmp_path)
    assert (await client.simulate_get("/console/start.js")).status_code == 404

    build(tmp_path)

    assert (await client.simulate_get("/console/start.js")).content == SCRIPT
