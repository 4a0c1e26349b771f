"""Small graphs of pipelines and what arrives at them, generated: to be played, and to be run for real.

What arrives is kept away from the edges of windows, where the real time decides: windows last whole units
of two seconds, and what arrives does so at 0, 0.8, 1.6 or 2.4 s, or a tenth of a second behind that. So
no two things that matter to each other are nearer than 0.3 s.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from hypothesis import strategies as st

from headrace.authoring.configfiles import catalogue
from headrace.compiler.config.program import Program, load_program
from headrace.compiler.text.documents import read
from tests.authoring.playing.answering import ANSWERS, CLOSED, NOWHERE
from tests.compiler.lowering import drawn

UNIT = 2
"""Seconds of the shortest window."""
STEP = 0.4 * UNIT
"""Seconds between two moments at which something arrives."""
BESIDE = 0.1
"""Seconds between two arrivals of one such moment."""
MOMENTS = 4
UNTIL = 2.6 * UNIT
"""When everything ends: 0.3 s before and 0.3 s behind it no window can end."""
HERE = "@"
"""Stands in all that is drawn for the name that tells one graph from the others of a server."""

RAW = [b"no json", b"\xff", b"{", b""]
KNOWN = catalogue()


@dataclass(frozen=True)
class DrawnArrival:
    """One message, some as a batch, or bytes that are no JSON, for a pipeline at a moment."""

    at: float
    to: str
    payload: Any

    def named(self, name: str) -> DrawnArrival:
        return DrawnArrival(self.at, self.to.replace(HERE, name), self.payload)


@dataclass(frozen=True)
class DrawnGraph:
    """Pipelines that belong together, what they share, and what arrives at them, in order."""

    pipelines: Sequence[Mapping[str, Any]]
    arrivals: Sequence[DrawnArrival]

    def named(self, name: str) -> DrawnGraph:
        """Return the same graph under a name."""
        pipelines = json.loads(json.dumps(self.pipelines).replace(HERE, name))
        return DrawnGraph(pipelines, [each.named(name) for each in self.arrivals])

    def asking(self, address: str) -> DrawnGraph:
        """Return the same graph, whose transforms ask a server at an address."""
        return DrawnGraph(
            json.loads(json.dumps(self.pipelines).replace(NOWHERE, address)), self.arrivals
        )

    @property
    def writes_the_time(self) -> bool:
        """Whether a mapping writes when it ran, which no two runs have in common."""
        return '"type": "now"' in json.dumps(self.pipelines)

    @property
    def buckets(self) -> Mapping[str, Any]:
        """The buckets that its pipelines name."""
        states = (each.get("state") for each in self.pipelines)
        return {state["bucket"]: {"max_keys": 8} for state in states if state}

    def program(self) -> Program | None:
        """Return what is to run, unless the config is refused."""
        document = {"state": self.buckets, "pipelines": self.pipelines}
        made, _ = load_program(
            read(json.dumps(document).encode(), "config.json", "json"), KNOWN, base=None
        )
        return made


def kind(type: str, **options: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.just(type)} | options)


sizes, seconds = st.integers(1, 4), st.sampled_from([UNIT, UNIT, 2 * UNIT])
most = st.sampled_from([2, 5, 100])
gates = st.fixed_dictionaries(
    {"conditions": st.lists(drawn.conditions, min_size=1, max_size=1)},
    optional={"key": st.sampled_from(["", "x", "a"])},
)
windows = st.one_of(
    kind("buffer", size=sizes),
    kind("buffer", size=sizes, seconds=seconds),
    kind("buffer", max_messages=most, seconds=seconds),
)
buffers = drawn.weighted(
    windows,
    kind("buffer", max_messages=most, until=gates),
    kind("buffer", size=sizes, until=gates),
    kind("buffer", max_messages=most, seconds=seconds, until=gates),
)
scripts = st.sampled_from(
    [
        ("message", "if msg.a != 1 { emit(msg); }"),
        ("message", "emit(msg); emit(#{a: msg.b, b: `x`});"),
        ("message", "remember(`x`, #{a: msg.a, c: 1}); emit(msg);"),
        ("message", "if msg.a == 80 { throw `eighty`; } emit(recall(`x`) ?? msg);"),
        ("message", "emit(msg); if msg.a == 80 || msg.b == `` { throw `no`; }", "skip"),
        ("message", "warn(`${msg.b} came`); emit(msg);"),
        ("batch", "emit(batch); emit([#{a: batch.len(), b: ``}]);"),
        ("batch", "batch.reverse(); emit(batch);"),
    ]
).map(
    lambda made: {
        "type": "script",
        "scope": made[0],
        "source": {"type": "inline", "code": made[1]},
        **({"on_error": made[2]} if made[2:] else {}),
    }
)
loops = drawn.weighted(
    *(drawn.some_maps, drawn.some_maps, drawn.filters, drawn.parses()),
    *(drawn.reducers(), st.just(drawn.COUNT)),
).map(lambda made: made.dump())
keepers = drawn.weighted(drawn.remembers, drawn.recalls).map(lambda made: made.dump())
explodes = kind(
    "explode",
    **{
        "from": drawn.weighted(drawn.paths, st.sampled_from("cd")),
        "as": st.sampled_from(["a", "item"]),
        "on_missing": st.sampled_from(["error", "skip", "keep"]),
        "on_error": drawn.on_errors,
    },
)
splitters = kind("splitter", out_size=st.integers(1, 3))
asking = kind(
    "http",
    verb=st.just("POST"),
    url=drawn.weighted(
        *(st.just(f"http://{NOWHERE}/{path}") for path in ("echo", "echo", "echo", *ANSWERS)),
        st.just(CLOSED),
    ),
)
stages = drawn.weighted(
    *(buffers, buffers, loops, loops, keepers, splitters, explodes, asking),
    *([scripts] if find_spec("rhai") else []),
)
chains = st.lists(stages, max_size=4)
without_bucket = st.lists(drawn.weighted(windows, loops, splitters, asking), max_size=3)
"""Nobody promises in which order two pipelines are at a bucket."""

input_buffers = st.one_of(
    kind("static", size=st.integers(0, 4)),
    kind("tumbling", window_seconds=seconds),
    kind("batch", size=st.integers(0, 4), window_seconds=seconds),
)
envelopes = kind("merge", meta=st.just("_meta")) | kind(
    "wrap", meta=st.just("_meta"), payload=st.sampled_from(["d", "value"])
)
edges = st.fixed_dictionaries({}, optional={"buffer": input_buffers, "envelope": envelopes})
selections = drawn.whens.map(lambda when: {"when": when} if when else {})
casts = kind(
    "map",
    on_error=drawn.on_errors,
    mappings=st.sampled_from(["integer", "boolean", "date"]).map(
        lambda to: [{"type": "cast", "from": "a", "to": to}]
    ),
)
"""Some messages fail in it."""
hearing = st.fixed_dictionaries(
    {},
    optional={
        "messages": st.booleans(),
        "stages": st.sampled_from([["transform"], ["input", "output"]]),
    },
)
states = st.sampled_from([{}, {"key": "b"}, {"key": "a"}]).map(
    lambda key: {"bucket": f"{HERE}s", **key}
)

moments = st.lists(st.integers(0, MOMENTS - 1), min_size=1, max_size=MOMENTS, unique=True).map(
    sorted
)
messages = drawn.weighted(drawn.alike, drawn.alike, drawn.other)
posts = messages | st.lists(messages, min_size=1, max_size=4)
texts = messages.map(lambda message: json.dumps(message).encode())
published = drawn.weighted(texts, texts, texts, texts, texts, st.sampled_from(RAW))


def arrivals_at(ids: Sequence[str], what: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return some arrivals, at each moment one or two at one of these pipelines."""

    @st.composite
    def made(draw: st.DrawFn) -> list[DrawnArrival]:
        return [
            DrawnArrival(moment * STEP + index * BESIDE, to, payload)
            for moment in draw(moments)
            for to in [draw(st.sampled_from(ids))]
            for index, payload in enumerate(draw(st.lists(what, min_size=1, max_size=2)))
        ]

    return made()


def pipeline(
    id: str, *inputs: Any, chain: Any, state: Any = None, selects: Any = None
) -> dict[str, Any]:
    named = {} if state is None else {"state": state}
    outputs = [{"type": "stdout", **(selects or {})}]
    return {"id": id, "inputs": [*inputs], "transforms": chain, "outputs": outputs, **named}


@st.composite
def graphs(draw: st.DrawFn, fed: Mapping[str, Any], what: st.SearchStrategy[Any]) -> DrawnGraph:
    """Draw one pipeline, one that another reads, or what fails in it, or two of which one tells the other.

    ``fed`` is an input that something can arrive at, and ``what`` that is.
    """
    one, other = f"{HERE}a", f"{HERE}b"
    first = {**_of(one, fed), **draw(edges)}
    form = draw(st.sampled_from(["one", "one", "read", "read and fed", "told", "failing"]))
    ids = [one]
    selects = draw(selections)
    chain = [*([draw(casts)] if form == "failing" else []), *draw(chains)]
    pipelines = [pipeline(one, first, chain=chain, state=draw(states), selects=selects)]
    if form.startswith("read"):
        inputs = [{"type": "pipeline", "upstream": one, **draw(edges), **draw(selections)}]
        if form == "read and fed":
            inputs.insert(0, {**_of(other, fed), **draw(edges)})
            ids.append(other)
        pipelines.append(pipeline(other, *inputs, chain=draw(without_bucket)))
    elif form == "failing":
        hears = {"type": "failures", "upstream": [one], **draw(hearing), **draw(edges)}
        pipelines.append(pipeline(other, hears, chain=draw(without_bucket)))
    elif form == "told":
        tells = pipeline(
            other, _of(other, fed), chain=[draw(drawn.remembers).dump()], state=draw(states)
        )
        pipelines.append(tells)
        ids.append(other)
    return DrawnGraph(pipelines, draw(arrivals_at(ids, what)))


def _of(id: str, fed: Mapping[str, Any]) -> dict[str, Any]:
    """Return an input for one pipeline: what it reads may be named for that."""
    return {key: each.format(id=id) if isinstance(each, str) else each for key, each in fed.items()}


def accepted(graph: st.SearchStrategy[DrawnGraph]) -> st.SearchStrategy[DrawnGraph]:
    """Return graphs whose config is not refused, and of which the same comes whenever they run."""
    return graph.filter(lambda made: not made.writes_the_time).filter(
        lambda made: made.named("g").program() is not None
    )
