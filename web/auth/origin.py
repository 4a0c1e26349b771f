"""Where a request comes from: pages of other sites can have a browser send its cookie along.

A form can be sent anywhere, but not as JSON, and not with `PUT`, `PATCH` or `DELETE`: for those a
browser asks first, and is refused. And what a page sends has its `Origin`.

Source: RFC 6454, and https://fetch.spec.whatwg.org/ (safelisted content types, preflights)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from headrace.compiler.component.buildcontext import Headers
from headrace.web.auth.access import READING, FromElsewhere
from headrace.web.auth.sessions import is_over_tls

_JSON = b"application/json"
_PORTS = {"http": "80", "https": "443"}
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]/@]+)(?::([0-9]{1,5}))?")


def refuse_foreign(headers: Headers) -> None:
    """Refuse what a page of another site has sent.

    Raises:
        FromElsewhere: it has an `Origin`, and that is not this server.
    """
    for name, value in headers:
        if name == b"origin" and not _is_own(value.decode("latin-1").lower(), headers):
            raise FromElsewhere(
                "the Origin of this request is not this server (its Host): send it from the server's "
                "own pages; a proxy in front has to pass on the Host that it is asked for"
            )


def refuse_forgeable(scope: Mapping[str, Any]) -> None:
    """Refuse what would change something and may have been sent by a page of another site.

    Raises:
        FromElsewhere: its `Origin` is another one, or a form could have sent it.
    """
    if scope["method"] in READING:
        return
    headers = scope["headers"]
    refuse_foreign(headers)
    says_json = any(
        name == b"content-type" and value.partition(b";")[0].strip().lower() == _JSON
        for name, value in headers
    )
    if scope["method"] != "DELETE" and not says_json:
        raise FromElsewhere(
            "with nothing but the session cookie this needs 'Content-Type: application/json', which "
            "no form of another site can send"
        )


def _is_own(origin: str, headers: Headers) -> bool:
    """Return whether an `Origin` has the host and the port that the request was sent to.

    A port that is not written is that of the scheme. Ours is known where a proxy tells of TLS, and is
    taken for that of the origin elsewhere.
    """
    scheme, _, authority = origin.partition("://")
    hosts = [value.decode("latin-1").lower() for name, value in headers if name == b"host"]
    if scheme not in _PORTS or len(hosts) != 1:  # `null`, an extension; a request without a Host
        return False
    place = _place(authority, scheme)
    return place is not None and place == _place(
        hosts[0], "https" if is_over_tls(headers) else scheme
    )


def _place(authority: str, scheme: str) -> tuple[str, int] | None:
    """Return host and port, None where there are none."""
    found = _AUTHORITY.fullmatch(authority)
    return None if found is None else (found[1], int(found[2] or _PORTS[scheme]))
