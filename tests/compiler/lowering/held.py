"""A buffer for the tests of holding."""

from headrace.compiler.lowering.holding import Holding


def holding(*deliveries):
    held = Holding()
    for delivery in deliveries:
        held.take(delivery)
    return held
