"""Of which class the failures of an `mqtt` output are."""

from __future__ import annotations

from headrace.compiler.component.failureclasses import FailureClasses, FailureRow

CONNACKS = "https://docs.oasis-open.org/mqtt/mqtt/v3.1.1/os/mqtt-v3.1.1-os.html#_Toc398718035"

UNCONFIRMED = "unconfirmed"
"""Stands for messages that a broker has been sent and does not confirm."""
CUT_OFF = "cut off"
"""Stands for messages that were on their way when a connection was lost."""
HUNG_UP_ON = "hung up on"
"""Stands for a message that alone makes the broker hang up."""


def connack(code: int) -> str:
    """Return what a refusal of a connection is called, by the code of its CONNACK."""
    return f"CONNACK {code}"


FAILURES = FailureClasses(
    FailureRow(
        "connection",
        "unavailable",
        (),
        "the connection is lost, or none comes about",
    ),
    FailureRow(
        "not_now",
        "unavailable",
        (connack(3),),
        "the broker lets nobody in for now",
        CONNACKS,
    ),
    FailureRow(
        "not_authorized",
        "misconfigured",
        (connack(5),),
        "the broker does not let the client in (Mosquitto says so of a wrong password as well), after the"
        " start",
    ),
    FailureRow(
        "refused",
        "misconfigured",
        (connack(1), connack(2), connack(4)),
        "the broker refuses the protocol, the client id, or user name and password, after the start",
        CONNACKS,
    ),
    FailureRow(
        "hung_up_on",
        "invalid",
        (HUNG_UP_ON,),
        "the broker hangs up on a message of QoS 1 or 2 each time that it is alone on the wire, and takes"
        " others: only with `retry`, `queue` or `dead_letters`",
    ),
    FailureRow(
        "cut_off",
        "unclear",
        (CUT_OFF,),
        "the connection is lost when messages of QoS 1 or 2 have been sent: only with `retry`, `queue` or"
        " `dead_letters`",
    ),
    FailureRow(
        "unconfirmed",
        "unclear",
        (UNCONFIRMED,),
        "the broker is there, and does not confirm what is published with QoS 1 or 2",
    ),
)
"""A broker of MQTT 3.1.1 says nothing of a message that it does not take: it hangs up, as if it ended."""
