"""The branches of a mapping: what it reads is there or missing, and a cast fails.

Under ``on_missing: error`` a missing field fails the batch, as many other faults do: nobody has chosen a
way for it, so it is no branch.
"""

from __future__ import annotations

from collections.abc import Iterator

from headrace.compiler.component.branches import FAILED, Branch, Took, altered
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import MISSING, Missing
from headrace.compiler.errors import BatchFailed
from headrace.compiler.schema.records import listed
from headrace.operators.mappings import Writing


def branches(mapping: Writing, on_missing: str, *path: str | int) -> Iterator[Branch]:
    """Yield the branches of a mapping that stands at a path of its map, under the policy of that."""
    if not mapping.sources:
        return
    sources = listed([*dict.fromkeys(mapping.sources)])
    verb = "was" if len({*mapping.sources}) == 1 else "were"
    yield Branch("found", f"{sources} {verb} never there", path)
    if mapping.fallback is not None:
        said = f"{sources} {verb} never missing, so 'default' was never written"
        yield Branch("default", said, path)
    elif on_missing != "error":
        said = f"{sources} {verb} never missing ('on_missing' is {on_missing})"
        yield Branch("on_missing", said, path)
    if mapping.converts:
        yield Branch(FAILED, f"the cast of {sources} never failed", path)


def counted(mapping: Writing, took: Took, *path: str | int) -> Writing:
    """Return a mapping that does the same and tells what became of it."""
    absent = "on_missing" if mapping.fallback is None else "default"

    def value(message: JsonValue, ctx: Context) -> JsonValue | Missing:
        try:
            found = mapping.value(message, ctx)
        except BatchFailed:
            took(FAILED, *path)
            raise
        took(absent if found is MISSING else "found", *path)
        return found

    return altered(mapping, value=value)
