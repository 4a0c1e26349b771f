"""The running graph becomes that of the config file again, and a look at what that would change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

import falcon
import falcon.asgi

from headrace.compiler.errors import HeadraceError
from headrace.compiler.jsontext import encode
from headrace.compiler.language.diagnostics import in_file_order
from headrace.compiler.runtime.plan import Plan
from headrace.compiler.runtime.reverting import NotReverted, RevertedInPart, Target
from headrace.web.commands.telling import log_each
from headrace.web.files.reading import Loaded, load_again
from headrace.web.service import Service

log = logging.getLogger("headrace.web")


class NoConfigFile(HeadraceError):
    """There is nothing to revert to: the server runs without a config file."""

    def __init__(self) -> None:
        super().__init__("there is no config file: start with '--config FILE', or save first")


async def revert_config(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response
) -> None:
    """Have what runs be what the file says. A client that leaves does not stop it half way."""
    task = asyncio.ensure_future(_revert(service))
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
    return encode(plan_dto(await service.engine.plan(target)))


async def _revert(service: Service) -> None:
    filing = service.filing
    async with filing.lock:
        loaded, target = await _read(service, "nothing was changed", service.reading.take)
        log_each(each for each in loaded.diagnostics if each.code != "unresolved-secret")
        try:
            plan = await service.engine.revert(target)
        except RevertedInPart:  # for all that, what runs is what the file says
            await filing.reverted()
            raise
        await filing.reverted()
    log.info("reverted to '%s': %s", filing.files.config, plan)


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


def plan_dto(plan: Plan) -> dict[str, Any]:
    """Return a plan as the API shows it."""
    told = asdict(plan)
    del told["lost"]  # known when it is done
    pipelines = {name: told.pop(name) for name in ("kept", "added", "changed", "removed")}
    for each in pipelines["removed"]:
        del each["why"]  # it is not in the file
    return {"pipelines": pipelines, **told}
