"""The filed connections: what the next component that is built can name.

Who was built keeps what it read, so filing and removing change nothing that runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from headrace.compiler.component.families import Connection
from headrace.compiler.errors import HeadraceError
from headrace.compiler.text.suggest import did_you_mean, one_of


class ConnectionExists(HeadraceError):
    """A connection is filed under the name already."""

    def __init__(self, name: str) -> None:
        super().__init__(f"a connection named '{name}' is already filed")
        self.name = name


class ConnectionInUse(HeadraceError):
    """Pipelines name the connection; ``pipelines`` are their ids, in order."""

    def __init__(self, name: str, pipelines: Iterable[str]) -> None:
        self.name, self.pipelines = name, sorted(pipelines)
        super().__init__(f"connection '{name}' is in use by {', '.join(self.pipelines)}")


class NotFiled(HeadraceError):
    """No connection is filed under the name; ``filed`` are those that are."""

    def __init__(self, name: str, filed: Iterable[str]) -> None:
        self.name, self.filed = name, sorted(filed)
        expected = f"expected {one_of(self.filed)}" if self.filed else "none is filed"
        meant = did_you_mean(name, self.filed)
        super().__init__(
            f"no connection named '{name}' ({expected})" + (f": {meant}" if meant else "")
        )


class Connections(Mapping[str, Connection]):
    """The connections by name, in the order of their names."""

    def __init__(
        self, filed: Mapping[str, Connection], used_by: Callable[[str], Iterable[str]]
    ) -> None:
        """Start with what is ``filed``; ``used_by`` tells which pipelines name a connection."""
        self._filed = dict(sorted(filed.items()))
        self._used_by = used_by

    def __getitem__(self, name: str) -> Connection:
        return self._filed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._filed)

    def __len__(self) -> int:
        return len(self._filed)

    def file(self, name: str, connection: Connection) -> None:
        """File a connection under a new name.

        Raises:
            ConnectionExists: the name is taken.
        """
        if name in self._filed:
            raise ConnectionExists(name)
        self._filed = dict(sorted([*self._filed.items(), (name, connection)]))

    def replace(self, filed: Mapping[str, Connection]) -> None:
        """File exactly these."""
        self._filed = dict(sorted(filed.items()))

    def remove(self, name: str) -> None:
        """Remove a connection that nobody names.

        Raises:
            ConnectionInUse: pipelines name it, whether or not it is still filed.
            NotFiled: there is none of that name.
        """
        if pipelines := [*self._used_by(name)]:
            raise ConnectionInUse(name, pipelines)
        if name not in self._filed:
            raise NotFiled(name, self._filed)
        del self._filed[name]
