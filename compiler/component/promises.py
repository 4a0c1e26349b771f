"""What components promise about delivery, and how much of it is in memory where.

A component states it in one record, where the component is defined; `headrace explain` and docs/delivery.md
read it there. Each promise has a name, ``kafka.on_delivery.kill``, under which tests hold it: the kind, the
row (some options choose among several), and what it is about. Texts are Markdown, clauses that stand in a
table; their numbers come from the constants that the component itself obeys.

The records are not frozen, and have no methods that they do not need: what is generated for a class costs
every start and every `check` a fifth of a millisecond.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, Self, TypeAlias

from headrace.compiler.component.durable import durable_of

if TYPE_CHECKING:
    from headrace.compiler.component.families import Component

Promising: TypeAlias = "Component | type[Component]"
"""A component, or a kind of them."""

ON_DISK = ", and on the disk as many bytes as `durable` says"
"""Said of a kind of inputs; of one that is in a config its number is said."""
BYTES = "bytes"
"""The unit of a bound that is told as a size: ``64 MiB``."""


@dataclass(eq=False, repr=False)
class MemoryBound:
    """The most of something that is in memory at a time: ``1,000 records``.

    ``most`` is a number or the option that says it, by its wire name; ``of`` what is counted, in the
    plural; ``says`` follows: ``1 MiB of each partition``. A number of None is no bound.
    """

    most: int | str | None
    of: str
    says: str = ""
    is_inside: bool = False
    """Whether it bounds another side of what the bound before it counts, so that it is not added to it."""

    def given(self, component: Component) -> Self:
        """Return the bound as the options of a component have it."""
        if not isinstance(self.most, str):
            return self
        return replace(self, most=component.values()[self.most])

    def plus(self, more: int) -> Self:
        """Return a bound that is so much higher."""
        return replace(self, most=self.most + more) if isinstance(self.most, int) else self

    def told(self, component: Promising) -> str:
        """Return it in words: of a component what its options say, of a kind which option does."""
        if not isinstance(component, type):
            return str(self.given(component))
        if not isinstance(self.most, str):
            return str(self)
        default = replace(self, most=component.options()[self.most].default)
        noun = "" if self.of == BYTES else f" {self.of}"
        most = size(default.most) if self.of == BYTES else f"{default.most:,}"
        return f"`{self.most}`{noun}{self.says and ' '}{self.says}, {most}"

    def __str__(self) -> str:
        if self.most is None:
            counted = f"any number of {self.of}"
        elif self.of == BYTES:
            counted = size(self.most)
        else:
            noun = (
                self.of if self.most != 1 else self.of.removesuffix("s").replace("batche", "batch")
            )
            counted = f"{self.most:,} {noun}"
        return f"{counted} {self.says}".rstrip()


def size(number: int | str | None) -> str:
    """Return a number of bytes as people write it: ``64 MiB``."""
    assert isinstance(number, int)
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if number and not number % (1 << shift):
            return f"{number >> shift:,} {unit}"
    return f"{number:,} {BYTES}"


@dataclass(eq=False, repr=False, kw_only=True)
class Promises:
    """One row of what a component promises."""

    row: str
    """What the row is called in the names of its promises."""
    when: str = ""
    """With which options it counts, for a table: follows the kind."""
    is_repeatable: bool = False
    """Whether a batch that is sent again is there once all the same."""

    abouts: ClassVar[Mapping[str, str]] = {}
    """What the row promises something about: names of its texts, each with how it is said."""

    def texts(self, component: Promising) -> Iterator[tuple[str, str]]:
        """Yield what the promises are about, each with its text; empty where there is nothing to promise.

        With the numbers of a component, or for a kind with the options that say them.
        """
        yield from ((about, str(getattr(self, about))) for about in self.abouts)

    def said(self, about: str, text: str) -> str:
        """Return a promise as it is said by itself: ``comes twice: nothing``."""
        return self.abouts[about].format(text)

    def named(self, component: Promising) -> Iterator[tuple[str, str, str]]:
        """Yield the name of each promise, what it is about, and its text."""
        for about, text in self.texts(component):
            if text:
                yield f"{component.kind}.{self.row}.{about}", about, text


@dataclass(eq=False, repr=False)
class Lost:
    """What is lost of an input's messages by ``kill -9``."""

    text: str
    waiting: bool = False
    """What waits before the pipeline goes as well."""
    under_way: bool = True
    """What is in the pipeline goes."""

    def __str__(self) -> str:
        return self.text


NOTHING_LOST = Lost("nothing", under_way=False)
IN_PIPELINE = Lost("what was in the pipeline")
"""What waits before it comes again."""
TAKEN_IN = Lost("what was in the pipeline, and what waited before it", waiting=True)
"""Nobody keeps what has been taken in."""


@dataclass(eq=False, repr=False, kw_only=True)
class Waiting(Promises):
    """Where messages of an input wait while its pipeline does not keep up."""

    abouts: ClassVar[Mapping[str, str]] = {
        "waits": "in memory before it: at most {}",
        "beyond": "beyond that {}",
    }

    bounds: tuple[MemoryBound, ...]
    beyond: str
    """What happens to what comes when that is full."""
    joined: Literal["and", "or"] = "and"
    """Whether all of the bounds may be there at once, or the first that is reached counts."""
    more: str = ""
    """What the bounds leave out: follows them."""
    taken: int = 0
    """What is taken out of it at once, and has to be added to the first bound."""
    stored: MemoryBound | None = None
    """What is in memory of that which is on the disk as well; None: nothing is."""

    def texts(self, component: Promising) -> Iterator[tuple[str, str]]:
        """Yield how much waits, and what happens beyond that."""
        bounds = [each.told(component) for each in self.bounds]
        between = " or " if self.joined == "or" else ", and "
        kept = f", and {self.stored}{_on_disk(component)}" if self.stored is not None else ""
        yield "waits", between.join(bounds) + self.more + kept
        yield "beyond", self.beyond

    def given(self, component: Component) -> list[MemoryBound]:
        """Return the bounds that add up, as the options of an input have them.

        With what is taken out at once.
        """
        first, *others = [each.given(component) for each in self.bounds]
        first = first.plus(self.taken)
        if self.joined == "or":
            either = "".join(f" or {each}" for each in others)
            more = f" ({self.more.removeprefix(', ')})" if self.more else ""
            return [replace(first, says=f"{first.says}{either}{more}".strip())]
        return [first, *(each for each in others if not each.is_inside)]


def _on_disk(component: Promising) -> str:
    """Return how much of what an input takes in may be on the disk; it is durable, or a kind of inputs."""
    if isinstance(component, type) or (kept := durable_of(component.values()["durable"])) is None:
        return ON_DISK
    return f", and on the disk {size(kept.max_bytes)}"


@dataclass(eq=False, repr=False, kw_only=True)
class InputPromises(Promises):
    """What an input promises."""

    abouts: ClassVar[Mapping[str, str]] = {
        "away": "lost while the other side is away: {}",
        "kill": "lost by kill -9: {}",
        "twice": "comes twice: {}",
    }

    away: str
    """What is lost while its other side is away."""
    kill: Lost
    """What is lost by ``kill -9``."""
    twice: str
    """What comes twice."""
    waiting: Waiting | None
    """Where what comes waits; None: nothing comes faster than it is asked for."""
    is_acknowledged: bool = False
    """Whether somebody is told what has arrived, or is through."""


@dataclass(eq=False, repr=False, kw_only=True)
class OutputPromises(Promises):
    """What an output promises."""

    abouts: ClassVar[Mapping[str, str]] = {
        "written": "written when {}",
        "away": "while the other side is away: {}",
        "twice": "comes twice: {}",
        "held": "gathered, and in memory: {}",
    }

    written: str
    """When a batch counts as written."""
    away: str
    """What becomes of batches while the other side is away."""
    twice: str
    """What comes twice."""
    held: MemoryBound | None = None
    """What it gathers in memory: lost by a kill, unless its inputs bring it again."""

    def texts(self, component: Promising) -> Iterator[tuple[str, str]]:
        """Yield what it counts as written, and what it holds if it holds something."""
        yield from (("written", self.written), ("away", self.away), ("twice", self.twice))
        if self.held is not None:
            yield "held", self.held.told(component)


@dataclass(eq=False, repr=False, kw_only=True)
class TransformPromises(Promises):
    """What a transform promises: what it holds, which is not acknowledged."""

    abouts: ClassVar[Mapping[str, str]] = {"holds": "holds {}"}

    row: str = "transform"
    holds: str = ""
    """What it holds on purpose; nothing, if empty."""


HOLDS_NOTHING = TransformPromises()
