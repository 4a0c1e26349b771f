"""The Rhai script engine for Python."""

from rhai._errors import BudgetError, CompileError, ImportRefused, RunError, ScriptError
from rhai._rhai import RHAI_VERSION, Paused, Script

__all__ = [
    "RHAI_VERSION",
    "BudgetError",
    "CompileError",
    "ImportRefused",
    "Paused",
    "RunError",
    "Script",
    "ScriptError",
]
