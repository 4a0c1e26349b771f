"""Map the rooms, which are top-level folders, into the one import name `headrace`: `package/` is its own.

Everything else about the distribution is in pyproject.toml.
"""

from setuptools import find_packages, setup

ROOMS = ("compiler", "operators", "connectors", "authoring", "web")
FOLDERS = find_packages(include=[pattern for room in ROOMS for pattern in (room, f"{room}.*")])

setup(
    packages=["headrace", *(f"headrace.{folder}" for folder in FOLDERS)],
    package_dir={"headrace": "package", **{f"headrace.{room}": room for room in ROOMS}},
)
