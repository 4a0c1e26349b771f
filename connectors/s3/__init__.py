"""S3 and what speaks its protocol: the connection that names a bucket, and the output that fills it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.durable import nowhere
from headrace.compiler.component.families import Connection
from headrace.compiler.component.promises import BYTES, MemoryBound, OutputPromises
from headrace.compiler.edges import AwaitingSink
from headrace.compiler.errors import BuildRefused
from headrace.compiler.schema.fields import Boolean, ConnectionName, Integer, SecretText
from headrace.compiler.schema.records import option
from headrace.compiler.schema.secrets import Secret
from headrace.compiler.schema.structures import RecordOf
from headrace.compiler.schema.templates import Fixed
from headrace.compiler.schema.urls import HttpUrl, ParsedUrl
from headrace.compiler.text.diagnostics import Fault
from headrace.connectors.disk.packing import COMPRESSIONS
from headrace.connectors.disk.partformats import FORMATS
from headrace.connectors.disk.parts import Rotation
from headrace.connectors.disk.partsoutput import PartsOutput
from headrace.connectors.disk.paths import FilePath
from headrace.connectors.network.tls import TlsFiles
from headrace.connectors.s3.objectkeys import (
    PartitionPrefix,
    PartNumbers,
    Prefix,
    Region,
    S3BucketName,
    bucket_numbers,
    key_faults,
)
from headrace.connectors.s3.storefailures import FAILURES

if TYPE_CHECKING:
    from headrace.connectors.s3.connection import StoreAccount

MIB = 1024 * 1024
LEAST_READ = 64 * MIB
"""Bytes that a part of an earlier run may have, however little this one may hold."""


class S3Connection(Connection, kind="s3", listed=6, elsewhere="aws_s3 minio"):
    """A bucket of S3, or of a store that speaks its protocol.

    Keys, region and endpoint are those that stand here and no others: nothing is taken from the
    environment, from files in the home directory, or from the machine it runs on, and no proxy is
    used. Certificates are always verified.
    """

    drivers = ("headrace.connectors.s3.objectstore",)

    bucket: str = option(
        S3BucketName(), "Name of the bucket, which has to exist.", elsewhere="bucket_name name"
    )
    access_key_id: Secret = option(
        SecretText(), "Id of the access key.", elsewhere="access_key aws_access_key_id key_id"
    )
    secret_access_key: Secret = option(
        SecretText(),
        "The secret of the access key.",
        elsewhere="aws_secret_access_key secret secret_key",
    )
    region: str = option(
        Region(), "Region of the bucket.", default="us-east-1", elsewhere="aws_region"
    )
    endpoint: ParsedUrl | None = option(
        HttpUrl(),
        "Url of another store, in whose paths the bucket is named; absent, that of AWS in the region.",
        default=None,
        elsewhere="endpoint_url host url",
    )
    allow_http: bool = option(
        Boolean(), "Whether the endpoint may be one without TLS.", default=False
    )
    ca_file: str | None = option(
        FilePath(),
        "PEM file with the authorities to trust, instead of the system's; a relative path starts at"
        " the directory of the config.",
        default=None,
        additive=True,
    )

    @property
    def is_plain(self) -> bool:
        """Whether it is made without TLS."""
        return self.endpoint is not None and self.endpoint.text.lower().startswith("http://")

    def rules(self) -> Iterator[Fault]:
        """Refuse an endpoint that says more than where the store is, and a file nothing would read."""
        if self.endpoint is not None and self.endpoint.user is not None:
            yield Fault(
                "conflict",
                "the endpoint has user info, and the keys have options of their own",
                expected="a url without '...@'",
                path=("endpoint",),
            )
        if self.endpoint is not None and "?" in self.endpoint.text:
            yield Fault(
                "not-a-url",
                "the endpoint has a query, and so has every request",
                expected="a url without '?'",
                path=("endpoint",),
            )
        if self.ca_file is not None and self.is_plain:
            yield Fault(
                "conflict",
                "'ca_file' means nothing without TLS",
                expected="an endpoint that begins with https://",
                path=("ca_file",),
            )

    def examine(self, context: CheckContext) -> Iterator[Fault]:
        """Tell of an endpoint that nobody has allowed."""
        yield from super().examine(context)
        yield from self._unallowed(at="endpoint")

    def _unallowed(self, at: str) -> Iterator[Fault]:
        if self.is_plain and not self.allow_http:
            yield Fault(
                "conflict",
                f"the endpoint '{self.endpoint}' is one without TLS",
                found=str(self.endpoint),
                expected="an https:// url, or 'allow_http: true'",
                path=(at,),
            )

    def readings(self) -> Iterator[TlsFiles]:
        """Yield what TLS is made of."""
        if not self.is_plain:
            yield TlsFiles(self.ca_file)

    def account(self, ctx: Context) -> StoreAccount:
        """Return who asks, and where, with the secrets resolved.

        Raises:
            BuildRefused: a key does not resolve, or to nothing, a file is unusable, or the endpoint is
                not allowed.
        """
        from headrace.connectors.s3.connection import StoreAccount  # beside the driver

        for fault in self._unallowed(at="connection"):
            raise BuildRefused(fault)
        return StoreAccount(
            bucket=self.bucket,
            region=self.region,
            endpoint=None if self.endpoint is None else self.endpoint.text.rstrip("/"),
            access_key_id=_key(ctx, self.access_key_id, "access_key_id"),
            secret_access_key=_key(ctx, self.secret_access_key, "secret_access_key"),
            tls=None if self.is_plain else ctx.read(TlsFiles(self.ca_file)),
        )

    async def reach(self, ctx: Context) -> None:
        """Ask for the bucket."""
        from headrace.connectors.s3.objectstore import S3Store

        store = S3Store(self.account(ctx), ctx)
        await store.open("")
        await store.close()


def _key(ctx: Context, secret: Secret, name: str) -> str:
    value = ctx.resolve(secret)
    if not value:
        raise BuildRefused(
            Fault("empty-credential", f"'{name}' resolves to nothing", path=("connection",))
        )
    if not value.isascii() or not value.isprintable() or " " in value:
        raise BuildRefused(
            Fault(
                "illegal-header",
                f"'{name}' resolves to what no key is: it holds a blank or another such character",
                path=("connection",),
            )
        )
    return value


OUTPUT = OutputPromises(
    row="output",
    written="its part is uploaded, or on the disk (with `--data-dir`); it is **in memory** until then, and"
    " holds up nobody",
    away="a part is tried again until it is uploaded (or for as long as `retry` says), and others fill;"
    " with `--data-dir` those that wait are on the disk as well; one that is refused alone holds up no"
    " other; with `max_buffered_bytes` held the pipeline waits, with `queue` not before as much as that"
    " says is on the disk",
    twice="what was uploaded moments before a kill, if the input brings it again (a part that is there is"
    " not sent again)",
    held=MemoryBound("max_buffered_bytes", BYTES, "in parts"),
)


class S3Output(PartsOutput, kind="s3", listed=3, elsewhere="aws_s3 minio"):
    """Write messages to objects in a bucket, one part after the other.

    A part is filled in memory and uploaded whole when `rotate` closes it, and when the pipeline ends.
    It is named for the moment it was opened and numbered within the run, below the prefix:
    ``readings/2026-03-01T08-00-00Z-000001.ndjson``. A name that is taken, or that another output of
    this server gives out, is passed over. A run without messages leaves no object.

    A part that cannot be uploaded is tried again until it is, while the next ones fill; one that the
    store refuses, and not the others, holds up none of them, and is given up where another try would
    change nothing: its messages become dead letters, if the pipeline keeps any, or are counted as lost.
    When `max_buffered_bytes` are held, the pipeline waits. A batch counts as written when its part is
    uploaded: until then an input that is durable, or acknowledges on delivery, brings it again after a
    kill; what comes by any other input is lost by one. With ``--data-dir`` parts that wait are in the
    store there after some seconds, and so is what cannot be uploaded when the pipeline ends: they count
    as written then, and are uploaded when the output starts again. Without that directory they are lost,
    and the log says how much that is.

    With `queue` parts leave the memory as they are stored, and the pipeline waits when `max_bytes` of
    them are on the disk, or the oldest goes. With `retry` others hear that the output waits, and what
    fails in an outage that has lasted for its `seconds` is given up.
    """

    drivers = ("headrace.connectors.s3.objectstore",)
    promises: ClassVar = (OUTPUT,)
    failure_classes: ClassVar = FAILURES

    connection: str = option(ConnectionName("s3"), "Connection that names the bucket.")
    prefix: str = option(
        Prefix(fixed=Fixed(by_time="put it in 'partition', as in 'partition: year=%Y/month=%m'")),
        "What the keys of the objects begin with; may be empty. Slashes around it say nothing.",
        elsewhere="folder key_prefix path",
    )
    rotate: Rotation = option(
        RecordOf(Rotation),
        "When a part is closed and uploaded: at least one of the two.",
        elsewhere="batch roll rotation",
    )
    format: str = option(
        FORMATS,
        "How messages are written: as JSON, one a line or one array per part; as a text each; or as rows of"
        " CSV.",
        default="ndjson",
        elsewhere="codec encoding",
    )
    compression: str = option(
        COMPRESSIONS,
        "How parts are compressed; their names end in `.gz` or `.zst` then.",
        default="none",
        additive=True,
    )
    partition: str | None = option(
        PartitionPrefix(),
        "Steps between the prefix and the name, for the UTC time at which a part is opened, such as"
        " `year=%Y/month=%m/day=%d`; the others are `%j`, `%H` and `%M`.",
        default=None,
        additive=True,
        elsewhere="partition_by",
    )
    max_buffered_bytes: int = option(
        Integer(min=MIB, max=64 * 1024 * MIB),
        "Most that parts may hold in memory together; one is closed when it holds half of that. Each batch"
        " that an input is to be told of counts 256 bytes more.",
        default=64 * MIB,
        additive=True,
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse parts that nothing would ever upload, and keys that are too long."""
        yield from super().rules()
        if self.rotate.interval_secs is None and self.rotate.max_rows is None:
            yield Fault(
                "no-trigger",
                "nothing says when a part is uploaded",
                expected="'interval_secs' or 'max_rows', or both",
                path=("rotate",),
            )
        yield from key_faults(self.prefix, self.partition)

    def outlasts_seconds(self) -> float:
        """Return that a part is tried until it is uploaded, or for as long as `retry` says."""
        retry = self.retrying()
        return math.inf if retry is None or retry.seconds is None else retry.seconds

    def kept_as(self) -> str:
        """Return the connection and the prefix."""
        return f"{self.kind} {self.connection} {self.prefix}"

    @property
    def leaves_parts(self) -> bool:
        """Parts that are not uploaded are kept."""
        return True

    def open(self, ctx: Context) -> AwaitingSink:
        """Resolve the keys. Asks for nothing yet."""
        from headrace.connectors.s3.objectstore import S3Store
        from headrace.connectors.s3.sink import S3Sink
        from headrace.connectors.s3.storelater import StoreLater
        from headrace.connectors.s3.unsentfolder import UnsentFolder

        account = ctx.connection(S3Connection, self.connection).account(ctx)
        queueing = self.queueing
        keep = ctx.parts_keep(None if queueing is None else queueing.max_bytes)
        if queueing is not None and keep is None:
            raise BuildRefused(nowhere("queue"))
        store = S3Store(account, ctx)
        unsent = None
        if ctx.data_dir is not None:
            unsent = UnsentFolder(
                ctx.data_dir,
                account.endpoint,
                account.bucket,
                self.prefix,
                max(self.max_buffered_bytes, LEAST_READ),
            )
        return S3Sink(
            self,
            ctx,
            store if queueing is None else StoreLater(store, ctx),
            unsent,
            keep,
            PartNumbers(bucket_numbers(account.endpoint, account.bucket)),
        )
