"""An engine that might live elsewhere: what is asked of it, and what it answers, goes through JSON.

Every method of the interface that is awaited is passed its arguments as JSON, and so is what it returns or
raises. A config goes as its document: text, file and place, from which it is read again. What is not
awaited is of this process, and stays as it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.drafts import Site, part_of
from headrace.compiler.component.families import Connection, Input
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.component.states import BucketDeclaration
from headrace.compiler.config.connectionsfile import load_connections
from headrace.compiler.config.dumping import dumped_connections
from headrace.compiler.config.program import Program, load_pipeline, load_program
from headrace.compiler.errors import HeadraceError
from headrace.compiler.jsontext import decode, encode
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.revert.reverting import Target
from headrace.compiler.text.diagnostics import Diagnostic
from headrace.compiler.text.documents import Document, read
from headrace.web.engineprotocol import Engine as Interface
from headrace.web.files.targets import format_of


class JsonEngine:
    """The interface of an engine over ``inner``, which tests may look into."""

    def __init__(self, inner: Engine, catalogue: Catalogue) -> None:
        self.inner = inner
        self._catalogue = catalogue
        for name in AWAITED:
            setattr(self, name, self._through_json(name))

    def __getattr__(self, name: str) -> Any:
        if name in LOCAL:
            return getattr(self.inner, name)
        raise AttributeError(f"'{name}' is no part of the interface: ask 'inner'")

    def _through_json(self, name: str) -> Callable[..., Any]:
        signature = inspect.signature(getattr(Interface, name))
        kinds = get_type_hints(getattr(Interface, name))

        async def asked(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind(self, *args, **kwargs).arguments
            del given["self"]
            passed = {each: self._passed(value, kinds[each]) for each, value in given.items()}
            try:
                answer = await getattr(self.inner, name)(**passed)
            except HeadraceError as cause:
                raise raised_elsewhere(cause) from None
            return through_json(answer, kinds["return"])

        return asked

    def _passed(self, value: Any, kind: Any) -> Any:
        """Return an argument as it arrives."""
        if kind is PipelineConfig:
            return self._config(through_json(written(value)))
        if kind is Program:
            return self._program(through_json(written_program(value)))
        if kind is Target:
            filed = read(encode(dumped_connections(value.connections)), None, "json")
            connections, said = load_connections(filed, self._catalogue)
            assert connections is not None, said
            return Target(self._program(through_json(written_program(value.program))), connections)
        if kind is Connection:
            told = read(encode(value.dump(masked=False)), None, "json")
            part, said = part_of(told.value, Site(told), "connection", self._catalogue)
            assert part.built is not None, said
            return part.built
        if kind is Input:
            told = read(encode(value.dump(masked=False)), None, "json")
            part, said = part_of(told.value, Site(told), "input", self._catalogue)
            assert part.built is not None, said
            return part.built
        return through_json(value, kind)

    def _config(self, told: Any) -> PipelineConfig:
        config, said = load_pipeline(
            document_of(told), self._catalogue, running=told["read"], base=self.inner.base
        )
        assert config is not None, said
        return config

    def _program(self, told: Any) -> Program:
        found: dict[tuple[int, str], PipelineConfig] = {}
        for number, each in enumerate(told["documents"]):
            if [number, []] in told["pipelines"]:
                found[number, "[]"] = self._config(each)
                continue
            program, said = load_program(document_of(each), self._catalogue, base=self.inner.base)
            assert program is not None, said
            found |= {
                (number, encode(config.site.at).decode()): config for config in program.pipelines
            }
        pipelines = [found[number, encode(at).decode()] for number, at in told["pipelines"]]
        buckets = {name: BucketDeclaration.load(each) for name, each in told["buckets"].items()}
        return Program(tuple(pipelines), buckets)


AWAITED = [name for name, each in vars(Interface).items() if inspect.iscoroutinefunction(each)]
LOCAL = {
    "clock",
    *get_type_hints(Interface),
    *(name for name in vars(Interface) if not name.startswith("_") and name not in AWAITED),
}


def through_json(value: Any, kind: Any = Any) -> Any:
    """Return a value of a type as it comes out of JSON."""
    text = msgspec.json.encode(value, enc_hook=_as_text)
    return decode(text) if kind is Any else msgspec.json.decode(text, type=kind, dec_hook=_as_path)


def _as_text(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"a {type(value).__name__} is no value that goes through JSON")


def _as_path(kind: type, value: Any) -> Any:
    assert kind is Path, kind
    return Path(value)


def written(config: PipelineConfig) -> dict[str, Any]:
    """Return what a config is read again from, with the pipelines that it reads from."""
    document = config.site.document
    if document is None:
        text = encode(config.dump(masked=False)).decode()
        return {"file": None, "text": text, "read": config.upstreams}
    return {"file": document.file, "text": document.text, "read": config.upstreams}


def written_program(program: Program) -> dict[str, Any]:
    """Return a program as its documents, the places of its pipelines in them, and its buckets."""
    documents: dict[tuple[Any, Any], dict[str, Any]] = {}
    pipelines = list[tuple[int, Any]]()
    for config in program.pipelines:
        document = written(config)
        called = document["file"], document["text"]
        documents.setdefault(called, document)
        pipelines.append(([*documents].index(called), config.site.at))
    buckets = {name: each.dump() for name, each in program.buckets.items()}
    return {"documents": [*documents.values()], "pipelines": pipelines, "buckets": buckets}


def document_of(told: Any) -> Document:
    """Read a document again."""
    format = "json" if told["file"] is None else format_of(Path(told["file"]))
    return read(told["text"], told["file"], format)


class Raised(msgspec.Struct):
    """An error as it is told elsewhere."""

    kind: str
    args: list[Any]
    facts: dict[str, Any]


def raised_elsewhere(cause: HeadraceError) -> HeadraceError:
    """Return an error as it arrives: its class by name, what it says, and the facts it carries."""
    told = through_json(Raised(type(cause).__name__, [*cause.args], vars(cause)), Raised)
    [kind] = [each for each in _kinds(HeadraceError) if each.__name__ == told.kind]
    arrived = kind.__new__(kind)
    arrived.args = tuple(told.args)
    if "diagnostics" in told.facts:
        told.facts["diagnostics"] = msgspec.convert(told.facts["diagnostics"], list[Diagnostic])
    vars(arrived).update(told.facts)
    return arrived


def _kinds(kind: type[HeadraceError]) -> Iterator[type[HeadraceError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _kinds(each)
