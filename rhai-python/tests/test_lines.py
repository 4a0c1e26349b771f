"""How many line feeds a text has, however it is cut into blocks."""

from random import Random

import pytest
from rhai import count_line_ends


@pytest.mark.parametrize("size", [0, 1, 254, 255, 256, 10_000])
def test_line_ends_are_counted(size):
    drawn = Random(size)

    for text in (b"\n" * size, b"x" * size, bytes(drawn.choices(b"\n\ra\x8a", k=size))):
        assert count_line_ends(text) == text.count(b"\n")
