"""What a page of another site can have a browser send, and what it cannot."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.web.auth.access import FromElsewhere
from headrace.web.auth.origin import refuse_foreign, refuse_forgeable

JSON = (b"content-type", b"application/json")


def sent(
    origin: str | None, host: str | None = "here.example", proto: str | None = None
) -> list[tuple[bytes, bytes]]:
    given = [("origin", origin), ("host", host), ("x-forwarded-proto", proto)]
    return [(name.encode(), text.encode("latin-1")) for name, text in given if text is not None]


def scope(method: str, *headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"method": method, "headers": [(b"host", b"here.example"), *headers]}


@pytest.mark.parametrize(
    ("origin", "host", "proto"),
    [
        (None, "here.example", None),
        (None, None, None),
        ("http://here.example", "here.example", None),
        ("https://here.example", "here.example", None),
        ("https://here.example", "here.example", "https"),
        ("https://here.example", "here.example", "http"),
        ("http://here.example", "here.example:80", None),
        ("http://here.example:80", "here.example", None),
        ("https://here.example:443", "here.example", None),
        ("https://here.example", "here.example:443", None),
        ("http://here.example:6767", "here.example:6767", None),
        ("HTTP://Here.Example", "here.EXAMPLE", None),
        ("http://[::1]:6767", "[::1]:6767", None),
        ("http://[::1]", "[::1]:80", None),
        ("http://127.0.0.1:6767", "127.0.0.1:6767", None),
    ],
)
def test_the_servers_own_pages_and_programs_without_an_origin_are_let_through(
    origin: str | None, host: str | None, proto: str | None
) -> None:
    refuse_foreign(sent(origin, host, proto))


@pytest.mark.parametrize(
    ("origin", "host", "proto"),
    [
        ("https://elsewhere.example", "here.example", None),
        ("https://x.here.example", "here.example", None),
        ("https://here.example.elsewhere.example", "here.example", None),
        ("http://here.example:81", "here.example", None),
        ("http://here.example", "here.example:81", None),
        ("http://here.example:443", "here.example", None),
        ("http://here.example", "here.example", "https"),
        ("null", "here.example", None),
        ("null", "null", None),
        ("", "here.example", None),
        ("here.example", "here.example", None),
        ("//here.example", "here.example", None),
        ("ftp://here.example", "here.example", None),
        ("chrome-extension://here.example", "here.example", None),
        ("http://", "", None),
        ("http://", "here.example", None),
        ("http://here.example/", "here.example/", None),
        ("http://here.example@elsewhere.example", "here.example", None),
        ("http://a@here.example", "a@here.example", None),
        ("http://here.example:", "here.example:", None),
        ("http://here.example:²", "here.example:²", None),
        ("http://here.example:" + "9" * 5000, "here.example", None),
        ("http://here.example http://elsewhere.example", "here.example", None),
        ("http://here.example", None, None),
    ],
)
def test_another_origin_is_refused(origin: str, host: str | None, proto: str | None) -> None:
    with pytest.raises(FromElsewhere, match="the Origin of this request is not this server"):
        refuse_foreign(sent(origin, host, proto))


def test_every_origin_counts_and_two_hosts_are_none() -> None:
    own, other = sent("http://here.example"), sent("http://elsewhere.example", None)

    with pytest.raises(FromElsewhere):
        refuse_foreign([*own, *other])
    with pytest.raises(FromElsewhere):
        refuse_foreign([*own, (b"host", b"here.example")])


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_what_changes_nothing_may_come_from_anywhere(method: str) -> None:
    refuse_forgeable(scope(method, (b"origin", b"https://elsewhere.example")))


@pytest.mark.parametrize(
    "kind",
    [
        b"application/json",
        b"Application/JSON",
        b"application/json; charset=utf-8",
        b" application/json ;x=y",
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_what_is_json_no_form_has_sent(method: str, kind: bytes) -> None:
    refuse_forgeable(scope(method, (b"content-type", kind)))


@pytest.mark.parametrize(
    "headers",
    [
        (),
        ((b"content-type", b""),),
        ((b"content-type", b"text/plain"),),
        ((b"content-type", b"text/plain; application/json"),),
        ((b"content-type", b"application/jsonx"),),
        ((b"content-type", b"application/x-www-form-urlencoded"),),
        ((b"content-type", b"multipart/form-data"),),
        ((b"x-content-type", b"application/json"),),
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_what_a_form_could_have_sent_is_refused(
    method: str, headers: tuple[tuple[bytes, bytes], ...]
) -> None:
    with pytest.raises(FromElsewhere, match="'Content-Type: application/json'"):
        refuse_forgeable(scope(method, *headers))


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_page_of_another_site_is_refused_whatever_it_sends(method: str) -> None:
    with pytest.raises(FromElsewhere, match="Origin"):
        refuse_forgeable(scope(method, JSON, (b"origin", b"https://elsewhere.example")))


def test_to_delete_nothing_has_to_be_said_of_a_body() -> None:
    refuse_forgeable(scope("DELETE"))
    refuse_forgeable(scope("DELETE", (b"origin", b"http://here.example")))
