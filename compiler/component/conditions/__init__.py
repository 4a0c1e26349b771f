"""Conditions on a message: one family for whatever asks, filters, mappings, gates, outputs and readers.

`condition.py` says what one is; `comparing.py`, `finding.py` and `logic.py` have the kinds;
`conditionlists.py` asks several.
"""

# Whoever reads conditions needs all of their kinds; in this order they are listed.
from headrace.compiler.component.conditions.comparing import (
    LengthCondition,
    NumericCondition,
    StringCondition,
)
from headrace.compiler.component.conditions.condition import Condition
from headrace.compiler.component.conditions.conditionlists import (
    all_counted,
    all_hold,
    keep_where,
    keeping,
    narrowed,
    outcomes,
    test_of_all,
    unmet,
    use_where,
    when_taken,
    where_all_hold,
)
from headrace.compiler.component.conditions.finding import (
    BooleanCondition,
    ExistsCondition,
    MatchesCondition,
    OneOfCondition,
)
from headrace.compiler.component.conditions.logic import (
    AllCondition,
    AnyCondition,
    NotCondition,
)

__all__ = [
    "AllCondition",
    "AnyCondition",
    "BooleanCondition",
    "Condition",
    "ExistsCondition",
    "LengthCondition",
    "MatchesCondition",
    "NotCondition",
    "NumericCondition",
    "OneOfCondition",
    "StringCondition",
    "all_counted",
    "all_hold",
    "keep_where",
    "keeping",
    "narrowed",
    "outcomes",
    "test_of_all",
    "unmet",
    "use_where",
    "when_taken",
    "where_all_hold",
]
