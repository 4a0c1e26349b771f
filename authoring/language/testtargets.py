"""What the keys of a test name: pipelines, their components, buckets, connections."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from headrace.authoring.playing.scenario import ComponentAt
from headrace.compiler.component.families import Input
from headrace.compiler.component.pipelineconfig import FAMILY_OF, LIST_OF, PipelineConfig
from headrace.compiler.component.states import undeclared_bucket
from headrace.compiler.config.program import Program
from headrace.compiler.schema.fields import ConnectionName
from headrace.compiler.schema.structures import settings_of
from headrace.compiler.text.diagnostics import Codes, Fault, shown
from headrace.compiler.text.suggest import nearest, one_of

CODES: Codes = {
    "ambiguous": "A test gives something to a pipeline with several inputs, and does not say to which.",
    "nameless": "A test is about a pipeline without an id, which has another name each time.",
    "not-an-input": "A test gives something to an input that nobody gives anything.",
    "unknown-pipeline": "A test names a pipeline or a component that its config has not.",
}

BUCKET = "state."
CONNECTION = "connections."

_COMPONENT = re.compile(rf"(.+)\.({'|'.join(FAMILY_OF)})\[([0-9]{{1,4}})\]", re.DOTALL)
_WHY_NOT = {
    "pipeline": "is fed by its upstream",
    "failures": "is fed by what fails",
    "clock": "makes its messages itself",
}


def name_of(pipeline: str, index: int) -> str:
    """Return what an input is called."""
    return f"{pipeline}.{LIST_OF['input']}[{index}]"


class UnknownTarget(Exception):
    """A key names nothing that is there."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


@dataclass(frozen=True)
class Targets:
    """What there is to be named in a config."""

    program: Program
    connections: Collection[str]

    @property
    def pipelines(self) -> Mapping[str, PipelineConfig]:
        """The pipelines that have an id."""
        return self.program.named

    def bucket(self, key: str) -> str | None:
        """Return the bucket that a key names, None if it names something else.

        Raises:
            UnknownTarget: there is none of that name.
        """
        if not key.startswith(BUCKET) or key in self.pipelines or _COMPONENT.fullmatch(key):
            return None
        name = key.removeprefix(BUCKET)
        if name not in self.program.buckets:
            raise UnknownTarget(undeclared_bucket(name, self.program.buckets))
        return name

    def pipeline(self, key: str) -> PipelineConfig:
        """Return the pipeline of an id.

        Raises:
            UnknownTarget: there is none.
        """
        known = self.pipelines
        if key in known:
            return known[key]
        if not known and self.program.pipelines:
            said = "no pipeline of the config has an id, by which a test could name it"
            raise UnknownTarget(
                Fault("nameless", said, shown(key), "an id for each that is tested")
            )
        fault = Fault("unknown-pipeline", f"there is no pipeline '{key}'", key, one_of(known))
        raise UnknownTarget(fault.meaning(nearest(key, known)))

    def component(self, key: str) -> ComponentAt | None:
        """Return the component that a key names, None if it names none.

        Raises:
            UnknownTarget: its pipeline has none there.
        """
        found = _COMPONENT.fullmatch(key)
        if found is None or key in self.pipelines:
            return None
        config, name, index = self.pipeline(found[1]), found[2], int(found[3])
        there = len(getattr(config, name))
        if index >= there:
            expected = f"{name}[0] to {name}[{there - 1}]" if there else f"a pipeline with {name}"
            said = f"'{config.id}' has {there} {name if there != 1 else name.removesuffix('s')}"
            raise UnknownTarget(Fault("unknown-pipeline", said, key, expected))
        return found[1], FAMILY_OF[name], index

    def input(self, key: str) -> tuple[str, int]:
        """Return the input that is given something: the one that is named, or the only one there is.

        Raises:
            UnknownTarget: there is none, or several, or it is one that nobody gives anything.
        """
        component = self.component(key)
        if component is not None:
            id, stage, index = component
            if stage != "input":
                raise UnknownTarget(Fault("not-an-input", f"'{key}' is no input", key, "an input"))
            self._may_be_given(self.pipelines[id].inputs[index], key)
            return id, index
        config = self.pipeline(key)
        given = [index for index, each in enumerate(config.inputs) if each.fed_by not in _WHY_NOT]
        if len(given) == 1:
            return key, given[0]
        if not given:
            self._may_be_given(config.inputs[0], key)
        names = " or ".join(f"{key}.inputs[{index}]" for index in given)
        said = f"'{key}' has {len(given)} inputs: name {names}"
        raise UnknownTarget(Fault("ambiguous", said, key, names))

    def saying(self, key: str) -> None:
        """Check that failures and warnings can come from what a key names.

        Raises:
            UnknownTarget: it is no component, and nothing else that says any.
        """
        if self.component(key) is not None or key == BUCKET.removesuffix("."):
            return
        if not any(key.startswith(f"{id}.") for id in self.pipelines):
            said = f"'{key}' is no component, and says nothing"
            expected = "a component, such as PIPELINE.outputs[0]"
            raise UnknownTarget(Fault("unknown-pipeline", said, key, expected))

    def failing(self, key: str) -> ComponentAt:
        """Return the component that a key names.

        Raises:
            UnknownTarget: it names none.
        """
        if (component := self.component(key)) is not None:
            return component
        expected = "a component, such as PIPELINE.outputs[0]"
        self.pipeline(key)
        raise UnknownTarget(
            Fault("unknown-pipeline", f"'{key}' is a whole pipeline", key, expected)
        )

    def posted(self, key: str) -> None:
        """Check that posts can be refused by a pipeline.

        Raises:
            UnknownTarget: there is no such pipeline, or it takes none.
        """
        if all(each.fed_by != "posts" for each in self.pipeline(key).inputs):
            said = f"nothing is posted to '{key}'"
            raise UnknownTarget(Fault("not-an-input", said, key, "a pipeline with an http input"))

    def asking(self, key: str) -> tuple[str, int]:
        """Return the transform that gets replies.

        Raises:
            UnknownTarget: it asks nobody, or is not there.
        """
        component = self.component(key)
        expected = one_of(self.all_asking()) if self.all_asking() else "nothing: no transform asks"
        if component is None:
            self.pipeline(key)
        if component is None or not self._asks(component):
            said = f"'{key}' asks no server"
            raise UnknownTarget(
                Fault("unknown-pipeline", said, key, expected).meaning(
                    nearest(key, self.all_asking())
                )
            )
        return component[0], component[2]

    def reached(self, given: Iterable[str]) -> set[str]:
        """Return the pipelines that something comes to if it does to some of them."""
        there = {
            id
            for id, config in self.pipelines.items()
            if id in given or any(each.fed_by == "clock" for each in config.inputs)
        }
        while more := {
            id
            for id, config in self.pipelines.items()
            if id not in there and not there.isdisjoint(config.upstreams)
        }:
            there |= more
        return there

    def all_asking(self) -> list[str]:
        """Return the names of the transforms that ask servers."""
        return [f"{id}.{LIST_OF['transform']}[{index}]" for id, index in self.program.asking()]

    def reaching(self, key: str) -> list[ComponentAt]:
        """Return the inputs and outputs that reach a server: the named one, or those of a connection.

        Raises:
            UnknownTarget: there is none.
        """
        if key.startswith(CONNECTION):
            name = key.removeprefix(CONNECTION)
            found = [at for at, named in self._connected() if named == name]
            if found:
                return found
            names = sorted({named for _, named in self._connected()})
            said = f"no input and no output names a connection '{name}'"
            fault = Fault(
                "unknown-connection", said, name, one_of(names) if names else "none: there is none"
            )
            raise UnknownTarget(fault.meaning(nearest(name, names)))
        component = self.component(key)
        if component is None:
            self.pipeline(key)
            said = f"'{key}' is a whole pipeline"
            raise UnknownTarget(
                Fault("unknown-pipeline", said, key, f"{key}.outputs[0] or {key}.inputs[0]")
            )
        id, stage, index = component
        if stage == "input":
            source = self.pipelines[id].inputs[index]
            if source.fed_by != "server":
                said = f"an input of type '{source.kind}' has no server that could be away"
                raise UnknownTarget(Fault("not-an-input", said, key, "an input with a connection"))
        elif stage == "transform":
            said = f"what '{key}' is answered is written under 'replies'"
            raise UnknownTarget(Fault("unknown-pipeline", said, key, "an input or an output"))
        return [component]

    def _connected(self) -> Iterator[tuple[ComponentAt, str]]:
        """Yield the inputs and outputs that name a connection."""
        for id, config in self.pipelines.items():
            for name in ("inputs", "outputs"):
                for index, each in enumerate(getattr(config, name)):
                    for _, known, value in settings_of(each):
                        if isinstance(known, ConnectionName):
                            yield (id, FAMILY_OF[name], index), value

    def _asks(self, component: ComponentAt) -> bool:
        id, stage, index = component
        return stage == "transform" and self.pipelines[id].transforms[index].asks

    def _may_be_given(self, source: Input, key: str) -> None:
        if (why := _WHY_NOT.get(source.fed_by)) is not None:
            said = f"an input of type '{source.kind}' {why}"
            raise UnknownTarget(
                Fault("not-an-input", said, key, "an input that reads from outside")
            )
