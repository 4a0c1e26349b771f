"""Map the rooms, which are top-level folders, into the one import name `headrace`.

Everything else about the distribution is in pyproject.toml.
"""

from setuptools import find_packages, setup

ROOMS = ("compiler", "operators", "connectors", "authoring", "web")
FOLDERS = find_packages(include=[pattern for room in ROOMS for pattern in (room, f"{room}.*")])

setup(
    packages=[f"headrace.{folder}" for folder in FOLDERS],
    package_dir={f"headrace.{room}": room for room in ROOMS},
)
