"""The mappings a `map` is made of, one file for each: called as its `type`, imported when one is asked for.

`root.py` says what one is, `mapping.py` what those have in common that write one field.
"""

from headrace.operators.mappings.root import Mapping, Policy

__all__ = ["Mapping", "Policy"]
