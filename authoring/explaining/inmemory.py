"""How much of a pipeline is in memory where, and what becomes of it: sums over what its parts declare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from headrace.compiler.component.families import Input, Output
from headrace.compiler.component.inputbuffers import Holder
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.component.promises import MemoryBound
from headrace.compiler.runtime.pump import most_under_way

BATCHES, MESSAGES = "batches", "messages"


@dataclass(frozen=True, slots=True)
class Amount:
    """The most of something that is in memory.

    ``most`` is None where nothing bounds it; ``says`` is what its bound says beside the number,
    ``state`` what becomes of it (``on their way``), ``where`` the pipeline that reads this one and has it.
    """

    most: int | None
    of: str
    says: str = ""
    state: str = ""
    where: str = ""
    times: int = 1
    """How often it is there: what a bound says beside its number does not add up."""

    @classmethod
    def bounded(cls, bound: MemoryBound, where: str = "") -> Amount:
        """Return what a part declares, its options looked up."""
        assert not isinstance(bound.most, str)
        return cls(bound.most, bound.of, bound.says, where=where)

    def plus(self, other: Amount) -> Amount:
        """Return both of them, which are of one kind."""
        if self.says:
            return replace(self, times=self.times + other.times)
        if self.most is None or other.most is None:
            return replace(self, most=None)
        return replace(self, most=self.most + other.most)

    def __str__(self) -> str:
        counted = str(MemoryBound(self.most, self.of, self.says))
        counted = counted if self.times == 1 else f"{self.times} x ({counted})"
        within = f"in '{self.where}'" if self.where else ""
        return " ".join(each for each in (counted, self.state, within) if each)


@dataclass(frozen=True, slots=True)
class InMemory:
    """The most that is in memory for one pipeline, and what of it a kill or a stop changes."""

    waits: list[Amount]
    """All of it."""
    kill_loses: list[Amount]
    """What of it nobody has, and nobody sends again."""
    let_go_early: list[Amount]
    """What is held on purpose, and goes through early when the server is stopped in order."""


def in_memory(config: PipelineConfig, readers: Iterable[tuple[str, Input]]) -> InMemory:
    """Return how much may be in memory; ``readers`` are the inputs that read it, with their pipelines."""
    before = [(each, [*_before(each)]) for each in config.inputs]
    under_way = [(each, _under_way(each)) for each in config.inputs]
    held = [*_held(config)]
    in_outputs = [*_in_outputs(config.outputs)]
    inboxes = [
        Amount.bounded(each.given(reader), id)
        for id, reader in readers
        if (waiting := reader.promised().waiting) is not None
        for each in waiting.bounds
    ]
    lost = {id(each): each.promised().kill for each in config.inputs}
    goes = any(each.under_way for each in lost.values())
    return InMemory(
        waits=_summed(
            [
                *(amount for _, amounts in before for amount in amounts),
                *_stored(config.inputs),
                *(amount for _, amount in under_way),
                *held,
                *in_outputs,
                *inboxes,
            ]
        ),
        kill_loses=_summed(
            [
                *(
                    amount
                    for each, amounts in before
                    for amount in amounts
                    if lost[id(each)].waiting
                ),
                *(
                    replace(amount, state="on their way")
                    for each, amount in under_way
                    if lost[id(each)].under_way
                ),
                *(replace(each, state="held") for each in held if goes),
                *(in_outputs if goes else ()),
            ]
        ),
        let_go_early=_summed(held),
    )


def _before(component: Input) -> Iterator[Amount]:
    """Yield what waits before the pipeline."""
    waiting = component.promised().waiting
    yield from () if waiting is None else map(Amount.bounded, waiting.given(component))


def _stored(inputs: Iterable[Input]) -> Iterator[Amount]:
    """Yield what is in memory of that which is on the disk as well."""
    for each in inputs:
        waiting = each.promised().waiting
        if waiting is not None and waiting.stored is not None:
            yield Amount.bounded(waiting.stored)


def _under_way(component: Input) -> Amount:
    """Return how many batches of an input are in the pipeline at once."""
    max_batch = getattr(component, "max_batch", 1)
    return Amount(most_under_way(is_raw=component.is_raw, max_batch=max_batch), BATCHES)


def _held(config: PipelineConfig) -> Iterator[Amount]:
    """Yield what is held on purpose, by the inputs' own buffers and by transforms."""
    buffers = [each.buffer.holder() for each in config.inputs if each.buffer is not None]
    for holder in [*buffers, *(each.holder() for each in config.transforms)]:
        if holder is not None:
            yield Amount(holder.most, MESSAGES, _unbounded(holder))


def _unbounded(holder: Holder) -> str:
    """Return what bounds a holder that no number bounds."""
    return f"that come in {holder.seconds:,} s" if holder.most is None else ""


def _in_outputs(outputs: Iterable[Output]) -> Iterator[Amount]:
    """Yield what they gather in memory."""
    for each in outputs:
        if (held := each.promised().held) is not None:
            yield Amount.bounded(held.given(each))


def _summed(amounts: Iterable[Amount]) -> list[Amount]:
    """Return the amounts, those of one kind added up, in the order in which each kind comes first."""
    sums: dict[tuple[object, ...], Amount] = {}
    for each in amounts:
        kind = (each.most if each.says else "", each.of, each.says, each.state, each.where)
        sums[kind] = sums[kind].plus(each) if kind in sums else each
    return [*sums.values()]
