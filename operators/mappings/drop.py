"""The mapping that removes fields."""

from __future__ import annotations

from headrace.compiler.schema.fields import MessageField
from headrace.compiler.schema.records import option
from headrace.compiler.schema.structures import ListOf
from headrace.operators.mappings.mapping import Mapping


class Drop(Mapping, tag="drop", listed=70, elsewhere="del delete exclude remove unset"):
    """Removes fields. What is not there is no error; objects that become empty stay."""

    from_: tuple[str, ...] = option(
        ListOf(MessageField(), at_least=1),
        "Fields to remove.",
        elsewhere="field fields keys path paths",
    )
