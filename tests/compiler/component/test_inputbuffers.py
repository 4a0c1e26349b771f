"""Input buffers: how they are written, and what ends a batch."""

import pytest

from headrace.compiler.component.inputbuffers import Either, InputBuffer, Static, Tumbling
from headrace.compiler.schema.variants import VariantOf
from tests.doubles import refusals


@pytest.mark.parametrize(
    ("document", "buffer", "limits"),
    [
        ({"type": "static", "size": 5}, Static(size=5), (5, None)),
        ({"type": "static", "size": 0}, Static(size=0), (1, None)),
        ({"type": "tumbling", "window_seconds": 3}, Tumbling(window_seconds=3), (None, 3)),
        ({"type": "tumbling", "window_seconds": 0}, Tumbling(window_seconds=0), (None, 0)),
        (
            {"type": "batch", "size": 0, "window_seconds": 3},
            Either(size=0, window_seconds=3),
            (1, 3),
        ),
    ],
)
def test_a_batch_ends_by_count_by_time_or_by_either(document, buffer, limits):
    read = VariantOf(InputBuffer).deserialize(document)

    assert (read, read.limits) == (buffer, limits)


@pytest.mark.parametrize(
    ("record", "document", "faults"),
    [
        (Static, {}, ["size: this key is required"]),
        (
            Tumbling,
            {"size": 3},
            ["window_seconds: this key is required", "size: unknown key 'size'"],
        ),
        (
            Either,
            {"size": -1, "window_seconds": 1.5},
            [
                "size: expected an integer of at least 0, found -1",
                "window_seconds: expected an integer of at least 0, found 1.5",
            ],
        ),
    ],
)
def test_all_its_fields_are_required(record, document, faults):
    assert refusals(record, document) == faults
