"""The command with a fault: a post is let go of before what it remembered is on the disk, which is slow.

    python letsgoearly.py [OPTION]...

One key is written with each commit, so that there is always more to write. The tests of kills have to find
it.
"""

from __future__ import annotations

from headrace.compiler.durablebucket import DurableBucket
from headrace.web.commands.cli import main

if __name__ == "__main__":
    take = DurableBucket.take
    DurableBucket.take = lambda self, most=1: take(self, 1)  # type: ignore[method-assign]
    DurableBucket.is_stored = True  # type: ignore[method-assign, assignment]
    main()
