"""Generated messages, to try a pipeline with."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Iterable, Sequence
from random import Random
from typing import ClassVar

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.durableinput import DurableInput, durably
from headrace.compiler.component.families import FedBy
from headrace.compiler.component.promises import IN_PIPELINE, InputPromises
from headrace.compiler.delivery import JsonValue
from headrace.compiler.edges import Arrival, Source
from headrace.compiler.schema.fields import Choice, Integer, Number
from headrace.compiler.schema.records import option

WORDS = (
    *("a", "above", "after", "along", "and", "below", "bridge", "clear", "cold", "dam", "deep"),
    *("field", "flow", "gate", "high", "hill", "in", "into", "level", "lock", "mill", "near"),
    *("of", "over", "pond", "pours", "rain", "rises", "river", "runs", "slow", "spring", "still"),
    *("stone", "stream", "that", "the", "through", "toward", "turns", "under", "valley", "wheel"),
)


INPUT = InputPromises(
    row="input",
    away="",
    kill=IN_PIPELINE,
    twice="nothing",
    waiting=None,
)
DURABLE_INPUT = durably(INPUT)


class DummyInput(
    DurableInput, kind="dummy", listed=1, elsewhere="demo demo_logs fake generate generator sine"
):
    """Generate one message per interval, with `value` and `current_time`.

    The first one comes after the first interval. `value` is a sine over time, or a random sentence;
    `current_time` is RFC 3339 in UTC. An interval that falls into a stall is left out, not made up
    for.

    Units: seconds.
    """

    promises: ClassVar = (INPUT, DURABLE_INPUT)
    fed_by: ClassVar[FedBy] = "clock"
    is_raw: ClassVar[bool] = False

    duration: int = option(
        Integer(min=1, max=10**9),
        "Seconds between two messages.",
        elsewhere="every interval interval_secs rate seconds",
    )
    amplitude: float = option(
        Number(min=-1e300, max=1e300),
        "Peak of the sine (payload `number`).",
        default=1,
        elsewhere="peak",
    )
    payload: str = option(
        Choice("number", "text", elsewhere={"number": "float json sine", "text": "string"}),
        "What `value` is: a sine over time, or a random sentence.",
        default="number",
        elsewhere="format",
    )
    period: float = option(
        Number(max=1e300),
        "Seconds that one turn of the sine takes; with 0 or less the value is always 0.",
        default=60,
        elsewhere="wavelength",
    )

    def kept_as(self) -> str:
        """Return its kind: it reads nothing that would tell one from another."""
        return self.kind

    def source(self, ctx: Context) -> Source:
        """Start the sine."""
        return Dummy(self, ctx.clock, ctx.random)

    def hands_on(self) -> Iterable[str]:
        """Return the two fields."""
        return ("current_time", "value")


class Dummy(Source):
    """A message whenever an interval is over."""

    is_raw: ClassVar[bool] = False

    def __init__(self, config: DummyInput, clock: Clock, random: Random) -> None:
        self._config = config
        self._clock, self._random = clock, random
        self._built_at = clock.monotonic()

    async def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        """Yield one message per interval, on a grid that no delay shifts."""
        clock, interval = self._clock, self._config.duration
        due = clock.monotonic() + interval
        while True:
            await clock.sleep(max(0.0, due - clock.monotonic()))
            yield [([{"current_time": clock.timestamp(), "value": self._value()}], None)]
            due += interval * max(1, math.ceil((clock.monotonic() - due) / interval))

    def _value(self) -> JsonValue:
        if self._config.payload == "text":
            return sentence(self._random)
        return sine(
            self._clock.monotonic() - self._built_at, self._config.amplitude, self._config.period
        )


def sine(seconds: float, amplitude: float, period: float) -> float:
    """Return the sine at a moment; 0 when it has no period."""
    if period <= 0:
        return 0.0
    # The turns that are over say nothing; with them a tiny period would overflow.
    return amplitude * math.sin(math.tau * (math.fmod(seconds, period) / period))


def sentence(random: Random) -> str:
    """Return six to twelve random words: a capital first letter and a full stop."""
    words = random.choices(WORDS, k=random.randint(6, 12))
    return " ".join(words).capitalize() + "."
