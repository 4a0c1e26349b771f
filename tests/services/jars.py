"""Kafka's jars, fetched from Maven Central once for a user and not once for every checkout.

They are kept in `headrace/kafka/<version>` in the user's cache folder, which may be deleted at any
time: `jars/`, and `classes.jsa`, in which Java finds Kafka's classes prepared.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.services.programs import Missing

VERSION = "4.3.1"
PARTS = (f"org.apache.kafka:kafka_2.13:{VERSION}", "org.slf4j:slf4j-simple:1.7.36")


def cache() -> Path:
    """Return the folder for this version of Kafka."""
    user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(user) / "headrace" / "kafka" / VERSION


def jars() -> Path:
    """Return the folder with all jars, fetched now if there is none."""
    folder = cache() / "jars"
    if not folder.exists():
        with alone():
            # Another worker may have fetched them meanwhile.
            if not folder.exists():
                _fetch(folder)
    return folder


@contextmanager
def alone() -> Iterator[None]:
    """Wait until nobody else fills the cache, and keep it so; a process that dies lets go."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(folder: Path) -> None:
    """Fill a folder with the jars; it is seen when it is complete."""
    with TemporaryDirectory(dir=folder.parent) as made:
        resolved = _resolved(Path(made))
        (Path(made) / "jars").mkdir()
        for jar in resolved.rglob("*.jar"):
            shutil.copy(jar, Path(made) / "jars")
        os.replace(Path(made) / "jars", folder)


def _resolved(folder: Path) -> Path:
    """Return a folder with the jars somewhere in it."""
    try:
        from jgo.env import EnvironmentBuilder
        from jgo.maven import MavenContext, PythonResolver
    except ImportError as cause:
        raise Missing("Kafka is fetched by the Python package 'jgo': install it") from cause
    central = MavenContext(repo_cache=folder / "repository", resolver=PythonResolver())
    builder = EnvironmentBuilder(context=central, cache_dir=folder / "resolved")
    try:
        return Path(builder.from_endpoint("+".join(PARTS)).path)
    except (OSError, RuntimeError) as cause:
        raise Missing(f"Kafka {VERSION} cannot be fetched from Maven Central: {cause}") from cause
