"""What a server's settings say of its store."""

from __future__ import annotations

from headrace.compiler.schema.fields import Choice, Integer
from headrace.compiler.schema.records import Record, option


class StoreSettings(Record):
    """How what is kept on the disk is written."""

    sync: str = option(
        Choice(
            "power",
            "process",
            elsewhere={"power": "always full fsync", "process": "normal os"},
        ),
        "What is outlasted by what was confirmed: with `power` a machine that loses its power,"
        " with `process` the end of the process alone, at less cost.",
        default="power",
        elsewhere="synchronous fsync durability",
    )
    keep_free_bytes: int = option(
        Integer(),
        "Bytes of the disk that stay free: with less, nothing more is kept.",
        default=256 * 2**20,
        elsewhere="min_free_bytes reserve",
    )


AS_USUAL = StoreSettings()
