"""One bucket of an object store: asked once whether it is there, then given parts."""

from __future__ import annotations

import asyncio
import hashlib
from base64 import b64encode
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from typing import Any
from urllib.parse import SplitResult, urlsplit

from botocore.exceptions import ClientError

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.errors import FailureClass, Unreachable
from headrace.connectors.network.refusal import CONNECT_SECONDS, Outage, turned_away
from headrace.connectors.network.tls import PROBE_SECONDS, handshake_fault, tls_fault
from headrace.connectors.s3.connection import (
    DENIED,
    NO_STORE,
    REGION,
    SILENT,
    TAKEN,
    UNANSWERED,
    UNKNOWN_CONDITION,
    Limits,
    Redirected,
    StoreAccount,
    StoreError,
    client,
    session,
    silence,
    silence_class,
    tls_error,
)
from headrace.connectors.s3.objectpart import Declined, ObjectPart, Taken

REACH_SECONDS = CONNECT_SECONDS - PROBE_SECONDS
"""Limit for asking for the bucket; what is left of the time is for asking what is wrong."""

TOKEN = "headrace-part"
"""The metadata of an object by which the part is found that it was."""


class S3Store:
    """The bucket that a connection names, as one output meets it."""

    def __init__(self, account: StoreAccount, ctx: Context, limits: Limits | None = None) -> None:
        self._account, self._ctx, self._clock = account, ctx, ctx.clock
        self._limits = limits or Limits()
        self._exit = AsyncExitStack()
        self._client: Any = None
        self._where = f"bucket '{account.bucket}'"
        self._outage = Outage(self._where)
        # Stores that know the condition need not be looked into first. The vendor's does; of the
        # others some ignore it, and would overwrite.
        self._looks_first = account.endpoint is not None
        self._condition: dict[str, Any] = {"IfNoneMatch": "*"}

    async def open(self, prefix: str) -> None:
        """Make a client, and ask for the bucket with it.

        Raises:
            BuildRefused: the store says no, or TLS as configured cannot work.
            Unreachable: it does not answer, or not now.
        """
        try:
            await self._connect()
            await self._ask(prefix)
        except BaseException:
            await self.close()
            raise
        self._outage.over()

    async def send(self, part: ObjectPart) -> None:
        """Put a part under its key. One that is there already is not put there again.

        Raises:
            Unreachable: nothing is taken now, whatever the reason.
            Declined: this part is not.
            Taken: there is another object.
        """
        try:
            with self._clock.outside():
                # What an earlier try could not end.
                await self._give_up(part, self._limits.silent_seconds)
                if self._looks_first and await self._has(part):
                    return
                await self._put(part)
                # Where the condition is ignored, another server may have been as fast.
                if self._looks_first and await self._token(part) not in (None, "", part.token):
                    raise Taken
        except ClientError as cause:
            answer = StoreError(cause)
            said = answer.words(self._ctx.redact, part.key)
            if answer.is_of_this_request:
                told = f"{self._where} {said}"
                raise Declined(told, answer.failure, is_certain=answer.is_certain) from None
            raise self._out(said, answer.failure) from None
        except Redirected as cause:
            raise self._out(cause.words(self._ctx.redact), silence_class(cause)) from None
        except UNANSWERED as cause:
            raise self._out(silence(cause), silence_class(cause)) from None
        self._outage.over()

    def _out(self, said: str, failure: FailureClass) -> Unreachable:
        """Return what to raise when the store takes nothing now."""
        return Unreachable(str(self._outage.of(said)), failure)

    async def close(self) -> None:
        """Hang up."""
        self._client = None
        await self._exit.aclose()

    async def _connect(self) -> None:
        account = self._account
        with self._clock.outside():  # it reads the models of the library, half a second of work
            opened = await asyncio.to_thread(session)
        self._client = await self._exit.enter_async_context(
            client(opened, account, self._clock, self._limits)
        )
        where = f"bucket '{account.bucket}' at {self._host.netloc}"
        if where != self._where:
            self._where, self._outage = where, Outage(where)

    async def _ask(self, prefix: str) -> None:
        """Ask for an object under the prefix: it takes the same right as a HEAD and says what is wrong."""
        try:
            with self._clock.outside():
                async with self._clock.timeout(REACH_SECONDS):
                    found = await self._client.list_objects_v2(
                        Bucket=self._account.bucket, Prefix=prefix, MaxKeys=1
                    )
        except ClientError as cause:
            await self._judge(StoreError(cause))
        except UNANSWERED as cause:
            raise await self._not_reached(cause) from None
        else:
            if found.keys() <= {"ResponseMetadata"}:  # even that of an empty bucket has more
                raise turned_away(f"{self._where} {NO_STORE}")
            headers = found["ResponseMetadata"]["HTTPHeaders"]
            if self._account.endpoint is None and REGION in headers:
                self._check_region(headers[REGION])

    async def _judge(self, answer: StoreError) -> None:
        """Raise what a store means that does not list the bucket."""
        said = answer.words(self._ctx.redact)
        if answer.is_passing:
            raise self._outage.of(said)
        if answer.region is not None:
            self._check_region(answer.region)
        if answer.code not in DENIED:
            fault = None if answer.is_of_a_store else await self._tls_fault()
            raise turned_away(fault or f"{self._where} {said}")
        self._ctx.warn(
            f"{self._where} may not be listed by this key ('{answer.code}'): whether it can be"
            " written to shows with the first part, and a part whose name is taken gets another one"
        )

    def _check_region(self, found: str) -> None:
        if found != self._account.region:
            raise turned_away(
                f"{self._where} is in the region '{found}', and the connection says"
                f" '{self._account.region}'",
                expected=f"region: {found}",
            )

    async def _not_reached(self, cause: BaseException) -> Exception:
        """Return what to raise for a store that could not be asked."""
        if (error := tls_error(cause)) is not None:
            return turned_away(handshake_fault(self._host.netloc, error))
        if isinstance(cause, Redirected):
            return turned_away(
                f"{self._where} {cause.words(self._ctx.redact)}",
                expected="the endpoint of the store itself: parts are not sent elsewhere",
            )
        said = silence(cause)
        if said != SILENT and (fault := await self._tls_fault()) is not None:
            return turned_away(fault)
        return turned_away(f"{self._where} {said}") if said == NO_STORE else self._outage.of(said)

    @property
    def _host(self) -> SplitResult:
        url: str = self._client.meta.endpoint_url
        return urlsplit(url)

    async def _tls_fault(self) -> str | None:
        """Return that a store wants TLS which is asked without."""
        if self._account.tls is not None:
            return None
        host = self._host
        with self._clock.outside():
            return await tls_fault(host.hostname or "", host.port or 80, None, self._clock)

    async def _put(self, part: ObjectPart) -> None:
        assert part.content is not None
        body = part.content.body
        told = {"ContentType": part.media_type, "Metadata": {TOKEN: part.token}}
        try:
            if len(body) > self._limits.whole_bytes:
                await self._put_in_pieces(part, body, told)
            else:
                await self._asked(self._client.put_object, part, body, **told, **self._condition)
        except ClientError as cause:
            answer = StoreError(cause)
            if answer.code in UNKNOWN_CONDITION and self._condition:
                self._looks_first, self._condition = True, {}
                await self._put(part)
            elif answer.code not in TAKEN:
                raise
            elif not await self._has(part):
                raise Taken from None

    async def _has(self, part: ObjectPart) -> bool:
        """Return whether the part is there; a key that may not look learns nothing.

        Raises:
            Taken: something else is.
        """
        if (found := await self._token(part)) is not None and found != part.token:
            raise Taken
        return found is not None

    async def _token(self, part: ObjectPart) -> str | None:
        """Return by what the object under the key is known, maybe nothing; None if it cannot be seen."""
        try:
            found = await self._asked(self._client.head_object, part)
        except ClientError as cause:
            answer = StoreError(cause)
            # To a look nobody says why it is refused; to an upload a store does.
            if answer.status in (400, 404) or answer.code in DENIED:
                return None
            raise
        return str(found.get("Metadata", {}).get(TOKEN, ""))

    async def _put_in_pieces(self, part: ObjectPart, body: bytes, told: dict[str, Any]) -> None:
        made = await self._asked(self._client.create_multipart_upload, part, **told)
        part.upload = part.key, made["UploadId"]
        try:
            await self._asked(
                self._client.complete_multipart_upload,
                part,
                UploadId=made["UploadId"],
                MultipartUpload={"Parts": await self._pieces(part, body, made["UploadId"])},
                **self._condition,
            )
        except BaseException:
            with suppress(Exception):  # tried again before the part is
                await self._give_up(part, self._limits.abort_seconds)
            raise
        part.upload = None

    async def _pieces(self, part: ObjectPart, body: bytes, upload: str) -> list[dict[str, Any]]:
        """Upload the pieces, a few at a time; return what completes them."""
        size, room = self._limits.piece_bytes, asyncio.Semaphore(self._limits.pieces_at_once)

        async def piece(number: int, start: int) -> dict[str, Any]:
            async with room:
                said = await self._asked(
                    self._client.upload_part,
                    part,
                    body[start : start + size],
                    UploadId=upload,
                    PartNumber=number,
                )
            return {"PartNumber": number, "ETag": said["ETag"]}

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(piece(number, start))
                    for number, start in enumerate(range(0, len(body), size), 1)
                ]
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _give_up(self, part: ObjectPart, seconds: float) -> None:
        """Have the store forget the pieces of an upload that was not completed."""
        if part.upload is None:
            return
        key, upload = part.upload
        try:
            async with self._clock.timeout(seconds):
                await self._client.abort_multipart_upload(
                    Bucket=self._account.bucket, Key=key, UploadId=upload
                )
        except ClientError as cause:
            answer = StoreError(cause)
            if answer.code in DENIED:
                self._ctx.warn_once(
                    "this key may not give uploads up: what is there of those that failed stays in the"
                    " bucket"
                )
            elif answer.code != "NoSuchUpload":
                raise
        part.upload = None

    async def _asked(
        self,
        call: Callable[..., Awaitable[dict[str, Any]]],
        part: ObjectPart,
        body: bytes | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Ask something about the object of a part."""
        if body is not None:
            options["Body"] = body
            if self._account.tls is not None:
                # With it the library leaves the body out of the signature, which it makes on the loop;
                # and buckets whose objects are locked ask for it. Without TLS the body has to be signed.
                digest = await asyncio.to_thread(hashlib.md5, body, usedforsecurity=False)
                options["ContentMD5"] = b64encode(digest.digest()).decode()
        return await call(Bucket=self._account.bucket, Key=part.key, **options)
