"""What can be filed over the API can be saved and loaded: every kind of connection, right and wrong."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from headrace.compiler.component.families import Component
from headrace.compiler.component.pipelineconfig import is_same
from headrace.compiler.config.connectionsfile import load_connection, load_connections
from headrace.compiler.config.dumping import Snapshot
from headrace.compiler.schema import fields
from headrace.compiler.schema.redaction import REFERENCE
from headrace.compiler.schema.secrets import Secrets
from headrace.compiler.text.diagnostics import Diagnostic, Severity
from headrace.compiler.text.documents import Document, read
from headrace.web.files.filing import Save
from headrace.web.files.layoutfile import LayoutFile
from headrace.web.files.reading import Files, load
from headrace.web.files.replacing import replace
from headrace.web.files.targets import targets_of
from tests.examples import examples
from tests.web.files.graphs import drawn, known, samples, texts
from tests.web.files.servers import Server

KINDS = [*known().family("connection").values()]
REFERENCES = st.sampled_from(["${", "x${a b}", "${}", "${NAME}", "", "plain"])
URLS = st.sampled_from(["http://h", "https://h:1", "ftp://h", "https://u:p@h", "https://h/?q"])
SECRETS = Secrets({"NAME": "answered"}, {})


@st.composite
def posted(draw: st.DrawFn, kind: type[Component]) -> dict[str, Any]:
    """Draw the body of a post: an example of its page, keys changed, missing and too many."""
    body = dict(draw(st.sampled_from(samples()[kind])))
    options = kind.options()
    for wire in draw(st.lists(st.sampled_from([*options]), max_size=4)):
        field = options[wire].field
        if isinstance(field, fields.SecretText):
            body[wire] = draw(REFERENCES)
        else:
            body[wire] = draw(st.one_of(drawn(field, body.get(wire)), URLS, st.none()))
    for wire in draw(st.lists(st.sampled_from([*body]), max_size=2)):
        body.pop(wire, None)
    return {"id": draw(st.one_of(texts, st.just("x" * 1001))), **body}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_what_the_api_takes_loads_once_it_is_saved(kind: type[Component]) -> None:
    taken: list[str] = []

    @examples(30)
    @given(posted(kind))
    @example({"id": "as on its page", **samples()[kind][0]})
    def check(body: dict[str, Any]) -> None:
        filed, _ = load_connection(_document(body), known(), SECRETS)
        if filed is None:
            return event("refused")
        event("filed")
        name, connection = filed
        taken.append(name)
        with tempfile.TemporaryDirectory() as folder:
            for config in ("one.json", "other.yaml"):
                targets = targets_of(config, Path(folder), Files())
                snapshot = Snapshot(connections={name: connection})
                chosen: Any = config.partition(".")[2]
                save = Save(snapshot, LayoutFile(), targets, chosen, is_new=True)
                replace([*save.changes(known())])

                loaded = load(Files(config=targets.config), known())

                assert [each for each in loaded.diagnostics if _is_error(each)] == []
                assert [*loaded.connections] == [name]
                assert is_same(loaded.connections[name], connection)

    check()

    assert "as on its page" in taken


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
async def test_what_is_posted_and_saved_is_what_a_start_loads(
    kind: type[Component], server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies = {f"{kind.kind} {at}": each for at, each in enumerate(samples()[kind])}
    for name in {name for each in bodies.values() for name in REFERENCE.findall(json.dumps(each))}:
        monkeypatch.setenv(name, "answered")

    await server.files(*({"id": name, **body} for name, body in bodies.items()))
    saved = folder / await server.saves("saved.yaml")
    loaded = load(Files(config=saved), known())

    assert bodies
    assert [each for each in loaded.diagnostics if _is_error(each)] == []
    for name, body in bodies.items():
        filed, _ = load_connection(_document({"id": name, **body}), known(), SECRETS)
        assert filed is not None
        assert is_same(loaded.connections[name], filed[1])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_a_file_and_the_api_refuse_the_same_in_the_same_words(kind: type[Component]) -> None:
    @examples(40)
    @given(posted(kind))
    def check(body: dict[str, Any]) -> None:
        rest = {key: value for key, value in body.items() if key != "id"}

        one, told = load_connection(_document({**rest, "id": "x"}), known(), SECRETS)
        several, said = load_connections(_document({"x": rest}), known(), SECRETS)

        event("refused" if one is None else "filed")
        assert (one is None) == (several is None)
        assert _words(told) == _words(said)

    check()


def _words(said: Sequence[Diagnostic]) -> list[tuple[str, str, str]]:
    """Return what diagnostics tell, their paths as from the connection ``x``."""
    return sorted((re.sub(r"^x\b\.?", "", each.path), each.code, each.message) for each in said)


def _document(value: Any) -> Document:
    return read(json.dumps(value), None, "json")


def _is_error(diagnostic: Diagnostic) -> bool:
    return diagnostic.severity is Severity.ERROR
