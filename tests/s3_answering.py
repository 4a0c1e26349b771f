"""A store that answers what a test says, and what an `s3` output asks of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from headrace.compiler.errors import HeadraceError
from headrace.connectors.network import refusal
from headrace.connectors.s3 import S3Connection
from headrace.connectors.s3.connection import Limits
from headrace.connectors.s3.objectpart import Content, ObjectPart
from headrace.connectors.s3.objectstore import S3Store
from tests.clients import PATIENCE
from tests.doubles import StubContext
from tests.peer import Answer, Peer, replies
from tests.s3_sides import sink
from tests.stopwatch import Stopwatch

MIB = 1024 * 1024
SAID = refusal.MOST_SAID


def part(body: bytes = b"1\n", key: str = "p/2026-03-01T08-00-00Z-000001.ndjson") -> ObjectPart:
    """Return a part that is ready."""
    return ObjectPart(key, "application/x-ndjson", 1, len(body), Content(body, "none"))


@asynccontextmanager
async def reached(ctx: StubContext, limits: Limits | None = None) -> AsyncIterator[S3Store]:
    """Give the store of a context, asked for its bucket."""
    made = S3Store(ctx.connection(S3Connection, "lake").account(ctx), ctx, limits)
    async with asyncio.timeout(PATIENCE):
        await made.open("p/")
        try:
            yield made
        finally:
            await made.close()


async def said(ctx: StubContext) -> HeadraceError:
    """Return why an output does not start, which takes no longer than it may."""
    watch = Stopwatch()
    with pytest.raises(HeadraceError) as cause:
        async with asyncio.timeout(PATIENCE):
            await sink(ctx).start()
    assert watch.seconds < 6
    return cause.value


def fault(
    status: int, code: str, message: str = "a message", more: str = "", **headers: str
) -> Answer:
    """Return an answer that says no, as stores do."""
    body = f"<Error><Code>{code}</Code><Message>{message}</Message>{more}</Error>"
    return replies(body, status, {"Content-Type": "application/xml", **headers})


LISTED = replies(
    '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>plant</Name>'
    "<KeyCount>0</KeyCount><MaxKeys>1</MaxKeys></ListBucketResult>"
)
NOT_THERE = replies(status=404)


def told(token: str) -> Answer:
    """Return the answer about an object that is there."""
    return replies(headers={"x-amz-meta-headrace-part": token})


def asked(it: Peer) -> list[str]:
    """Return what a server was asked, in order, without what stands behind a question mark."""
    return [f"{each.method} {each.path.partition('?')[0]}" for each in it.received]
