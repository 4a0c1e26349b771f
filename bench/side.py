"""One side of `bench/against.py`: runs scenarios of the tree it is started in, one at a time, as asked.

It is run by its path, in trees of any age, so of the tree it asks only for what `bench/` has always had. A
line of JSON names a scenario and the seconds of a sample; the answer is a line with what each row measured:
`[["filter5", 0, 7970000.0, "msg/s"]]`, with the row's number, since one scenario may have several.

For a scenario that is newer than a tree it is started here, with the path of the command to serve with.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

MEASURED = re.compile(r"(?P<rate>[0-9.e+]+) (?P<unit>\S*/(?:CPU )?\S*s\b)")
"""A rate, as `table.rate` writes it when it rounds nothing."""


def main(command: str | None = None) -> None:
    """Answer until nobody asks any more."""
    sys.path[0] = os.getcwd()  # and not where this file is
    answers, sys.stdout = sys.stdout, sys.stderr  # scenarios may print

    from bench import table
    from bench.__main__ import SCENARIOS
    from bench.measuring import Effort

    table.rate = repr  # type: ignore[assignment]
    if command is not None:
        from bench import servers

        servers.COMMAND = Path(command)
    for line in sys.stdin:
        asked = json.loads(line)
        effort = Effort(seconds=asked["seconds"], pairs=1)
        rows = [row for scenario in SCENARIOS[asked["scenario"]] for row in scenario(effort)]
        found = [
            [row.scenario, number, float(rate["rate"]), rate["unit"]]
            for number, row in enumerate(rows)
            if (rate := MEASURED.match(row.measured))
        ]
        print(json.dumps(found), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
