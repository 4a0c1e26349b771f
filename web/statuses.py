"""The one table from error class to status.

What nobody foresaw is logged with its traceback and answered without.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import falcon
import falcon.asgi

from headrace.compiler.errors import (
    ChangedMeanwhile,
    HeadraceError,
    NoReplayTarget,
    PipelineDeleted,
    PipelineExists,
    Refused,
    ReplayUnderWay,
    StoredInUse,
    UnclearReplayTarget,
    UnknownDeadLetter,
    UnknownPipeline,
    UnknownReplay,
    UnknownStored,
)
from headrace.compiler.runtime.capturing.captures import TooManyCaptures
from headrace.compiler.runtime.connectionregistry import ConnectionExists, ConnectionInUse, NotFiled
from headrace.compiler.runtime.connectiontest import TooManyTests
from headrace.compiler.runtime.limitedthreads import TookTooLong, TooMany
from headrace.compiler.runtime.revert.reverting import NotReverted, RevertedInPart
from headrace.compiler.runtime.sampling import TooManySamples
from headrace.compiler.store.storeerrors import StoreFailed
from headrace.web.apierror import api_error
from headrace.web.auth.access import Forbidden, FromElsewhere, NotSignedIn
from headrace.web.auth.credentials import TokenRefused, WrongPassword
from headrace.web.auth.passwords import Crowded
from headrace.web.bodies import MalformedBody, WrongBody
from headrace.web.files.filing import FilesExist, LayoutTaken
from headrace.web.files.targets import NotAFileName
from headrace.web.parameters import WrongParameter
from headrace.web.resources.configtext import NoConfigText, NotShown
from headrace.web.resources.state import UnknownBucket
from headrace.web.service import TooManyBodies

STATUS: Mapping[type[Exception], int] = MappingProxyType(
    {
        MalformedBody: 400,
        TookTooLong: 400,
        WrongBody: 400,
        WrongParameter: 400,
        NotSignedIn: 401,
        TokenRefused: 401,
        WrongPassword: 401,
        Forbidden: 403,
        FromElsewhere: 403,
        NoConfigText: 404,
        NotFiled: 404,
        UnknownBucket: 404,
        UnknownDeadLetter: 404,
        UnknownPipeline: 404,
        UnknownReplay: 404,
        UnknownStored: 404,
        ConnectionExists: 409,
        ConnectionInUse: 409,
        FilesExist: 409,
        NoReplayTarget: 409,
        PipelineDeleted: 409,
        PipelineExists: 409,
        NotShown: 409,
        ReplayUnderWay: 409,
        StoredInUse: 409,
        ChangedMeanwhile: 412,
        LayoutTaken: 422,
        NotAFileName: 422,
        Refused: 422,
        UnclearReplayTarget: 422,
        Exception: 500,
        NotReverted: 500,
        RevertedInPart: 500,
        Crowded: 503,
        StoreFailed: 503,
        TooMany: 503,
        TooManyCaptures: 503,
        TooManyTests: 503,
        TooManyBodies: 503,
        TooManySamples: 503,
    }
)
"""The status of every error; of several that fit, the most specific class counts."""

_MOST_PATH = 200

log = logging.getLogger("headrace.web")


def status_of(cause: Exception) -> int:
    """Return the status an error is answered with."""
    return next(STATUS[kind] for kind in type(cause).__mro__ if kind in STATUS)


def answer(cause: Exception, context: str) -> tuple[int, bytes]:
    """Return status and body for what went wrong while ``context`` was asked for."""
    if isinstance(cause, HeadraceError):
        return status_of(cause), api_error(str(cause), getattr(cause, "diagnostics", ()))
    log.error("%s: unexpected %s", context, type(cause).__name__, exc_info=cause)
    # The cause's own words stay in the log: nobody has looked at what they may reveal.
    said = f"{context}: unexpected {type(cause).__name__}, the server's log says more"
    return status_of(cause), api_error(said)


def install(app: falcon.asgi.App[Any, Any]) -> None:
    """Have falcon answer everything that fails in this shape, its own refusals included."""
    app.set_error_serializer(_serialize)
    app.add_error_handler(Exception, _handle)


async def _handle(
    req: falcon.asgi.Request, resp: falcon.asgi.Response, cause: Exception, _params: Any
) -> None:
    resp.status, resp.data = answer(cause, _asked(req))
    resp.content_type = falcon.MEDIA_JSON


def _serialize(
    req: falcon.asgi.Request, resp: falcon.asgi.Response, refusal: falcon.HTTPError
) -> None:
    match refusal:
        case falcon.HTTPRouteNotFound():
            reason = "no such path"
        case falcon.HTTPMethodNotAllowed():
            reason = f"the path takes {refusal.headers['Allow']}"  # type: ignore[index]
        case _:
            reason = refusal.description or refusal.title
    resp.data = api_error(f"{_asked(req)}: {reason}")
    resp.content_type = falcon.MEDIA_JSON


def _asked(req: falcon.asgi.Request) -> str:
    return f"{req.method} {req.path[:_MOST_PATH]}"
