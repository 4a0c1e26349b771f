"""An engine with one way in that keeps what it is offered, and how it is posted to."""

from __future__ import annotations

from typing import Any

from headrace.compiler.jsontext import Decoding
from headrace.compiler.runtime.wayin import LargePosts, WayIn
from headrace.web.app import Application
from tests.web.exchange import Exchange

PATH = "/api/pipelines/p/messages"


class Asked:
    """An engine with one way in that keeps what it is offered."""

    wants_origin = True
    has_room = has_bytes = True
    needs: str | None = None

    def __init__(self) -> None:
        self.offered: list[tuple[list[Any], Any]] = []
        self.sizes: list[int] = []
        self.decoding = Decoding()
        self.large = LargePosts()

    def way_in(self, pipeline: str) -> WayIn:
        self.pipeline = pipeline
        return WayIn(pipeline, self, self.large)

    def admits(self, headers: Any) -> bool:
        return self.needs is None or headers("x-key") == self.needs

    def has_room_for(self, size: int) -> bool:
        return self.has_bytes

    def offer(self, batch: list[Any], origin: Any, size: int = 0) -> bool:
        if self.has_room:
            self.offered.append((batch, origin))
            self.sizes.append(size)
        return self.has_room


async def post(application: Application, *body: bytes, path: str = PATH, **rest: Any) -> Exchange:
    exchange = Exchange(application, "POST", path, body=body, **rest)
    await exchange.run()
    return exchange


LARGE_BODY = b"[" + b'{"n": [1.5, {"a": "b"}]},' * 20_000 + b"2]"
