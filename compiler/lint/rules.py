"""Rules across components: of one pipeline, and between the pipelines that run together.

They look at drafts, so what can be judged is judged although something else is wrong. Nothing here
knows a kind: an input that reads another pipeline is one with an option that is a `PipelineId`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from itertools import islice

from headrace.compiler.component.drafts import Draft, DraftComponent
from headrace.compiler.component.families import Input
from headrace.compiler.schema.structures import upstreams
from headrace.compiler.text.composing import FAULTS
from headrace.compiler.text.diagnostics import Codes, Diagnostic, Fault, shown
from headrace.compiler.text.suggest import nearest, one_of

CODES: Codes = {
    "cycle": "Pipelines feed each other in a circle.",
    "missing-upstream": "A pipeline reads from one that does not exist.",
    "nothing-to-acknowledge": "An input that cannot acknowledge is asked to.",
    "second-input": "An input of which a pipeline can have only one is there twice.",
}


def wrong_within(draft: Draft) -> Iterator[Diagnostic]:
    """Yield what is wrong between the components of one pipeline."""
    yield from _second_inputs(draft)
    yield from _claimed_twice(draft.inputs)
    yield from _claimed_twice(draft.outputs)
    yield from _nothing_to_acknowledge(draft)


def wrong_between(drafts: Sequence[Draft], running: Collection[str] = ()) -> Iterator[Diagnostic]:
    """Yield what is wrong between pipelines, ``running`` being there already."""
    yield from _duplicate_ids(drafts)
    yield from islice(_missing_upstreams(drafts, running), FAULTS)
    _, rings = _taken_apart(drafts)
    for ring in rings:
        names = [str(drafts[place].id) for place in ring]
        part, path = next(
            (part, path)
            for part in drafts[ring[0]].inputs
            for path, upstream in upstreams(part.settings())
            if upstream == names[-1]
        )
        yield part.site.diagnose(replace(circle(names, _of_itself(part)), path=path))


def by_dependency(drafts: Sequence[Draft]) -> list[int]:
    """Return the places of the drafts so that each comes after what it reads.

    Of those that could come next, the first one in the file does.
    """
    order, ready = [], list[int]()
    graph, _ = _taken_apart(drafts)
    sorter = TopologicalSorter(graph)
    sorter.prepare()
    while sorter.is_active():
        for place in sorter.get_ready():
            heappush(ready, place)
        order.append(heappop(ready))
        sorter.done(order[-1])
    return order


def _second_inputs(draft: Draft) -> Iterator[Diagnostic]:
    first: dict[type, DraftComponent] = {}
    for part in draft.inputs:
        is_only = issubclass(part.component, Input) and part.component.is_only
        if is_only and (other := first.setdefault(part.component, part)) is not part:
            fault = Fault(
                "second-input",
                f"a pipeline has at most one {part.component.kind} input, and {other} is one",
                expected="an input of another kind, or a pipeline of its own",
            )
            yield part.site.diagnose(fault)


def _claimed_twice(parts: Iterable[DraftComponent]) -> Iterator[Diagnostic]:
    first: dict[str, DraftComponent] = {}
    for part in parts:
        for claim in part.built.claims() if part.built is not None else ():
            if first.setdefault(claim, part) is not part:
                message = f"{claim} is taken by {first[claim]}: each would cut off the other"
                yield part.site.diagnose(Fault("duplicate", message))


def _nothing_to_acknowledge(draft: Draft) -> Iterator[Diagnostic]:
    for part in draft.inputs:
        wants = part.values.get("ack") == "on_delivery"
        if wants and issubclass(part.component, Input) and not part.component.acknowledges:
            why = part.component.unacknowledged
            fault = Fault(
                "nothing-to-acknowledge",
                f"a message from '{part.component.kind}' is acknowledged to nobody"
                f"{f' ({why})' if why else ''}, so 'ack' cannot be on_delivery",
                '"on_delivery"',
                "on_receipt",
                path=("ack",),
            )
            yield part.site.diagnose(fault)


def _duplicate_ids(drafts: Iterable[Draft]) -> Iterator[Diagnostic]:
    first: dict[str, Draft] = {}
    for draft in drafts:
        if draft.id is not None and (other := first.setdefault(draft.id, draft)) is not draft:
            fault = Fault(
                "duplicate",
                f"the id '{draft.id}' is taken by the pipeline on line {other.site.inside('id').line()}",
                found=shown(draft.id),
                expected="an id that no other pipeline has",
                path=("id",),
            )
            yield draft.site.diagnose(fault)


def missing_upstream(upstream: str, known: Iterable[str]) -> Fault:
    """Return the fault of reading from a pipeline that is not there."""
    others = [*known]
    fault = Fault(
        "missing-upstream",
        f"there is no pipeline '{upstream}' to read from",
        found=shown(upstream),
        expected=one_of(others) if others else "the id of another pipeline",
    )
    return fault.meaning(nearest(upstream, others))


def _missing_upstreams(drafts: Sequence[Draft], running: Collection[str]) -> Iterator[Diagnostic]:
    known = {*running, *(draft.id for draft in drafts if draft.id is not None)}
    for draft in drafts:
        others: list[str] = []
        for part in draft.inputs:
            for path, upstream in upstreams(part.settings()):
                if upstream not in known:
                    others = others or sorted(known - {draft.id})
                    fault = replace(missing_upstream(upstream, others), path=path)
                    yield part.site.diagnose(fault)


def _taken_apart(drafts: Sequence[Draft]) -> tuple[dict[int, list[int]], list[list[int]]]:
    """Return who reads whom without what closes a ring, and the rings, each told once.

    Rings are walked in the direction in which the messages go, and start at the first in the file.
    """
    places = {draft.id: place for place, draft in reversed([*enumerate(drafts)])}
    graph: dict[int, list[int]] = {}
    for place, draft in enumerate(drafts):
        names = (upstream for part in draft.inputs for _, upstream in upstreams(part.settings()))
        graph[place] = [*dict.fromkeys(places[each] for each in names if each in places)]
    rings = list[list[int]]()
    followed = set[int]()
    for start in graph:
        way: dict[int, Iterator[int]] = {}
        if start not in followed:
            way[start] = iter([*graph[start]])
        while way:
            here, left = next(reversed(way.items()))
            read = next(left, None)
            if read is None:
                followed.add(here)
                way.popitem()
            elif read in way:
                graph[here].remove(read)
                if len(rings) < FAULTS:
                    ring = [*way]
                    ring = ring[ring.index(read) :][::-1]
                    first = ring.index(min(ring))
                    rings.append(ring[first:] + ring[:first])
            elif read not in followed:
                way[read] = iter([*graph[read]])
    return graph, rings


def _of_itself(part: DraftComponent) -> str:
    return part.component.of_itself if issubclass(part.component, Input) else Input.of_itself


def circle(names: Sequence[str], of_itself: str) -> Fault:
    """Return the fault of pipelines that the same messages would go round for ever.

    ``of_itself`` is what is said of one alone, by the input that names it.
    """
    around = " -> ".join([*names, names[0]])
    message = (
        f"'{names[0]}' {of_itself}"
        if len(names) == 1
        else f"these pipelines feed each other in a circle: {around}"
    )
    return Fault("cycle", message, shown(names[-1]), "a pipeline that does not read this one")
