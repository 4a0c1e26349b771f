"""The mappings a `map` is made of: one file for each kind, found here; `mapping.py` says what one is."""

import pkgutil
from importlib import import_module

from headrace.operators.mappings.drop import Drop
from headrace.operators.mappings.mapping import Mapping, Writing, present

for _each in pkgutil.iter_modules(__path__, f"{__name__}."):
    import_module(_each.name)

__all__ = ["Drop", "Mapping", "Writing", "present"]
