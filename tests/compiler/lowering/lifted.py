"""Steps for the tests of lifting."""

from headrace.compiler.errors import BatchFailed


def refusing(batch):
    """Return the batch, unless it is to fail."""
    if "bad" in batch:
        raise BatchFailed(f"{len(batch)} messages failed")
    return [batch]
