"""What can go wrong with a store.

StoreRefused        it cannot be opened, and nothing was touched
StoreInUse          what was to be discarded is in use
StoreFailed         it takes nothing now: what was to be kept is not; tried again every second
└── StoreFull       there is no room
"""

from __future__ import annotations

from headrace.compiler.errors import HeadraceError


class StoreRefused(HeadraceError):
    """A store cannot be opened: another process has it, it is of a newer version, or not writable."""


class StoreInUse(HeadraceError):
    """A queue cannot be discarded, as somebody has it."""


class StoreFailed(HeadraceError):
    """Something could not be written. It is not kept, and what was kept before is."""


class StoreFull(StoreFailed):
    """There is no room for it: on the disk, or within the bound of what it is part of."""
