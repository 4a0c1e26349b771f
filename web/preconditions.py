"""Preconditions: `ETag` names a version, and a change is made only to one that whoever wants it has read.

Source: RFC 9110, 13.1.1 (`If-Match`); RFC 6585, 3 (428).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b

import falcon
import falcon.asgi

from headrace.compiler.text.diagnostics import shown

_TAG = r'(?:W/)?"[^"]*"'
_TAGS = re.compile(rf"\*|{_TAG}(?:[ \t]*,[ \t]*{_TAG})*")


def etag_of(text: bytes) -> str:
    """Return the version that a text is: equal texts are one."""
    return blake2b(text, digest_size=16).hexdigest()


def versions_read(req: falcon.asgi.Request, *, is_required: bool = False) -> Sequence[str] | None:
    """Return the versions in the `If-Match` of a request; None: whichever there is.

    That is what `*` means, and a request without one where none is required. Those that are weak are left
    out: they say that something is similar.

    Raises:
        falcon.HTTPPreconditionRequired: it has none.
        falcon.HTTPBadRequest: it is no list of entity tags.
    """
    given = req.get_header("If-Match")
    if given is None and is_required:
        raise falcon.HTTPPreconditionRequired(
            description="'If-Match' is required: the ETag that GET answers, or '*' for whatever there is"
        )
    if given is None:
        return None
    if not _TAGS.fullmatch(given.strip()):
        raise falcon.HTTPBadRequest(
            description=f"'If-Match' is {shown(given)}: expected an ETag in double quotes, several with"
            " commas between them, or '*'"
        )
    tags = req.if_match or []
    if tags == ["*"]:
        return None
    return [str(tag) for tag in tags if isinstance(tag, falcon.ETag) and not tag.is_weak]
