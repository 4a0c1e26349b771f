"""The config file: what it is, where a save would land, and a save."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import falcon.asgi
import msgspec
from msgspec import Meta

from headrace.compiler.jsontext import encode
from headrace.compiler.schema.fields import Boolean, Choice, Text
from headrace.compiler.schema.records import Record, option
from headrace.compiler.text.decoding import Format
from headrace.web.auth.access import Access
from headrace.web.bodies import Request, record_of
from headrace.web.endpoint import BODY, Answer, Endpoint, refusals
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


class SettingsDto(msgspec.Struct):
    """What the server works against, and whether a save is due."""

    config_file: Annotated[str | None, Meta(description="Bare name; null without a config file.")]
    save_directory: str
    unsaved_changes: Annotated[
        bool,
        Meta(description="Whether a save would write another graph than was loaded or saved last."),
    ]


class SaveConfigResponse(msgspec.Struct):
    """Where it was written."""

    path: str


async def get_settings(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response
) -> None:
    """Answer which config the server works against, where a save lands, and whether one is due."""
    filing = service.filing
    config = filing.files.config
    file = None if config is None else _shown(config.name)
    resp.data = encode(SettingsDto(file, _shown(filing.directory), filing.has_changed()))


async def save_config(service: Service, req: Request, resp: falcon.asgi.Response) -> None:
    """Write what runs."""
    asked = await record_of(req, SaveConfigRequest, "nothing was saved", service.reading)
    saved = await service.filing.save(
        asked.name,
        service.catalogue,
        format=asked.format,
        overwrites=asked.overwrite,
    )
    service.changed("config", None, req.scope)
    resp.data = encode(SaveConfigResponse(_shown(saved)))


def _shown(path: Path | str) -> str:
    """Return a path as text; what is in it that is not UTF-8 shows as such."""
    return os.fsencode(path).decode(errors="replace")


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/api/settings",
        operation="getSettings",
        tag="config",
        access=Access.READ,
        summary="Tell the config file, where a save would land, and whether anything has changed.",
        responses={200: Answer("The settings.", SettingsDto)},
        respond=get_settings,
    ),
    Endpoint(
        method="POST",
        path="/api/config/save",
        operation="saveConfig",
        tag="config",
        access=Access.ADMIN,
        summary="Write what runs: config, connections and layout, all of them or none.",
        body=SaveConfigRequest,
        example={"name": "plant.yaml"},
        responses={
            200: Answer("It is written, and can be started from.", SaveConfigResponse),
            **BODY,
            **refusals(
                _409="Files are there and must not be replaced; the answer names them.",
                _422="The name is no bare file name; nothing was written.",
                _500="It could not be written; the files are as they were.",
            ),
        },
        respond=save_config,
    ),
)
