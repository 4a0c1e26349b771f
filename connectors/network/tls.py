"""TLS of the connections: the options that all kinds share, the context, and why a handshake fails."""

from __future__ import annotations

import asyncio
import errno
import ssl
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import MOST_BYTES, Context, Reading
from headrace.compiler.component.families import Connection
from headrace.compiler.schema.fields import Boolean
from headrace.compiler.schema.records import option
from headrace.compiler.text.diagnostics import Fault
from headrace.connectors.disk.paths import FilePath
from headrace.connectors.network.refusal import unusable

PROBE_SECONDS = 1.0
"""How long a server may take over a handshake that is only to tell what is wrong."""

FILES = ("ca_file", "cert_file", "key_file")
_CALLED = "a file of certificates"


class TlsConnection(Connection):
    """A connection that can be made over TLS. The certificate of the server is always verified."""

    tls: bool = option(
        Boolean(), "Whether to talk TLS.", default=False, additive=True, elsewhere="ssl"
    )
    ca_file: str | None = option(
        FilePath(),
        "PEM file with the authorities to trust, instead of the system's; a relative path starts at"
        " the directory of the config.",
        default=None,
        additive=True,
        elsewhere="ca ca_cert cafile root_cas_file",
    )
    cert_file: str | None = option(
        FilePath(),
        "PEM file with the certificate to present, and its chain.",
        default=None,
        additive=True,
        elsewhere="cert certificate crt_file",
    )
    key_file: str | None = option(
        FilePath(),
        "PEM file with the key of `cert_file`, unless that holds it.",
        default=None,
        additive=True,
        elsewhere="private_key",
    )

    @property
    def wants_tls(self) -> bool | None:
        """Whether it is made over TLS; None when only a secret's value can tell."""
        return self.tls

    def rules(self) -> Iterator[Fault]:
        """Refuse files that nothing would read."""
        for name in FILES:
            if getattr(self, name) is not None and self.wants_tls is False:
                message = f"'{name}' means nothing without TLS"
                yield Fault("conflict", message, None, "'tls: true' beside it", path=(name,))
        if self.key_file is not None and self.cert_file is None:
            message = "'key_file' is the key of no certificate"
            yield Fault("conflict", message, None, "'cert_file' beside it", path=("key_file",))

    def readings(self) -> Iterator[TlsFiles]:
        """Yield what TLS is made of, unless it is clear that there is none."""
        if self.wants_tls is not False:
            yield self._tls_files()

    def tls_context(self, ctx: Context) -> ssl.SSLContext:
        """Return what TLS is made with.

        Raises:
            BuildRefused: a file cannot be read, or holds something else.
        """
        return ctx.read(self._tls_files())

    def _tls_files(self) -> TlsFiles:
        return TlsFiles(self.ca_file, self.cert_file, self.key_file)


@dataclass(frozen=True, slots=True)
class TlsFiles(Reading[ssl.SSLContext]):
    """The authorities in a file, or those of the system, and the certificate to present.

    They take their time, and where they come from a file the interpreter does something else meanwhile.
    """

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """Those that are given."""
        return tuple(filter(None, (self.ca_file, self.cert_file, self.key_file)))

    def made(self, base: Path) -> ssl.SSLContext:
        """Return a context that trusts these authorities and presents this certificate."""
        if self.ca_file is None:
            context = ssl.create_default_context()
        else:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            with _told(self.ca_file, "certificate in PEM format"):
                context.load_verify_locations(readable(self.ca_file, base, _CALLED))
        if self.cert_file is not None:
            with _told(self.cert_file, "certificate with a key that fits and has no password"):
                key = None if self.key_file is None else readable(self.key_file, base, _CALLED)
                # An empty password, or a key that has one would ask for it on the terminal.
                context.load_cert_chain(readable(self.cert_file, base, _CALLED), key, password="")
        return context


@contextmanager
def _told(file: str, wanted: str) -> Iterator[None]:
    """Refuse with the name of the file when something is wrong with it."""
    try:
        yield
    except FileNotFoundError:
        raise unusable("missing-file", f"there is no file '{file}', or none of its key") from None
    except ssl.SSLError:
        raise unusable("unreadable-file", f"'{file}' holds no {wanted}") from None
    except OSError as cause:
        raise unusable("unreadable-file", f"'{file}': {cause.strerror or cause}") from None


def readable(file: str, base: Path, called: str) -> Path:
    """Return a file that is read soon and to its end: to open a pipe is to wait for its other end.

    Raises:
        OSError: there is none, or it is of another kind.
        BuildRefused: it is larger than what it is ``called`` may be.
    """
    found = (path := base / file).stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    if found.st_size > MOST_BYTES:
        raise unusable(
            "too-large",
            f"'{file}' has {found.st_size:,} bytes, and {called} has at most {MOST_BYTES:,}",
        )
    return path


async def tls_fault(host: str, port: int, tls: ssl.SSLContext | None, clock: Clock) -> str | None:
    """Return why TLS as configured cannot work with who listens there; None if it is not to blame.

    Asked when a driver could not connect and did not say why. ``tls`` is None for a plaintext
    connection. Not for protocols that begin in plaintext and change over (NATS).
    """
    where, context = f"{host}:{port}", tls
    if context is None:
        # It trusts anybody: to learn whether there is TLS, nothing is sent over it.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    try:
        stays = await _handshake(host, port, context, clock)
    except ssl.SSLCertVerificationError as cause:
        return handshake_fault(where, cause)
    except ssl.SSLError as cause:
        return None if tls is None else handshake_fault(where, cause)
    except ConnectionRefusedError:
        return None
    except TimeoutError:  # it hangs, or waits for something else: nobody knows
        return None
    except OSError:  # it hangs up
        return None if tls is None else f"{where} does not speak TLS"
    if tls is None:
        return f"{where} speaks TLS, and the connection does not"
    return None if stays else f"{where} hangs up after the TLS handshake: {CERTIFICATE}"


CERTIFICATE = "it may ask for a certificate that it trusts"


def handshake_fault(where: str, cause: ssl.SSLError) -> str:
    """Return what a handshake that went wrong tells of who listens there, or of what we present."""
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"the certificate of {where} is not trusted: {cause.verify_message}"
    if "CERTIFICATE_REQUIRED" in str(cause.reason) or "HANDSHAKE_FAILURE" in str(cause.reason):
        return f"{where} refuses the TLS handshake: {CERTIFICATE}"
    if "ALERT" in str(cause.reason):
        return f"{where} refuses the TLS handshake: {cause.reason}"
    return f"{where} does not speak TLS"


async def _handshake(host: str, port: int, tls: ssl.SSLContext, clock: Clock) -> bool:
    """Shake hands; return whether the server stays on the line for a moment.

    TLS 1.3 tells a client only afterwards what is wrong with its certificate.
    """
    async with clock.within(PROBE_SECONDS):
        reader, writer = await asyncio.open_connection(host, port, ssl=tls)
    try:
        async with clock.within(PROBE_SECONDS / 4):
            return await reader.read(1) != b""
    except TimeoutError:
        return True
    finally:
        writer.transport.abort()  # it was asked, and there is nothing to say goodbye to
