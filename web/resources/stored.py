"""What is kept on disk over the API: the list of its parts; those that nobody reads can be discarded."""

from __future__ import annotations

import re

import falcon
import falcon.asgi

from headrace.compiler.errors import UnknownStored
from headrace.compiler.jsontext import encode
from headrace.compiler.runtime.monitoring.storedfigures import StoredPart
from headrace.web.auth.access import Access
from headrace.web.endpoint import FAILURE, Answer, Endpoint, refusals
from headrace.web.service import Service

_ID = re.compile("0|-?[1-9][0-9]{0,18}")
"""How an id is written. One that was damaged on disk may be negative."""
_MOST = 2**63
"""The first number that no id can be."""


async def list_stored(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response
) -> None:
    """Answer what is kept, in the order of the ids; nothing where no store is open."""
    store = await service.engine.stored()
    resp.data = encode([] if store is None else store.parts)


async def discard_stored(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response, *, stored_id: str
) -> None:
    """Discard a part that nobody reads."""
    await service.engine.discard_stored(_id(stored_id))
    resp.status = falcon.HTTP_204


async def discard_set_aside(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response, *, stored_id: str
) -> None:
    """Discard what of a part was set aside, whoever reads the rest of it."""
    await service.engine.discard_aside(_id(stored_id))
    resp.status = falcon.HTTP_204


def _id(text: str) -> int:
    """Return the id that a path has.

    Raises:
        UnknownStored: it is none, in the one way of writing it.
    """
    if not _ID.fullmatch(text) or not -_MOST <= int(text) < _MOST:
        raise UnknownStored(text)
    return int(text)


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/api/stored",
        operation="listStored",
        tag="stored",
        access=Access.READ,
        summary="List what is kept on disk: for which pipelines, and how much.",
        responses={
            200: Answer("What is kept, by id; nothing where no store is open.", list[StoredPart]),
        },
        respond=list_stored,
    ),
    Endpoint(
        method="DELETE",
        path="/api/stored/{stored_id}",
        operation="discardStored",
        tag="stored",
        access=Access.ADMIN,
        summary="Discard a part of what is kept on disk that nobody reads. It cannot be had back.",
        responses={
            204: Answer("It is gone."),
            **refusals(
                _404="Nothing is kept under that id.",
                _409="A pipeline reads it, and the answer names it.",
                _500=FAILURE,
                _503="The disk cannot be written; what is kept is as it was.",
            ),
        },
        respond=discard_stored,
    ),
    Endpoint(
        method="DELETE",
        path="/api/stored/{stored_id}/aside",
        operation="discardSetAside",
        tag="stored",
        access=Access.ADMIN,
        summary="Discard what of a part of what is kept on disk was set aside, and nothing else.",
        responses={
            204: Answer("It is gone."),
            **refusals(
                _404="Nothing is kept under that id, or nothing of it was set aside.",
                _500=FAILURE,
                _503="The disk cannot be written; what is left is as it was.",
            ),
        },
        respond=discard_set_aside,
    ),
)
