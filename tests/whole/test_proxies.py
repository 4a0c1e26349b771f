"""Behind the proxies of `deploy/`, with TLS: what `docs/operating.md` says of them."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path

import pytest

from tests.clients import PATIENCE, Answer, messages_of
from tests.forked import serving
from tests.proxies import Caddy, Nginx, Proxy
from tests.server import Server
from tests.services.authority import Authority

PIPELINES = [{"id": id, "inputs": [{"type": "http"}]} for id in ("p1", "p2", "p3")]
SETTINGS = {"auth": {"type": "basic", "users": {"ann": {"password": "${PASS}", "role": "admin"}}}}
MIB = 1024 * 1024


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "settings.json").write_text(json.dumps(SETTINGS))
    (tmp_path / "secrets.json").write_text(json.dumps({"PASS": "correct horse"}))
    options = ("--server-config", "settings.json", "--secrets", "secrets.json")
    with serving(tmp_path, PIPELINES, *options) as running:
        yield running


@pytest.fixture(params=[Nginx, Caddy])
def proxy(request: pytest.FixtureRequest, tmp_path: Path, server: Server) -> Iterator[Proxy]:
    kind: type[Proxy] = request.param
    with kind(tmp_path / "proxy", server.port, Authority(tmp_path / "tls")) as running:
        yield running


def connection(proxy: Proxy) -> HTTPSConnection:
    assert proxy.tls is not None
    trusting = ssl.create_default_context(cafile=proxy.tls.ca_file)
    return HTTPSConnection("localhost", proxy.port, timeout=PATIENCE, context=trusting)


def ask(
    proxy: Proxy, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] = {}
) -> Answer:
    client = connection(proxy)
    try:
        with suppress(OSError):  # what is too large is answered before all of it is sent
            client.request(method, path, body, dict(headers))
        return Answer.of(client.getresponse())
    finally:
        client.close()


def signed_in(proxy: Proxy, **headers: str) -> tuple[dict[str, str], list[str]]:
    """Return the headers of a browser that has signed in, and the attributes of its cookie."""
    given = json.dumps({"username": "ann", "password": "correct horse"}).encode()
    said = {"Content-Type": "application/json", **headers}
    answer = ask(proxy, "POST", "/api/auth/login", given, said)
    assert answer.status == 200
    cookie, *attributes = answer.headers["set-cookie"].split("; ")
    return {"Content-Type": "application/json", "Cookie": cookie}, attributes


def test_events_come_through_one_by_one(proxy: Proxy, server: Server) -> None:
    browser, _ = signed_in(proxy)
    client = connection(proxy)
    client.request("GET", "/events", headers=browser)
    stream = client.getresponse()
    assert stream.readline() == b":\n"

    for pipeline in ("p1", "p2", "p3"):  # of each only so many events are told
        server.post(pipeline, {"n": 1})
        line = next(line for line in stream if line.startswith(b"data: ") and b'"input"' in line)
        assert pipeline.encode() in line

    client.close()


@pytest.mark.long
def test_what_headrace_takes_goes_through_and_what_it_refuses_is_refused(proxy: Proxy) -> None:
    text = b'"%b"' % (b"x" * (16 * MIB - 2))

    assert ask(proxy, "POST", messages_of("p1"), text).status == 202
    refused = ask(proxy, "POST", messages_of("p1"), text + b" ").status
    # Headrace answers before it has read all of that, and closes. Caddy may lose such an answer.
    assert refused in ({413, 502} if isinstance(proxy, Caddy) else {413})


@pytest.mark.long
@pytest.mark.parametrize("claim", [{}, {"X-Forwarded-Proto": "http"}])
def test_a_cookie_is_for_tls_alone_whatever_a_client_claims(
    proxy: Proxy, claim: dict[str, str]
) -> None:
    _, attributes = signed_in(proxy, **claim)

    assert {"Secure", "HttpOnly", "SameSite=Strict", "Path=/"} == set(attributes)


@pytest.mark.long
def test_a_page_of_the_proxy_may_change_things_and_one_of_another_site_may_not(
    proxy: Proxy,
) -> None:
    browser, _ = signed_in(proxy)
    own, other = f"https://localhost:{proxy.port}", "https://elsewhere.example.org"

    def created(id: str, origin: str) -> int:
        config = json.dumps({**PIPELINES[0], "id": id}).encode()
        return ask(proxy, "POST", "/api/pipelines", config, {**browser, "Origin": origin}).status

    assert created("a", own) == 201
    assert created("b", other) == 403


def test_without_tls_a_client_is_sent_on(proxy: Proxy) -> None:
    client = HTTPConnection("localhost", proxy.plain_port, timeout=PATIENCE)
    client.request("GET", "/api/pipelines?a=1")
    answer = Answer.of(client.getresponse())
    client.close()

    assert answer.status in (301, 308)
    assert answer.headers["location"].startswith("https://localhost")
    assert answer.headers["location"].endswith("/api/pipelines?a=1")


def test_nginx_has_no_patience_with_whoever_tries_passwords(tmp_path: Path, server: Server) -> None:
    given = json.dumps({"username": "ann", "password": "wrong"}).encode()
    said = {"Content-Type": "application/json"}
    with Nginx(tmp_path / "proxy", server.port, Authority(tmp_path / "tls")) as proxy:
        statuses = [ask(proxy, "POST", "/api/auth/login", given, said).status for _ in range(8)]

        assert (statuses[:6], statuses[7]) == ([401] * 6, 429)
        assert ask(proxy, "GET", "/api/auth/me").status == 200
