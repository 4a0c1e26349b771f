"""What a component may look at while the config it is in is checked, beside its own options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.compiler.component.families import Component


@dataclass(frozen=True, slots=True)
class CheckContext:
    """What a component stands on: known before anything is built, and the same when it is built.

    - ``base``: the directory that files are named from, that of the config; None without a config
      file, and then there are none.
    - ``has_state``: whether the pipeline names a bucket of its own.
    - ``data_dir``: the root of all files that are written; None where nobody has said which it is.
    - ``has_store``: whether something in the config is kept in the store below that.
    - ``connections``: what is filed, by name, as far as that is known; a class where it has faults.
    """

    base: Path | None = None
    has_state: bool = False
    data_dir: Path | None = None
    has_store: bool = False
    connections: Mapping[str, Component | type[Component]] = field(default_factory=dict)
