"""Databases with a small disk, which a test can fill and make room on again."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.server import Process
from tests.services.clickhouse import ClickHouse
from tests.services.postgres import Postgres
from tests.services.programs import Missing, program
from tests.services.server import Service

REMEDY = "install 'util-linux'"
PAGE = 4096


class Disk:
    """A disk in memory that a server alone sees, as it has a namespace of its own to mount it in.

    Nobody has to be root for that. What is on the disk ends with the server.
    """

    def __init__(self, place: Path, mebibytes: int) -> None:
        self._place, self._size = place, f"{mebibytes}m"

    def under(self, command: Sequence[str | Path]) -> list[str | Path]:
        """Return a command that mounts the disk, then runs another as somebody who is not root."""
        unshare, setpriv = program("unshare", REMEDY), program("setpriv", REMEDY)
        alone = [unshare, "--user", "--map-root-user", "--mount"]
        if subprocess.run([*alone, "true"], capture_output=True).returncode != 0:
            raise Missing("a small disk needs user namespaces, which this system has not")
        mounting = f'mount -t tmpfs -o size={self._size},mode=700 small "$0" && exec "$@"'
        somebody = [unshare, "--user", "--map-user=1000", "--map-group=1000"]
        ends = [setpriv, "--pdeathsig", "KILL"]
        return [*alone, "sh", "-c", mounting, self._place, *somebody, *ends, *command]

    def fill(self, server: Service | Process) -> None:
        """Take up the room that is left on the disk of a server that runs."""
        ballast = self._seen(server) / "ballast"
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(PAGE))

    def clear(self, server: Service | Process) -> None:
        """Make room again."""
        (self._seen(server) / "ballast").unlink()

    def _seen(self, server: Service | Process) -> Path:
        return Path(f"/proc/{server.pid}/root{self._place}")


class CrampedPostgres(Postgres):
    """It has its data where there is room, and a small disk for tables that are put there."""

    @property
    def small(self) -> Path:
        """Where the disk is, for `create tablespace`."""
        return self.folder / "small"

    @property
    def disk(self) -> Disk:
        """The disk."""
        return Disk(self.small, mebibytes=1)

    def command(self) -> Sequence[str | Path]:
        return self.disk.under(super().command())

    def prepare(self) -> None:
        super().prepare()
        self.small.mkdir()


class CrampedClickHouse(ClickHouse):
    """It has all its data on a small disk."""

    @property
    def disk(self) -> Disk:
        """The disk."""
        return Disk(self.folder / "data", mebibytes=24)

    def command(self) -> Sequence[str | Path]:
        return self.disk.under(super().command())

    def prepare(self) -> None:
        super().prepare()
        (self.folder / "data").mkdir()
