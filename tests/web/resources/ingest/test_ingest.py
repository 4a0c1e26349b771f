"""Posting messages: what is queued, what is refused, and before which byte of the body."""

from __future__ import annotations

import pytest

from headrace.compiler.decimals import Written
from headrace.compiler.runtime.monitoring.liveevents import Run
from headrace.web.resources.ingest import LARGEST
from headrace.web.service import Service
from tests.promises import promise
from tests.web.resources.ingest.posting_to import (
    LARGE_BODY,
    ToTheApplication,
    ToTheProtocol,
    post,
)


@pytest.mark.parametrize(
    ("body", "batch"),
    [
        (b'{"n": 1}', [{"n": 1}]),
        (b'[{"n": 1}, {"n": 2}]', [{"n": 1}, {"n": 2}]),
        (b"[[1], 2]", [[1], 2]),
        (b"null", [None]),
        (b"42", [42]),
        (b'"text"', ["text"]),
        (b" true ", [True]),
    ],
)
async def test_an_array_is_one_batch_and_anything_else_one_message(way, asked, body, batch) -> None:
    exchange = await post(way, body)

    assert exchange.status == 202
    assert exchange.json == {"accepted": len(batch)}
    assert [offered for offered, _ in asked.offered] == [batch]


async def test_an_empty_array_is_accepted_and_nothing_is_queued(way, asked) -> None:
    exchange = await post(way, b"[]")

    assert exchange.status == 202
    assert exchange.json == {"accepted": 0}
    assert asked.offered == []


async def test_a_body_may_come_in_pieces(way, asked) -> None:
    exchange = await post(way, b'[{"n"', b": 1}", b"", b", 2]")

    assert exchange.json == {"accepted": 2}
    assert [offered for offered, _ in asked.offered] == [[{"n": 1}, 2]]


async def test_what_is_posted_is_decoded_as_the_pipeline_does_it_at_that_moment(way, asked) -> None:
    for keeps in (False, True, False):
        asked.decoding.keep_digits(keeps=keeps)
        await post(way, b'{"n": 1.10}')

    assert [type(batch[0]["n"]) for batch, _ in asked.offered] == [float, Written, float]


async def test_the_origin_is_method_peer_and_headers(way, asked) -> None:
    own = (b"user-agent", b"test")

    await post(way, b"1", headers=[own])
    await post(way, b"1", headers=[own], client=("::1", 80))
    await post(way, b"1", headers=[own], client=None)

    assert [(method, peer) for _, (method, peer, _) in asked.offered] == [
        ("POST", "192.0.2.1:4711"),
        ("POST", "[::1]:80"),
        ("POST", None),
    ]
    assert all(own in headers for _, (_, _, headers) in asked.offered)


async def test_an_origin_that_nobody_wants_is_not_made(way, asked) -> None:
    asked.wants_origin = False

    await post(way, b"1")

    assert asked.offered == [([1], None)]


@pytest.mark.parametrize(
    ("path", "id"),
    [
        ("p", "p"),
        ("a%2Fb", "a/b"),
        ("a%252Fb", "a%2Fb"),
        ("gr%C3%BCn", "grün"),
        ("a+b", "a+b"),
        ("dry-run", "dry-run"),
        ("%20", " "),
    ],
)
async def test_an_id_is_percent_decoded_once(way, asked, path, id) -> None:
    exchange = await post(way, b"1", path=f"/api/pipelines/{path}/messages")

    assert exchange.status == 202
    assert asked.pipeline == id


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "Input data was truncated"),
        (b'{"n": 1', "Input data was truncated"),
        (b'{"n": 1} x', "trailing"),
        (b"[" * 100_000 + b"]" * 100_000, "nested deeper than 128"),
        (b"[" * 129 + b"]" * 129, "nested deeper than 128"),
        (b"1e400", "range"),
        (b"[NaN]", "invalid character"),
        (b"[Infinity]", "invalid character"),
        (b'"\\ud800"', "not JSON"),
        (b'"\xff"', "UTF-8"),
        ('"wide"'.encode("utf-16"), "not JSON"),
        (b"\xef\xbb\xbf1", "not JSON"),
        (b"1" * 5000, "not JSON"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[:8].hex(),
)
async def test_what_is_not_json_is_refused_with_the_reason(way, asked, body, reason) -> None:
    exchange = await post(way, body)

    assert exchange.status == 400
    assert exchange.json["error"].startswith("the body is not JSON: ")
    assert reason.lower() in exchange.json["error"].lower()
    assert asked.offered == []


async def test_too_many_bytes_are_refused_before_they_are_decoded(way, asked, monkeypatch) -> None:
    asked.has_bytes = asked.has_room = False
    monkeypatch.setattr("headrace.compiler.runtime.wayin.decode_large", None)

    small, large = await post(way, b"1"), await post(way, LARGE_BODY)

    assert [small.status, large.status] == [503, 503]
    assert small.headers["retry-after"] == "1"
    assert (
        small.json
        == large.json
        == {"error": "pipeline 'p': too many bytes are queued, nothing was taken"}
    )


async def test_a_credential_is_asked_for_before_the_body(way, asked) -> None:
    asked.needs = "s3cret"

    missing = await post(way, b"1")
    wrong = await post(way, b"1", headers=[(b"x-key", b"else")])
    right = await post(way, b"1", headers=[(b"x-key", b"s3cret")])

    assert [missing.status, wrong.status, right.status] == [401, 401, 202]
    assert not missing.was_asked_for_body
    assert missing.json == wrong.json
    assert "www-authenticate" not in missing.headers
    assert asked.offered[0][0] == [1]


@pytest.mark.parametrize("values", [[b"s3cret", b"else"], [b"else", b"s3cret"], [b"s3cret"] * 2])
async def test_of_several_credentials_none_counts(way, asked, values) -> None:
    asked.needs = "s3cret"

    several = await post(way, b"1", headers=[(b"x-key", value) for value in values])
    wrong = await post(way, b"1", headers=[(b"x-key", b"else")])

    assert (several.status, several.json) == (401, wrong.json)
    assert asked.offered == []


async def test_a_length_beyond_the_limit_is_refused_before_the_body(way, asked) -> None:
    length = str(LARGEST + 1).encode()

    exchange = await post(way, b"1", headers=[(b"content-length", length)])

    assert exchange.status == 413
    assert exchange.headers["connection"] == "close"
    assert not exchange.was_asked_for_body
    assert asked.offered == []


async def test_a_body_without_a_length_is_counted(way, asked) -> None:
    half = b" " * (LARGEST // 2)

    fits = await post(way, half, half[1:], b"1")
    too_large = way.exchange([half, half, b" ", b"1", b"1"])
    await too_large.run()

    assert fits.status == 202
    assert too_large.status == 413
    assert too_large.json == {"error": "the body is larger than 16777216 bytes"}
    assert len(asked.offered) == 1


async def test_a_client_that_leaves_in_the_middle_has_posted_nothing(way, asked) -> None:
    for body in ([], [b"1"], [b"[1,", b"2]"]):
        exchange = way.exchange(body, leaves=True)
        await exchange.run()

        assert exchange.messages == []
    assert asked.offered == []


@promise("http.input.beyond")
async def test_a_full_queue_takes_nothing(way, asked) -> None:
    asked.has_room = False

    exchange = await post(way, b"[1, 2]")

    assert exchange.status == 503
    assert exchange.headers["retry-after"] == "1"
    assert exchange.json == {"error": "pipeline 'p': the queue is full, nothing was taken"}


async def test_a_pipeline_that_ends_says_so(way, asked) -> None:
    asked.has_room, asked.is_stopped = False, True

    exchange = await post(way, b"[1, 2]")

    assert exchange.status == 503
    assert exchange.json == {"error": "pipeline 'p': it is being stopped, nothing was taken"}


@pytest.mark.parametrize("encoding", [b"br", b" BR ", b"GZIP, deflate", b"compress", b"gzip,gzip"])
async def test_a_content_encoding_is_named_and_refused_before_the_body(
    way, asked, encoding
) -> None:
    exchange = await post(way, b"\x1f\x8b", headers=[(b"content-encoding", encoding)])

    assert exchange.status == 415
    assert not exchange.was_asked_for_body
    assert exchange.headers["accept-encoding"] == "gzip, zstd, deflate"
    named = ", ".join(each.strip() for each in encoding.decode().lower().split(","))
    assert exchange.json == {
        "error": f'a body in the content encoding "{named}" is not taken: send it in one of gzip, zstd,'
        " deflate, or as it is"
    }


@pytest.mark.parametrize("encoding", [b"identity", b" Identity ", b""])
async def test_an_encoding_that_is_none_is_taken(way, encoding) -> None:
    exchange = await post(way, b"1", headers=[(b"content-encoding", encoding)])

    assert exchange.status == 202


@pytest.mark.parametrize(
    ("body", "fits"),
    [
        (b'{"n": 1}\n{"n": 2}\n', "'format: ndjson' takes lines of JSON"),
        (b"1\n2\n", "'format: ndjson' takes lines of JSON"),
        (b"n,temp\n1,21.5\n", "'format: csv' takes a table"),
        (b"n;temp\n1;21.5\n", "'format: csv' takes a table"),
        (b'"n","temp"\n', "'format: csv' takes a table"),
        (b"warm\n", "'format: text' or 'lines' takes text"),
        (b"", "'format: text' or 'lines' takes text"),
        (b'{"n": 1}\n' * 60_000, "'format: ndjson' takes lines of JSON"),
        (b"n,temp\n" * 60_000, "'format: csv' takes a table"),
        (b'{"n": 1', None),
        (b"[1,]", None),
    ],
    ids=lambda value: value[:12].decode() if isinstance(value, bytes) else str(value)[:12],
)
async def test_who_sends_lines_or_a_table_is_told_which_format_takes_them(
    way, body: bytes, fits: str | None
) -> None:
    exchange = await post(way, body)

    taken = "; what is taken is one JSON message, or an array of them; on the input, "
    assert exchange.status == 400
    assert exchange.json["error"].partition(taken)[2] == (fits or "")


async def test_whatever_the_content_type_says_the_body_is_parsed(way, asked) -> None:
    exchange = await post(way, b"1", headers=[(b"content-type", b"text/csv")])

    assert exchange.status == 202


async def test_the_two_kinds_of_not_found_are_told_apart(client) -> None:
    config = {"id": "mute", "inputs": [{"type": "dummy", "duration": 3600}]}
    await client.simulate_post("/api/pipelines", json=config)

    mute = await client.simulate_post("/api/pipelines/mute/messages", body="{")
    nobody = await client.simulate_post("/api/pipelines/nobody/messages", body="{")

    assert (mute.status_code, nobody.status_code) == (404, 404)
    assert mute.json == {"error": "pipeline 'mute' has no http input"}
    assert nobody.json == {"error": "no pipeline named 'nobody'"}


@pytest.mark.parametrize("to", [ToTheApplication, ToTheProtocol])
async def test_what_is_posted_runs_through_the_pipeline(client, service: Service, to) -> None:
    config = {
        "id": "a/b",
        "inputs": [{"type": "http", "envelope": {"type": "wrap"}}],
        "transforms": [
            {
                "type": "map",
                "keep": "mapped",
                "mappings": [
                    {"type": "copy", "from": "_meta.headers.x-request-id", "as": "id"},
                    {"type": "copy", "from": "value.n", "as": "n"},
                ],
            }
        ],
    }
    await client.simulate_post("/api/pipelines", json=config)
    listener = service.engine.observe()

    exchange = await post(
        to(service),
        b'[{"n": 1}]',
        path="/api/pipelines/a%2Fb/messages",
        headers=[(b"x-request-id", b"r1")],
    )

    assert exchange.json == {"accepted": 1}
    told = await anext(aiter(listener))
    assert isinstance(told, Run)
    assert rb'"messages":["{\"id\":\"r1\",\"n\":1}"]' in told.events[1].data
    listener.close()
