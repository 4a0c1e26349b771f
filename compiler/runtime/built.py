"""What a pipeline is made of once it is built, before anything runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from reactivex import Observable

from headrace.compiler.delivery import Delivery
from headrace.compiler.runtime.outputs import Writer
from headrace.compiler.runtime.pump import Pump
from headrace.compiler.runtime.registrations import Registrations


@dataclass(slots=True)
class BuiltComponents(Registrations):
    """The built components of one pipeline: cold, and owing nothing to anybody yet."""

    pumps: list[Pump] = field(default_factory=list)
    chain: Observable[Delivery] | None = None
    writers: list[Writer] = field(default_factory=list)
