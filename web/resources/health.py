"""Whether the process lives, and whether it wants requests."""

from __future__ import annotations

import falcon
import falcon.asgi

from headrace.web.service import Service


async def live(service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response) -> None:
    """Answer that the process runs and its loop turns."""
    resp.data = b'{"status":"live"}'


async def ready(service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response) -> None:
    """Answer whether the pipelines of the config run and requests are accepted."""
    if not service.is_ready:
        raise falcon.HTTPServiceUnavailable(description="starting or shutting down")
    resp.data = b'{"status":"ready"}'
