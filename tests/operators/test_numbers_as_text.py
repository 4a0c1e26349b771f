"""A number becomes text as a message writes it, wherever it does."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reactivex.subject import Subject

from headrace.compiler.decimals import Written
from headrace.compiler.jsontext import encode
from headrace.compiler.lowering.chain import lower, plainly
from headrace.operators.map import Map
from headrace.operators.statekey import text_of
from tests.doubles import StubContext
from tests.marbles import over_lists

NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.floats(1e-6, 1e-3) | st.integers()
TEXTS = Map.load(
    {
        "keep": "mapped",
        "mappings": [
            {"type": "cast", "from": "v", "to": "text", "as": "cast"},
            {"type": "concat", "parts": [{"type": "field", "field": "v"}], "as": "concat"},
        ],
    }
)


@pytest.mark.parametrize("lowering", [plainly, lower])
@given(number=NUMBERS)
@example(number=1e-5)
@example(number=-9.999999999999999e-05)
@example(number=9e-6)
@example(number=1e-4)
def test_the_text_of_a_number_is_what_the_encoder_writes_in_a_message(lowering, number):
    in_message = encode({"v": number}).decode()[len('{"v":') : -1]
    source, seen = Subject(), []
    [operator] = lowering([(TEXTS, StubContext())], [])
    source.pipe(over_lists(operator)).subscribe(seen.append)

    source.on_next([{"v": number}])

    assert seen == [[{"cast": in_message, "concat": in_message}]]
    assert text_of(number) == in_message


@pytest.mark.parametrize("written", ["1.10", "1e3", "0.000010", "1e-05"])
def test_a_number_that_remembers_its_digits_is_a_key_as_its_double(written):
    assert text_of(Written(written)) == encode(float(written)).decode()
