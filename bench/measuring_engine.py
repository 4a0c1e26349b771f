"""The script engine that tells what evaluating alone takes.

The installed engine cannot: whatever its face offers crosses the border to Python. So the same sources
are compiled once more with the feature `measure` (`rhai-python/src/script/measure.rs`), into the cache
of `scripts/engine.py`, and only a process that measures with it imports it from there.
"""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from pathlib import Path

# A script finds what it shares with others beside itself.
sys.path.append(str(Path(__file__).parent.parent / "scripts"))

import cached
import engine

BUILT = engine.CACHE / "measuring"
"""One at a time: the engine of other sources makes room for this."""


def prefer() -> None:
    """Have this process import it as `rhai` from now on; compile it if that was not done yet.

    Raises:
        BuildError: there is no Rust toolchain that will do.
    """
    files = engine.sources(engine.ENGINE)
    folder = _folder(files)
    if not folder.exists():
        _build(files, folder)
    sys.path.insert(0, str(folder))


def is_built() -> bool:
    """Return whether it is there, for the sources as they are."""
    return _folder(engine.sources(engine.ENGINE)).exists()


def _folder(files: engine.Files) -> Path:
    return BUILT / engine.entry(files).name


def _build(files: engine.Files, folder: Path) -> None:
    rust = engine.toolchain()
    with cached.alone(engine.LOCK):
        shutil.rmtree(BUILT, ignore_errors=True)
        crate = engine.stage(files, rust)
        os.environ["MATURIN_PEP517_ARGS"] = (
            "--features measure"  # this process ends with a scenario
        )
        engine.compile_wheel(crate, BUILT)
        [wheel] = BUILT.glob("*.whl")
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(BUILT / "unpacked")
        (BUILT / "unpacked").rename(folder)
