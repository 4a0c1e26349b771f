"""What a test has measured, for whoever reads what it reports."""

from __future__ import annotations

from collections.abc import Callable

Figure = Callable[[str, object], None]
"""The fixture `figure`: reports something measured, by its name."""
