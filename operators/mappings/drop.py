"""The mapping that removes fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.compiler.code import Code
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import DottedPath as Path
from headrace.compiler.schema.fields import MessageField
from headrace.compiler.schema.records import option
from headrace.compiler.schema.structures import ListOf
from headrace.operators.keptfields import Kept, WrittenField
from headrace.operators.mappings.root import Mapping, Policy, Rewrite


class Drop(Mapping, tag="drop", listed=70, elsewhere="del delete exclude remove unset"):
    """Removes fields. What is not there is no error; objects that become empty stay."""

    from_: tuple[str, ...] = option(
        ListOf(MessageField(), at_least=1),
        "Fields to remove.",
        elsewhere="field fields keys path paths",
    )

    @property
    def removes(self) -> Sequence[str]:
        """All of them."""
        return self.from_

    def change(self, message: JsonValue, on_missing: str, ctx: Context) -> Rewrite | None:
        """Remove one after the other."""

        def removed(written: dict[str, Any]) -> Any:
            for path in map(Path, self.from_):
                written = path.remove(written)
            return written

        return removed

    def generate(self, code: Code, ctx: Context, policy: Policy) -> Sequence[Kept]:
        """Remove one after the other."""
        paths = [*map(Path, self.from_)]
        for path in paths if policy.is_seen else ():
            code.remove(path)
        return [WrittenField(path, None) for path in paths]
