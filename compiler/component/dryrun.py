"""What a dry run asks a transform, beside what every run does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import Batch, JsonValue

Origins = Sequence[Sequence[Sequence[int]]]
"""Per batch and per message, the indices of the messages that it came from."""


class DryRunHooks:
    """What a transform may tell a dry run. Most leave it at this."""

    kind: ClassVar[str]
    acts: ClassVar[str] = ""
    """What it does to the world outside, also in a dry run: ``posts every batch ...``. Most: nothing."""

    def origins(self, batch: Batch, made: Sequence[Batch]) -> Origins:
        """Return from which messages of a batch came each message that its step made of it.

        For dry runs, of a step that does not take each alone. Unless it knows better, everything came
        from everything. What holds messages is not asked: it hands them on as they came, in order.
        """
        everything = [*range(len(batch))]
        return [[everything] * len(each) for each in made]

    def reason(self, message: JsonValue, ctx: Context) -> str:
        """Return why it let go of a message; of one that it still holds, until when. For dry runs."""
        return f"'{self.kind}' made nothing of it"

    def fills_at(self, ctx: Context) -> int | None:
        """Return how many messages leave together because more of them came. For dry runs.

        What holds messages is asked before they come; None: whatever comes goes straight through.
        """
        return None
