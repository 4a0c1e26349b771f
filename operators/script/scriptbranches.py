"""A script that tells what came of its runs, for the coverage of tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from headrace.compiler.component.branches import FAILED, Took
from headrace.compiler.delivery import Batch
from headrace.operators.script.compiling import CompiledScript

_T = TypeVar("_T")

EMITTED, SILENT = "emitted", "emitted nothing"
UNTAKEN = {
    EMITTED: "the script never emitted anything",
    SILENT: "the script always emitted something",
    FAILED: "the script never failed",
}
"""What is said of a way that no run took."""

_WORDS = re.compile(
    r"//[^\n]*|/\*.*?\*/"
    r'|"(?:\\.|[^"\\])*"|`[^`]*`|\'(?:\\.|[^\'\\])*\''
    r"|(?P<word>[A-Za-z_]\w*|[{};])|\S",
    re.DOTALL,
)


def ways(text: str) -> Iterator[str]:
    """Yield what can come of a run of a script, as far as its text shows.

    One that emits in a statement outside every block always emits, if nothing leaves it before. One that
    catches what fails has chosen what becomes of that.
    """
    words, always, depth, last = set[str](), False, 0, ";"
    for found in _WORDS.finditer(text):
        if found[0].startswith(("//", "/*")):
            continue
        word = found["word"] or ""
        words.add(word)
        always = always or (word == "emit" and depth == 0 and last in (";", "}"))
        depth += (word == "{") - (word == "}")
        last = word
    if "emit" in words or "Fn" in words:
        yield EMITTED
    if not always or not words.isdisjoint(("return", "exit")):
        yield SILENT
    if "try" not in words:
        yield FAILED


@dataclass
class CountedScript(CompiledScript):
    """A compiled script that tells which branches its runs took.

    The messages of a batch have a run each, and what they emit comes together. So of several messages it
    is only told what is certain: that fewer were emitted than came in, so some run emitted nothing.
    """

    took: Took = field(kw_only=True)

    def batches_of(self, run: Callable[..., list[Any] | _T], *given: Any) -> list[Batch] | _T:
        """Return what was emitted, having told."""
        runs = 1 if self.is_whole else len(self.host.given)
        made = super().batches_of(run, *given)
        if isinstance(made, list):
            runs -= self.left_out
            emitted = sum(map(len, made))
            if emitted:
                self.took(EMITTED)
            if emitted < runs:
                self.took(SILENT)
        return made
