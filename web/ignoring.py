"""Query parameters that an endpoint does not know: they are ignored, and its answer names them."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import quote, unquote_plus

from headrace.web.asgi import Message, Send

HEADER = "X-Headrace-Ignored"
MOST_NAMES = 20
MOST_CHARACTERS = 100
"""Of one name as it is told."""
MORE = "..."
"""What ends a name that is cut, or a list that is."""

_MOST_FIELDS = 1000
_SAFE = "[]@:$!*'()"  # what names have in them besides letters and digits, and headers may hold


def ignored(query: bytes, known: Collection[str]) -> str | None:
    """Return the names in a query string that are not ``known``, as the header has them; None: all are.

    Each once, in the order in which they come, parted by commas. What is not a letter, a digit or
    harmless is percent-encoded, so a name brings in neither a comma nor another header.
    """
    names: dict[str, None] = {}
    for field in query.split(b"&", _MOST_FIELDS)[:_MOST_FIELDS]:
        name = unquote_plus(field.partition(b"=")[0].decode("latin-1"), errors="replace")
        if name and name not in known:
            names[_told(name)] = None
            if len(names) > MOST_NAMES:
                break
    told = [*names]
    return ", ".join([*told[:MOST_NAMES], MORE] if len(told) > MOST_NAMES else told) or None


def _told(name: str) -> str:
    text = quote(name[: MOST_CHARACTERS + 1], safe=_SAFE)
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - len(MORE)] + MORE


def naming(send: Send, names: str) -> Send:
    """Return a ``send`` that adds the header to an answer."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [*message["headers"], (HEADER.lower().encode(), names.encode())]
            message = {**message, "headers": headers}
        await send(message)

    return sent
