"""What a pipeline counts on every pass, watched or not."""

from __future__ import annotations


class Counters:
    """Messages in and out. Plain integers: they are written on every pass.

    ``inbound`` counts what the inputs delivered, after envelope and input buffer; ``outbound`` what
    leaves the transforms, once, whatever the number of outputs; ``skipped`` what arrived and is in
    neither: payloads that are not JSON, and messages that an envelope could not be put on.
    """

    __slots__ = ("inbound", "outbound", "skipped")

    def __init__(self) -> None:
        self.inbound = 0
        self.outbound = 0
        self.skipped = 0
