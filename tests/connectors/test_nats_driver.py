"""The two private members of the driver that are used: this fails when a version of it changes them."""

from __future__ import annotations

import inspect

from nats.aio.client import Client

from headrace.connectors.nats.connection import Driver


def test_the_client_hands_each_message_to_process_msg() -> None:
    theirs, ours = (inspect.signature(each._process_msg) for each in (Client, Driver))

    assert [*theirs.parameters] == ["self", "sid", "subject", "reply", "data", "headers"]
    assert [*ours.parameters] == [*theirs.parameters]
    assert inspect.iscoroutinefunction(Client._process_msg)


async def test_the_client_sends_lines_of_the_protocol_by_send_command() -> None:
    first, *_ = inspect.signature(Client()._send_command).parameters.values()

    assert (first.name, first.annotation) == ("cmd", "bytes")
    assert inspect.iscoroutinefunction(Client._send_command)
