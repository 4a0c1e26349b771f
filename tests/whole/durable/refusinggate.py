"""What stands before an object store and refuses some parts for what they are, as a store would."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aiohttp import ClientSession, DummyCookieJar, TCPConnector, web

from tests.clients import HOST
from tests.services.s3 import S3
from tests.whole.aside import Aside

TOO_LARGE = (
    "<Error><Code>EntityTooLarge</Code><Message>Your proposed upload is too large</Message></Error>"
)
NUMBERS = re.compile(rb'"n":(\d+)')
LEFT_OUT = ("Connection", "Transfer-Encoding", "Content-Length", "Keep-Alive")
"""Headers of an answer that are about its way, and not what the store says."""


class RefusingGate:
    """Hands requests on to a store as they are, so that what is signed is right, but for some uploads."""

    def __init__(self, store: S3, refuses: Callable[[list[int]], bool]) -> None:
        """Take the store, and which parts are refused, by the numbers in them."""
        self._store, self._refuses = store, refuses
        self.url = ""
        self._session: ClientSession | None = None

    async def _passed_on(self, request: web.Request) -> web.Response:
        body = await request.read()
        numbers = [int(each) for each in NUMBERS.findall(body)]
        if request.method == "PUT" and self._refuses(numbers):
            return web.Response(status=400, text=TOO_LARGE, content_type="application/xml")
        url = f"{self._store.url}{request.raw_path}"
        assert self._session is not None
        headers = {k: v for k, v in request.headers.items() if k != "Expect"}  # nobody signs it
        async with self._session.request(request.method, url, headers=headers, data=body) as answer:
            said = await answer.read()
            told = {k: v for k, v in answer.headers.items() if k not in LEFT_OUT}
        return web.Response(status=answer.status, body=said, headers=told)

    async def begin(self) -> web.AppRunner:
        """Begin to listen."""
        self._session = ClientSession(
            connector=TCPConnector(force_close=True),
            auto_decompress=False,
            skip_auto_headers=("Content-Type",),
            cookie_jar=DummyCookieJar(),
        )
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{rest:.*}", self._passed_on)
        runner = web.AppRunner(app, shutdown_timeout=1.0)
        await runner.setup()
        site = web.TCPSite(runner, HOST, 0)
        await site.start()
        self.url = f"http://{HOST}:{runner.addresses[0][1]}"
        return runner

    async def end(self, runner: web.AppRunner) -> None:
        """Listen no more."""
        await runner.cleanup()
        assert self._session is not None
        await self._session.close()


@contextmanager
def gate_before(store: S3, refuses: Callable[[list[int]], bool]) -> Iterator[RefusingGate]:
    """Give a gate before a store, for as long as the block lasts."""
    gate = RefusingGate(store, refuses)
    with Aside() as aside:
        runner = aside.do(gate.begin())
        try:
            yield gate
        finally:
            aside.do(gate.end(runner))
