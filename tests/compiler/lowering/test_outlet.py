"""The end of a chain: who subscribes takes a share, and debts are settled once by the last."""

import pytest

from headrace.compiler.delivery import Delivery, Window
from headrace.compiler.lowering.chainends import Outlet


class Observer:
    """Takes deliveries, and is done with them when it is told to."""

    def __init__(self) -> None:
        self.taken: list[Delivery] = []

    def on_next(self, delivery: Delivery) -> None:
        self.taken.append(delivery)

    def finish(self) -> None:
        while self.taken:
            self.taken.pop(0).done()


class Flowing:
    """A window and what is handed on through it."""

    def __init__(self) -> None:
        self.window, self.outlet = Window(), Outlet()

    def hand_on(self) -> Delivery:
        self.window.take()
        delivery = Delivery([1], self.window)
        self.outlet.on_next(delivery)
        return delivery


def test_to_nobody_a_delivery_is_done_at_once():
    flow = Flowing()
    flow.hand_on()
    assert (flow.window.used, len(flow.outlet.observers)) == (0, 0)


def test_one_observer_takes_the_delivery_itself():
    flow, one = Flowing(), Observer()
    flow.outlet.subscribe(one.on_next)
    delivery = flow.hand_on()
    assert one.taken == [delivery]
    assert flow.window.used == 1
    one.finish()
    assert flow.window.used == 0


@pytest.mark.parametrize("count", [2, 5])
def test_several_observers_settle_it_together_in_the_order_they_came(count):
    flow, observers = Flowing(), [Observer() for _ in range(count)]
    order: list[int] = []
    for number, each in enumerate(observers):

        def on_next(delivery, number=number, each=each):
            order.append(number)
            each.on_next(delivery)

        flow.outlet.subscribe(on_next)
    flow.hand_on()
    for each in observers:
        assert flow.window.used == 1
        each.finish()
    assert (flow.window.used, order) == (0, [*range(count)])


def test_who_is_disposed_takes_nothing_more_and_what_it_has_stays_owed():
    flow, one, two = Flowing(), Observer(), Observer()
    leaving = flow.outlet.subscribe(one.on_next)
    flow.outlet.subscribe(two.on_next)
    flow.hand_on()
    leaving.dispose()
    leaving.dispose()  # as often as somebody likes
    flow.hand_on()
    assert (len(one.taken), len(two.taken), flow.window.used) == (1, 2, 2)
    two.finish()
    assert flow.window.used == 1
    one.finish()
    assert flow.window.used == 0


def test_the_observers_of_an_included_outlet_come_and_go_and_take_their_shares():
    flow, writer, reader = Flowing(), Observer(), Observer()
    readers = Outlet()
    flow.outlet.subscribe(writer.on_next)
    flow.outlet.include(readers)
    flow.hand_on()
    reading = readers.subscribe(reader.on_next)
    flow.hand_on()
    reading.dispose()
    flow.hand_on()
    assert (len(writer.taken), len(reader.taken), len(flow.outlet.observers)) == (3, 1, 1)
    writer.finish()
    assert flow.window.used == 1
    reader.finish()
    assert flow.window.used == 0


def test_two_outlets_may_include_one_and_either_may_leave_it():
    old, new, reader = Flowing(), Flowing(), Observer()
    readers = Outlet()
    readers.subscribe(reader.on_next)
    including = old.outlet.include(readers)
    new.outlet.include(readers)
    old.hand_on()
    new.hand_on()
    assert len(reader.taken) == 2
    including.dispose()
    old.hand_on()
    new.hand_on()
    assert len(reader.taken) == 3
    reader.finish()
    assert (old.window.used, new.window.used) == (0, 0)


def test_somebody_may_come_or_go_while_a_delivery_is_handed_on():
    flow, late = Flowing(), Observer()
    first, second = Observer(), Observer()

    def on_next(delivery):
        first.on_next(delivery)
        going.dispose()
        flow.outlet.subscribe(late.on_next)

    flow.outlet.subscribe(on_next)
    going = flow.outlet.subscribe(second.on_next)
    flow.hand_on()
    assert (len(first.taken), len(second.taken), len(late.taken)) == (1, 1, 0)
    first.finish()
    second.finish()
    assert flow.window.used == 0
