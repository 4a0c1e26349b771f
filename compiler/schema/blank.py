"""Blank texts: those of which nobody sees anything, whatever they are made of.

Source: Unicode 16, `PropList.txt` (White_Space) and `DerivedCoreProperties.txt`
(Default_Ignorable_Code_Point: fillers of Hangul, joiners, marks of direction, selectors of variants).
U+2800 and U+1D159 are no members: they are drawn, as nothing.
"""

from __future__ import annotations

import re

_UNSEEN = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
)
_UNSEEN_BEYOND = r"\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
_SEEN = re.compile(rf"[^\s{_UNSEEN}{_UNSEEN_BEYOND}]")

SOMETHING_SEEN = rf"[^\s{_UNSEEN}]"
"""A pattern for JSON Schema. What lies beyond the first 65,536 characters has no spelling that all of its
readers know."""


def is_blank(text: str) -> bool:
    """Return whether nothing of a text can be seen."""
    return _SEEN.search(text) is None
