"""The config as a text, for whoever compares what is on file with what runs: without credentials."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal, get_args

import falcon
import falcon.asgi
from msgspec import Meta

from headrace.compiler.config.dumping import Snapshot
from headrace.compiler.config.showing import shown_config, shown_text
from headrace.compiler.errors import HeadraceError, Refused
from headrace.compiler.runtime.switching import SWITCHING
from headrace.compiler.text.decoding import Format
from headrace.compiler.text.diagnostics import in_file_order
from headrace.compiler.text.writing import write
from headrace.web.auth.access import Access
from headrace.web.bodies import Request
from headrace.web.endpoint import BODY, FAILURE, MALFORMED, Answer, Endpoint, refusals
from headrace.web.files.reading import load_again
from headrace.web.files.targets import format_of
from headrace.web.parameters import Word
from headrace.web.service import Service
from headrace.web.shapes import PlainText

Of = Literal["running", "file"]
OF: Word[Of] = Word(
    "of",
    "`running`: what runs, as a save would write it. `file`: the config file, as it is now.",
    get_args(Of),
    "running",
    Annotated[Of, Meta(title="ConfigTextOf", extra_json_schema={"default": "running"})],
)
FORMAT: Word[Format | Literal[""]] = Word(
    "format",
    "How it is written; absent, as the name of the config file says, or as JSON without one. A file that is"
    " in the other format is written anew, without its comments.",
    get_args(Format),
    "",
    Annotated[Format, Meta(title="ConfigTextFormat")],
)


class NoConfigText(HeadraceError):
    """There is no file that a text could be of."""

    def __init__(self) -> None:
        super().__init__("there is no config file: start with '--config FILE', or save first")


class NotShown(Refused):
    """The config file is refused as it is: nobody can tell what in it is a credential."""


async def get_config_text(service: Service, req: Request, resp: falcon.asgi.Response) -> None:
    """Answer a text of the config."""
    of, format = OF.of(req), FORMAT.of(req)
    config, engine = service.filing.files.config, service.engine
    if config is None and of == "file":
        raise NoConfigText
    own = "json" if config is None else format_of(config)
    if of == "file":
        make = partial(_filed, service, format or own)
    else:
        running = Snapshot(engine.configs(), buckets=dict(engine.declarations))
        make = partial(_running, running, format or own)
    # In a thread, as a body is read: a large config takes seconds.
    with SWITCHING.often():
        text = await req.in_turn(service.reading, make)
    resp.content_type = falcon.MEDIA_TEXT
    resp.data = text.encode()


def _running(running: Snapshot, format: Format) -> str:
    pipelines = [(id, running.pipelines[id]) for id in running.order()]
    return write(shown_config(pipelines, running.buckets), format)


def _filed(service: Service, format: Format) -> str:
    """Return what the file says.

    Raises:
        NotShown: with everything that is wrong with it.
    """
    files, engine = service.filing.files, service.engine
    loaded = load_again(files, service.catalogue, engine.secrets, engine.data_dir)
    if loaded.program is None or loaded.is_refused:
        raise NotShown(in_file_order(loaded.diagnostics), "its text is not shown")
    assert files.config is not None
    if format == format_of(files.config):
        return shown_text(loaded.sources[files.called(files.config)], loaded.program.pipelines)
    in_order = sorted(loaded.program.pipelines, key=lambda each: each.site.at)
    return write(
        shown_config([(each.id, each) for each in in_order], loaded.program.buckets), format
    )


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/api/config/text",
        operation="getConfigText",
        tag="config",
        access=Access.ADMIN,
        summary="Read what runs, or the config file, as a text without credentials: to compare them.",
        query=(OF.query, FORMAT.query),
        responses={
            200: Answer("The text.", PlainText, media_type="text/plain"),
            **MALFORMED,
            **refusals(
                _404="There is no config file.",
                _409="The config file is refused as it is: nobody can tell what in it is a credential.",
                _500=FAILURE,
                _503=BODY[503].meaning,
            ),
        },
        respond=get_config_text,
    ),
)
