"""The mappings a `map` is made of: one file for each kind, found here.

`root.py` says what one is, `mapping.py` what those have in common that write one field.
"""

import pkgutil
from importlib import import_module

from headrace.operators.mappings.root import Mapping, Policy

for _each in pkgutil.iter_modules(__path__, f"{__name__}."):
    import_module(_each.name)

__all__ = ["Mapping", "Policy"]
