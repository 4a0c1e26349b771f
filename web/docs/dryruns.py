"""The page of dry runs: requests as files beside it, and what they are answered."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from headrace.authoring.configfiles import catalogue
from headrace.authoring.dryrun import run
from headrace.authoring.dryrun.run import DryRunLimits
from headrace.authoring.playing.playedenvironment import Surroundings
from headrace.compiler.jsontext import encode
from headrace.compiler.runtime import limitedthreads
from headrace.compiler.runtime.limitedthreads import TimeLimit
from headrace.web.docs.markdown import RegionTexts, fenced, table
from headrace.web.resources import dryruns
from headrace.web.resources.dryruns import Answered, DryRun, of_chain, of_script
from headrace.web.resources.dryruns import dryrun_answers as dryanswers
from headrace.web.resources.dryruns import dryrun_requests as dryrequests

WHEN = datetime(2026, 3, 1, 8, tzinfo=UTC)
_WIDTH = 100

EXAMPLES: dict[str, tuple[str, Answered, dict[str, Any]]] = {
    "hot": ("hot", of_chain, {}),
    "advanced": ("hot", of_chain, {"advance_seconds": 30, "attribution": True}),
    "given": ("given", of_chain, {}),
    "broken": ("broken", of_chain, {}),
    "unbuildable": ("unbuildable", of_chain, {}),
    "script": ("script", of_script, {}),
    "typo": ("typo", of_script, {}),
}
"""By the name on the page: the file, who answers it, and what is asked besides."""


LIMITS = (
    ("messages that a chain is tried with; a script takes all", str(run.MOST_MESSAGES)),
    ("transforms of a chain", str(dryrequests.MOST_TRANSFORMS)),
    (
        "time, from the reading of a request to the writing of its answer",
        f"{limitedthreads.MOST_SECONDS:g} s",
    ),
    ("dry runs at once; others wait for their turn", str(limitedthreads.AT_ONCE)),
    ("dry runs that wait; who comes then is answered 503", str(limitedthreads.MOST_WAITING)),
    ("keys of the bucket", f"{DryRunLimits.keys:,}"),
    ("keys that are copied of a bucket that runs, the latest", f"{dryruns.MOST_COPIED:,}"),
    ("bytes of them, about", f"{dryruns.MOST_COPIED_BYTES // 2**20} MiB"),
    ("keys that come back, the latest first", str(dryanswers.MOST_ENTRIES)),
    ("messages that a stage may hand on", f"{DryRunLimits.handed_on:,}"),
    ("reasons that `left` tells of one message", str(dryanswers.MOST_REASONS)),
    ("messages that are shown of a stage", f"{dryanswers.MOST_SHOWN:,}"),
    ("messages and values in an answer, about", f"{dryanswers.MOST_BYTES // 2**20} MiB"),
)
"""What a dry run meets, and the bound it has."""


def pages(docs: Path) -> dict[str, RegionTexts]:
    """Return the generated parts of the page."""
    examples = {name: example(docs / "dry-runs", name) for name in EXAMPLES}
    return {"dry-runs.md": {**examples, "limits": table(("what", "limit"), LIMITS)}}


def example(folder: Path, name: str) -> str:
    """Return a request, unless it was shown before, and its answer."""
    file, answered, besides = EXAMPLES[name]
    text = (folder / f"{file}.json").read_bytes()
    shown = fenced("json", text.decode())
    if besides:
        text = encode({**json.loads(text), **besides})
        added = ", ".join(f'"{key}": {json.dumps(value)}' for key, value in besides.items())
        shown = f"With `{added}` besides:"
    dry_run = DryRun(text, catalogue(), Surroundings(), WHEN)
    return (
        f"{shown}\n\n{fenced('json', written(json.loads(encode(answered(dry_run, TimeLimit())))))}"
    )


def written(value: Any, indent: str = "") -> str:
    """Return a value as JSON; what is short is written on one line."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent + line) <= _WIDTH or not isinstance(value, dict | list) or not value:
        return line
    write = partial(written, indent=indent + "  ")
    begin, end = "{}" if isinstance(value, dict) else "[]"
    members = (
        [f"{json.dumps(key)}: {write(inner)}" for key, inner in value.items()]
        if isinstance(value, dict)
        else [*map(write, value)]
    )
    inside = ",\n".join(f"{indent}  {member}" for member in members)
    return f"{begin}\n{inside}\n{indent}{end}"
