"""The `script` transform: what no other transform does, written in the config or beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Self

from headrace.compiler.component.branches import FAILED, Branch, Took, altered
from headrace.compiler.component.buildcontext import Context, Operator
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.failingmessages import FailsByMessage
from headrace.compiler.component.families import Transform
from headrace.compiler.component.promises import HOLDS_NOTHING
from headrace.compiler.component.states import no_state
from headrace.compiler.delivery import JsonValue
from headrace.compiler.errors import BuildRefused
from headrace.compiler.schema.fields import Choice, Integer
from headrace.compiler.schema.records import option
from headrace.compiler.schema.variants import VariantOf
from headrace.compiler.text.diagnostics import Codes, Fault, Severity, Spot
from headrace.compiler.text.positions import LineIndex
from headrace.operators.script.compiling import VARIABLES, CompiledScript, compiled
from headrace.operators.script.host import STATEFUL, ScriptHost
from headrace.operators.script.names import defines, unknown
from headrace.operators.script.scriptbranches import UNTAKEN, CountedScript, ways
from headrace.operators.script.sources import ScriptFiles, ScriptSource
from headrace.operators.script.wording import of_silence

OF_BATCHES = "a run of scope batch is about all of a batch, and what fails is the batch"
"""Why its failures have no smaller unit."""

CODES: Codes = {
    "no-emit": "A script never calls 'emit', so it hands on nothing.",
    "unknown-function": "A script calls a function that neither it nor the language has.",
}


class Script(
    FailsByMessage,
    Transform,
    kind="script",
    listed=9,
    elsewhere="code function javascript js lua python rhai",
):
    """Run a script on every message, or on every batch, and hand on what it emits.

    With scope `message` a script finds the message as `msg`, may change it, and calls `emit(value)`
    for each message that is to go on: no call drops it, several split it. What all messages of a
    batch emit is one batch. With scope `batch` it finds a list of messages as `batch`, and each list
    that it emits is a batch; an empty one is left out.

    A script compiles when the config is checked, with everything it imports. When a run fails, its
    whole batch is dropped and reported with the script, the line and the column; what was remembered
    until then stays. Under `on_error: skip` that is so for its message, and the next one goes on; nothing
    runs twice. The third run of a batch that a limit has stopped costs the batch all the same.

    A run that takes long is paused every few milliseconds, so that nobody else waits for it; later
    batches of the pipeline stay behind it, in order.
    """

    is_gathering = True
    promises: ClassVar = (HOLDS_NOTHING,)
    remembers = recalls = True  # for all that is known without compiling it

    source: ScriptSource = option(
        VariantOf(ScriptSource), "Where the script is.", elsewhere="script"
    )
    max_operations: int | None = option(
        Integer(min=1),
        "Operations that one run may take before it is stopped; 100000 if left out.",
        default=None,
        elsewhere="limit max_ops",
    )
    scope: str = option(
        Choice(
            "message",
            "batch",
            never_absent=True,
            elsewhere={"message": "each one single", "batch": "all list"},
        ),
        "What one run is about.",
        default="message",
        elsewhere="mode per",
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse to leave out messages where a run is about a batch."""
        if self.on_error is not None and self.scope == "batch":
            yield self.unknown("on_error", OF_BATCHES)

    def failing_alone(self) -> Self:
        """Return it with ``on_error: skip``, unless a run is about a batch."""
        return self if self.scope == "batch" else super().failing_alone()

    def examine(self, context: CheckContext) -> Iterator[Fault]:
        """Compile the script, and remark on one that cannot do what it seems to be for."""
        files = ScriptFiles(context.base)
        try:
            program = self._compiled(files, ScriptHost(self.source.name))
        except BuildRefused as refused:
            yield refused.fault
            return
        for fault in self._remarks(program, files, context):
            path = ("source", self.source.key)
            yield replace(fault, path=path, severity=Severity.WARNING)

    def _remarks(
        self, program: CompiledScript, files: ScriptFiles, context: CheckContext
    ) -> Iterator[Fault]:
        texts, calls = self.source.texts(files), program.script.calls
        strange = [*unknown(calls, [*texts.values()])]
        for each in strange:
            file, text = [*texts.items()][each.text]
            yield Fault(
                "unknown-function",
                f"there is no function '{each.name}'",
                found=each.name,
                suggestion=None if each.meant is None else f"did you mean '{each.meant}'?",
                spot=Spot(*LineIndex(text).at(each.at), file, text),
            )
        if program.never_emits and not any(each.meant == "emit" for each in strange):
            message = "this script never calls 'emit': whatever comes is dropped"
            hint = of_silence(texts[self.source.file], VARIABLES[program.is_whole])
            yield Fault("no-emit", message, suggestion=hint)
        for name in STATEFUL:
            is_own = any(defines(text, name) for text in texts.values())
            if name in calls and not (context.has_state or is_own):
                yield no_state(f"'{name}'")

    def branches(self, context: CheckContext) -> Iterator[Branch]:
        """It emits; it emits nothing (unless `emit` is in no block); it fails (unless it has a `try`),
        which under `on_error: skip` is that a message is skipped.
        """
        for way in ways(self.source.text(ScriptFiles(context.base))):
            if way == FAILED and self.skips_failing:
                yield from self.skipped()
            else:
                yield Branch(way, UNTAKEN[way])

    def counting(self, took: Took) -> Self:
        """Return one that tells what came of its runs."""

        def counted(files: ScriptFiles, host: ScriptHost) -> CompiledScript:
            return CountedScript(**vars(self._compiled(files, host)), took=took)

        return altered(self, _compiled=counted)

    def operator(self, ctx: Context) -> Operator:
        """Return the operator that runs the script.

        Raises:
            BuildRefused: it does not compile.
        """
        host = ScriptHost(self.source.name, ctx)
        program = self._compiled(ScriptFiles(ctx.base, ctx.reads), host)
        host.lend(None if ctx.state is None else ctx.bucket())
        program.lose = ctx.lose if self.skips_failing else None
        return ctx.lift_pausing(program.start)

    @property
    def takes_each_alone(self) -> bool:
        """Whether a run is about one message."""
        return self.scope == "message"

    def reason(self, message: JsonValue, ctx: Context) -> str:
        """Return that nothing was emitted."""
        return (
            f"the script did not call 'emit' for {'it' if self.takes_each_alone else 'its batch'}"
        )

    def _compiled(self, files: ScriptFiles, host: ScriptHost) -> CompiledScript:
        return compiled(
            self.source,
            files,
            host,
            is_whole=self.scope == "batch",
            max_operations=self.max_operations,
        )
