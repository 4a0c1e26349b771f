"""What only one component of a server can have at a time, such as a client id at a broker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from headrace.compiler.errors import BuildRefused
from headrace.compiler.language.diagnostics import Fault


class Claims:
    """Who has what, by a text that says both to people and tells one thing from another."""

    def __init__(self) -> None:
        self._holders: dict[str, str] = {}

    def take(self, key: str, holder: str) -> Callable[[], Awaitable[None]]:
        """Take something for ``holder``; return what gives it back.

        Raises:
            BuildRefused: somebody has it.
        """
        if key in self._holders:
            message = f"{key} is taken by {self._holders[key]}: each would cut off the other"
            raise BuildRefused(Fault("duplicate", message))
        self._holders[key] = holder

        async def give_back() -> None:
            self._holders.pop(key, None)

        return give_back
