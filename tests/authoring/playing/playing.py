"""Plays of configs that are written in a test."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from headrace.authoring.configfiles import catalogue
from headrace.authoring.playing.played import Played
from headrace.authoring.playing.player import play
from headrace.authoring.playing.scenario import Arriving, GivenArrival, Scenario
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.config.program import Program, load_program
from headrace.compiler.text.documents import read
from headrace.compiler.text.render import render


@cache
def known() -> Catalogue:
    """Return every component, scanned once."""
    return catalogue()


def program(config: str, base: Path | None = None) -> Program:
    """Return what a config says; connections are not looked up, and nothing may be wrong with it."""
    made, said = load_program(read(config.encode(), "config.yaml", "yaml"), known(), base=base)
    assert made is not None, render(said, style="plain")
    return made


def at(moment: float, to: str, *messages: Any, **meta: Any) -> GivenArrival:
    """Return that messages arrive as one batch at the first input of a pipeline."""
    return GivenArrival(moment, (to, 0), Arriving([*messages], meta))


def played(config: str, *steps: Any, until: float = 0.0, **options: Any) -> Played:
    """Play steps."""
    extra = {key: options.pop(key) for key in ("base", "tapped", "lowering") if key in options}
    return play(program(config, extra.get("base")), Scenario(steps, until, **options), **extra)


def only(field: str, came: Sequence[tuple[float, list[Any]]]) -> list[tuple[float, list[Any]]]:
    """Return one field of what came, beside its moment."""
    return [(moment, [each[field] for each in batch]) for moment, batch in came]
