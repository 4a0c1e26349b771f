"""Compiling and running scripts: the one place that talks to the script engine.

The engine knows values, limits and positions. What is said here of a script that does not compile or
does not run says where: in the config, in a script's file, in a file that it imports.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.compiler.component.failingmessages import Failing, Lose
from headrace.compiler.delivery import Batch
from headrace.compiler.errors import BatchFailed, BuildRefused
from headrace.compiler.text.diagnostics import Codes, Fault, Spot
from headrace.compiler.text.positions import LineIndex
from headrace.operators.script.host import ScriptHost
from headrace.operators.script.names import ScriptNames
from headrace.operators.script.sources import (
    EXTENSION,
    LARGEST,
    ScriptFiles,
    ScriptSource,
    as_the_engine_counts,
)
from headrace.operators.script.wording import Halt, reworded

if TYPE_CHECKING:
    import rhai

_T = TypeVar("_T")

CODES: Codes = {
    "not-compiled": "A script does not compile.",
}

OPERATIONS = 100_000
"""What a run may do where the config does not say."""
LARGEST_BUDGET = 2**64 - 1
"""What the engine counts to; a larger number says the same."""
MOST_STOPPED = 3
"""Runs of a batch that limits stop before it fails, although messages may fail alone: ten thousand that
take all their time would hold the pipeline for hours."""
SECONDS = 1.0
"""How long a run may take, pauses not counted: operations are not time."""

VARIABLES = {False: "msg", True: "batch"}
"""The variable in which a run finds what it is about: one message, or a whole batch."""

LIMITS = {
    "max_string": 262_144,
    "max_array": 100_000,
    "max_map": 10_000,
    "max_expression_depth": 64,
    "max_calls": 64,
    "max_modules": 32,
    "max_source": LARGEST,
    "max_nesting": 128,
    "max_emitted": 10_000,
    "max_emitted_bytes": 16 * 2**20,
    "max_memory": 64 * 2**20,
}
"""Bounds of what a script builds. What came in never fails for its own size."""

PASSED = {
    "max_operations": "stopped after {} operations: raise 'max_operations' if it needs more",
    "time_limit": "stopped after {:g} s: no run may take longer",
    "max_memory": "more than {} bytes were held at once",
    "max_string": "a string became longer than {} bytes",
    "max_array": "an array became longer than {} elements",
    "max_map": "a map got more than {} entries",
    "max_calls": "functions called each other more than {} deep",
    "max_modules": "more than {} modules are imported",
    "max_nesting": "a value became nested more than {} deep",
    "max_emitted": "more than {} values were emitted",
    "max_emitted_bytes": "more than {} bytes were emitted",
}
"""What is said when a limit was passed."""
MOST_REWORDED = 64
"""Texts of one script that are kept: a mistake is made again and again, and finding words takes time."""
THROWN = "Runtime error: "
"""What the engine says before a value that a script throws."""
NO_ENGINE = (
    "a script needs the package 'rhai-python', which is not installed: where there is Rust 1.85 or newer"
    " (https://rustup.rs), 'make run' or 'pip install ./rhai-python' in the sources of headrace installs it"
)
_ANYWHERE = ("max_operations", "time_limit", "max_memory")
"""Limits that stop a run wherever it happens to be: the column is another one for every message."""

# What the engine quotes of a message's values: they would make a failure of its own of every message.
_VALUES = (
    (re.compile(r"((?:[A-Z][a-z]+|Modulo division by zero or) overflow): .*", re.DOTALL), r"\1"),
    (re.compile(r"(Division by zero|Integer raised to a negative power): .*", re.DOTALL), r"\1"),
    (re.compile(r"(Array|String|Bit-field) index -?\d+ (out of bounds): .*"), r"\1 index \2"),
    (re.compile(r"(Error parsing [a-z-]+ number) '.*': ", re.DOTALL), r"\1: "),
)


class ScriptFailed(BatchFailed):
    """A run failed. ``message`` is without the place; line and column count from 1.

    Failures are counted by the text, so that is without what the engine quotes of the values.
    """

    def __init__(
        self, script: str, message: str, line: int | None, column: int | None, limit: str | None
    ) -> None:
        place = "" if line is None else f" line {line}"
        if line is not None and limit not in _ANYWHERE:
            place += f", column {column}"
        text = message
        for pattern, rest in _VALUES:
            text = pattern.sub(rest, text)
        super().__init__(f"{script}{place}: {text}")
        self.script, self.message, self.line, self.column = script, message, line, column
        self.limit = limit

    @property
    def position(self) -> tuple[int | None, int | None]:
        """Line and column of what the script does wrong itself.

        It has none when a limit stopped it somewhere, or a function of ours refused what it was asked.
        """
        was_refused = self.__cause__ is not None and self.__cause__.__cause__ is not None
        is_own = not was_refused and self.limit not in _ANYWHERE
        return (self.line, self.column) if is_own else (None, None)


@dataclass
class PausedScript:
    """A run that is not over."""

    paused: rhai.Paused
    program: CompiledScript

    def resume(self, seconds: float) -> list[Batch] | None:
        """Go on for so long; return the batches that were emitted, None if it is not over.

        Raises:
            ScriptFailed: the run failed.
        """
        return self.program.batches_of(self.paused.resume, seconds)

    def close(self) -> None:
        """Give it up."""
        self.paused.close()
        self.program.let_go()


@dataclass
class CompiledScript:
    """A script that is compiled, for one transform.

    ``is_whole``: a run is about a whole batch, and not about one message. ``reword`` says better what the
    engine says of a module; None: of the script itself.
    """

    script: rhai.Script
    errors: type[rhai.ScriptError]
    host: ScriptHost
    is_whole: bool
    bounds: Mapping[str, float]
    reword: Callable[[str, str | None], str]
    lose: Lose | None = None
    """Is told of the messages that a batch goes on without; None: their batch fails."""
    failing: Failing = field(default_factory=Failing)
    """Those of the batch that it runs on."""
    left_out: int = 0
    """How many those are, or of a batch that is through were."""
    stopped: int = 0
    """Of how many of them a limit stopped the run."""

    @property
    def never_emits(self) -> bool:
        """Whether it surely emits nothing: a function's name that is put together can be any."""
        return not self.script.emits and "Fn" not in self.script.calls

    def start(self, batch: Batch, seconds: float) -> list[Batch] | PausedScript:
        """Run on a batch for so long; return the batches that were emitted, or the paused run.

        Raises:
            ScriptFailed: a run failed; nothing is left of the batch.
        """
        self.host.given = batch
        self.left_out = self.stopped = 0
        start: Callable[..., list[Any] | rhai.Paused] = self.script.start
        if self.lose is not None:
            start = partial(start, failed=self._leave_out)
        made = self.batches_of(start, [batch] if self.is_whole else batch, seconds)
        return made if isinstance(made, list) else PausedScript(made, self)

    def _leave_out(self, error: rhai.ScriptError) -> None:
        """Take note of a message whose run failed; the runs of the others go on.

        Raises:
            rhai.ScriptError: limits have stopped too many runs of this batch.
        """
        self.left_out += 1
        self.stopped += getattr(error, "limit", None) is not None
        if self.stopped == MOST_STOPPED:
            raise error
        assert error.index is not None  # of a run it is known
        failed = self._failed(error)
        failed.__cause__ = error
        self.failing.add(self.host.given[error.index], failed)

    def batches_of(self, run: Callable[..., list[Any] | _T], *given: Any) -> list[Batch] | _T:
        """Return what was emitted as batches, or what ``run`` returns of a run that is not over.

        Raises:
            ScriptFailed: the run failed.
        """
        try:
            made = run(*given)
        except self.errors as error:
            self.let_go()
            raise self._failed(error) from error
        if not isinstance(made, list):
            return made
        if self.lose is not None:
            self.failing.tell(self.lose)
        self.let_go()
        return made if self.is_whole else [made]  # every value is a batch, or all together are

    def let_go(self) -> None:
        """Keep nothing of the batch: its run is over, and an input may count its bytes until it is gone."""
        self.host.given = []
        self.failing.clear()

    def _failed(self, error: rhai.ScriptError) -> ScriptFailed:
        """Return what a run failed with."""
        self.host.trace(f"value {error.index}: {error.message}", error.line, error.module)
        script, limit = self.host.name(error.module), getattr(error, "limit", None)
        said = _said(error, self.bounds, self.reword)
        return ScriptFailed(script, said, error.line, error.column, limit)


def compiled(
    source: ScriptSource,
    files: ScriptFiles,
    host: ScriptHost,
    *,
    is_whole: bool,
    max_operations: int | None,
) -> CompiledScript:
    """Compile a script and what it imports.

    Raises:
        BuildRefused: the text cannot be had, or does not compile; told at the option ``source``.
    """
    engine = _engine(source)
    operations = OPERATIONS if max_operations is None else min(max_operations, LARGEST_BUDGET)
    bounds = {**LIMITS, "max_operations": operations}

    def load(path: str) -> str:
        try:
            return files.module(path)
        except BuildRefused as cause:
            raise engine.ImportRefused(str(cause)) from cause

    @cache
    def names(module: str | None) -> ScriptNames:
        path = None if module is None else module + EXTENSION
        return ScriptNames.of(text if path is None else files.texts[path], files.texts)

    @lru_cache(MOST_REWORDED)
    def reword(message: str, module: str | None) -> str:
        return reworded(message, names(module))

    try:
        text = source.text(files)
        script = engine.Script(
            as_the_engine_counts(text),
            variable=VARIABLES[is_whole],
            emits_lists=is_whole,
            functions=host.functions(),
            load=load,
            note=host.note,
            time_limit=SECONDS,
            **bounds,
        )
    except BuildRefused as cause:
        fault = replace(cause.fault, path=("source", source.key))
        raise BuildRefused(fault) from cause
    except engine.ScriptError as error:
        fault = _refusal(error, source, text, files, _said(error, bounds, reword), is_whole)
        raise BuildRefused(fault) from error
    in_runs = {**bounds, "time_limit": SECONDS}
    return CompiledScript(script, engine.ScriptError, host, is_whole, in_runs, reword)


def _engine(source: ScriptSource) -> ModuleType:
    # Loaded when the first script is met: most configs have none, and an installation without Rust
    # does not have it.
    try:
        import rhai
    except ImportError as cause:
        path = ("source", source.key)
        raise BuildRefused(Fault("not-compiled", NO_ENGINE, path=path)) from cause
    return rhai


def _refusal(
    error: rhai.ScriptError,
    source: ScriptSource,
    text: str,
    files: ScriptFiles,
    said: str,
    is_whole: bool,
) -> Fault:
    """Return why a script does not compile, at the place in its own text or that of a module."""
    what, file = "the script", source.file
    if error.module is not None:
        path = error.module + EXTENSION
        what, text, file = f"'{path}'", files.texts[path], path
    fault = Fault(
        "not-compiled",
        f"{what} does not compile: {said}",
        path=("source", source.key),
    )
    if error.line is None or error.column is None:
        return fault
    lines, end = LineIndex(text), len(text.rstrip())
    at = min(lines.offset(error.line, error.column), end)  # an end is shown where the text ends
    line, column = lines.at(at)
    halt = Halt(error.message, text, at, VARIABLES[is_whole])
    return replace(fault, suggestion=halt.hint, spot=Spot(line, column, file, text))


def _said(
    error: rhai.ScriptError,
    bounds: Mapping[str, float],
    reword: Callable[[str, str | None], str],
) -> str:
    """Return what the engine says, in words that help whoever wrote the script."""
    limit = getattr(error, "limit", None)
    if limit in PASSED and limit in bounds:  # compiling has no time of its own to tell
        return PASSED[limit].format(bounds[limit])
    message = error.message.removesuffix(f" (in module '{error.module}')")
    thrown = message.removeprefix(THROWN)
    is_engines = thrown == message and error.__cause__ is None
    return reword(message, error.module) if is_engines else thrown
