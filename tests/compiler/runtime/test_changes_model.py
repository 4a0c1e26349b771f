"""Whatever changes, nothing is lost: at every step what was taken is written, on the disk, or told as lost.

Pipelines are created, posted to, exchanged, reverted and deleted while servers are away, hang or refuse
some messages; in between the process stops, or is killed, and starts again. What each run of a pipeline
tells as lost is as much as is missing of what it has taken: no other run's losses make up for that.
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
from headrace.compiler.runtime.monitoring.losses import LossReason
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

    def write(self, batch: Batch) -> None:
        if self.mode == "away":
            raise Unreachable("it does not answer")
        numbers = [message.encode() for message in batch]
        refused, taken = dict[int, str](), list[int]()
        for place, number in enumerate(numbers):
            if self.mode == "refuses" and int(number[1:]) % 3:
                refused[place] = "no"
            else:
                taken.append(place)
                self.written.add(number)
        if refused:
            raise BatchFailed("some are refused", done=taken, refused=refused)


class Reaching(AwaitingSink):
    """Writes to a server for as long as its process lives."""

    def __init__(
        self,
        clock: Clock,
        far: Far,
        life: list[bool],
        wanted: Wanted,
        refusals: dict[bytes, Wanted],
    ) -> None:
        self._clock, self._far, self._life, self._refusals = clock, far, life, refusals
        self.wanted = wanted
        """What the pipeline says that it is of."""
        self.refused: set[bytes] = set()
        """What it was told no to."""

    async def write(self, batch: Batch) -> None:
        while self._far.mode == "hangs":
            await self._clock.sleep(0.5)
        if not self._life[0]:
            return
        try:
            self._far.write(batch)
        except BatchFailed as cause:
            numbers = [batch[place].encode() for place in cause.refused]
            self.refused.update(numbers)
            self._refusals.update(dict.fromkeys(numbers, self.wanted))
            raise


def sink_of(run: Pipeline) -> Reaching:
    """Return what one run of a pipeline writes to."""
    sink = run.config.outputs[0].made  # type: ignore[attr-defined]
    assert isinstance(sink, Reaching)
    return sink


def told(run: Pipeline, reason: LossReason) -> int:
    """Return how many messages one run has told as lost for a reason."""
    return sum(loss.count for loss in run.failures.losses if loss.reason == reason)


class ChangingMachine(RuleBasedStateMachine):
    """An engine, and what became of each message that it has taken."""

    @initialize(one=WANTED, two=WANTED, db=MODES, lake=MODES)
    def begin(self, one: Wanted, two: Wanted, db: str, lake: str) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.far = {"db": Far(db), "lake": Far(lake)}
        self.running = {"one": one, "two": two}
        self.taken: dict[bytes, Pipeline] = {}
        """What was confirmed, and the run that has taken it."""
        self.refusals: dict[bytes, Wanted] = {}
        """What was refused, and what the pipeline said of which that was so last."""
        self.count = 0
        self.excused: set[bytes] = set()
        """What may be gone: it was in memory alone when the process was killed, or told as lost before."""
        self.seen: dict[int, Pipeline] = {}
        """The runs of all lives but of those that were killed."""
        self.over: set[int] = set()
        """Those of them of lives that have ended."""
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
        """Get to know the runs that there are: they count what they lose also as they end."""
        runs = [each for each in self.it.graph.pipelines.values() if each.id in IDS]
        self.seen |= {id(each): each for each in runs}

    def config(self, id: str, wanted: Wanted) -> PipelineConfig:
        options = {"address": wanted.address, "retry": {}}
        if wanted.is_queued:
            options["queue"] = {"max_bytes": wanted.most}
        sink = Reaching(self.it.clock, self.far[wanted.address], self.life, wanted, self.refusals)
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
        run = self.it.graph.pipelines[id]
        try:
            taken = way_in.take(encode(message.decode()), None)
            if not isinstance(taken, int):
                await taken
        except NoRoom:
            return
        self.taken[message] = run

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
        # The step before has shown that all of this is in memory alone, or was told as lost.
        self.excused |= self.missing()
        self.life[0] = False
        store = self.it._storage._store
        assert store is not None
        kill(store)
        self.end()
        self.seen.clear()
        self.over.clear()
        self.start()

    def end(self) -> None:
        self.life[0] = False
        self.runner.close()
        self.over |= self.seen.keys()

    def missing(self) -> set[bytes]:
        """Return what was taken, and is neither written nor on the disk.

        What was refused is told as lost, unless who heard that last has dead letters: then it is one.
        """
        store = self.it._storage._store
        assert store is not None
        bodies = [
            body
            for table in ("entries", "aside", "bodies")
            for [body] in store.database._run.execute(f"SELECT body FROM {table}").fetchall()
        ]
        stored = {number for body in bodies for number in NUMBER.findall(body)}
        given_up = {each for each, wanted in self.refusals.items() if not wanted.has_letters}
        written = (each.written for each in self.far.values())
        return self.taken.keys() - stored - given_up.union(*written) - self.excused

    def may_be_in_memory(self, run: Pipeline) -> bool:
        """Return whether what a run has may be in memory alone.

        A queue stores in a moment what is not written.
        """
        if id(run) in self.over or run.has_ended:
            return False
        wanted = sink_of(run).wanted
        return not (wanted.is_kept if self.is_settled else wanted.is_durable)

    @invariant()
    def nothing_is_lost_that_is_not_told(self) -> None:
        if hasattr(self, "it"):
            self.look_for_losses()

    def look_for_losses(self, *, is_all_out: bool = False) -> None:
        """Compare what is missing with what was told, run by run.

        ``is_all_out``: nothing is in memory any more.
        """
        missing = dict[int, list[bytes]]()
        for number in sorted(self.missing()):
            missing.setdefault(id(self.taken[number]), []).append(number)
        # Of runs that were killed all that may be missing is excused.
        assert missing.keys() <= self.seen.keys(), missing
        for key, run in self.seen.items():
            gone, stopped = missing.get(key, []), told(run, "stopped")
            if self.may_be_in_memory(run) and not is_all_out:
                assert len(gone) >= stopped, (sink_of(run).wanted, gone, stopped)
            else:
                assert len(gone) == stopped, (sink_of(run).wanted, gone, stopped)
            sink = sink_of(run)
            refused = 0 if sink.wanted.has_letters else len(sink.refused)
            assert told(run, "batch") == refused, (sink.wanted, sorted(sink.refused))
            assert told(run, "error") == told(run, "dropped") == 0, [*run.failures.losses]

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
            self.look_for_losses(is_all_out=True)
            # Also what nobody has to do with any more, as dead letters, outlives the process.
            self.stop_and_start()
            self.look_for_losses(is_all_out=True)
            self.runner.run(self.it.close())
            self.end()
        finally:
            shutil.rmtree(self.folder)


# Each takes seconds: more are tried where all are.
WANTED_EXAMPLES = 100 if settings().max_examples == ALL else 10
ChangingMachine.TestCase.settings = examples(WANTED_EXAMPLES, stateful_step_count=20)
TestChanges = ChangingMachine.TestCase
