"""What the scripts share that build something once for their user: sources, their key, one at a time."""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
PINS = REPOSITORY / "constraints.txt"

Files = Mapping[str, bytes]


class BuildError(Exception):
    """Something cannot be built, or has a fault; the message says what would help."""


def cache() -> Path:
    """Return the folder of headrace in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace"


def pin(package: str) -> str:
    """Return the pin of a package, `name==version`; empty if it has none."""
    pins = PINS.read_text().splitlines()
    return next((line for line in pins if line.startswith(f"{package}==")), "")


def sources(folder: Path, names: Iterable[str], leftovers: Collection[str] = ()) -> Files:
    """Return path and content of every file that takes part in a build."""
    found = (path for name in names for path in (folder / name, *(folder / name).rglob("*")))
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(found)
        if path.is_file() and path.suffix not in leftovers
    }


def key(files: Files, *made_with: str) -> str:
    """Return what these files, made into something with these tools, are called in the cache."""
    digest = hashlib.sha256(repr([*made_with]).encode())
    for name, content in files.items():
        digest.update(f"\n{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:20]


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Wait until nobody else has the lock, and keep it so; a process that dies lets go."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def stage(files: Files, there: Files, folder: Path) -> None:
    """Make what is ``there`` in a folder into these files, and write only what differs.

    The tools of a build go by the time of a file.
    """
    for name in there.keys() - files.keys():
        (folder / name).unlink()
    for name, content in files.items():
        if there.get(name) != content:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)


def forget_the_oldest(folder: Path, kept: int) -> None:
    """Delete the folders in a folder that nobody used for longest."""
    for each in sorted(folder.iterdir(), key=lambda each: each.stat().st_mtime)[:-kept]:
        shutil.rmtree(each)


def run(
    command: list[str], folder: Path, fault: str, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a folder; if it fails, the error is what it printed and what that means."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode:
        raise BuildError(f"{done.stdout.decode(errors='replace')}\n{fault}")
    return done
