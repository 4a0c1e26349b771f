"""The mapping that writes the time."""

from __future__ import annotations

from typing import Self

from headrace.compiler.code import Code
from headrace.compiler.component.branches import altered
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import Missing
from headrace.compiler.schema.fields import MessageField
from headrace.compiler.schema.records import option
from headrace.operators.formula import Formula
from headrace.operators.mappings.mapping import Writing


class Now(
    Writing, tag="now", listed=47, elsewhere="clock current_time processed_at received_at utcnow"
):
    """Writes the time, as RFC 3339 in UTC: that of the pipeline's clock, the same for a whole batch."""

    is_never_object = True

    as_: str = option(
        MessageField(),
        "Field to write.",
        elsewhere="alias field into key name output path target to",
    )

    def for_batch(self, ctx: Context) -> Self:
        """Return one that writes the time that it is now."""
        now = ctx.clock.timestamp()
        asked = altered(self, value=lambda message, ctx: now)
        return altered(asked, for_batch=lambda ctx: asked)

    def value(self, message: JsonValue, ctx: Context) -> JsonValue | Missing:
        """Return the time."""
        return ctx.clock.timestamp()

    def source(self, code: Code, ctx: Context, *, optional: bool) -> Formula:
        """Ask ahead of the loop, and name it."""
        now = code.name("now")
        code.before(f"{now} = {code.constant(ctx.clock.timestamp, 'timestamp')}()")
        return Formula(now)
