"""How many examples Hypothesis tries: a fifth of what a test asks for, or, by the profile `full`, all."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings

ALL = 100
"""The examples by default of the profile in which a test gets what it asks for."""


def examples(count: int, **more: Any) -> settings:
    """Return the settings of a test that wants so many, and at least one, of the profile of this run."""
    return settings(max_examples=max(1, count * settings().max_examples // ALL), **more)


def register() -> None:
    """Make the two profiles known, and choose the smaller where the command line has not said."""
    # Whether a machine is busy says nothing about a property: how long an example takes is no failure.
    unhurried = settings(
        deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.register_profile("few", unhurried, max_examples=ALL // 5)
    settings.register_profile("full", unhurried, max_examples=ALL)
    if settings.get_current_profile_name() != "full":
        settings.load_profile("few")
