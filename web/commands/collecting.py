"""How often the garbage collector looks for cycles: rarely, where what is made is kept or is no cycle.

Python looks whenever 700 objects were made. That is a tenth of a start, four per cent of the work of
ingest and a third of that of a large play.
"""

from __future__ import annotations

import atexit
import gc
from typing import Any

import click

OF_A_START = 100_000
"""More objects than importing makes, of which hardly any can go."""
OF_A_PLAY = 50_000
OF_A_SERVER = (10_000, 1, 40)
"""A few batches on their way are thousands of objects. All three begin with another number: that is how
`collect_late` knows that a command has settings of its own.

What has been looked at twice is looked at once more with all that came since, of 30,000 objects in place of
120,000: those are no longer in the caches of the processor, so it took 6 to 24 ms, and takes 1 to 2. A full
look comes after as many objects as before.
"""


def collect_late() -> None:
    """Have it begin after the start of a command, and do nothing at the end.

    When the interpreter takes its modules apart it would look several times through all that ends with
    the process anyway.
    """
    usual = gc.get_threshold()

    def begin(*_: object) -> None:
        gc.callbacks.remove(begin)
        if gc.get_threshold()[0] == OF_A_START:
            gc.set_threshold(*usual)

    gc.callbacks.append(begin)
    gc.set_threshold(OF_A_START)
    atexit.register(gc.freeze)


def collect_less() -> None:
    """Have it look where there is some, once a server is up."""
    gc.freeze()  # what a start has made stays: no later collection need look through it
    gc.set_threshold(*OF_A_SERVER)


class ManyObjects(click.Command):
    """A command that makes many objects and keeps them, and then ends."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run it, with the collector at work less often."""
        usual = gc.get_threshold()
        gc.set_threshold(OF_A_PLAY)
        try:
            return super().invoke(ctx)
        finally:
            gc.set_threshold(*usual)
