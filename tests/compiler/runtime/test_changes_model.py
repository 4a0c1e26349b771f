"""Whatever changes, nothing is lost: at every step what was taken is written, on the disk, or told as lost.

Pipelines are created, posted to, exchanged, reverted and deleted while servers are away, hang or refuse
some messages; in between the process stops, or is killed, and starts again.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headrace.compiler.clock import Clock, VirtualLoop
from headrace.compiler.component.deadletteroptions import DEAD_LETTERS
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.config.storesettings import StoreSettings
from headrace.compiler.datadir import DataDir
from headrace.compiler.delivery import Batch
from headrace.compiler.edges import AwaitingSink
from headrace.compiler.errors import BatchFailed, UnknownPipeline, Unreachable
from headrace.compiler.jsontext import encode
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.pipeline import Pipeline
from headrace.compiler.runtime.wayin import NoRoom
from headrace.connectors.http import HttpInput
from tests.compiler.runtime.durable import Gated, durable
from tests.compiler.runtime.keeping import Addressed, file_of
from tests.compiler.store.killed import kill
from tests.examples import ALL, examples
from tests.stand_ins import with_attribute

T = TypeVar("T")

IDS = ("one", "two")
ADDRESSES = ("db", "lake")
NUMBER = re.compile(rb"m\d{6}")
MODES = st.sampled_from(["up", "away", "hangs", "refuses"])
"""How a server is."""
SETTLED_SECONDS = 0.3
"""After which what was posted is written, on the disk, or waits for a server."""


class Wanted(NamedTuple):
    """What a pipeline says."""

    is_durable: bool
    is_queued: bool
    has_letters: bool
    address: str
    most: int
    """Told apart from another one by this alone."""

    @property
    def is_kept(self) -> bool:
        """Whether nothing of it is in memory alone for long."""
        return self.is_durable or self.is_queued


WANTED = st.builds(
    Wanted,
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from(ADDRESSES),
    st.integers(10**8, 10**8 + 2),
)


class Far:
    """A server, which outlives the process."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.written: set[bytes] = set()
        self.refused: set[bytes] = set()
        """What it has said no to: without dead letters that is told as lost."""

    def write(self, batch: Batch) -> None:
        if self.mode == "away":
            raise Unreachable("it does not answer")
        numbers = [message.encode() for message in batch]
        refused, taken = dict[int, str](), list[int]()
        for place, number in enumerate(numbers):
            if self.mode == "refuses" and int(number[1:]) % 3:
                refused[place] = "no"
                self.refused.add(number)
            else:
                taken.append(place)
                self.written.add(number)
        if refused:
            raise BatchFailed("some are refused", done=taken, refused=refused)


class Reaching(AwaitingSink):
    """Writes to a server for as long as its process lives."""

    def __init__(self, clock: Clock, far: Far, life: list[bool]) -> None:
        self._clock, self._far, self._life = clock, far, life

    async def write(self, batch: Batch) -> None:
        while self._far.mode == "hangs":
            await self._clock.sleep(0.5)
        if self._life[0]:
            self._far.write(batch)


class ChangingMachine(RuleBasedStateMachine):
    """An engine, and what became of each message that it has taken."""

    @initialize(one=WANTED, two=WANTED, db=MODES, lake=MODES)
    def begin(self, one: Wanted, two: Wanted, db: str, lake: str) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.far = {"db": Far(db), "lake": Far(lake)}
        self.running = {"one": one, "two": two}
        self.taken: dict[bytes, Wanted] = {}
        """What was confirmed, and what its pipeline said then."""
        self.count = 0
        self.excused: set[bytes] = set()
        """What may be gone: it was in memory alone when the process was killed."""
        self.seen: dict[int, Pipeline] = {}
        self.lost_before = 0
        """Of lives that have ended."""
        self.start()

    def start(self) -> None:
        self.runner = asyncio.Runner(loop_factory=VirtualLoop)
        self.life = [True]
        self.run(self.started())

    async def started(self) -> None:
        clock = Clock(asyncio.get_running_loop())
        store = StoreSettings.load({"sync": "process", "keep_free_bytes": 0})
        self.it = Engine(clock, data_dir=DataDir(self.folder), store=store)
        # So that the store is open in any case.
        await self.it.compile(durable(Gated(), id="keeper"))
        for id, wanted in self.running.items():
            await self.it.compile(self.config(id, wanted))

    def run(self, work: Coroutine[Any, Any, T], *, settles: bool = True) -> T:
        async def settled() -> T:
            result = await work
            self.look()
            if settles:
                await self.it.clock.sleep(SETTLED_SECONDS)
                self.look()
            return result

        self.is_settled = settles
        return self.runner.run(settled())

    def look(self) -> None:
        """Get to know the pipelines that there are: they count what they lose also as they end."""
        self.seen |= {id(each): each for each in self.it.graph.pipelines.values()}

    def config(self, id: str, wanted: Wanted) -> PipelineConfig:
        options = {"address": wanted.address, "retry": {}}
        if wanted.is_queued:
            options["queue"] = {"max_bytes": wanted.most}
        sink = Reaching(self.it.clock, self.far[wanted.address], self.life)
        durably = {"max_bytes": wanted.most} if wanted.is_durable else None
        return PipelineConfig(
            id=id,
            inputs=(HttpInput.load({"durable": durably, "capacity": wanted.most}),),
            outputs=(with_attribute(Addressed.load(options), "made", sink),),
            dead_letters=DEAD_LETTERS.deserialize(True) if wanted.has_letters else None,
        )

    @rule(id=st.sampled_from(IDS), wanted=WANTED)
    def create_or_exchange(self, id: str, wanted: Wanted) -> None:
        config = self.config(id, wanted)
        if id in self.running:
            self.run(self.it.exchange(id, config, None))
        else:
            self.run(self.it.compile(config))
        self.running[id] = wanted

    @rule(wanted=st.dictionaries(st.sampled_from(IDS), WANTED))
    def revert(self, wanted: Mapping[str, Wanted]) -> None:
        configs = [self.config(id, each) for id, each in wanted.items()]
        self.run(self.it.revert(file_of(durable(Gated(), id="keeper"), *configs)))
        self.running = {**wanted}

    @rule(id=st.sampled_from(IDS))
    def delete(self, id: str) -> None:
        if self.running.pop(id, None) is not None:
            self.run(self.it.dispose(id))

    @rule(id=st.sampled_from(IDS), count=st.integers(1, 40), settles=st.booleans())
    def post(self, id: str, count: int, settles: bool) -> None:
        """Post; what comes next may come at once."""

        async def posted() -> None:
            for _ in range(count):
                self.count += 1
                await self.post_one(id, b"m%06d" % self.count)

        self.run(posted(), settles=settles)

    async def post_one(self, id: str, message: bytes) -> None:
        try:
            way_in = self.it.way_in(id)
        except UnknownPipeline:
            return
        assert way_in is not None
        wanted = self.running[id]
        try:
            taken = way_in.take(encode(message.decode()), None)
            if not isinstance(taken, int):
                await taken
        except NoRoom:
            return
        self.taken[message] = wanted

    @rule(id=st.sampled_from(IDS), wanted=WANTED)
    def post_while_it_is_exchanged(self, id: str, wanted: Wanted) -> None:
        if id not in self.running:
            return

        async def both() -> None:
            exchanging = asyncio.ensure_future(self.it.exchange(id, self.config(id, wanted), None))
            posting = []
            for _ in range(10):
                self.count += 1
                posting.append(asyncio.ensure_future(self.post_one(id, b"m%06d" % self.count)))
                await self.it.clock.sleep(0.1)
            await asyncio.gather(exchanging, *posting)

        before = self.running[id]
        # Whichever of the two has taken it, it may be in memory alone where one of them keeps nothing.
        self.running[id] = min(before, wanted, key=lambda each: each.is_kept)
        self.run(both())
        self.running[id] = wanted

    @rule(
        address=st.sampled_from(ADDRESSES),
        mode=MODES,
    )
    def change_a_server(self, address: str, mode: str) -> None:
        self.far[address].mode = mode
        self.run(self.it.clock.sleep(0))

    @rule(seconds=st.sampled_from([1.0, 6.0, 40.0]))
    def wait(self, seconds: float) -> None:
        self.run(self.it.clock.sleep(seconds))

    @rule()
    def stop_and_start(self) -> None:
        self.runner.run(self.it.close())
        self.end()
        self.start()

    @rule()
    def kill_and_start(self) -> None:
        self.excused |= self.in_memory(self.missing())
        self.life[0] = False
        store = self.it._storage._store
        assert store is not None
        kill(store)
        self.end()
        self.start()

    def end(self) -> None:
        self.life[0] = False
        self.runner.close()
        self.lost_before += self.lost()
        self.seen.clear()

    def lost(self) -> int:
        """Return how many messages this life has told as lost, beside those that were refused."""
        return sum(
            loss.count
            for each in self.seen.values()
            for loss in each.failures.losses
            if loss.reason == "stopped"
        )

    def missing(self) -> set[bytes]:
        """Return what was taken, and is neither written nor refused nor on the disk."""
        store = self.it._storage._store
        assert store is not None
        bodies = [
            body
            for table in ("entries", "aside", "bodies")
            for [body] in store.database._run.execute(f"SELECT body FROM {table}").fetchall()
        ]
        stored = {number for body in bodies for number in NUMBER.findall(body)}
        there = (each.written | each.refused for each in self.far.values())
        return self.taken.keys() - stored - set[bytes]().union(*there)

    def in_memory(self, missing: set[bytes]) -> set[bytes]:
        """Return what of it may be in memory alone. A queue stores in a moment what is not written."""
        return {
            each
            for each in missing
            if not (self.taken[each].is_kept if self.is_settled else self.taken[each].is_durable)
        }

    @invariant()
    def nothing_is_lost_that_is_not_told(self) -> None:
        if not hasattr(self, "it"):
            return
        missing = self.missing() - self.excused
        told = self.lost_before + self.lost()
        assert len(missing - self.in_memory(missing)) <= told, sorted(missing)[:5]

    def teardown(self) -> None:
        if not hasattr(self, "it"):
            return
        try:
            for far in self.far.values():
                far.mode = "up"
            self.run(self.it.clock.sleep(120))
            figures = self.run(self.it.stored())
            assert figures is not None
            assert [each for each in figures.parts if each.entries and not each.left_over] == []
            missing = self.missing() - self.excused
            assert len(missing) <= self.lost_before + self.lost(), sorted(missing)[:5]
            self.runner.run(self.it.close())
            self.end()
        finally:
            shutil.rmtree(self.folder)


# Each takes seconds: more are tried where all are.
WANTED_EXAMPLES = 100 if settings().max_examples == ALL else 10
ChangingMachine.TestCase.settings = examples(WANTED_EXAMPLES, stateful_step_count=20)
TestChanges = ChangingMachine.TestCase
