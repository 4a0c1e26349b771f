"""Packages of Node.js that tests run, fetched from npm once for a user and not for every checkout.

They are kept in `headrace/node/<package>-<version>` in the user's cache folder, which may be deleted at
any time.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.services.programs import Missing, program

VERSIONS = {
    "node-opcua": "2.182.2",
    "oidc-provider": "9.13.3",
    "openapi-typescript": "7.13.0",
    "pyright": "1.1.414",
    "yaml-language-server": "2.0.0",
}
BESIDE = {"openapi-typescript": {"typescript": "5.9.3"}}
"""What a package leaves to whoever installs it, and its version."""


def cache(package: str) -> Path:
    """Return the folder for this version of a package, and of what stands beside it."""
    user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    named = [part for each in _wanted(package) for part in each.split("@")]
    return Path(user) / "headrace" / "node" / "-".join(named)


def modules(package: str) -> Path:
    """Return the folder that programs find a package in, fetched now if there is none."""
    kept = cache(package)
    folder = kept / "node_modules"
    if not folder.exists():
        kept.mkdir(parents=True, exist_ok=True)
        with (kept / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Another worker may have fetched it meanwhile.
            if not folder.exists():
                _fetch(_wanted(package), folder)
    return folder


def _wanted(package: str) -> list[str]:
    """Return what npm is to install: `<package>@<version>`, and the same of what stands beside it."""
    versions = {package: VERSIONS[package], **BESIDE.get(package, {})}
    return [f"{name}@{version}" for name, version in versions.items()]


def _fetch(wanted: list[str], folder: Path) -> None:
    """Fill a folder; it is seen when it is complete."""
    npm = program("npm", "install Node.js 18 or newer, with npm")
    with TemporaryDirectory(dir=folder.parent) as made:
        # No scripts: nothing that was fetched runs before a test wants it to.
        quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"]
        done = subprocess.run(
            [npm, "install", *quiet, "--prefix", made, *wanted],
            capture_output=True,
            text=True,
            cwd=made,
        )
        if done.returncode != 0:
            raise Missing(f"{wanted[0]} cannot be fetched with npm: {done.stderr[-500:]}")
        os.replace(Path(made) / "node_modules", folder)
