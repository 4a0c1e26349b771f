"""The months as logs write them."""

from headrace.compiler.times.directives import MONTHS

MONTH_DIGITS = {name[:3]: f"{number:02}" for number, name in enumerate(MONTHS, 1)}
"""The digits of each month by the word that a log has for it."""
