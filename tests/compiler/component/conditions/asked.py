"""Conditions as a config has them, asked of messages both ways: plainly, and by generated code."""

from headrace.compiler.component.conditions import Condition, all_hold, where_all_hold
from headrace.compiler.lowering.chain import fuse
from headrace.compiler.schema.structures import ListOf
from headrace.compiler.schema.variants import VariantOf
from tests.doubles import refusals

CONDITIONS = ListOf(VariantOf(Condition))


def conditions(*documents):
    """Return conditions as a config has them."""
    return CONDITIONS.read(list(documents))


def refused(document):
    """Return why a condition is refused."""
    untyped = {key: value for key, value in document.items() if key != "type"}
    return refusals(Condition.variants[document["type"]], untyped)


def numeric(operator, value, field="a"):
    return {"type": "numeric", "field": field, "operator": operator, "value": value}


def string(operator, value, field="a", **more):
    return {"type": "string", "field": field, "operator": operator, "value": value, **more}


def generated(asked):
    """Return what generated code lets through, as a function over a batch."""

    def noting(code):
        code.before("through = []")
        with where_all_hold(asked, code):
            code.line(f"through.append({code.message})")
        code.returns("through")

    return fuse([noting], "p1 transforms[0]").loop


def hold(message, *documents):
    """Return whether conditions hold for a message, by the plain test and by generated code."""
    asked = conditions(*documents)
    plain = all_hold(asked)(message)
    if type(message) is dict:  # generated code leaves everything else to the plain steps
        assert bool(generated(asked)([message])) == plain
    return plain


def exists(field="a"):
    return {"type": "exists", "field": field}


def boolean(field="a", **value):
    return {"type": "boolean", "field": field, **value}


def one_of(*values, field="a"):
    return {"type": "one_of", "field": field, "values": [*values]}


def matches(regex, field="a"):
    return {"type": "matches", "field": field, "regex": regex}


def of(word, *conditions):
    """Return ``any``, ``all`` or ``not`` of some conditions."""
    return {"type": word, "conditions": [*conditions]}
