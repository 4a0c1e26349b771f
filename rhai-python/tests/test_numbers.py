"""What a text may have that decoders with slow arithmetic take long for, compared with a plain pattern."""

import random
import re

import pytest
from rhai import has_slow_numbers

SLOW = re.compile(
    rb"[0-9](?:[eE][+-]?[0-9]{3,}|(?<=[0-9.]{20})[eE][+-]?[0-9]+)(?=[\s,\]}]|\Z)", re.ASCII
)


@pytest.mark.parametrize(
    ("text", "is_slow"),
    [
        (b"", False),
        (b"e", False),
        (b"[1e300]", True),
        (b"[1E-300]", True),
        (b"5e-324", True),
        (b"[1e30]", False),
        (b"[1e300x]", False),
        (b'"3e123-45"', False),
        (b"[59841654316460142684e95]", True),
        (b"[5984165431646014268e95]", False),
        (b"[x1e300,]", True),
        (b"[e300]", False),
    ],
)
def test_an_exponent_of_three_digits_is_slow_and_any_behind_twenty(text, is_slow):
    assert has_slow_numbers(text) is is_slow is (SLOW.search(text) is not None)


@pytest.mark.parametrize("at", [0, 250, 253, 254, 255, 256, 257, 510, 511, 512, 5_000])
def test_wherever_it_stands(at):
    text = b" " * at + b"1e300"

    assert has_slow_numbers(text)
    assert has_slow_numbers(text + b"," * 5_000)
    assert not has_slow_numbers(text + b"x")


def test_it_says_of_any_text_what_the_pattern_says():
    chance = random.Random(1)
    alphabets = (b"1e3, ", b"0123456789.eE+-,]} x", b"1234567890e,")

    for _ in range(5_000):
        size = chance.choice((3, 10, 40, 300, 600))
        text = bytes(chance.choices(chance.choice(alphabets), k=size))
        assert has_slow_numbers(text) is (SLOW.search(text) is not None), text
