"""What the endpoints share: the engine, the components, and whether the server is up.

The web room knows the engine by this interface only, so that another one can stand behind it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import InitVar, dataclass, field
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
from headrace.compiler.runtime.feed import Lagged, Run
from headrace.compiler.runtime.history import History
from headrace.compiler.runtime.plan import Plan
from headrace.compiler.runtime.rehearsal.aside import Aside
from headrace.compiler.runtime.reverting import Target
from headrace.compiler.runtime.sampling.samples import Samples
from headrace.web.auth.access import Doors, Open
from headrace.web.files.filing import Filing
from headrace.web.files.reading import Files
from headrace.web.sharing import Shared
from headrace.web.turns import MOST_LOGINS, Turns


class Listener(Protocol):
    """One reader of the live events."""

    def __aiter__(self) -> AsyncIterator[Run | Lagged]:
        """Yield events until it is closed, here or by the engine."""

    def close(self) -> None:
        """Leave."""


class Engine(Protocol):
    """The running graph."""

    connections: Connections
    """The filed connections, by name."""
    buckets: Buckets
    """The declared buckets."""
    history: History
    """What pipelines did, by their ids."""
    declarations: Mapping[str, BucketDeclaration]
    """Their declarations, as the config has them."""
    base: Path | None
    """The directory that files of a config are named from; None without a config file."""
    secrets: Secrets
    """What answers references."""

    @property
    def data_dir(self) -> Path | None:
        """The root of all files that are written; None if there are none."""

    samples: Samples
    """Where samples of inputs are taken."""

    async def compile(self, config: PipelineConfig) -> PipelineView:
        """Build one pipeline and run it, or raise `Refused`."""

    async def dispose(self, pipeline: str) -> None:
        """End one pipeline, or raise `UnknownPipeline`."""

    async def plan(self, target: Target) -> Plan:
        """Return what a revert to ``target`` would do."""

    async def revert(self, target: Target) -> Plan:
        """Have ``target`` run, and return what changed; or raise `NotReverted`, and change nothing."""

    def pipelines(self) -> Collection[PipelineView]:
        """Return what runs now."""

    def configs(self) -> Mapping[str, PipelineConfig]:
        """Return the configs of what runs by id, without what may still be refused."""

    def files(self) -> Collection[Path]:
        """Return the files that what runs was built from."""

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
    reading: Turns = field(default_factory=Turns)
    """In which configs are read, and other bodies that are not for everybody."""
    logins: Turns = field(default_factory=lambda: Turns(MOST_LOGINS))
    """In which the bodies of logins are read: anybody may post them, and nobody else waits."""
    plans: Shared[bytes] = field(default_factory=Shared)
    """Where plans of a revert are worked out, each for all who ask for one."""
    files: InitVar[Files | None] = None
    """What it was started from."""

    def __post_init__(self, files: Files | None) -> None:
        self.filing = Filing(self.engine, files or Files())

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
