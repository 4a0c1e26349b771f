"""Query parameters that nobody knows are ignored, and the answer says so."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.component.catalogue import Catalogue
from headrace.web.app import Application
from headrace.web.endpoint import Endpoint
from headrace.web.ignoring import HEADER, MOST_CHARACTERS, MOST_NAMES, ignored
from headrace.web.openapi import described
from headrace.web.resources import ENDPOINTS
from headrace.web.service import Service
from tests.web.exchange import Exchange

WORDS = {"named": {"ping", "lagged"}}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (b"", None),
        (b"known=1", None),
        (b"Known=1", "Known"),
        (b"limit=3&known=1&limit=4&page", "limit, page"),
        (b"=1&&=", None),
        (b"filter[name]=x&$top=1&a.b-c_d~e=2", "filter[name], $top, a.b-c_d~e"),
        (b"a,b=1&c+d=2&e%3Df=3", "a%2Cb, c%20d, e%3Df"),
        (b"a%0d%0aSet-Cookie:x=1", "a%0D%0ASet-Cookie:x"),
        (b"%c3%bc=1&%ff=2&\xfc=3", "%C3%BC, %EF%BF%BD"),
        (b"%00%7f;x=1", "%00%7F%3Bx"),
    ],
)
def test_the_names_are_told_once_in_order_and_encoded(query: bytes, said: str | None) -> None:
    assert ignored(query, {"known": None}) == said


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (b"named", None),
        (b"named=,%20,&named=+ping,lagged", None),
        (b"other=pong&named=pong", "other, named=pong"),
        (b"named=pong,ping,pang&a&named=pang", "named=pong, named=pang, a"),
        (b"named=%0d%0aset-cookie:a", "named=set-cookie:a"),
        (b"named=a%0d%0ab=c&named%3Da=ping", "named=a%0D%0Ab%3Dc, named%3Da"),
    ],
)
def test_unknown_words_are_told_with_the_parameter_that_takes_others(
    query: bytes, said: str | None
) -> None:
    assert ignored(query, WORDS) == said


@pytest.mark.parametrize(
    ("written", "told"), [(b"%b", "{}"), (b"named=%b", "named={}")], ids=["names", "words"]
)
def test_what_is_told_is_cut_and_so_is_its_number(written: bytes, told: str) -> None:
    many = [b"n%d" % n for n in range(5000)]
    listed = b",".join(many) if b"=" in written else b"&".join(many)

    assert ignored(written % (b"x" * 60_000), WORDS) == (
        told.format("x" * MOST_CHARACTERS)[: MOST_CHARACTERS - 3] + "..."
    )
    assert ignored(written % listed, WORDS) == ", ".join(
        [*(told.format(f"n{n}") for n in range(MOST_NAMES)), "..."]
    )


@given(st.binary(max_size=300), st.sampled_from([b"", b"named="]))
def test_no_name_brings_in_anything_but_itself(query: bytes, parameter: bytes) -> None:
    said = ignored(parameter + query, WORDS)

    names = [] if said is None else said.split(", ")
    assert all(re.fullmatch(r"[!-+\--:<-~]{1,100}", name) for name in names)
    assert len(names) == len(set(names)) <= MOST_NAMES + 1


def asking(application: Application, row: Endpoint, query: bytes) -> Exchange:
    path = re.sub(r"{\w+}", "nobody", row.path)
    exchange = Exchange(application, row.method, path, query=query, leaves=True)
    return exchange


@pytest.mark.parametrize("row", ENDPOINTS, ids=lambda row: row.operation)
async def test_every_endpoint_names_what_it_ignores_whatever_it_answers(
    service: Service, row: Endpoint
) -> None:
    application = Application(service)
    known = "&".join(f"{each.name}={min(each.words or '1')}" for each in row.query).encode()

    told, silent = (
        asking(application, row, known + b"&nonsense=1"),
        asking(application, row, known),
    )
    await told.run()
    await silent.run()

    assert told.headers[HEADER.lower()] == "nonsense"
    assert HEADER.lower() not in silent.headers
    assert told.status == silent.status


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_what_a_stream_is_asked_for_and_does_not_know_is_one_header(
    service: Service, method: str
) -> None:
    query = b"named=ping,foo&zz=1&named=fault"
    exchange = Exchange(Application(service), method, "/events", query=query, leaves=True)

    await exchange.run()

    said = [
        value for name, value in exchange.messages[0]["headers"] if name == HEADER.lower().encode()
    ]
    assert said == [b"named=foo, zz"]


def test_the_description_names_the_header(components: Catalogue) -> None:
    document = described(components)
    answers: Iterable[tuple[str, Any]] = (
        (status, answer)
        for path in document["paths"].values()
        for operation in path.values()
        for status, answer in operation["responses"].items()
    )

    assert HEADER in document["components"]["headers"]
    assert all(
        (HEADER in answer.get("headers", ())) == (status < "300") for status, answer in answers
    )
