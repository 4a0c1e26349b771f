"""The endpoints of the files: where a save would land, a save, and the layout."""

from __future__ import annotations

import os
from pathlib import Path

import falcon
import falcon.asgi

from headrace.compiler.jsontext import encode
from headrace.compiler.language.decoding import Format
from headrace.compiler.language.fields import Boolean, Choice, Text
from headrace.compiler.language.records import Record, option
from headrace.web.asking import Request
from headrace.web.bodies import record_of
from headrace.web.files.layout import LayoutFile
from headrace.web.service import Service


class Consent(Boolean):
    """`true` or `false`; null is neither."""

    is_null_absent = False


class SaveConfigRequest(Record):
    """What a save is called, and what it may do."""

    name: str = option(Text(), "Bare name of the config file; it lands in the save directory.")
    format: Format | None = option(
        Choice("json", "yaml"), "How it is written; left out, as its extension says.", default=None
    )
    overwrite: bool = option(Consent(), "Whether files that are there are replaced.", default=True)


async def get_settings(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response
) -> None:
    """Answer which config the server works against, where a save lands, and whether one is due."""
    filing = service.filing
    config = filing.files.config
    resp.data = encode(
        {
            "config_file": None if config is None else _shown(config.name),
            "save_directory": _shown(filing.directory),
            "unsaved_changes": filing.has_changed(),
        }
    )


async def save_config(service: Service, req: Request, resp: falcon.asgi.Response) -> None:
    """Write what runs."""
    asked = await record_of(req, SaveConfigRequest, "nothing was saved", service.reading)
    saved = await service.filing.save(
        asked.name,
        service.catalogue,
        format=asked.format,
        overwrites=asked.overwrite,
    )
    resp.data = encode({"path": _shown(saved)})


async def get_layout(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response
) -> None:
    """Answer the layout."""
    resp.data = encode(service.filing.layout.dump())


async def replace_layout(service: Service, req: Request, resp: falcon.asgi.Response) -> None:
    """Take a whole layout in place of the one there is."""
    layout = await record_of(req, LayoutFile, "the layout is as it was", service.reading)
    await service.filing.arrange(layout)
    resp.status = falcon.HTTP_204


def _shown(path: Path | str) -> str:
    """Return a path as text; what is in it that is not UTF-8 shows as such."""
    return os.fsencode(path).decode(errors="replace")
