"""The session cookie.

    headrace_session=<64 hex>; HttpOnly; SameSite=Strict; Path=/

`Secure` is added when the request came over TLS, which a proxy tells, and with `SameSite=None`, which
no browser takes without. No `Max-Age`: it ends with the browser, or with the session.

Source: RFC 6265, and its successor for `SameSite`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from headrace.compiler.component.buildcontext import Headers
from headrace.web.auth.sessions import ID_CHARACTERS

NAME = "headrace_session"

_BEGINNING = f"{NAME}=".encode()
_LENGTH = len(_BEGINNING) + ID_CHARACTERS
_IDS = re.compile(rf"(?:^|;)[ \t]*{NAME}[ \t]*=[ \t]*([^; \t]*)".encode())


@dataclass(frozen=True, slots=True)
class Cookies:
    """Writes the cookie: ``same_site`` is strict, lax or none."""

    same_site: str = "strict"

    def holding(self, id: str, headers: Headers) -> str:
        """Return the cookie with a session, as an answer to a request with some headers sets it."""
        return f"{NAME}={id}; {self._attributes(headers)}"

    def cleared(self, headers: Headers) -> str:
        """Return the cookie that has a browser forget it."""
        return f"{NAME}=; {self._attributes(headers)}; Max-Age=0"

    def _attributes(self, headers: Headers) -> str:
        is_secure = self.same_site == "none" or is_over_tls(headers)
        same_site = f"SameSite={self.same_site.capitalize()}"
        return "; ".join(["HttpOnly", same_site, "Path=/", *(["Secure"] if is_secure else [])])


def session_ids(headers: Headers) -> list[bytes]:
    """Return what the session cookies of a request hold; there may be several of that name."""
    found: list[bytes] = []
    for name, value in headers:
        if name == b"cookie":
            if len(value) == _LENGTH and value.startswith(_BEGINNING):  # nearly always, and quicker
                found.append(value[-ID_CHARACTERS:])
            else:
                found += _IDS.findall(value)
    return found


def is_over_tls(headers: Headers) -> bool:
    """Return whether a client came over TLS, as the proxy tells that it came to first."""
    for name, value in headers:
        if name == b"x-forwarded-proto":
            return value.partition(b",")[0].strip().lower() == b"https"
    return False
