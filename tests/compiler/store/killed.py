"""What becomes of a store when its process is killed, in this process."""

from __future__ import annotations

from headrace.compiler.store.database import log_of
from headrace.compiler.store.medium import DiskMedium
from headrace.compiler.store.openstore import Store


def kill(store: Store) -> None:
    """End a store as `kill -9` would: its files stay as they are now, and its lock is free."""
    disk = store._medium
    assert isinstance(disk, DiskMedium)
    store._stop_timers()
    if store._work is not None:
        store._work.cancel()
    store.condition.is_closing = True
    disk._thread.stop()
    disk._thread.join()
    file = disk._folder.file
    log = log_of(file)
    left = {each: each.read_bytes() for each in (file, log) if each.exists()}
    store.database.close()  # which empties the log, and removes it
    log.unlink(missing_ok=True)
    for each, content in left.items():
        each.write_bytes(content)
    disk._folder.close()
