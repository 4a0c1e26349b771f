"""Drivers: imported before a component needs them, and not on the loop. Some take half a second."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from importlib import import_module

from headrace.compiler.clock import Clock
from headrace.compiler.component.pipelineconfig import PipelineConfig


async def import_drivers(configs: Iterable[PipelineConfig], clock: Clock) -> None:
    """Import what the components of some pipelines are going to use, in a thread."""
    named = {name: None for each in configs for part in each.components() for name in part.drivers}
    missing = [name for name in named if name not in sys.modules]
    if missing:
        with clock.outside():
            await asyncio.to_thread(_import, missing)


def _import(names: Iterable[str]) -> None:
    for name in names:
        import_module(name)
