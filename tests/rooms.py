"""The rooms of the repository: the top-level folders that make up the import name `headrace`."""

from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
ROOMS = ("compiler", "operators", "connectors", "authoring", "web")
