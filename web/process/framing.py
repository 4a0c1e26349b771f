"""What a head says of what follows it, a body or another protocol: what is refused or ignored of that."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.compiler.text.diagnostics import shown
from headrace.web.resources.ingest import LARGEST

TELLING = frozenset((b"content-length", b"transfer-encoding", b"content-encoding", b"expect"))
"""Headers that say something of the body, in lower case."""
FEW_DIGITS = len(str(LARGEST)) - 1
"""A length of so many digits is that of no body that is too large."""

_SIZED = "send the body with a Content-Length"
_TAKEN = "send the body as it is, with 'Transfer-Encoding: chunked' alone or with a Content-Length"


def refused_framing(
    headers: Sequence[tuple[bytes, bytes]], version: str
) -> tuple[bytes, str] | None:
    """Return status line and text of the refusal of what a head says of its body; None: it is taken.

    Of transfer codings `chunked` is taken, alone. The parser unpacks that and passes over every other one
    that comes before it, so what a client has compressed would be read as if it were the body itself.

    Names of headers are in lower case, ``version`` is that of HTTP: ``1.1``. Where `chunked` is not the
    last coding, or the version knows none, nobody knows where the body ends: that is a bad request (400).
    Another one before it is not implemented (501).

    Source: RFC 9112, 6.1, 6.3 and 7
    """
    for name, _ in headers:
        if name == b"transfer-encoding":
            break
    else:
        return None  # most say how long they are
    if version < "1.1":
        return b"400 Bad Request", f"HTTP/{version} has no transfer codings: {_SIZED}"
    fields = b",".join(value for name, value in headers if name == b"transfer-encoding")
    codings = [word for each in fields.split(b",") if (word := each.strip(b" \t"))]
    is_last = bool(codings) and codings[-1].lower() == b"chunked"
    if is_last and len(codings) == 1:
        return None
    named = shown(b", ".join(codings).decode("latin-1"))
    status = b"501 Not Implemented" if is_last else b"400 Bad Request"
    return status, f"a body in the transfer coding {named} is not taken: {_TAKEN}"


def head_without_upgrade(
    method: bytes, target: bytes, version: str, headers: Sequence[tuple[bytes, bytes]]
) -> bytes:
    """Return the head of a request that offers another protocol, without the offer.

    A server may ignore it, and clients count on that; the parser would take the body for what is said in
    that protocol, and so for the next request.

    Source: RFC 9110, 7.8
    """
    lines = [b"%b %b HTTP/%b" % (method, target, version.encode())]
    for name, value in headers:
        if name == b"connection":
            kept = [each for each in value.split(b",") if each.strip().lower() != b"upgrade"]
            lines.append(b"connection: %b" % b",".join(kept))
        elif name != b"upgrade":
            lines.append(b"%b: %b" % (name, value))
    return b"\r\n".join([*lines, b"", b""])
