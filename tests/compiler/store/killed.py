"""What becomes of a store when its process is killed, in this process."""

from __future__ import annotations

from headrace.compiler.store.database import log_of
from headrace.compiler.store.writer import Store


def kill(store: Store) -> None:
    """End a store as `kill -9` would: its files stay as they are now, and its lock is free."""
    assert store._folder is not None
    assert store._thread is not None
    store._stop_timers()
    if store._work is not None:
        store._work.cancel()
    store._is_closing = True
    store._thread.stop()
    store._thread.join()
    file = store._folder.file
    log = log_of(file)
    left = {each: each.read_bytes() for each in (file, log) if each.exists()}
    store._database.close()  # which empties the log, and removes it
    log.unlink(missing_ok=True)
    for each, content in left.items():
        each.write_bytes(content)
    store._folder.close()
