"""What an endpoint does not know of a query: it is ignored, and the answer names it.

    X-Headrace-Ignored: limit, named=pong

``limit`` is a parameter that is unknown. ``pong`` is an unknown word of ``named``, a parameter that
takes words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from urllib.parse import quote, unquote_plus

from headrace.web.asgi import AsgiMessage, Send

HEADER = "X-Headrace-Ignored"
MOST_NAMES = 20
MOST_CHARACTERS = 100
"""Of one name as it is told, with the parameter that it is a word of."""
MORE = "..."
"""What ends a name that is cut, or a list that is."""

_MOST_FIELDS = 1000
_SAFE = "[]@:$!*'()"  # what names have in them besides letters and digits, and headers may hold

Known = Mapping[str, Collection[str] | None]
"""The parameters of an endpoint, each with the words that it takes; None: it takes other values."""


def ignored(query: bytes, known: Known) -> str | None:
    """Return what of a query string is not ``known``, as the header has it; None: all is.

    Each name once, in the order in which they come, parted by commas. What is not a letter, a digit or
    harmless is percent-encoded, so a name brings in neither a comma nor another header.
    """
    told = [*islice(dict.fromkeys(_unknown(query, known)), MOST_NAMES + 1)]
    return ", ".join([*told[:MOST_NAMES], MORE] if len(told) > MOST_NAMES else told) or None


def _unknown(query: bytes, known: Known) -> Iterator[str]:
    for name, value in fields(query):
        if name not in known:
            yield _told(quote(name[: MOST_CHARACTERS + 1], safe=_SAFE))
        elif (taken := known[name]) is not None:
            for word in words(value):
                if word not in taken:
                    yield _told(f"{name}={quote(word[: MOST_CHARACTERS + 1], safe=_SAFE)}")


def _told(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - len(MORE)] + MORE


def fields(query: bytes) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a query string; of very many the first ones."""
    for field in query.split(b"&", _MOST_FIELDS)[:_MOST_FIELDS]:
        name, _, value = field.decode("latin-1").partition("=")
        if name:
            yield unquote_plus(name, errors="replace"), unquote_plus(value, errors="replace")


def words(value: str) -> Iterator[str]:
    """Yield the words of a value, which are parted by commas, each once."""
    yield from dict.fromkeys(word for each in value.split(",") if (word := each.strip()))


def naming(send: Send, names: str) -> Send:
    """Return a ``send`` that adds the header to an answer."""

    async def sent(message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            headers = [*message["headers"], (HEADER.lower().encode(), names.encode())]
            message = {**message, "headers": headers}
        await send(message)

    return sent
