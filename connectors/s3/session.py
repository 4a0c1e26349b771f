"""A client of an object store that knows what it is told and nothing else.

The library looks for keys, regions, endpoints, proxies, authorities and even models of services in the
environment, in files of the user, and on the network. None of that may change where data goes.
"""

from __future__ import annotations

import io
import ssl
from asyncio import Timeout
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from aiobotocore.config import AioConfig
from aiobotocore.httpsession import AIOHTTPSession
from aiobotocore.session import AioSession
from aiohttp import ClientResponse, ClientSession, TCPConnector
from botocore.configprovider import (
    BOTOCORE_DEFAUT_SESSION_VARIABLES,
    ConfigValueStore,
    ConstantProvider,
)
from botocore.loaders import Loader

from headrace.connectors.s3.account import Account
from headrace.connectors.s3.answers import REGION, NotOfAStore, Redirected

CONNECTIONS = 16
"""Most connections that one output has to its store."""
MOST_READ = 2 * 1024 * 1024
"""Bytes that an answer may have: a store that lists a thousand keys, of which one was asked for, needs
fewer."""
MODELS = ("service-2", "endpoint-rule-set-1")
"""What the library reads about a service to make a client, and keeps: a tenth of a second."""


@cache
def session() -> AioSession:
    """Return the session that looks nowhere; it has read what clients are made of.

    It keeps nothing of them, so one will do. The first time takes its time.
    """
    made = AioSession()
    defaults = {
        name: ConstantProvider(default)
        for name, (_, _, default, _) in BOTOCORE_DEFAUT_SESSION_VARIABLES.items()
        if not name.endswith("_file")  # those are files of the user
    }
    made.register_component("config_store", ConfigValueStore(defaults))
    # Of the places that it would look for models at, one belongs to the user.
    loader = Loader([Loader.BUILTIN_DATA_PATH], include_default_search_paths=False)
    for kind in MODELS:
        loader.load_service_model("s3", kind)
    for name in ("endpoints", "partitions"):
        loader.load_data(name)
    made.register_component("data_loader", loader)
    return made


def client(made: AioSession, account: Account, connect_seconds: float, read_seconds: float) -> Any:
    """Return the context of a client: it never tries again by itself, and follows nobody."""
    is_told = account.endpoint is not None
    config = AioConfig(
        http_session_cls=partial(Transport, tls=account.tls),
        connect_timeout=connect_seconds,
        read_timeout=read_seconds,
        max_pool_connections=CONNECTIONS,
        retries={"total_max_attempts": 1},
        user_agent="headrace",
        proxies={},
        ignore_configured_endpoint_urls=True,
        # Checksums in trailers are for the vendor alone: other stores refuse them. What is sent is
        # signed with its hash, or has one that all of them know.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={
            "addressing_style": "path" if is_told else "auto",
            "us_east_1_regional_endpoint": "regional",
            "use_arn_region": False,
        },
    )
    return made.create_client(
        "s3",
        region_name=account.region,
        endpoint_url=account.endpoint,
        aws_access_key_id=account.access_key_id,
        aws_secret_access_key=account.secret_access_key,
        config=config,
        verify=True,
    )


class Transport(AIOHTTPSession):  # type: ignore[misc]
    """Makes TLS as the connection says, and takes a redirect for what it is: an answer."""

    def __init__(self, *, tls: ssl.SSLContext | None, **options: Any) -> None:
        super().__init__(**options)
        self._tls = tls

    def _create_connector(self, proxy_url: str | None) -> TCPConnector:
        return TCPConnector(limit=self._max_pool_connections, ssl=self._tls or True)

    async def _get_session(self, proxy_url: str | None) -> Straight:
        return Straight(await super()._get_session(proxy_url))


class Straight:
    """A session of the HTTP client that does not go elsewhere when it is told to."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session

    async def request(self, method: str, **options: Any) -> Bounded:
        """Ask.

        Raises:
            Redirected: it is told to go elsewhere, and not in which region the bucket is. The library
                would ask for that, be told to go elsewhere, ask for it, and so on.
        """
        answer = await self._session.request(method, allow_redirects=False, **options)
        if 300 <= answer.status < 400 and REGION not in answer.headers:
            answer.close()
            raise Redirected(answer.headers.get("Location", ""))
        return Bounded(answer)


class Bounded:
    """An answer as the library looks at it, of which no more is read than a store has to say."""

    def __init__(self, answer: ClientResponse) -> None:
        self.url, self.status, self.raw_headers = answer.url, answer.status, answer.raw_headers
        self._answer = answer

    async def read(self) -> bytes:
        """Return the body.

        Raises:
            NotOfAStore: it is longer than any that a store sends.
        """
        said = bytearray()
        async for piece in self._answer.content.iter_any():
            said += piece
            if len(said) > MOST_READ:
                self._answer.close()
                raise NotOfAStore
        return bytes(said)


class Flowing(io.BytesIO):
    """A body that pushes a time limit on whenever something of it is taken."""

    def __init__(self, body: bytes, limit: Timeout, until: Callable[[], float]) -> None:
        super().__init__(body)
        self._body = body
        self._limit, self._until = limit, until

    def getbuffer(self) -> memoryview:
        """Return what it was made of, of which the library wants the length; the usual one copies all."""
        return memoryview(self._body)

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next bytes."""
        if not self._limit.expired():
            self._limit.reschedule(self._until())
        return super().read(size)
