"""The Rhai script engine for Python, and regular expressions whose cost is bounded."""

from rhai._errors import (
    BudgetError,
    CompileError,
    ImportRefused,
    PatternError,
    RunError,
    ScriptError,
)
from rhai._rhai import (
    RHAI_VERSION,
    Matcher,
    Pattern,
    Paused,
    Replacement,
    Script,
    count_line_ends,
    has_slow_numbers,
)

__all__ = [
    "RHAI_VERSION",
    "BudgetError",
    "CompileError",
    "ImportRefused",
    "Matcher",
    "Pattern",
    "PatternError",
    "Paused",
    "Replacement",
    "RunError",
    "Script",
    "ScriptError",
    "count_line_ends",
    "has_slow_numbers",
]
