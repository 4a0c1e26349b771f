"""The running graph becomes that of the config file again, and a look at what that would change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, get_args

import falcon
import falcon.asgi
import msgspec
from msgspec import Meta

from headrace.compiler.errors import HeadraceError
from headrace.compiler.jsontext import encode
from headrace.compiler.runtime.monitoring.liveevents import Changed
from headrace.compiler.runtime.revert.plan import (
    BucketsPlan,
    ConnectionsPlan,
    PipelinesPlan,
    Plan,
)
from headrace.compiler.runtime.revert.reverting import NotReverted, RevertedInPart, Target
from headrace.compiler.runtime.revert.storedfates import StoredFate
from headrace.compiler.text.diagnostics import in_file_order
from headrace.web.auth.access import Access
from headrace.web.endpoint import BODY, Answer, Endpoint, refusals
from headrace.web.files.reading import Loaded, load_again, log_odd
from headrace.web.service import Service

log = logging.getLogger("headrace.web")


class RevertPlan(msgspec.Struct):
    """What a revert would do."""

    pipelines: PipelinesPlan
    connections: ConnectionsPlan
    buckets: BucketsPlan
    stored: Annotated[
        tuple[StoredFate, ...],
        Meta(
            description="What is kept on disk of the pipelines that are added, changed and removed, and"
            " what becomes of it. Nothing changes for those that are kept."
        ),
    ]


class NoConfigFile(HeadraceError):
    """There is nothing to revert to: the server runs without a config file."""

    def __init__(self) -> None:
        super().__init__("there is no config file: start with '--config FILE', or save first")


async def revert_config(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response
) -> None:
    """Have what runs be what the file says. A client that leaves does not stop it half way."""
    task = asyncio.ensure_future(_revert(service, req.scope))
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.shield(task)
    resp.status = falcon.HTTP_204


async def plan_revert(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response
) -> None:
    """Answer what a revert would do. Nothing is built for that, and nothing changes."""
    resp.data = await service.plans.ask(lambda: _plan(service))


async def _plan(service: Service) -> bytes:
    # Not in turn with bodies: whoever asks for plans would hold up those who send something.
    _, target = await _read(service, "there is no plan", asyncio.to_thread)
    plan = await service.engine.plan(target)
    # Without the messages that get lost, which are known when it is done.
    return encode(told(plan))


def told(plan: Plan) -> RevertPlan:
    """Return what is told of a plan before it is done."""
    return RevertPlan(plan.pipelines, plan.connections, plan.buckets, plan.stored)


async def _revert(service: Service, scope: Mapping[str, Any]) -> None:
    filing = service.filing
    async with filing.lock:
        loaded, target = await _read(service, "nothing was changed", service.reading.take)
        log_odd(loaded)
        try:
            plan = await service.engine.revert(target)
        except RevertedInPart:  # for all that, what runs is what the file says
            await _reverted(service, scope)
            raise
        await _reverted(service, scope)
    log.info("reverted to '%s': %s", filing.files.config, plan)


async def _reverted(service: Service, scope: Mapping[str, Any]) -> None:
    """Take what runs for what is filed, and tell who listens that all of it may be different."""
    await service.filing.reverted()
    for what in get_args(Changed):
        service.changed(what, None, scope)


async def _read(
    service: Service, subject: str, in_thread: Callable[..., Awaitable[Loaded]]
) -> tuple[Loaded, Target]:
    """Return what the files say; ``subject`` begins what is said when they are refused.

    Raises:
        NoConfigFile: there are none.
        NotReverted: with everything that is wrong with them.
    """
    files = service.filing.files
    if files.config is None:
        raise NoConfigFile
    engine = service.engine
    # In a thread, as a body is read: a large file takes seconds.
    loaded = await in_thread(load_again, files, service.catalogue, engine.secrets, engine.data_dir)
    if loaded.program is None or loaded.is_refused:
        raise NotReverted(in_file_order(loaded.diagnostics), subject)
    return loaded, Target(loaded.program, loaded.connections)


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="POST",
        path="/api/config/revert",
        operation="revertConfig",
        tag="config",
        access=Access.ADMIN,
        summary="Have what the config file says run. What runs so already goes on undisturbed.",
        responses={
            204: Answer("It runs; what had to end has ended."),
            **refusals(
                _500="There is no config file, or it is refused: then nothing was changed. Or a server "
                "turned down what the file says: then that pipeline is `failed`, and the others run.",
                _503=BODY[503].meaning,
            ),
        },
        respond=revert_config,
    ),
    Endpoint(
        method="GET",
        path="/api/config/plan",
        operation="planRevert",
        tag="config",
        access=Access.READ,
        summary="Tell what a revert would add, change, remove and leave alone, and what that costs.",
        responses={
            200: Answer("The plan; nothing is built for it.", RevertPlan),
            **refusals(_500="There is no config file, or it is refused."),
        },
        respond=plan_revert,
    ),
)
