"""Redirects of what the `http` output sends: few are followed, and no credential goes with them."""

import asyncio
import base64
import contextlib
import html
from urllib.parse import quote

import pytest
from aiohttp import ClientOSError, ClientSession

from headrace.compiler.errors import BatchFailed, Unreachable
from tests.http_sides import BEARER, failure, rude, sink
from tests.peer import Peer, replies

ODD_URLS = [
    "/?{said}",
    "http://other.invalid/{said}",
    "http://{said}@other.invalid/",
    "{said}",
    "http://[{said}",
    "{origin}[::1]é{said}@",
    "{origin}:{said}/",
]


@pytest.mark.parametrize("status", [302, 307, 308])
@pytest.mark.parametrize("location", ODD_URLS)
async def test_a_redirect_shows_no_credential_whatever_url_it_names(
    server: Peer, location: str, status: int
):
    user, password, token = "me", "pa@ss/word&more", "written+out,not/referred-to@all"
    basic = base64.b64encode(f"{user}:{password}".encode()).decode()
    literal = {"url": server.url(), "auth": {"type": "bearer", "token": token}}
    signed = {"url": server.url(user=f"{user}:{quote(password, safe='')}")}
    for options, said in (
        (literal, token),
        (literal, html.escape(token)),
        (signed, password),
        (signed, quote(password, safe="")),
        (signed, html.escape(password)),
        (signed, basic),
        (signed, basic.rstrip("=")),
    ):
        there = location.format(said=said, origin=server.origin)
        server.answers = [
            replies(status=status, headers={"Location": there}),
            *[replies(status=307, headers={"Location": there})] * 20,
        ]

        failed = await failure(options)

        assert type(failed) is BatchFailed
        assert said not in str(failed)
        assert "word" not in str(failed)
        assert len(str(failed)) < 500
        server.answers = []


async def test_a_server_that_hangs_up_on_what_it_has_redirected_shows_no_credential(
    server: Peer, monkeypatch: pytest.MonkeyPatch
):
    password, token = "pass&word-of-a-url", "written+out"
    basic = base64.b64encode(f"me:{password}".encode()).decode()
    said = "&".join(quote(each) for each in (password, basic, token))
    request = ClientSession.request

    def hung_up_on(self, verb, url, **options):
        if url.query_string:
            # What the library raises when the connection is gone before the body is written.
            raise ClientOSError(None, f"Can not write request body for {url}")
        return request(self, verb, url, **options)

    monkeypatch.setattr(ClientSession, "request", hung_up_on)
    server.answers = [replies(status=307, headers={"Location": f"/?{said}"}) for _ in range(2)]

    of_url = await failure({"url": server.url(user=f"me:{quote(password)}")})
    of_token = await failure({"url": server.url(), "auth": {"type": "bearer", "token": token}})

    expected = "the server closed the connection before it had the request"
    assert str(of_url) == str(of_token) == f"POST {server.url()}: {expected}"
    assert type(of_url) is type(of_token) is Unreachable


async def test_a_redirect_to_what_cannot_be_requested_is_a_failure():
    over = asyncio.Event()

    async def points_there(reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"[1]"):
                writer.write(b"HTTP/1.1 307 There\r\nLocation: \x7fhttp://h:1#x\r\n")
                writer.write(b"Content-Length: 0\r\n\r\n")
        writer.close()
        over.set()

    async with rude(points_there) as url:
        failed = await failure({"url": url})
        await over.wait()

    assert type(failed) is BatchFailed
    assert str(failed).startswith(f"POST {url}: cannot be requested: Forbidden control character")


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_that_keeps_the_method_is_followed_within_the_server(server: Peer, status):
    server.answers = [replies(status=status, headers={"Location": "/in/?there"})]

    async with sink({"url": server.url("/in"), "auth": BEARER}, TOKEN="s3cret") as opened:
        await opened.write([{"n": 1}])

    assert [(each.method, each.path, each.body) for each in server.received] == [
        ("POST", "/in", b'[{"n":1}]'),
        ("POST", "/in/?there", b'[{"n":1}]'),
    ]
    assert server.received[1].headers["Authorization"] == "Bearer s3cret"


async def test_user_info_in_a_redirect_is_not_ours(server: Peer):
    server.answers = [replies(status=308, headers={"Location": server.url("/b", user="x:y")})]

    async with sink({"url": server.url("/a"), "auth": BEARER}, TOKEN="s3cret") as opened:
        await opened.write([1])

    assert server.received[1].headers.getall("Authorization") == ["Bearer s3cret"]


@pytest.mark.parametrize(
    ("status", "reason"), [(301, "Moved Permanently"), (302, "Found"), (303, "See Other")]
)
async def test_a_redirect_that_would_drop_the_batch_is_a_failure(server: Peer, status, reason):
    server.answers = [replies(status=status, headers={"Location": "/there"})]

    failed = await failure({"url": server.url()})

    assert type(failed) is BatchFailed
    assert str(failed) == f"POST {server.url()}: {status} {reason}: the server points to '/there'"
    assert len(server.received) == 1


@pytest.mark.parametrize(
    "location", ["https://127.0.0.1:{port}/in", "http://other.invalid/", "ftp://x/", "http://["]
)
async def test_no_batch_and_no_credential_follows_a_redirect_to_another_server(
    server: Peer, location
):
    location = location.format(port=server.origin.rpartition(":")[2])
    server.answers = [replies(status=308, headers={"Location": location})]

    failed = await failure({"url": server.url(), "auth": BEARER}, TOKEN="s3cret")

    assert str(failed) == (
        f"POST {server.url()}: 308 Permanent Redirect: the server points to '{location}'"
    )
    assert len(server.received) == 1


async def test_redirects_without_end_are_a_failure(server: Peer):
    server.answers = [replies(status=307, headers={"Location": "/in"})] * 50

    failed = await failure({"url": server.url()})

    assert str(failed) == f"POST {server.url()}: redirected more than 10 times"
