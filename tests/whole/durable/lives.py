"""One folder in which a server is started again and again, and keeps what is posted to it."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from headrace.compiler.store.lostcommits import LAST_NOT_WHOLE
from tests import forked
from tests.clients import HOST, PATIENCE
from tests.server import Process, Server, executed, settled, started, written
from tests.whole.durable.customers import PIPELINE, wait_until
from tests.whole.linking import Json, filing, kept, linked
from tests.whole.stores.cramped import Disk

KEEP_FREE_BYTES = 2**20


class Lives:
    """A folder, and the servers that have it, one after the other."""

    def __init__(
        self,
        folder: Path,
        config: Any,
        *,
        script: Path | None = None,
        disk: Disk | None = None,
        connections: dict[str, Json] | None = None,
        **store: Any,
    ) -> None:
        """Take what runs, and what the settings say of the store.

        A ``script`` stands for the command; what is written is on a ``disk`` of its own.
        """
        self.folder, self.config = folder, config
        self._is_usual = script is None and disk is None
        self._script, self._disk = script, disk
        folder.mkdir(exist_ok=True)
        self._options = linked(folder, connections or {})
        self._options += settled(folder, store={"keep_free_bytes": KEEP_FREE_BYTES, **store})
        self.ready_seconds: list[float] = []
        """How long each start took."""

    @contextmanager
    def life(self) -> Iterator[Server]:
        """Have it run for as long as the block lasts, if nothing ends it before."""
        given = {} if self._is_usual else {"start": self._started}
        with forked.serving(self.folder, self.config, *self._options, **given) as server:
            self.ready_seconds.append(server.seconds)
            yield server

    def run(self) -> CompletedProcess[str]:
        """Have it run until it ends by itself."""
        command = ["serve", "--config", str(written(self.folder, self.config))]
        options = ["--listen", f"{HOST}:0", *self._options]
        given = {} if self._is_usual else {"execute": self._ended}
        return forked.run(self.folder, *command, *options, **given)

    def _started(
        self, arguments: Sequence[str], folder: Path, setup: Callable[[], None]
    ) -> Process:
        return started(self._command(arguments), folder, setup)

    def _ended(
        self, arguments: Sequence[str], folder: Path, given: str | None
    ) -> CompletedProcess[str]:
        return executed(self._command(arguments), folder, given)

    def _command(self, arguments: Sequence[str]) -> list[str]:
        command = [*arguments]
        if self._script is not None:
            command[:1] = [sys.executable, str(self._script)]
        return command if self._disk is None else [*map(str, self._disk.under(command))]

    def parts(self) -> list[list[int]]:
        """Return the numbers in each file, in the order in which the files were begun."""
        folder = self.folder / "data" / "out"
        return [kept(folder, each.name) for each in sorted(folder.glob("*.ndjson"))]

    def written(self) -> list[int]:
        """Return the numbers in all files, in order."""
        return [number for part in self.parts() for number in part]

    def wait_until_written(self, numbers: Collection[int], seconds: float = PATIENCE) -> None:
        """Wait until all of these are in the files."""
        what = f"{len(numbers):,} messages in the files"
        wait_until(lambda: {*numbers}.issubset(self.written()), what, seconds)


def pipeline(*transforms: Json, outputs: Sequence[Json] = (), **durable: Any) -> Json:
    """Return a pipeline that keeps what is posted, and writes it to files if nothing else is said."""
    return {
        "id": PIPELINE,
        "inputs": [{"type": "http", "durable": durable or True}],
        "transforms": [*transforms],
        "outputs": [*(outputs or [filing("out")])],
    }


def kill(server: Server) -> None:
    """End it without a word."""
    server.signal(signal.SIGKILL)
    assert server.ended() == -signal.SIGKILL


def errors(server: Server) -> list[str]:
    """Return what it says is wrong, but for a commit that the kill before has torn: nobody was answered."""
    said = str(server.err).splitlines()
    return [line for line in said if "ERROR" in line and not line.endswith(LAST_NOT_WHOLE)]


def again(parts: Iterable[list[int]]) -> list[int]:
    """Return how many messages of each file but the first were in one before it."""
    seen: set[int] = set()
    counts: list[int] = []
    for part in parts:
        counts.append(len(seen.intersection(part)))
        seen.update(part)
    return counts[1:]


def twice(numbers: Iterable[int]) -> set[int]:
    """Return what is there more than once."""
    return {number for number, count in Counter(numbers).items() if count > 1}


def are_in_order(numbers: Iterable[int], posted: Collection[int]) -> bool:
    """Return whether what one client has posted came first in the order in which it did so."""
    own = [number for number in dict.fromkeys(numbers) if number in {*posted}]
    return all(one < next for one, next in pairwise(own))
