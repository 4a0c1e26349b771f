"""The files behind what runs: the config it is saved to, and the layout beside it."""

from __future__ import annotations

from headrace.web import examples
from headrace.web.auth.access import Access
from headrace.web.endpoint import BODY, Answer, Endpoint, refusals
from headrace.web.resources import config as requests
from headrace.web.resources import revert as reverting

ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/api/settings",
        operation="getSettings",
        tag="config",
        access=Access.READ,
        summary="Tell the config file, where a save would land, and whether anything has changed.",
        responses={200: Answer("The settings.", "SettingsDto")},
        respond=requests.get_settings,
    ),
    Endpoint(
        method="POST",
        path="/api/config/save",
        operation="saveConfig",
        tag="config",
        access=Access.ADMIN,
        summary="Write what runs: config, connections and layout, all of them or none.",
        body="SaveConfigRequest",
        example=examples.SAVE,
        responses={
            200: Answer("It is written, and can be started from.", "SaveConfigResponse"),
            **BODY,
            **refusals(
                _409="Files are there and must not be replaced; the answer names them.",
                _422="The name is no bare file name; nothing was written.",
                _500="It could not be written; the files are as they were.",
            ),
        },
        respond=requests.save_config,
    ),
    Endpoint(
        method="POST",
        path="/api/config/revert",
        operation="revertConfig",
        tag="config",
        access=Access.ADMIN,
        summary="Have what the config file says run. What runs so already goes on undisturbed.",
        responses={
            204: Answer("It runs; what had to end has ended."),
            **refusals(
                _500="There is no config file, or it is refused: then nothing was changed. Or a server "
                "turned down what the file says: then that pipeline is `failed`, and the others run.",
                _503=BODY[503].meaning,
            ),
        },
        respond=reverting.revert_config,
    ),
    Endpoint(
        method="GET",
        path="/api/config/plan",
        operation="planRevert",
        tag="config",
        access=Access.READ,
        summary="Tell what a revert would add, change, remove and leave alone, and what that costs.",
        responses={
            200: Answer("The plan; nothing is built for it.", "RevertPlan"),
            **refusals(_500="There is no config file, or it is refused."),
        },
        respond=reverting.plan_revert,
    ),
    Endpoint(
        method="GET",
        path="/api/layout",
        operation="getLayout",
        tag="layout",
        access=Access.READ,
        summary="Read where somebody has put pipelines on a page.",
        responses={200: Answer("The layout.", "LayoutFile")},
        respond=requests.get_layout,
    ),
    Endpoint(
        method="PUT",
        path="/api/layout",
        operation="replaceLayout",
        tag="layout",
        access=Access.ADMIN,
        summary="Replace the whole layout; an empty one leaves all to automatic layout.",
        body="LayoutFile",
        example=examples.LAYOUT,
        responses={
            204: Answer("It is kept, and written if there is a config file."),
            **BODY,
            **refusals(
                _422="It is no layout.",
                _500="It could not be written; the layout is as it was.",
            ),
        },
        respond=requests.replace_layout,
    ),
)
