"""What only one component of a server can have at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager

from headrace.compiler.errors import BuildRefused
from headrace.compiler.text.diagnostics import Fault


class Claims:
    """What only one component of a server can have at a time, such as a client id at a broker.

    By a text that says it to people and tells one thing from another.
    """

    def __init__(self) -> None:
        self._holders: defaultdict[str, list[tuple[object, str]]] = defaultdict(list)
        self._leaving: list[object] = []

    def take(self, key: str, owner: object, called: str) -> Callable[[], Awaitable[None]]:
        """Take something for ``owner``, under the name it is ``called``; return what gives it back.

        Raises:
            BuildRefused: somebody has it, and stays.
        """
        for other, name in self._holders.get(key, ()):
            if not any(other is each for each in self._leaving):
                message = f"{key} is taken by {name}: each would cut off the other"
                raise BuildRefused(Fault("duplicate", message))
        holding = (owner, called)
        self._holders[key].append(holding)

        async def give_back() -> None:
            holders = self._holders[key]
            holders[:] = [each for each in holders if each is not holding]
            if not holders:
                del self._holders[key]

        return give_back

    @contextmanager
    def leaving(self, owners: Iterable[object]) -> Iterator[None]:
        """Have what some owners have taken by others meanwhile: they are to end before those start."""
        self._leaving = [*owners]
        try:
            yield
        finally:
            self._leaving = []

    def is_taken_over(self, key: str, owner: object) -> bool:
        """Return whether somebody else has what ``owner`` has, who is leaving."""
        return any(other is not owner for other, _ in self._holders.get(key, ()))
