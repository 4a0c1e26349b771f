"""Configs as texts for whoever compares them: without the credentials that are written out in them.

References stay as they are, of everything else that a credential is made of nothing is left. That is more
than an echo hides, which shows secrets as they are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from json.encoder import encode_basestring
from typing import Any

from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.component.states import BucketDeclaration
from headrace.compiler.config.dumping import config_document
from headrace.compiler.schema.redaction import HIDDEN, REFERENCE, Redaction
from headrace.compiler.schema.secrets import Secret
from headrace.compiler.schema.structures import settings_of
from headrace.compiler.schema.urls import ParsedUrl
from headrace.compiler.text.diagnostics import Path


def shown_config(
    pipelines: Iterable[tuple[str | None, PipelineConfig]], buckets: Mapping[str, BucketDeclaration]
) -> Any:
    """Return the document of pipelines, each with the id that it runs under, and of buckets."""
    listed = []
    for id, config in pipelines:
        dumped = config.dump(id)
        for path, shown, _ in _hidden(config):
            place: Any = dumped
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = shown
        listed.append(dumped)
    return config_document(listed, buckets)


def shown_text(text: str, pipelines: Iterable[PipelineConfig]) -> str:
    """Return the text of a document that holds these pipelines.

    Comments stay; what is in them of a credential of five characters and more does not.
    """
    others = Redaction()
    edits = dict[int, tuple[int, str]]()  # of what several places stand for, one
    for config in pipelines:
        for path, shown, written in _hidden(config):
            assert config.site.document is not None
            start, end = config.site.document.written((*config.site.at, *path))
            edits[start] = end, encode_basestring(shown)  # a string in JSON is one in YAML
            for each in written:
                others.hide(each)
    pieces, done = list[str](), 0
    for start, (end, shown) in sorted(edits.items()):
        pieces += text[done:start], shown
        done = end
    return others("".join([*pieces, text[done:]]))


def _hidden(config: PipelineConfig) -> Iterator[tuple[Path, str, list[str]]]:
    """Yield where a config writes a credential out, what shows instead, and what does not."""
    for path, _, value in settings_of(config):
        if isinstance(value, Secret):
            pieces = REFERENCE.split(value.template)  # every second one is a name
            written = [each for each in pieces[::2] if each]
            pieces[::2] = [each and HIDDEN for each in pieces[::2]]
            pieces[1::2] = [f"${{{name}}}" for name in pieces[1::2]]
            if written:
                yield path, "".join(pieces), written
        elif isinstance(value, ParsedUrl) and value.user is not None:
            yield path, value.dump(), [value.password or value.user]
