"""Trying a connection: it is made as a component would make it, and let go of. Nothing is filed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

import msgspec

from headrace.compiler.component.families import Connection
from headrace.compiler.component.pipelineconfig import generated_id
from headrace.compiler.config.connectionsfile import secret_faults
from headrace.compiler.errors import BuildRefused, HeadraceError
from headrace.compiler.runtime.componentcontext import ComponentContext
from headrace.compiler.runtime.dependencies import Readings, read_now
from headrace.compiler.runtime.monitoring.failures import Failures, cut
from headrace.compiler.runtime.monitoring.signatures import Signatures
from headrace.compiler.runtime.registrations import Registrations
from headrace.compiler.runtime.world import World
from headrace.compiler.schema.redaction import Hidden
from headrace.compiler.schema.structures import settings_of

AT_ONCE = 2
"""How many are tried at a time."""
MOST_WAITING = 20
LIMIT_SECONDS = 10.0
"""How long one may take; most give up themselves before."""

log = logging.getLogger("headrace.pipeline")


class Tried(msgspec.Struct, frozen=True):
    """What came of it: ``why`` it cannot be used, in one line without secrets, or None."""

    why: str | None
    seconds: float


class TooManyTests(HeadraceError):
    """So many wait to be tried already that one more would be one too many."""

    def __init__(self) -> None:
        super().__init__(f"{MOST_WAITING} connections wait to be tried already: try again later")


class ConnectionTests:
    """Tries connections, two at a time."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._room = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def take(self, connection: Connection) -> Tried:
        """Connect and sign in, and let go.

        Raises:
            TooManyTests: `MOST_WAITING` wait already.
        """
        if self._waiting >= MOST_WAITING:
            raise TooManyTests
        self._waiting += 1
        try:
            await self._room.acquire()
        finally:
            self._waiting -= 1
        monotonic = self._world.clock.monotonic
        began = monotonic()
        try:
            why = await self._reached(connection)
        finally:
            self._room.release()
        return Tried(why, monotonic() - began)

    async def _reached(self, connection: Connection) -> str | None:
        """Return why a connection cannot be used."""
        world = self._world
        if faults := [*secret_faults(settings_of(connection), world.secrets)]:
            return "; ".join(fault.message for fault in faults)
        parts = Registrations(f"test-{generated_id()}", hidden=Hidden(world.secrets.redact))
        place = ConnectionPlace(await self._prepared(connection), parts)
        try:
            async with world.clock.timeout(LIMIT_SECONDS):
                await connection.reach(place)
        except TimeoutError:
            return f"nothing has answered after {LIMIT_SECONDS:g} s"
        except Exception as cause:
            if not isinstance(cause, HeadraceError | OSError):
                log.debug("pipeline '%s'", parts.pipeline, exc_info=cause)
            said = cause.fault.message if isinstance(cause, BuildRefused) else str(cause)
            return place.shown(said or type(cause).__name__)
        finally:
            parts.hidden.let_go()
        return None

    async def _prepared(self, connection: Connection) -> World:
        """Return the world with what the connection reads. Drivers are loaded as well, in a thread."""
        world = self._world
        wanted, base = [*connection.readings()], world.base or Path()

        def work(drivers: Iterable[str]) -> Readings:
            for name in drivers:
                import_module(name)
            return {each: read_now(each, base) for each in wanted}

        own = world.aside(world.connections, world.buckets, world.attach, world.listen)
        with world.clock.outside():
            own.readings = await asyncio.to_thread(work, connection.drivers)
        return own


class ConnectionPlace(ComponentContext):
    """The context of a connection that is tried: it is in no pipeline."""

    def __init__(self, world: World, parts: Registrations) -> None:
        table = Signatures(world.clock, 0)
        failures = Failures(parts.pipeline, world.clock, lambda *_: None, table)
        super().__init__(world, parts, failures, "input", 0)
        self.place = "connection"

    def shown(self, text: str) -> str:
        """Return a text on one line, without secrets, whosever they are."""
        hidden = self._world.secrets.redact(self.redact(text))
        return cut(" ".join(hidden.split()))
