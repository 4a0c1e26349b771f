"""The months as logs write them."""

_WORDS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

MONTHS = {word: f"{number:02}" for number, word in enumerate(_WORDS, 1)}
"""The digits of each month by its word."""
