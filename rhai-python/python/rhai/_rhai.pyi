from collections.abc import Callable, Mapping
from typing import Any, Final, final

from rhai._errors import ScriptError

__all__ = [
    "RHAI_VERSION",
    "Matcher",
    "Pattern",
    "Paused",
    "Replacement",
    "Script",
    "count_line_ends",
    "has_slow_numbers",
]

RHAI_VERSION: Final[str]

def count_line_ends(body: bytes) -> int: ...
def has_slow_numbers(body: bytes) -> bool: ...

@final
class Script:
    def __new__(
        cls,
        source: str,
        *,
        variable: str = "msg",
        emits_lists: bool = False,
        functions: Mapping[str, tuple[int, Callable[..., Any]]] | None = None,
        load: Callable[[str], str] | None = None,
        note: Callable[[str, str, int | None, int | None, str | None], object] | None = None,
        max_operations: int = 100_000,
        max_string: int = 262_144,
        max_array: int = 100_000,
        max_map: int = 10_000,
        max_expression_depth: int = 64,
        max_calls: int = 64,
        max_modules: int = 32,
        max_source: int = 1_048_576,
        max_nesting: int = 128,
        max_emitted: int = 10_000,
        max_emitted_bytes: int = 16_777_216,
        max_memory: int = 67_108_864,
        time_limit: float | None = ...,
    ) -> Script: ...
    @property
    def emits(self) -> bool: ...
    @property
    def calls(self) -> frozenset[str]: ...
    @property
    def reaches(self) -> list[str] | None: ...
    def run(self, value: Any) -> list[Any]: ...
    def run_each(
        self, values: list[Any], *, failed: Callable[[ScriptError], object] | None = None
    ) -> list[Any]: ...
    def start(
        self,
        values: list[Any],
        seconds: float,
        *,
        failed: Callable[[ScriptError], object] | None = None,
    ) -> list[Any] | Paused: ...

@final
class Paused:
    def resume(self, seconds: float) -> list[Any] | None: ...
    def close(self) -> None: ...

@final
class Pattern:
    def __new__(cls, regex: str) -> Pattern: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def longest(self) -> int: ...
    @property
    def is_one_pass(self) -> bool: ...
    def groups(self, text: str) -> tuple[str | None, ...] | None: ...
    def replacement(self, with_: str, *, first: bool = False) -> Replacement: ...

@final
class Replacement:
    @property
    def longest(self) -> int: ...
    def replaced(self, text: str) -> str | None: ...

@final
class Matcher:
    def __new__(cls, regex: str) -> Matcher: ...
    def is_match(self, text: str) -> bool: ...
