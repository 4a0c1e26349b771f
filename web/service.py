"""What the endpoints share: the engine, the components, and whether the server is up.

The web room knows the engine by this interface only, so that another one can stand behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

from headrace.compiler.buckets import Buckets
from headrace.compiler.clock import Clock
from headrace.compiler.jsontext import encode
from headrace.compiler.language.catalogue import Catalogue
from headrace.compiler.language.config import PipelineConfig
from headrace.compiler.language.context import Ingress
from headrace.compiler.language.secrets import Secrets
from headrace.compiler.language.states import BucketDeclaration
from headrace.compiler.runtime.connections import Connections
from headrace.compiler.runtime.engine import PipelineView
from headrace.compiler.runtime.feed import Event, Lagged
from headrace.compiler.runtime.rehearsal.aside import Aside
from headrace.web.access import Doors, Open


class Listener(Protocol):
    """One reader of the live events."""

    def __aiter__(self) -> AsyncIterator[Event | Lagged]:
        """Yield events until it is closed, here or by the engine."""

    def close(self) -> None:
        """Leave."""


class Engine(Protocol):
    """The running graph."""

    connections: Connections
    """The filed connections, by name."""
    buckets: Buckets
    """The declared buckets."""
    declarations: Mapping[str, BucketDeclaration]
    """Their declarations, as the config has them."""
    base: Path | None
    """The directory that files of a config are named from; None without a config file."""
    secrets: Secrets
    """What answers references."""

    async def compile(self, config: PipelineConfig) -> PipelineView:
        """Build one pipeline and run it, or raise `Refused`."""

    async def dispose(self, pipeline: str) -> None:
        """End one pipeline, or raise `UnknownPipeline`."""

    def pipelines(self) -> Collection[PipelineView]:
        """Return what runs now."""

    def ingress(self, pipeline: str) -> Ingress | None:
        """Return the way in of a pipeline, None where it has none, or raise `UnknownPipeline`."""

    def observe(self) -> Listener:
        """Return a new reader of the live events."""


@dataclass
class Service:
    """The parts of one server, handed to every endpoint."""

    engine: Engine
    catalogue: Catalogue
    clock: Clock
    doors: Doors = field(default_factory=Open)
    """Who is let in as whom."""
    is_ready: bool = False
    """Whether requests are wanted: from when the server accepts them until it shuts down."""
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the request whose config is being read."""

    @cached_property
    def dry_runs(self) -> Aside:
        """Where dry runs are done."""
        return Aside(self.clock)

    @cached_property
    def component_docs(self) -> bytes:
        """The component reference, as `GET /api/docs` answers it."""
        from headrace.compiler.language.reference import component_docs

        return encode(component_docs(self.catalogue))

    @cached_property
    def openapi(self) -> bytes:
        """The description of the served routes, as `GET /api/openapi.json` answers it."""
        # When it is asked for: a server that is never asked need not load what writes it.
        from headrace.web.openapi import described

        return encode(described(self.catalogue))
