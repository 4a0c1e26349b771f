"""What is told of the buckets of a pipeline at a restart: those that are durable are kept."""

from __future__ import annotations

import pytest

from tests.authoring.explaining.configs import explained_text

CONFIG = """
state: {{ machines: {{ {declared} }} }}
pipelines:
  - id: p
    inputs: [{{ type: http }}]
    transforms: [{{ type: remember, remember: [{{ field: mode, as: mode }}] }}]
    state: {{ bucket: machines, key: m }}
"""
KEPT = "keeps bucket 'machines'; what comes again is remembered again, and counted again"


@pytest.mark.parametrize(
    ("declared", "restart"),
    [("durable: true", KEPT), ("durable: false", "empties bucket 'machines'")],
)
def test_a_restart_keeps_a_durable_bucket_and_empties_another(declared: str, restart: str) -> None:
    [told] = explained_text(CONFIG.format(declared=declared))

    assert restart in told.restart
