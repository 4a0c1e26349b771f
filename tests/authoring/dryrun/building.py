"""A transform that does something when it is built."""

from headrace.compiler.component.families import Transform
from tests.stand_ins import with_attribute


class Building(Transform, kind="building"):
    """A transform that does what it is given when it is built."""

    def operator(self, ctx):
        return self.does(ctx)


def builds(operator):
    return with_attribute(Building(), "does", operator)
