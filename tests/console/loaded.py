"""What a page has loaded of itself: its document, scripts and styles, as they came over the network."""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import urlsplit

from playwright.sync_api import Page, Request

FONT = ".woff2"


class Loaded:
    """The files of the page that came, from now on; neither fonts nor answers of the API count."""

    def __init__(self, page: Page) -> None:
        self._files: dict[str, Request] = {}
        page.on("requestfinished", self._note)

    def _note(self, request: Request) -> None:
        path = PurePosixPath(urlsplit(request.url).path)
        if (path.parent.name == "console" or path == PurePosixPath("/")) and path.suffix != FONT:
            self._files[path.name] = request

    @property
    def names(self) -> set[str]:
        """Return the names of the files."""
        return set(self._files)

    @property
    def kilobytes(self) -> float:
        """Return how much that is, compressed as it came, in units of 1,000 bytes."""
        return sum(each.sizes()["responseBodySize"] for each in self._files.values()) / 1000
