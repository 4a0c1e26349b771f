"""The console of a server under load, in a browser: what the console's scenarios watch."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import count, cycle
from pathlib import Path
from threading import Event, Thread
from typing import Any

from playwright.sync_api import Page, sync_playwright

from bench import servers
from bench.ingest import path
from bench.load import HOST
from bench.servers import Server
from headrace.web.console import assets
from tests.services.programs import Missing

CHROMIUM = Path("/usr/bin/chromium")
TREE = 5
SCREEN = (1440, 900)
VIEW = ".svelte-flow__viewport"
"""The part of the page that is moved and zoomed."""
JSON = {"Content-Type": "application/json"}
SLOWEST = 0.9
"""Of what was to pass, what has to pass for a figure to count."""


@contextmanager
def watched(
    pipelines: int, events: int, screen: tuple[int, int] = SCREEN
) -> Iterator[tuple[Page, Server]]:
    """Open the console of so many pipelines, in trees of five, that make so many events a second."""
    if not CHROMIUM.exists() or assets.page("") is None:
        raise Missing("chromium, or the built console")
    with (
        tempfile.TemporaryDirectory() as folder,
        servers.headrace([*trees(pipelines)], Path(folder)) as server,
        _traffic(server, pipelines, events),
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": screen[0], "height": screen[1]})
        page.goto(f"http://{HOST}:{server.port}/")
        page.wait_for_selector(VIEW)
        yield page, server
        browser.close()


def trees(pipelines: int) -> Iterator[dict[str, Any]]:
    """Yield trees of five: one takes posts, four read it."""
    for number in range(pipelines):
        root = f"pipe-{number - number % TREE:04}"
        reads = {"type": "pipeline", "upstream": root}
        inputs = [reads if number % TREE else {"type": "http"}]
        yield {"id": f"pipe-{number:04}", "inputs": inputs, "outputs": []}


@contextmanager
def _traffic(server: Server, pipelines: int, events: int) -> Iterator[None]:
    """Post to the trees in turn: each post comes in and goes out five times."""
    ended = Event()
    apart = 2 * TREE / events
    posted = count()

    def post() -> None:
        client = HTTPConnection(HOST, server.port)
        due = time.monotonic()
        for number in cycle(range(0, pipelines, TREE)):
            due += apart
            if ended.wait(max(0.0, due - time.monotonic())):
                return
            client.request("POST", path(f"pipe-{number:04}"), b'{"n": 1}', JSON)
            client.getresponse().read()
            next(posted)

    thread = Thread(target=post)
    began = time.monotonic()
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    passed = next(posted) * apart / (time.monotonic() - began)
    if passed < SLOWEST:
        raise RuntimeError(f"only {passed:.0%} of {events} events a second were made")
