"""Post the year to the pipeline `weather` of a running server: `make year`."""

from __future__ import annotations

import json
import sys
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

from specs.weather.readings import readings, source

SERVER = "http://127.0.0.1:6767"
"""Where a server listens unless it is told otherwise."""
PATH = "/api/pipelines/weather/messages"
SECONDS = 60.0


def post(server: str) -> str:
    """Post all readings at once, and return what the server says.

    Raises:
        SystemExit: there are no readings, or nobody takes them.
    """
    file = source()
    if file is None:
        sys.exit("vega-datasets is not installed; make year and make test install it")
    request = Request(server.rstrip("/") + PATH, json.dumps(readings(file)).encode())
    try:
        # Straight there: what a proxy is for is elsewhere.
        with build_opener(ProxyHandler({})).open(request, timeout=SECONDS) as answer:
            said: str = answer.read().decode()
            return said
    except HTTPError as cause:
        sys.exit(f"{server} answers {cause.code}: {cause.read().decode()}")
    except URLError as cause:
        sys.exit(
            f"nobody answers at {server} ({cause.reason}); start the server first:"
            " .venv/bin/headrace serve --config specs/weather/config.yaml --data-dir data"
        )


if __name__ == "__main__":
    print(post(*sys.argv[1:] or [SERVER]))
