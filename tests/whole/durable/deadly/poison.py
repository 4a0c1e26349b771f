"""A transform of the tests that ends the process on some messages, as a fault in a library would."""

from __future__ import annotations

import os

from headrace.compiler.component.buildcontext import Context, Step
from headrace.compiler.component.families import Transform
from headrace.compiler.delivery import Batch

EXIT_CODE = 7


class Poison(Transform, kind="poison"):
    """Hand everything on, but a message with the field ``poison``."""

    def step(self, ctx: Context) -> Step:
        """Return what ends the process."""

        def handed_on(batch: Batch) -> list[Batch]:
            if any(isinstance(message, dict) and "poison" in message for message in batch):
                os._exit(EXIT_CODE)
            return [batch]

        return handed_on
