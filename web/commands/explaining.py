"""`headrace explain`: what a config is built to, without opening anything."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from headrace.authoring.configfiles import catalogue
from headrace.authoring.explaining.explanation import PipelineNotThere, explained
from headrace.authoring.explaining.graphs import dot_of, mermaid_of
from headrace.authoring.explaining.texts import text_of
from headrace.compiler.errors import Refused
from headrace.compiler.text.diagnostics import printable
from headrace.web.commands.configs import load_or_tell, tell_refusal
from headrace.web.commands.exitcodes import FINE, NOTHING, REFUSED
from headrace.web.commands.printing import print_json, print_text

ExplainForm = Literal["text", "json", "mermaid", "dot"]


def explain(
    config: Path, pipelines: Sequence[str], form: ExplainForm, *, with_code: bool = False
) -> int:
    """Print what pipelines of a config are built to, and return the exit code."""
    if (loaded := load_or_tell(config, catalogue())) is None:
        return REFUSED
    try:
        told = explained(loaded, pipelines)
    except Refused as cause:
        tell_refusal(cause.diagnostics, loaded.sources)
        return REFUSED
    except PipelineNotThere as cause:
        print(printable(str(cause)), file=sys.stderr)
        return NOTHING
    if not told:
        print("no pipeline there to explain", file=sys.stderr)
        return NOTHING
    if form == "json":
        print_json([asdict(each, dict_factory=_worded) for each in told])
    elif form == "text":
        print_text(text_of(told, with_code=with_code))
    else:
        print_text(mermaid_of(told) if form == "mermaid" else dot_of(told))
    return FINE


def _worded(facts: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return facts by name; one that is a word of Python has a ``_`` behind it there alone."""
    return {name.removesuffix("_"): value for name, value in facts}
