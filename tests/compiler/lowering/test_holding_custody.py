"""When a broker is told that a message which was held is done."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.delivery import Delivery, Window
from headrace.compiler.lowering.holding import Holding
from tests.compiler.lowering.held import holding
from tests.marbles import Broker

# --- custody: what the broker waits for


def test_a_delivery_is_acknowledged_when_its_last_message_is_out():
    broker = Broker()
    held = holding(broker.deliver([1, 2, 3]), broker.deliver([4, 5]))
    first, second = held.cut(2), held.cut(2)

    first.done()
    assert broker.acknowledged == []
    second.done()
    assert broker.acknowledged == [[1, 2, 3]]
    held.release().done()
    assert broker.acknowledged == [[1, 2, 3], [4, 5]]


def test_parts_may_be_done_in_any_order():
    broker = Broker()
    held = holding(broker.deliver([1, 2, 3]))
    parts = [held.cut(1), held.cut(1), held.cut(1)]

    for part in reversed(parts):
        assert broker.acknowledged == []
        part.done()

    assert broker.acknowledged == [[1, 2, 3]]


def test_a_part_that_is_done_does_not_acknowledge_what_is_still_held():
    broker = Broker()
    held = holding(broker.deliver([1, 2]))

    held.cut(1).done()

    assert broker.acknowledged == []
    assert held.count == 1


def test_each_delivery_of_a_release_is_acknowledged_once():
    broker = Broker()
    held = holding(broker.deliver([1]), broker.deliver([2]))

    released = held.release()
    released.share(2)  # two outputs
    released.done()

    assert broker.acknowledged == []
    released.done()
    assert broker.acknowledged == [[1], [2]]


def test_a_delivery_that_was_split_before_it_was_held_is_acknowledged_once():
    broker = Broker()
    parts = broker.deliver([1, 2, 3, 4]).split([[1, 2], [3, 4]])
    held = holding(*parts)

    for size in (1, 2):
        held.cut(size).done()

    assert broker.acknowledged == []
    held.release().done()
    assert broker.acknowledged == [[1, 2, 3, 4]]
    assert broker.window.used == 0


def test_an_empty_batch_is_done_at_once():
    broker = Broker()

    held = holding(broker.deliver([]))

    assert broker.acknowledged == [[]]
    assert broker.window.used == 0
    assert held.count == 0


def test_what_nobody_acknowledges_is_released_in_nobody_s_custody():
    held = holding(Delivery([1], Window()), Delivery([2], Window()))

    assert held.release().custody is None


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.booleans(), st.integers(1, 7)), min_size=1, max_size=30
    ),
    st.integers(1, 9),
    st.randoms(use_true_random=False),
)
def test_every_debt_is_settled_exactly_once_and_no_message_is_lost(arrivals, size, order):
    brokers = (Broker(), Broker())
    held, parts, sent, owed = Holding(), [], [], 0
    for at, (broker, is_acknowledged, count) in enumerate(arrivals):
        delivery = brokers[broker].deliver([(at, place) for place in range(count)])
        if not is_acknowledged:
            delivery.custody = None
        owed += is_acknowledged
        sent += delivery.batch
        held.take(delivery)
        while held.count >= size:
            parts.append(held.cut(size))
    if held.count:
        parts.append(held.release())

    assert [message for part in parts for message in part.batch] == sent
    left = {id(part) for part in parts}
    order.shuffle(parts)
    for part in parts:
        part.done()
        left.remove(id(part))
        settled = {batch[0][0] for broker in brokers for batch in broker.acknowledged}
        open_parts = [other for other in parts if id(other) in left]
        assert settled.isdisjoint(at for other in open_parts for at, _ in other.batch)
    assert sum(len(broker.acknowledged) for broker in brokers) == owed
    assert [broker.window.used for broker in brokers] == [0, 0]


@pytest.mark.parametrize("arriving", [1, 3, 1000])
def test_what_is_gone_takes_no_room(arriving):
    held, window = Holding(), Window()

    for _ in range(0, 30_000, arriving):
        held.take(Delivery([0] * arriving, window))
        while held.count >= 1000:
            held.cut(7)

    assert len(held._messages) <= 2 * (held.count + arriving)
