"""What tells configs apart: where they differ, as a plan names it, and nothing of what is in them."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.compiler.runtime.configdigest import (
    MOST_APART,
    changed_since,
    digest_of,
    version_in,
)

CONFIG = {
    "id": "p",
    "inputs": [{"type": "http"}],
    "transforms": [{"type": "map", "url": "s3cret"}, {"type": "filter"}],
    "outputs": [],
    "dead_letters": True,
}


def changed(**settings: Any) -> list[str]:
    then, now = digest_of("v1", CONFIG), digest_of("v2", CONFIG | settings)
    return changed_since([then], now)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, []),
        ({"id": "q"}, []),
        ({"transforms": [{"type": "map"}, {"type": "filter"}]}, ["transforms[0]"]),
        ({"transforms": [{"type": "filter"}]}, ["transforms"]),
        ({"transforms": []}, ["transforms"]),
        ({"outputs": [{"type": "stdout"}]}, ["outputs"]),
        ({"dead_letters": {"max_bytes": 1}}, ["dead_letters"]),
        ({"state": {"bucket": "b"}}, ["state"]),
        ({"inputs": [{"type": "nats"}], "state": {}}, ["inputs[0]", "state"]),
    ],
)
def test_what_has_changed_is_named_as_in_a_plan(settings: Any, told: list[str]) -> None:
    assert changed(**settings) == told


def test_a_setting_that_is_gone_is_named() -> None:
    now = digest_of("v2", {key: CONFIG[key] for key in ("inputs", "transforms", "outputs")})

    assert changed_since([digest_of("v1", CONFIG)], now) == ["dead_letters"]


def test_of_several_each_is_named_once_and_of_a_version_alone_none() -> None:
    now = digest_of("v3", CONFIG | {"state": {}})
    then = [digest_of("v1", CONFIG), digest_of("v2", CONFIG | {"outputs": [1]}), "v0", None]

    assert changed_since(then, now) == ["state", "outputs"]


def test_nothing_of_a_config_is_in_it_and_it_is_short() -> None:
    long = digest_of("v1", CONFIG | {"outputs": [{"n": n} for n in range(MOST_APART + 1)]})

    assert version_in(long) == "v1"
    assert "s3cret" not in long
    assert len(long) < 120
    assert changed_since([long], digest_of("v2", CONFIG)) == ["outputs"]
