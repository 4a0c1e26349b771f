"""What a component may look at while the config it is in is checked, beside its own options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class CheckContext:
    """What a component stands on: known before anything is built, and the same when it is built.

    - ``base``: the directory that files are named from, that of the config; None without a config
      file, and then there are none.
    - ``has_state``: whether the pipeline names a bucket of its own.
    - ``data_dir``: the root of all files that are written; None where nobody has said which it is.
    """

    base: Path | None = None
    has_state: bool = False
    data_dir: Path | None = None
