"""A reducer as the tests write it."""

from hypothesis import strategies as st

from headrace.compiler.lowering.chain import fuse
from headrace.operators.accumulation import Accumulation
from headrace.operators.aggregations import FUNCTIONS
from headrace.operators.reducer import Reducer
from tests.doubles import StubContext

MEAN = {"function": "avg", "field": "temp", "as": "mean"}


COUNT = {"function": "count", "as": "n"}


def reducer(*aggregations, **options):
    return Reducer.load({"aggregations": list(aggregations or [COUNT]), **options})


def generated(reducer):
    """Return the generated form alone: it raises where it leaves a batch to the plain one."""
    return fuse([lambda code: Accumulation(reducer, code).write()], "p1 transforms[0]").loop


def reduced(reducer, batch):
    """Return the messages of the one batch that a reducer makes, as every form of it makes them."""
    [result] = reducer.step(StubContext())(batch)
    try:
        quick = generated(reducer)(batch)
    except Exception:  # it left the batch to the plain form, which is its right
        return result
    assert repr(quick) == repr(result)
    return result


# --- the generated form is the plain one, only faster


scalars = st.sampled_from([None, True, False, 0, 1, -3, 1.0, -0.0, 0.5, 2**70, "", "1", "a", "b"])


awkward = st.sampled_from([10**400, 1e308, -1e308, [], [1], {"b": 1}, {"b": None}, {"c": "x"}])


numbers = st.integers(-5, 5) | st.floats(-1e3, 1e3)


messages = st.fixed_dictionaries(
    {},
    optional={
        "a": scalars | awkward,
        "a.b": scalars,
        "b": st.sampled_from(["x", "y", 1, 2.5]),
        "t": numbers | awkward | scalars,
        "u": numbers,
    },
)


fields = st.sampled_from(["a", "a.b", "b", "t", "t", "u", "u", "a.c.d"])


aggregations = st.builds(
    lambda function, field: {"function": function, "field": field},
    st.sampled_from(list(FUNCTIONS)),
    fields,
) | st.just({"function": "count"})
