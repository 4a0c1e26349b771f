"""How the channel to an OPC UA server is secured: the policies, and our certificate with its key."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

from headrace.compiler.component.buildcontext import MOST_BYTES
from headrace.compiler.errors import BuildRefused
from headrace.compiler.text.diagnostics import Fault


@dataclass(frozen=True)
class Security:
    """A policy that is not `None`, with what it needs of us."""

    policy: str
    mode: str
    certificates: tuple[x509.Certificate, ...]
    """Ours, then those of who signed it."""
    private_key: RSAPrivateKey = field(repr=False)
    application_uri: str


@dataclass(frozen=True)
class OpcuaServer:
    """A server, and what we show it."""

    url: str = field(repr=False)
    where: str
    """Its host and port: what texts call it."""
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    security: Security | None = field(default=None, repr=False)
    certificate: bytes | None = field(default=None, repr=False)
    """The only certificate that it may have, in DER."""


def security(
    policy: str,
    mode: str,
    *,
    base: Path,
    certificate: str,
    private_key: str,
    application_uri: str | None,
    now: datetime,
) -> Security:
    """Read the files of a connection and return how it is secured.

    Raises:
        BuildRefused: a file cannot be read or holds something else, or they do not fit each other.
    """
    certificates = _certificates(base, certificate)
    key = _key(base, private_key)
    ours = certificates[0]
    if ours.public_key() != key.public_key():
        raise _unusable(
            "conflict", f"the key in '{private_key}' is not that of the certificate '{certificate}'"
        )
    _check_time(ours, certificate, now)
    uri = _application_uri(ours, certificate, application_uri)
    return Security(policy, mode, certificates, key, uri)


def pinned(base: Path, file: str) -> bytes:
    """Return the certificate in a file, as a server shows it."""
    return _certificates(base, file)[0].public_bytes(serialization.Encoding.DER)


def _certificates(base: Path, file: str) -> tuple[x509.Certificate, ...]:
    """Return the certificates of a file: one in DER, any number in PEM."""
    content = _content(base, file)
    try:
        if b"-----BEGIN" in content:
            found = x509.load_pem_x509_certificates(content)
        else:
            found = [x509.load_der_x509_certificate(content)]
        if not isinstance(found[0].public_key(), RSAPublicKey):
            raise _unusable("unreadable-file", f"the certificate '{file}' is not of an RSA key")
    except ValueError:
        raise _unusable(
            "unreadable-file", f"'{file}' holds no certificate in PEM or DER format"
        ) from None
    return tuple(found)


def _key(base: Path, file: str) -> RSAPrivateKey:
    content = _content(base, file)
    is_pem = b"-----BEGIN" in content
    load = serialization.load_pem_private_key if is_pem else serialization.load_der_private_key
    try:
        key = load(content, password=None)
    except TypeError:
        raise _unusable(
            "unreadable-file", f"the key in '{file}' is locked with a password"
        ) from None
    except ValueError:
        raise _unusable(
            "unreadable-file", f"'{file}' holds no private key in PEM or DER format"
        ) from None
    if not isinstance(key, RSAPrivateKey):
        raise _unusable("unreadable-file", f"'{file}' holds a key that is not of RSA")
    return key


def _check_time(ours: x509.Certificate, file: str, now: datetime) -> None:
    begins, ends = ours.not_valid_before_utc, ours.not_valid_after_utc
    if not begins <= now <= ends:
        message = f"the certificate '{file}' is valid from {begins:%Y-%m-%d} to {ends:%Y-%m-%d}"
        raise _unusable("conflict", message)


def _application_uri(ours: x509.Certificate, file: str, wanted: str | None) -> str:
    """Return the name of our application, which servers compare with the certificate."""
    names: list[str] = []
    for extension in ours.extensions:
        if isinstance(extension.value, x509.SubjectAlternativeName):
            names = extension.value.get_values_for_type(x509.UniformResourceIdentifier)
    if not names:
        message = f"the certificate '{file}' names no application"
        expected = "a URI among its alternative names, the application's"
        raise _unusable("conflict", message, expected)
    if wanted is not None and wanted not in names:
        message = f"the certificate '{file}' is that of the application '{names[0]}'"
        raise _unusable("conflict", message, "the same 'application_uri', or none")
    return wanted or names[0]


def _content(base: Path, file: str) -> bytes:
    """Return what is in a file that can be read without waiting: a pipe may have no other end."""
    path = base / file
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise _unusable("unreadable-file", f"'{file}': it is not a regular file")
        if found.st_size > MOST_BYTES:
            said = (
                f"'{file}' has {found.st_size:,} bytes, and such a file has at most {MOST_BYTES:,}"
            )
            raise _unusable("too-large", said)
        return path.read_bytes()
    except FileNotFoundError:
        raise _unusable("missing-file", f"there is no file '{file}'") from None
    except OSError as cause:
        raise _unusable("unreadable-file", f"'{file}': {cause.strerror or cause}") from None


def _unusable(code: str, message: str, expected: str | None = None) -> BuildRefused:
    return BuildRefused(Fault(code, message, expected=expected, path=("connection",)))
