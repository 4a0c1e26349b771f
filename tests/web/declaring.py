"""Buckets as a config declares them, for tests that put something into them."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.compiler.buckets import Bounds, Buckets
from headrace.compiler.component.states import BucketDeclaration
from tests.web.jsonengine import JsonEngine


def declare(engine: JsonEngine, declared: Mapping[str, Bounds]) -> Buckets:
    """Have exactly these buckets, and return them."""
    inner = engine.inner
    inner.state.declare(declared)
    inner.changes.declarations = {
        name: BucketDeclaration(max_keys=bounds.max_keys, idle_timeout_secs=bounds.idle_seconds)
        for name, bounds in declared.items()
    }
    return inner.state
