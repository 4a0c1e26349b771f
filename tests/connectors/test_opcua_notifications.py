"""Values of OPC UA on the wire, written by its library and read by ours."""

from __future__ import annotations

import math
import struct
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from asyncua import ua
from asyncua.ua.ua_binary import struct_to_binary, variant_to_binary
from asyncua.ua.uaerrors import UaError
from hypothesis import given
from hypothesis import strategies as st

from headrace.connectors.opcua.nodes import Node, NodeKey
from headrace.connectors.opcua.notifications import (
    STATUSES,
    STRUCTURE,
    messages,
    shortest,
    timestamp,
    variant,
)

Type = ua.VariantType
WHEN = datetime(2026, 3, 1, 8, 0, 0, 500_000, tzinfo=UTC)
GUID = UUID("09087e75-8e5e-499b-954f-f2a9603db28a")
NODE = Node(NodeKey(2, "s", "A"), "ns=2;s=A", "a")


def read(value: Any) -> Any:
    """Return what a variant of the library is read as; all of its octets are read."""
    octets = variant_to_binary(value)
    found, end = variant(octets, 0)
    assert end == len(octets)
    return found


@pytest.mark.parametrize(
    ("value", "kind", "read_as"),
    [
        (True, Type.Boolean, True),
        (-128, Type.SByte, -128),
        (255, Type.Byte, 255),
        (-32768, Type.Int16, -32768),
        (65535, Type.UInt16, 65535),
        (-(2**31), Type.Int32, -(2**31)),
        (2**32 - 1, Type.UInt32, 2**32 - 1),
        (-(2**63), Type.Int64, -(2**63)),
        (2**64 - 1, Type.UInt64, 2**64 - 1),
        (0.1, Type.Float, 0.1),
        (16777216.0, Type.Float, 16777216.0),
        (3.4028234663852886e38, Type.Float, 3.4028235e38),
        (0.1, Type.Double, 0.1),
        (math.nan, Type.Double, None),
        (-math.inf, Type.Double, None),
        (math.inf, Type.Float, None),
        ("Grüße", Type.String, "Grüße"),
        ("", Type.String, ""),
        (None, Type.String, None),
        (b"\x00\xff", Type.ByteString, "AP8="),
        (None, Type.ByteString, None),
        (WHEN, Type.DateTime, "2026-03-01T08:00:00.500Z"),
        (GUID, Type.Guid, str(GUID)),
        (ua.LocalizedText("Ofen", "de"), Type.LocalizedText, "Ofen"),
        (ua.LocalizedText(None, None), Type.LocalizedText, None),
        (ua.QualifiedName("Press", 2), Type.QualifiedName, "2:Press"),
        (ua.QualifiedName("Press", 0), Type.QualifiedName, "Press"),
        (ua.NodeId("Press", 2), Type.NodeId, "ns=2;s=Press"),
        (ua.NodeId(5, 0), Type.NodeId, "i=5"),
        (ua.NodeId(1000, 3), Type.NodeId, "ns=3;i=1000"),
        (ua.NodeId(100_000, 300), Type.NodeId, "ns=300;i=100000"),
        (ua.NodeId(GUID, 1), Type.NodeId, f"ns=1;g={GUID}"),
        (ua.NodeId(b"\x00\xff", 1), Type.NodeId, "ns=1;b=AP8="),
        (
            ua.ExpandedNodeId("Press", 0, ua.NodeIdType.String, "urn:plant", 7),
            Type.ExpandedNodeId,
            "svr=7;nsu=urn:plant;s=Press",
        ),
        (ua.StatusCode(ua.UInt32(0x808C0000)), Type.StatusCode, "BadSensorFailure"),
        (ua.XmlElement("<a/>"), Type.XmlElement, "<a/>"),
        (ua.ServerState.Shutdown, Type.Int32, 4),
        (None, Type.Null, None),
    ],
)
def test_a_value_is_read_by_its_type(value, kind, read_as):
    found = read(ua.Variant(value, kind))

    assert found == read_as
    assert type(found) is type(read_as)


@pytest.mark.parametrize(
    ("value", "read_as"),
    [
        (ua.Variant([1, 2, 3], Type.Int16), [1, 2, 3]),
        (ua.Variant([], Type.Double), []),
        (ua.Variant(None, Type.Double, is_array=True), None),
        (ua.Variant([0.1, math.nan], Type.Float), [0.1, None]),
        (ua.Variant(["a", None], Type.String), ["a", None]),
        (ua.Variant([b"a"], Type.ByteString), ["YQ=="]),
        (ua.Variant([WHEN], Type.DateTime), ["2026-03-01T08:00:00.500Z"]),
        (ua.Variant([[1, 2], [3, 4], [5, 6]], Type.Int32), [[1, 2], [3, 4], [5, 6]]),
        (ua.Variant([[[1], [2]], [[3], [4]]], Type.Byte), [[[1], [2]], [[3], [4]]]),
        (
            ua.Variant([ua.Variant(1, Type.Int32), ua.Variant("a", Type.String)], Type.Variant),
            [1, "a"],
        ),
        (ua.Variant([ua.Variant([1, 2], Type.Int32)], Type.Variant), [[1, 2]]),
        (ua.Variant(ua.DataValue(ua.Variant(7, Type.Int32)), Type.DataValue), 7),
        (
            ua.Variant(
                ua.DataValue(ua.Variant(7, Type.Int32), ua.StatusCode(ua.UInt32(0x80000000)), WHEN),
                Type.DataValue,
            ),
            None,
        ),
    ],
)
def test_arrays_and_values_in_values_are_read_element_by_element(value, read_as):
    assert read(value) == read_as


@pytest.mark.parametrize(
    "value",
    [
        ua.Variant(ua.Range(1.0, 2.0), Type.ExtensionObject),
        ua.Variant(ua.ExtensionObject(ua.NodeId(9999, 2), b"\x01\x02"), Type.ExtensionObject),
        ua.Variant([ua.Range(1.0, 2.0)], Type.ExtensionObject),
        ua.Variant([ua.Variant(1), ua.Variant(ua.Range(1.0, 2.0))], Type.Variant),
        ua.Variant(ua.DataValue(ua.Variant(ua.Range(1.0, 2.0))), Type.DataValue),
        ua.Variant(ua.DiagnosticInfo(AdditionalInfo="x", SymbolicId=3), Type.DiagnosticInfo),
    ],
)
def test_a_structure_is_none_of_the_values_of_a_message(value):
    assert read(value) is STRUCTURE


def test_no_structure_at_all_is_null():
    assert read(ua.Variant(ua.ExtensionObject(), Type.ExtensionObject)) is None


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_32_bit_float_has_the_fewest_digits_that_mean_it(value):
    short = shortest(value)

    assert short is not None
    assert struct.pack("<f", short) == struct.pack("<f", value)
    digits = len(repr(short).split("e")[0].replace(".", "").strip("-0"))
    for fewer in range(1, digits):
        other = float(f"{value:.{fewer}g}")
        assert abs(other) > 3.4028235e38 or struct.pack("<f", other) != struct.pack("<f", value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_64_bit_float_stays_what_it_is(value):
    assert read(ua.Variant(value, Type.Double)) == value


EPOCH = datetime(1601, 1, 1, tzinfo=UTC)


def ticks(when: datetime) -> int:
    return (when - EPOCH) // timedelta(microseconds=1) * 10


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (ticks(WHEN), "2026-03-01T08:00:00.500Z"),
        (ticks(WHEN) + 5_000_000, "2026-03-01T08:00:01Z"),
        (ticks(WHEN) + 10, "2026-03-01T08:00:00.500001Z"),
        (ticks(WHEN) + 1, "2026-03-01T08:00:00.500000100Z"),
        (ticks(datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)), "1969-12-31T23:59:59Z"),
        (0, None),
        (-1, None),
        (ticks(datetime(1601, 12, 31, tzinfo=UTC)), None),
        (ticks(datetime(9999, 12, 31, tzinfo=UTC)), None),
        (2**63 - 1, None),
    ],
)
def test_a_timestamp_is_rfc_3339_to_its_last_digit(found, text):
    assert timestamp(found) == text


@given(
    st.integers(ticks(datetime(1602, 1, 1, tzinfo=UTC)), ticks(datetime(9998, 1, 1, tzinfo=UTC)))
)
def test_every_timestamp_means_what_it_was(found):
    text = timestamp(found)

    assert text is not None
    seconds, _, fraction = text.rstrip("Z").partition(".")
    assert len(fraction) in (0, 3, 6, 9)
    whole = ticks(datetime.fromisoformat(seconds).replace(tzinfo=UTC))
    assert whole + int(fraction.ljust(9, "0")[:7]) == found


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (0, ("Good", False)),
        (0x400, ("Good", False)),
        (0x40000000, ("Uncertain", False)),
        (0x80AE0000, ("BadConnectionClosed", True)),
        (0x80AE0480, ("BadConnectionClosed", True)),
        (0x00FE0000, ("0x00FE0000", False)),
        (0xC0000001, ("0xC0000001", True)),
    ],
)
def test_a_status_has_its_name_or_its_number(code, status):
    assert STATUSES[code] == status


def notified(*values: ua.DataValue) -> bytes:
    """Return the octets of a notification."""
    items = [ua.MonitoredItemNotification(0, value) for value in values]
    return struct_to_binary(ua.DataChangeNotification(MonitoredItems=items))


def test_a_change_without_a_status_is_good_and_one_without_a_value_null():
    bare = b"\x01\x00\x00\x00" + b"\x00\x00\x00\x00" + b"\x00"

    assert messages(bare, 0, [NODE], lambda _: None) == [
        {
            "node": "ns=2;s=A",
            "name": "a",
            "value": None,
            "status": "Good",
            "source_timestamp": None,
            "server_timestamp": None,
        }
    ]


def test_picoseconds_are_passed_over():
    when = struct.pack("<q", ticks(WHEN))
    value = b"\x0b" + struct.pack("<d", 1.5)
    octets = struct.pack("<iIB", 1, 0, 0x3D) + value + (when + b"\x01\x00") * 2

    [message] = messages(octets, 0, [NODE], lambda _: None)

    assert message["value"] == 1.5
    assert message["source_timestamp"] == "2026-03-01T08:00:00.500Z"
    assert message["server_timestamp"] == "2026-03-01T08:00:00.500Z"


def test_a_structure_is_left_out_and_the_others_are_there():
    skipped: list[Node] = []
    octets = notified(
        ua.DataValue(ua.Variant(1)),
        ua.DataValue(ua.Variant(ua.Range())),
        ua.DataValue(ua.Variant(2)),
    )

    found = messages(octets, 0, [NODE], skipped.append)

    assert [each["value"] for each in found] == [1, 2]
    assert skipped == [NODE]


def test_a_bad_structure_is_a_message_like_any_other():
    bad = ua.DataValue(ua.Variant(ua.Range()), ua.StatusCode(ua.UInt32(0x80000000)))

    [message] = messages(notified(bad), 0, [NODE], lambda _: None)

    assert (message["value"], message["status"]) == (None, "Bad")


WHOLE = notified(*(ua.DataValue(ua.Variant(each)) for each in ("text", [1, 2], b"x", 1.5)))


@given(st.integers(0, len(WHOLE) - 5))
def test_a_notification_without_its_end_cannot_be_read(length):
    with pytest.raises((UaError, struct.error, IndexError, ValueError)):
        messages(WHOLE[:length], 0, [NODE], lambda _: None)


def test_dimensions_that_do_not_fit_leave_an_array_flat():
    flat = b"\xc3" + struct.pack("<i3B", 3, 1, 2, 3)

    assert variant(flat + struct.pack("<iii", 2, 2, 2), 0)[0] == [1, 2, 3]
    assert variant(flat + struct.pack("<34i", 33, 3, *[1] * 32), 0)[0] == [1, 2, 3]
