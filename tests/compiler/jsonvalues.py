"""Values of messages, and their texts, whole and damaged."""

import json

from hypothesis import strategies as st

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(10**60), max_value=10**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def exactly(value):
    """A value with its types and its order, so that 1, 1.0 and True are three different things."""
    if isinstance(value, dict):
        return ("object", [(key, exactly(item)) for key, item in value.items()])
    if isinstance(value, list):
        return ("array", [exactly(item) for item in value])
    return (type(value), repr(value))


def nest(depth, opening, closing, inner=b"1"):
    return opening * depth + inner + closing * depth


FRAGMENTS = st.sampled_from(
    [
        *(
            b'"',
            b"\\",
            b"{",
            b"}",
            b"[",
            b"]",
            b",",
            b":",
            b"-",
            b"0",
            b"1",
            b".",
            b"e",
            b"+",
            b" ",
        ),
        *(b"\n", b"\x00", b"\xff", b"\xc3", b"\xa9", b"\xed\xa0\x80", b"\xef\xbb\xbf"),
        *(b"\\ud800", b"\\udc00", b"\\u00e9", b"1e400", b"NaN", b"Infinity", b"null", b"true"),
    ]
)


@st.composite
def damaged(draw):
    """JSON with a few pieces put in or taken out, most of it malformed, some of it still right."""
    body = json.dumps(draw(VALUES), ensure_ascii=draw(st.booleans())).encode()
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(body)))
        gone = draw(st.integers(0, 2))
        body = body[:at] + draw(FRAGMENTS) + body[at + gone :]
    return body
