"""Query parameters that nobody knows are ignored, and the answer says so."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.language.catalogue import Catalogue
from headrace.web.app import Application
from headrace.web.endpoints import ENDPOINTS
from headrace.web.endpoints.row import Endpoint
from headrace.web.ignoring import HEADER, MOST_CHARACTERS, MOST_NAMES, ignored
from headrace.web.openapi import described
from headrace.web.service import Service
from tests.web.exchange import Exchange


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
    assert ignored(query, {"known"}) == said


def test_names_are_cut_and_so_is_their_number() -> None:
    long, many = b"x" * 5000, b"&".join(b"n%d" % n for n in range(5000))

    assert ignored(long, ()) == "x" * (MOST_CHARACTERS - 3) + "..."
    assert ignored(many, ()) == ", ".join([*(f"n{n}" for n in range(MOST_NAMES)), "..."])


@given(st.binary(max_size=300))
def test_no_name_brings_in_anything_but_itself(query: bytes) -> None:
    said = ignored(query, ())

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
    known = "&".join(f"{each.name}=1" for each in row.query).encode()

    told, silent = (
        asking(application, row, known + b"&nonsense=1"),
        asking(application, row, known),
    )
    await told.run()
    await silent.run()

    assert told.headers[HEADER.lower()] == "nonsense"
    assert HEADER.lower() not in silent.headers
    assert told.status == silent.status


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
