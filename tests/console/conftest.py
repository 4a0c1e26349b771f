"""What the tests of the console ask for: a browser, and the page of a server that runs something.

    @rule(1)
    def test_...(console: Console) -> None:
        page = console.open()

A test is run in one look, and where all tests are run in another one as well; `@wide_only` is for what a
narrow page has not. A page that throws, says an error or breaks its policy fails any test, and so does one
that ends with a barrier.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from headrace.web.console import assets
from tests.clients import PATIENCE
from tests.console.barriers import hindering
from tests.console.browser import LOOKS, WIDE, Console, Look, chromium
from tests.console.plant import CONFIG, CONNECTIONS
from tests.forked import serving
from tests.server import Server

expect.set_options(timeout=PATIENCE * 1000)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test of the page in every look; in all but the first only where all tests are run."""
    if "look" in metafunc.fixturenames:
        is_wide = metafunc.definition.get_closest_marker("wide_only")
        looks = [look for look in LOOKS if not (is_wide and look.is_narrow)]
        metafunc.parametrize(
            "look",
            [
                pytest.param(look, id=look.name, marks=() if look is WIDE else pytest.mark.long)
                for look in looks
            ],
            scope="module",
        )


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Give the browser of the system, one for the tests of a file."""
    if assets.page("") is None:
        pytest.fail("the console is not built: run 'make console'")
    with chromium() as browser:
        yield browser


@pytest.fixture
def config() -> Any:
    """Give what the server runs; a test file may have its own."""
    return CONFIG


@pytest.fixture
def options() -> tuple[str, ...]:
    """Give further options of the command; a test file may have its own."""
    return ()


@pytest.fixture
def server(tmp_path: Path, config: Any, options: tuple[str, ...]) -> Iterator[Server]:
    """Give a server that runs the config, with the plant's connections."""
    (tmp_path / "config.connections.json").write_text(json.dumps(CONNECTIONS))
    with serving(tmp_path, config, "--data-dir", "data", *options) as server:
        yield server


@pytest.fixture
def opened(
    browser: Browser, look: Look, request: pytest.FixtureRequest
) -> Iterator[Callable[[Server], Console]]:
    """Give a function that opens the page of a server in a browser of its own."""
    with ExitStack() as stack:
        consoles: list[Console] = []

        def open_console(server: Server) -> Console:
            context = browser.new_context(
                viewport={"width": look.width, "height": look.height},
                color_scheme="dark" if look.is_dark else "light",
                reduced_motion="reduce",
                permissions=["clipboard-read", "clipboard-write"],
            )
            context.set_default_timeout(PATIENCE * 1000)
            stack.callback(context.close)
            console = Console(server, context, look, request.node.originalname)
            consoles.append(console)
            return console

        yield open_console
        for console in consoles:
            console.picture()
            assert console.faults() == []
            if console.page.url.startswith(console.origin):
                assert hindering(console.page, is_narrow=look.is_narrow) == []


@pytest.fixture
def console(server: Server, opened: Callable[[Server], Console]) -> Console:
    """Give the page of the server, which ends after the page."""
    return opened(server)
