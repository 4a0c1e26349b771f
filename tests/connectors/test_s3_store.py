"""What the `s3` output puts into a real object store."""

from __future__ import annotations

import asyncio
import gzip
import os
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from headrace.compiler.errors import Unreachable
from headrace.connectors.s3.objectpart import Taken
from tests.connected import started
from tests.peer import peer
from tests.promises import promise
from tests.s3_answering import LISTED, MIB, asked, part, reached
from tests.s3_sides import Wire, asking, context, objects, sink
from tests.services.s3 import BUCKET, S3

# What lands


async def test_an_object_has_its_name_its_bytes_and_its_type(object_store: S3):
    ctx = context(object_store)
    options = {"prefix": "types/ü +", "compression": "gzip", "partition": "year=%Y"}

    async with started(sink(ctx, **options)) as it:
        await it.write([{"n": 1}, {"n": 2}])

    [(key, body)] = objects(object_store, "types").items()
    assert key.startswith("types/ü +/year=20")
    assert key.endswith("Z-000001.ndjson.gz")
    assert gzip.decompress(body) == b'{"n":1}\n{"n":2}\n'
    async with asking(object_store) as client:
        found = await client.head_object(Bucket=BUCKET, Key=key)
    assert found["ContentType"] == "application/gzip"
    assert "ContentEncoding" not in found
    assert (ctx.failures, ctx.warnings) == ([], [])


@pytest.mark.parametrize(
    ("options", "ending", "media_type", "bodies"),
    [
        (
            {"format": "text", "template": "{n}: {s}"},
            ".txt",
            "text/plain; charset=utf-8",
            ["1: ü\n2: =a,b\n", "3: x\n"],
        ),
        (
            {"format": "csv", "csv": {"columns": ["s", "n"]}},
            ".csv",
            "text/csv; charset=utf-8",
            ['s,n\nü,1\n"=a,b",2\n', "s,n\nx,3\n"],
        ),
    ],
    ids=["text", "csv"],
)
async def test_an_object_has_texts_or_rows_of_csv(
    object_store: S3, options: dict[str, Any], ending: str, media_type: str, bodies: list[str]
):
    ctx = context(object_store)

    async with started(
        sink(ctx, prefix=options["format"], rotate={"max_rows": 2}, **options)
    ) as it:
        await it.write([{"n": 1, "s": "ü"}])
        await it.write([{"n": 2, "s": "=a,b"}])
        await it.write([{"n": 3, "s": "x"}])

    found = objects(object_store, options["format"])
    assert [body.decode() for body in found.values()] == bodies
    assert all(key.endswith(ending) for key in found)
    async with asking(object_store) as client:
        about = await client.head_object(Bucket=BUCKET, Key=next(iter(found)))
    assert about["ContentType"] == media_type


async def test_an_object_that_is_there_is_not_overwritten(object_store: S3):
    ctx = context(object_store)
    other, ours = part(b"other\n", "p/taken-1"), part(b"ours\n", "p/taken-1")

    async with reached(ctx) as store:
        await store.send(other)
        with pytest.raises(Taken):
            await store.send(ours)

    assert objects(object_store, "p")["p/taken-1"] == b"other\n"


@promise("s3.output.twice")
async def test_a_part_that_is_there_already_is_done_and_not_sent_again(object_store: S3):
    ctx, ours = context(object_store), part(key="p/again-1")

    async with reached(ctx) as store:
        await store.send(ours)
        before = (object_store.objects / ours.key).stat().st_mtime_ns
        await store.send(ours)

    assert (object_store.objects / ours.key).stat().st_mtime_ns == before


async def test_a_large_part_goes_in_pieces_and_is_whole(object_store: S3):
    body = os.urandom(16 * MIB + 1)

    async with reached(context(object_store)) as store:
        await store.send(part(body, "p/large"))
        await store.send(part(body[1:], "p/not-so-large"))

    assert (object_store.objects / "p" / "large").read_bytes() == body
    assert (object_store.objects / "p" / "not-so-large").read_bytes() == body[1:]
    async with asking(object_store) as client:
        large = await client.head_object(Bucket=BUCKET, Key="p/large")
        assert large["ContentType"] == "application/x-ndjson"
        assert await uploads(client) == []


async def uploads(client: Any) -> list[str]:
    """Return the keys of uploads in pieces that were begun and not ended."""
    listed = await client.list_multipart_uploads(Bucket=BUCKET)
    return [each["Key"] for each in listed.get("Uploads", [])]


@pytest.mark.long
async def test_an_upload_in_pieces_that_breaks_is_given_up_before_the_next_try(object_store: S3):
    body = os.urandom(20 * MIB)
    large = part(body, "p/broken")
    async with Wire(object_store) as wire, reached(context(wire.url)) as store:
        wire.limit(12 * MIB, cuts=True)
        with pytest.raises(Unreachable):
            await store.send(large)
        async with asking(object_store) as client:
            between = await uploads(client)
        wire.mend()
        await store.send(large)

    assert (object_store.objects / large.key).read_bytes() == body
    async with asking(object_store) as client:
        # The first could not be given up at once: nobody could be asked.
        assert (between, await uploads(client)) == ([large.key], [])


@pytest.mark.long
async def test_an_upload_in_pieces_that_is_cancelled_leaves_nothing(object_store: S3):
    async with Wire(object_store) as wire, reached(context(wire.url)) as store:
        large = part(os.urandom(24 * MIB), "p/cancelled")
        wire.limit(4 * MIB, cuts=False)
        sending = asyncio.ensure_future(store.send(large))
        await wire.reached.wait()
        async with asking(object_store) as client:
            during = await uploads(client)
        sending.cancel()
        wire.mend()
        with pytest.raises(asyncio.CancelledError):
            await sending

        async with asking(object_store) as client:
            assert (during, await uploads(client)) == ([large.key], [])
    assert not (object_store.objects / large.key).exists()


async def test_a_key_that_may_not_give_uploads_up_uploads_all_the_same():
    pieces: list[int] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        is_first = not pieces
        if request.method == "PUT":
            pieces.append(int(request.query["partNumber"]))
            return web.Response(status=500 if is_first else 200, headers={"ETag": '"e"'})
        if request.method == "POST" and "uploads" in request.query:
            return web.Response(text="<R><UploadId>u1</UploadId></R>")
        if request.method == "POST":
            return web.Response(text='<R><ETag>"e"</ETag></R>')
        return web.Response(status=404 if request.method == "HEAD" else 403)

    async with peer() as it:
        ctx, large = context(it.origin), part(bytes(16 * MIB + 1))
        it.answers = [LISTED, *[answer] * 20]
        async with reached(ctx) as store:
            with pytest.raises(Unreachable):
                await store.send(large)
            await store.send(large)

    assert pieces.count(3) >= 1
    assert [verb for verb in asked(it) if "DELETE" in verb]
    assert ctx.warnings == [
        "this key may not give uploads up: what is there of those that failed stays in the bucket"
    ]


# What is not looked at


async def test_nothing_of_the_environment_matters(
    object_store: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text(
        "[default]\nregion = eu-west-1\nendpoint_url = http://127.0.0.1:9\n"
        "ca_bundle = /nowhere\ns3 =\n  addressing_style = virtual\n"
    )
    (tmp_path / ".aws" / "credentials").write_text(
        "[default]\naws_access_key_id = AKIDWRONG\naws_secret_access_key = wrong\n"
    )
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login somebody password else\n")
    for name, value in {
        "HOME": str(tmp_path),
        "AWS_PROFILE": "not-there",
        "AWS_ACCESS_KEY_ID": "AKIDWRONG",
        "AWS_SECRET_ACCESS_KEY": "wrong",
        "AWS_SESSION_TOKEN": "wrong",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9",
        "AWS_REGION": "eu-west-1",
        "AWS_USE_FIPS_ENDPOINT": "true",
        "AWS_USE_DUALSTACK_ENDPOINT": "true",
        "AWS_CA_BUNDLE": "/nowhere",
        "AWS_CONFIG_FILE": "/nowhere",
        "AWS_REQUEST_CHECKSUM_CALCULATION": "when_supported",
        "AWS_MAX_ATTEMPTS": "9",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "http_proxy": "http://127.0.0.1:9",
        "ALL_PROXY": "http://127.0.0.1:9",
    }.items():
        monkeypatch.setenv(name, value)
    ctx = context(object_store)

    async with started(sink(ctx, prefix="alone")) as it:
        await it.write([1])

    assert list(objects(object_store, "alone").values()) == [b"1\n"]
    assert ctx.failures == []
