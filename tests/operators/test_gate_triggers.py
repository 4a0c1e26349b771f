"""A gate beside the other triggers of a buffer: any one of them is enough."""

from hypothesis import given
from reactivex.subject import Subject
from reactivex.testing import ReactiveTest

from tests.marbles import over_lists
from tests.operators.gated import EVENTS, IDLE, OPTIONS, Marbles, every_combination, gated, released

on_next, on_error, on_completed = (
    ReactiveTest.on_next,
    ReactiveTest.on_error,
    ReactiveTest.on_completed,
)


def test_size_and_until_whole_batches_leave_first_and_the_gate_is_for_the_rest():
    it = Marbles()

    seen = it.released(
        gated(size=3).operator(it.ctx),
        arrivals=[
            on_next(210, [1, 2]),
            on_next(220, [3, 4, 5, 6, 7]),  # closed: the remainder stays
            on_next(240, [8, 9, 10, 11]),  # open
            on_next(260, [12]),  # closed again
            on_completed(400),
        ],
        writes={230: "auto", 250: "manual"},
    )

    assert seen == [
        on_next(220, [1, 2, 3]),
        on_next(220, [4, 5, 6]),
        on_next(230, [7]),
        on_next(240, [8, 9, 10]),
        on_next(240, [11]),
        on_next(400, [12]),
        on_completed(400),
    ]
    assert it.ctx.warnings == []


def test_seconds_and_until_whichever_comes_first():
    it = Marbles()

    seen = it.released(
        gated(seconds=10, max_messages=100).operator(it.ctx),
        arrivals=[
            on_next(210, [1]),  # out by the clock
            on_next(230, [2]),
            on_next(245, [3]),  # the clock that 2 had started is no longer looked at
            on_completed(400),
        ],
        writes={235: "auto", 236: "manual"},
    )

    assert seen == [
        on_next(220, [1]),
        on_next(235, [2]),
        on_next(255, [3]),
        on_completed(400),
    ]
    assert it.ctx.warnings == []


def test_max_messages_and_until_the_bound_releases_what_a_closed_gate_holds():
    it = Marbles()

    seen = it.released(
        gated(max_messages=3).operator(it.ctx),
        arrivals=[
            on_next(210, [1, 2]),
            on_next(220, [3, 4, 5, 6, 7]),
            on_next(240, [8, 9, 10, 11]),
            on_next(260, [12, 13, 14]),
            on_completed(400),
        ],
        writes={230: "auto", 250: "manual"},
    )

    assert seen == [
        on_next(220, [1, 2, 3]),
        on_next(220, [4, 5, 6]),
        on_next(230, [7]),
        on_next(240, [8, 9, 10, 11]),
        on_next(260, [12, 13, 14]),
        on_completed(400),
    ]
    assert it.ctx.warnings == [
        "held 3 messages ('max_messages') before the gate opened: released early"
    ]


def test_all_triggers_together():
    it = Marbles()

    seen = it.released(
        gated(size=3, seconds=10, max_messages=5).operator(it.ctx),
        arrivals=[
            on_next(210, [1, 2, 3, 4]),  # size, and the rest by the clock
            on_next(230, [5, 6]),  # by the gate
            on_next(240, [7, 8, 9, 10]),  # size, and the rest through the open gate
            on_next(260, [11]),  # by the clock
            on_next(300, [12]),
            on_completed(305),
        ],
        writes={235: "auto", 250: "manual"},
    )

    assert seen == [
        on_next(210, [1, 2, 3]),
        on_next(220, [4]),
        on_next(235, [5, 6]),
        on_next(240, [7, 8, 9]),
        on_next(240, [10]),
        on_next(270, [11]),
        on_next(305, [12]),
        on_completed(305),
    ]
    assert it.ctx.warnings == []


def test_the_overflow_names_all_that_was_waited_for():
    it = Marbles()

    it.released(
        gated(seconds=60, max_messages=2).operator(it.ctx),
        arrivals=[on_next(210 + turn, [1, 2, 3]) for turn in range(5)],
    )

    assert it.ctx.warnings == [
        "held 2 messages ('max_messages') before 60 seconds were over or the gate opened:"
        " released early"
    ]


@every_combination
def test_what_is_held_is_released_on_completion(options):
    seen = released(gated(**options), [on_next(210, ["a"]), on_completed(250)], {230: "manual"})

    assert seen == [on_next(250, ["a"]), on_completed(250)]


@every_combination
def test_an_error_passes_after_what_is_held_is_handed_on(options):
    cause = RuntimeError("the source broke")

    seen = released(gated(**options), [on_next(210, ["a"]), on_error(250, cause)])

    assert seen == [on_next(250, ["a"]), on_error(250, cause)]


@every_combination
def test_after_disposal_in_the_middle_a_write_releases_nothing(options):
    seen = released(gated(**options), [on_next(210, ["a"])], {260: "auto"}, disposed=250)

    assert seen == []


# --- everything at once, against the rules written down message by message


class Rules:
    """What a buffer with a gate does, as slowly as it can be said."""

    def __init__(self, buffer, idle_seconds):
        self.buffer, self.idle = buffer, idle_seconds
        self.now = self.since = 0
        self.held, self.out = [], []
        self.is_auto, self.written = False, 0

    def is_open(self):
        return self.is_auto and (self.idle is None or self.now - self.written < self.idle)

    def leave(self, count):
        self.out.append((self.now, self.held[:count]))
        self.held, self.since = self.held[count:], self.now

    def batch(self, messages):
        for message in messages:
            self.since = self.since if self.held else self.now
            self.held.append(message)
        buffer = self.buffer
        while buffer.size and len(self.held) >= buffer.size:
            self.leave(buffer.size)
        if self.held and self.is_open():
            self.leave(len(self.held))
        while not buffer.size and len(self.held) >= buffer.max_messages:
            self.leave(buffer.max_messages)

    def write(self, is_auto):
        self.is_auto, self.written = is_auto, self.now
        if self.held and self.is_open():
            self.leave(len(self.held))

    def wait(self, seconds):
        for _ in range(seconds):
            self.now += 1
            due = self.buffer.seconds and self.now - self.since >= self.buffer.seconds
            if self.held and due:
                self.leave(len(self.held))


@given(OPTIONS, IDLE, EVENTS)
def test_size_seconds_cap_and_gate_compose_in_every_way(options, idle_seconds, events):
    buffer = gated(**options)
    it, rules = Marbles(idle_seconds), Rules(buffer, idle_seconds)
    source, seen, sent = Subject(), [], 0
    source.pipe(over_lists(buffer.operator(it.ctx))).subscribe(
        lambda batch: seen.append((it.monotonic(), batch)), scheduler=it.scheduler
    )

    for what, value in events:
        if what == "batch":
            messages = [*range(sent, sent + value)]
            sent += value
            rules.batch(messages)
            source.on_next(messages)
        elif what == "write":
            rules.write(value)
            it.mode("auto" if value else "manual")
        else:
            rules.wait(value)
            it.scheduler.advance_by(value)

    assert seen == rules.out
    assert [count() for count in it.ctx.holding] == [len(rules.held)]
