"""Buckets as a config declares them, for tests that put something into them."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.compiler.buckets import Bounds, Buckets
from headrace.compiler.language.states import BucketDeclaration
from headrace.compiler.runtime.engine import Engine


def declare(engine: Engine, declared: Mapping[str, Bounds]) -> Buckets:
    """Have exactly these buckets, and return them."""
    engine.state.declare(declared)
    engine.declarations = {
        name: BucketDeclaration(max_keys=bounds.max_keys, idle_timeout_secs=bounds.idle_seconds)
        for name, bounds in declared.items()
    }
    return engine.state
