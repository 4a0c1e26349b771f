"""What a script can fail with."""

from __future__ import annotations


class ScriptError(Exception):
    """A script did not compile or did not run to its end.

    ``line`` and ``column`` count from 1, columns in characters; both are None where the engine knows no
    position. ``module`` is the import path of the module it happened in, None for the script itself.
    ``index`` tells which value of the list a run failed for, None at compile time.
    """

    def __init__(
        self,
        message: str,
        line: int | None = None,
        column: int | None = None,
        module: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message, self.line, self.column, self.module = message, line, column, module
        self.index: int | None = None

    def __str__(self) -> str:
        if self.line is None:
            return self.message
        return f"line {self.line}, column {self.column}: {self.message}"


class CompileError(ScriptError):
    """The script, or a module it imports, does not parse or cannot be found."""


class RunError(ScriptError):
    """A run failed."""


class BudgetError(RunError):
    """A run, or compiling, was stopped by a limit; ``limit`` is the keyword that sets it."""

    def __init__(
        self,
        message: str,
        line: int | None = None,
        column: int | None = None,
        module: str | None = None,
        limit: str | None = None,
    ) -> None:
        super().__init__(message, line, column, module)
        self.limit = limit


class ImportRefused(Exception):
    """What a ``load`` raises for an import path that it does not serve; its text becomes the error's."""


class PatternError(ValueError):
    """A regular expression is refused; ``at`` is how many characters are before the place, or None."""

    def __init__(self, message: str, at: int | None = None) -> None:
        super().__init__(message)
        self.message, self.at = message, at
