"""One row of the table of endpoints."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.web.apierror import ApiError
from headrace.web.asgi import Asgi
from headrace.web.auth.access import Access
from headrace.web.service import Service

CAPTURE = re.compile(r"\{\w+\}")

Responder = Callable[..., Awaitable[None]]
"""Answers a request that falcon routed: service, request, response, what the path captures."""

JSON = "application/json"
CAPTURED = {
    "pipeline_id": "press-line",
    "connection_id": "disk",
    "stored_id": "1",
    "letter_id": "1",
}
"""What stands in a path, by parameter, where an example of a request is sent."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One response: what it means, and the type of its body (see `Shapes`), if it has one."""

    meaning: str
    schema: Any = None
    media_type: str = JSON
    named: Mapping[str, Any] = field(default_factory=dict)
    """Types of the data of named events, where it is a stream of them."""


@dataclass(frozen=True, slots=True)
class Query:
    """An optional parameter behind the `?`: what it chooses, and the type of its values."""

    name: str
    meaning: str
    schema: Any
    words: Collection[str] | None = None
    """The words it takes, parted by commas. Another one is no mistake: a page that is made for a newer
    server would have no answer at all. None: it takes other values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One row. Either ``respond`` answers behind falcon, or what ``ahead`` makes does before it."""

    method: str
    path: str
    operation: str
    tag: str
    access: Access
    summary: str
    responses: Mapping[int, Answer]
    query: tuple[Query, ...] = ()
    body: Any = None
    """Type of the request body, or the name of its schema."""
    example: Any = None
    """A request body that is answered with success by a server that asks nobody who they are, when those
    of the endpoints before were sent: what one names, one before it has made."""
    respond: Responder | None = None
    ahead: Callable[[Service], Asgi] | None = None
    is_versioned: bool = False
    """Whether it answers an `ETag` and, where it takes a body, looks at `If-Match` (`preconditions.py`)."""
    is_stream: bool = False
    """Whether it answers a stream that goes on until the client leaves, or for long."""
    takes_anybody: bool = False
    """Whether it also answers who is not signed in: ``access`` then says whom it is meant for."""


def pattern(path: str) -> re.Pattern[bytes]:
    """Return what a raw path is matched with; it captures what stands between braces."""
    literal = map(re.escape, CAPTURE.split(path))
    return re.compile("([^/]+)".join(literal).encode())


def refusals(**meanings: str) -> dict[int, Answer]:
    """Return failing responses, ``_404="..."``: they all have the same body."""
    return {int(key[1:]): Answer(said, ApiError) for key, said in meanings.items()}


FAILURE = "A failure of the server; its log says more."

MALFORMED = refusals(_400="A parameter has a value that it does not take.")
"""What may be wrong with the parameters that have to be right (`parameters.py`)."""

BODY = refusals(
    _400="The body is not JSON.",
    _413="The body is larger than 2 MiB.",
    _415="The body says that it is something else than JSON.",
    _500=FAILURE,
    _503="Too many bodies wait to be read; try again later.",
)
"""What may be wrong with any body."""
