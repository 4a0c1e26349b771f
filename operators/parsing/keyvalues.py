"""The form of a text of pairs: ``a=1; b=2``."""

from __future__ import annotations

from collections.abc import Callable

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import JsonValue
from headrace.compiler.schema.records import Record, option
from headrace.operators.parsing.form import MOST_NAMES, Fields, TextForm
from headrace.operators.parsing.values import FieldValues, Mismatch
from headrace.operators.separator import Separator


class PairsForm(Record, TextForm):
    """Pairs of a name and a value. Blanks around both are dropped, and so is a pair of nothing."""

    word = "pairs"

    between: str = option(
        Separator(),
        "What stands between two pairs; at most 20 characters.",
        default=";",
        elsewhere="delimiter field_delimiter separator",
    )
    within: str = option(
        Separator(),
        "What stands between a name and its value, where it stands first; at most 20 characters.",
        default="=",
        elsewhere="assign key_value_delimiter",
    )

    def reader(self, values: FieldValues, ctx: Context) -> Callable[[str], Fields]:
        """Return what finds the pairs; of a name that comes twice the last one counts."""
        between, within, of = self.between, self.within, values.of
        is_plain = not values.types and not values.nulls

        def read(text: str) -> Fields:
            found: dict[str, JsonValue] = {}
            pairs = text.split(between, MOST_NAMES)
            if len(pairs) > MOST_NAMES:
                raise Mismatch(f"more than {MOST_NAMES:,} pairs")
            for pair in pairs:
                name, is_within, value = pair.partition(within)
                if is_within and (name := name.strip()):
                    value = value.strip()
                    found[name] = value if is_plain else of(name, value)
                elif is_within or name.strip():
                    what = "name" if is_within else "value"
                    raise Mismatch(f"a pair without a {what}")
            return found

        return read
