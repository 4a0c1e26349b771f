"""Which tests share a worker: those of one server, so that it starts once, and those of one file.

With `--dist loadgroup` a test has a group at the end of its name. A server that takes long to start is a
group; where only the short tests run, everything else goes by files, which are fewer to hand out than
tests. The long ones are handed out one by one. What waits for servers and processes begins, what computes
fills the rest. Those that bound what something may take of a processor share it with none: they run after
all others, in one process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import SupportsIndex

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadgroup import LoadGroupScheduling
from xdist.workermanage import WorkerController

SERVERS = ("opcua_server", "kafka", "clickhouse", "postgres", "object_store", "identity_provider")
"""Fixtures of servers that take a second or longer to start; a test of two is with the first."""
WAITING = ("console", "whole", "connectors", "services", "specs")
"""Folders whose tests wait for others more than they compute."""
SHORT = "not long and not timed"
SHORT_ALONE = "timed and not long"
LONG = "(long or hypothesis) and not timed"
ALONE = (SHORT_ALONE, "timed and (long or hypothesis)")
"""What the verbs select."""
PERHAPS_LONG = ("pytest.mark.long", "hypothesis", "schemathesis", "tests.console.")
"""One of them is in each file that has long or generated tests; those of the console are long in all looks
but the first."""
WHOLLY_LONG = tuple(
    f"\npytestmark = {begin}"
    for begin in ("pytest.mark.long\n", "[pytest.mark.long, ", "[\n    pytest.mark.long,\n")
)
"""In a file none of whose tests are short."""
TIMED = "pytest.mark.timed"
"""In a file some of whose tests run alone."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files that have no tests that are wanted: all of them together are long to import."""
    wanted = config.option.markexpr
    if wanted not in (SHORT, LONG, *ALONE) or collection_path.is_dir():
        return None
    if collection_path.suffix != ".py":
        return True if wanted != SHORT else None
    text = collection_path.read_text()
    if wanted == LONG:
        return None if any(each in text for each in PERHAPS_LONG) else True
    is_long = wanted in (SHORT, SHORT_ALONE) and any(mark in text for mark in WHOLLY_LONG)
    return True if is_long or (wanted in ALONE and TIMED not in text) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put each test of a server into its group, and what waits first."""
    for item in items:
        wanted = getattr(item, "fixturenames", ())
        server = next((name for name in SERVERS if name in wanted), None)
        if server is not None:
            item.add_marker(pytest.mark.xdist_group(server))
    items.sort(key=lambda item: waits(item.path) is False)


def waits(file: Path) -> bool:
    """Return whether the tests of a file wait more than they compute."""
    return not set(WAITING).isdisjoint(file.parts)


class Indexed(list[str]):
    """The names of all tests; where one stands is looked up, not sought from the beginning."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        self._places = {name: place for place, name in enumerate(names)}

    def index(self, name: str, *_: SupportsIndex) -> int:
        return self._places[name]


class ByGroup(LoadGroupScheduling):
    """Hands out groups of tests that each have a name of their own: of two it would run one."""

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        if several := {name for name, count in Counter(collection).items() if count > 1}:
            raise pytest.UsageError(
                f"not with --dist loadgroup: {sorted(several)[0]} is several tests"
            )
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = Indexed(collection)

    def mark_test_complete(
        self, node: WorkerController, item_index: int, duration: float = 0
    ) -> None:
        """Forget a group that is over: what is left is counted through after each test."""
        super().mark_test_complete(node, item_index, duration)
        name = self.registered_collections[node][item_index]
        group = self._split_scope(name)
        if all(self.assigned_work[node][group].values()):
            del self.assigned_work[node][group]


class ByFile(ByGroup):
    """Hands out groups, and files."""

    def _split_scope(self, nodeid: str) -> str:
        # The hook that xdist documents for a grouping of one's own.
        group: str = super()._split_scope(nodeid)
        return group.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByGroup | None:
    """Return what hands the tests out by groups, and by files where only the short ones run."""
    if config.option.dist != "loadgroup":
        return None
    return (ByFile if config.option.markexpr == SHORT else ByGroup)(config, log)
