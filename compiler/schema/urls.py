"""Addresses of other people's HTTP servers, as options hold them.

A url may carry user info (``https://user:password@host/``). It is sent as Basic authentication and
shown nowhere: not in an echo, an error, a log line or an event. Only `text` has it.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote, urlsplit

from headrace.compiler.schema.fields import Text, refused
from headrace.compiler.schema.redaction import HIDDEN
from headrace.compiler.text.diagnostics import Codes, shown

CODES: Codes = {
    "not-a-url": "A url is malformed, or of a scheme that the component does not take.",
}

# Source: https://url.spec.whatwg.org/#forbidden-host-code-points
_NOT_IN_A_HOST = re.compile(r"[#/:<>?@\[\\\]^|%]")
_BEGINNING = re.compile(r"https?://", re.IGNORECASE)
_NOT_IN_A_URL = re.compile(r"[\x00-\x20\x7f]")


class ParsedUrl:
    """An absolute http or https url; its text and its repr are without the user info."""

    __slots__ = ("location", "password", "text", "user")

    def __init__(self, text: str) -> None:
        """Take a url that `HttpUrl` accepts."""
        parts = urlsplit(text)
        user_info, at, _ = parts.netloc.rpartition("@")
        host = len(parts.scheme + "://")
        self.text = text
        self.location = text[:host] + text[host + len(user_info + at) :]
        self.user = None if parts.username is None else unquote(parts.username)
        self.password = unquote(parts.password or "")

    def __str__(self) -> str:
        return self.location

    def __repr__(self) -> str:
        return f"Address({self.location!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ParsedUrl) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def dump(self, *, masked: bool = True) -> str:
        """Return the url; an echo shows that there is user info, and not what it is."""
        if self.user is None or not masked:
            return self.text
        scheme, _, rest = self.location.partition("://")
        return f"{scheme}://{HIDDEN}@{rest}"


class HttpUrl(Text):
    """An absolute http or https url."""

    expects = "an absolute http or https url"
    is_told = False  # it may hold a password

    def remedy(self, value: Any) -> str | None:
        """Return nothing: it would repeat the value."""
        return None

    def read(self, value: Any) -> ParsedUrl:
        """Take a url that can be requested."""
        text = super().read(value).strip()
        if objection := _objection(text):
            # What may hold a password is not shown, however malformed it is.
            found = None if "@" in text else shown(text)
            message = f"{found or 'this'} is not {self.expects}: {objection}"
            raise refused(
                "not-a-url", message, found=text if found else None, expected=self.expects
            )
        return ParsedUrl(text)


def _objection(text: str) -> str | None:
    """Return why ``text`` cannot be requested, or None."""
    if _NOT_IN_A_URL.search(text):
        return "it holds a blank or a control character"
    if not _BEGINNING.match(text):
        return "it does not begin with http:// or https://"
    try:
        parts = urlsplit(text)
    except ValueError:
        return "its host is malformed"
    if parts.fragment:
        return "it has a fragment ('#...'), which is never sent"
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        return "its port is not a number from 1 to 65535"
    if not parts.hostname:
        return "it names no host"
    if "[" not in parts.netloc and not _is_host(parts.hostname):
        return "its host is malformed"
    if parts.netloc.startswith(f"{HIDDEN}@"):
        return f"'{HIDDEN}' hides its user info, as in an echo: write it anew"
    # RFC 7617: the first colon of Basic authentication ends the user name.
    if ":" in unquote(parts.username or ""):
        return "its user name holds a colon"
    return None


def _is_host(name: str) -> bool:
    try:
        name.encode("idna")  # labels of 1 to 63 characters, each of which a name may have
    except UnicodeError:
        return False
    return _NOT_IN_A_HOST.search(name) is None
