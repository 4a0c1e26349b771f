"""What the engine lends to every component that it builds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import replace
from pathlib import Path

from headrace.compiler.buckets import Buckets
from headrace.compiler.clock import Clock
from headrace.compiler.component.families import Connection
from headrace.compiler.component.states import undeclared
from headrace.compiler.config.connectionsfile import filed_secret_faults, misnamed, secret_faults
from headrace.compiler.datadir import DataDir
from headrace.compiler.edges import Source
from headrace.compiler.lowering.lines import SliceShare
from headrace.compiler.runtime.capturing.captures import Captures
from headrace.compiler.runtime.claims import Claims
from headrace.compiler.runtime.dependencies import Readings
from headrace.compiler.runtime.environment import REAL, Environment
from headrace.compiler.runtime.failureinbox import FailureInbox, FailureReaders
from headrace.compiler.runtime.owinginbox import InboxOwner, OwingInboxes
from headrace.compiler.runtime.selecting import Select
from headrace.compiler.runtime.storage import Storage
from headrace.compiler.runtime.turns import Turns
from headrace.compiler.runtime.wayin import LargePosts
from headrace.compiler.schema.records import Record
from headrace.compiler.schema.secrets import Secrets
from headrace.compiler.schema.structures import settings_of
from headrace.compiler.text.diagnostics import Diagnostic, Fault

Attach = Callable[[str, Select | None, InboxOwner | None], Source]
"""Returns the inbox that receives what a pipeline hands on; of some of it, with what selects that. For an
owner, the pipeline waits until that is written."""


class World:
    """What the engine lends to every component it builds."""

    def __init__(
        self,
        *,
        clock: Clock,
        connections: Mapping[str, Connection],
        secrets: Secrets,
        data_dir: DataDir | None,
        base: Path | None,
        buckets: Buckets,
        attach: Attach,
        owing: OwingInboxes,
        failure_readers: FailureReaders,
        listen: Callable[[FailureInbox], None],
        storage: Storage,
        environment: Environment = REAL,
    ) -> None:
        self.storage = storage
        self.clock = clock
        self.environment = environment
        self.turns = Turns(clock)
        self.slices = SliceShare()
        self.claims = Claims()
        self.captures = Captures(clock)
        self.large_posts = LargePosts()
        self.connections = connections
        self.secrets = secrets
        self.data_dir = data_dir
        self.base = base
        self.buckets = buckets
        self.attach = attach
        self.owing = owing
        """The inboxes of those who have their upstreams wait."""
        self.failure_readers = failure_readers
        self.listen = listen
        """Has an inbox take failures, now or when it takes over."""
        self.readings: Readings = {}
        """What was read ahead for what is being built."""

    def aside(
        self,
        connections: Mapping[str, Connection],
        buckets: Buckets,
        attach: Attach,
        listen: Callable[[FailureInbox], None],
    ) -> World:
        """Return the same world with what is going to be: for pipelines that are built for it."""
        other = copy(self)
        other.connections, other.buckets, other.attach = connections, buckets, attach
        other.listen = listen
        return other

    def missing(self, record: Record) -> list[Fault]:
        """Return the connections, secrets and buckets that a component names and that are not there.

        Who builds it asks before, and builds nothing that misses something: what the context of a component
        is asked for is there. They are told with the option that names what is missing.
        """
        named = [*settings_of(record)]
        faults = [*undeclared(named, self.buckets.names())]
        if self.environment.is_real:
            faults[:0] = [
                *misnamed(named, self.connections),
                *secret_faults(named, self.secrets),
                *filed_secret_faults(named, self.connections, self.secrets),
            ]
        return faults

    def shown(self, refused: Iterable[Diagnostic]) -> list[Diagnostic]:
        """Return refusals without secrets: some are in the words of a driver or of a broker."""
        hide = self.secrets.redact
        return [
            replace(each, message=hide(each.message), found=each.found and hide(each.found))
            for each in refused
        ]

    def merge(self, other: World) -> None:
        """Be as the other one from now on: what was going to be has come."""
        self.connections, self.buckets, self.attach = other.connections, other.buckets, other.attach
        self.listen = other.listen
        self.readings = {}
