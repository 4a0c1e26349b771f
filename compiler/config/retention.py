"""How long history is kept: what settings may say, and what holds without them. Seconds."""

from __future__ import annotations

DEFAULT_RETENTION = 86_400
MOST_RETENTION = 604_800
