"""A transform `remember` as the tests write it."""

from functools import partial

import pytest

from headrace.compiler.lowering.chain import fuse, lower, plainly
from headrace.operators.remember import Remember

MODE = {"field": "mode", "as": "mode"}


SPEED = {"field": "speed", "as": "last_speed"}


either_way = pytest.mark.parametrize("lowering", [plainly, lower], ids=["plain", "generated"])


def remember(*values, **options):
    return Remember.load({"remember": list(values or [MODE, SPEED]), **options})


def generated(it, transform):
    """Return the generated form alone: it raises where it leaves a batch to the plain one."""
    return fuse([partial(transform.generate, ctx=it.ctx)], "p1 transforms[0]").loop


# --- conditions


FAST = {"type": "numeric", "field": "speed", "operator": "greater_than", "value": 5}


IS_AUTO = {"type": "string", "field": "state.mode", "operator": "equal_to", "value": "auto"}
