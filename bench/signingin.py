"""Scenarios of sign-in: what a request costs more, by each way in, and that ingest costs no more.

Servers on one core, their client on the other; what counts is the CPU time of the server. The identity
provider is a thread here, which is asked for its keys once.
"""

from __future__ import annotations

import json
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from joserfc import jwt
from joserfc.jwk import RSAKey

from bench import servers
from bench.ingest import WARM_UP_POSTS, cost, pipeline
from bench.load import HOST, Plan
from bench.measuring import Compared, Effort, compared
from bench.servers import Server
from bench.table import Row, ratio_row

LISTED = 10
"""Pipelines in the listing that is asked for."""
LEAST = 0.91
"""Sign-in may cost 10 per cent of a listing."""
LEAST_OF_INGEST = 0.98
"""And nothing of ingest: two per cent are noise."""
LONGER = 3
MORE = 3
"""Pairs of samples: what is looked for is a few per cent, and how processes lie in caches is as much."""
ISSUER = "https://id.example.org/"
PASSWORD = "correct horse battery staple"

Headers = Mapping[str, str]


def signin(effort: Effort) -> list[Row]:
    """`GET /api/pipelines`, let in by each way, beside a server that asks nobody."""
    listed = [pipeline(f"p{n}", [], []) for n in range(LISTED)]
    with (
        tempfile.TemporaryDirectory() as folder,
        provider() as (keys, token),
        servers.headrace(listed, Path(folder)) as open_to_all,
        servers.headrace(listed, Path(folder), options=settings(Path(folder), keys)) as guarded,
    ):
        ways = {
            "Basic, a password": basic("plain"),
            "Basic, a hash": basic("hashed"),
            "Bearer, RS256": {"Authorization": f"Bearer {token}"},
            "session cookie": cookie(guarded),
        }
        limit = "nobody is asked"
        return [
            ratio_row(
                "signin", beside(guarded, open_to_all, way, effort), f"{name}; {limit}",
                unit="listings/CPU s", least=LEAST,
            )
            for name, way in ways.items()
        ]  # fmt: skip


def ingestguarded(effort: Effort) -> list[Row]:
    """One message a post, to a server with accounts and to one without."""
    config = [pipeline("p1", [], [])]
    with (
        tempfile.TemporaryDirectory() as folder,
        provider() as (keys, _),
        servers.headrace(config, Path(folder)) as open_to_all,
        servers.headrace(config, Path(folder), options=settings(Path(folder), keys)) as guarded,
    ):
        both = (guarded, open_to_all)
        each = [cost(server, 1, WARM_UP_POSTS if effort.pairs > 1 else 16) for server in both]
        posts = max(int(LONGER * effort.seconds / max(each)), 16)
        samples = [
            (cost(guarded, 1, posts), cost(open_to_all, 1, posts)) for _ in range(effort.pairs)
        ]
    limit = "a server without accounts"
    return [
        ratio_row(
            "ingestguarded", compared(samples), limit, unit="msg/CPU s", least=LEAST_OF_INGEST
        )
    ]


def beside(guarded: Server, open_to_all: Server, way: Headers, effort: Effort) -> Compared:
    """Return what a listing costs when it asks who it is for, beside one that does not."""
    few = 500 if effort.pairs > 1 else 16
    each = max(asking(guarded, few, way), asking(open_to_all, few, way))
    count = max(int(effort.seconds / each), 16)
    # The same headers to both: reading them is not what signing in costs.
    return compared(
        [
            (asking(guarded, count, way), asking(open_to_all, count, way))
            for _ in range(MORE * effort.pairs if effort.pairs > 1 else 1)
        ]
    )


def asking(server: Server, count: int, way: Headers) -> float:
    """Return the CPU seconds of one listing, asked for so many times."""
    plan = Plan(server.port, "/api/pipelines", 0, count, method="GET", headers=dict(way))
    began = server.cpu
    outcome = servers.load(plan)
    if outcome.statuses != {"200": count}:
        raise RuntimeError(f"not everybody was let in: {outcome.statuses}")
    return (server.cpu - began) / count


def settings(folder: Path, keys: str) -> list[str]:
    """Write a settings file that has every way in, and return the options that name it."""
    from headrace.web.auth.passwords import hashed

    accounts = {
        "plain": {"password": PASSWORD, "role": "read"},
        "hashed": {"password_hash": hashed(PASSWORD), "role": "read"},
    }
    auth = {"type": "jwt", "jwks_url": keys, "issuer": ISSUER, "service_accounts": accounts}
    (folder / "settings.json").write_text(json.dumps({"auth": auth}))
    return ["--server-config", str(folder / "settings.json")]


def basic(name: str) -> Headers:
    """Return the header of an account."""
    return {"Authorization": f"Basic {b64encode(f'{name}:{PASSWORD}'.encode()).decode()}"}


def cookie(server: Server) -> Headers:
    """Sign in, and return the header of the session."""
    given = {"username": "plain", "password": PASSWORD}
    _, headers, _ = server.ask("POST", "/api/auth/login", given)
    return {"Cookie": headers["Set-Cookie"].partition(";")[0]}


@contextmanager
def provider() -> Iterator[tuple[str, str]]:
    """Run an identity provider: give where its keys are, and a token."""
    key = RSAKey.generate_key(2048, {"kid": "k1", "alg": "RS256", "use": "sig"})
    published = json.dumps({"keys": [key.as_dict(private=False)]}).encode()
    claims = {"iss": ISSUER, "sub": "ann", "exp": int(time.time()) + 86400}

    class Keys(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(published)))
            self.end_headers()
            self.wfile.write(published)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Say nothing."""

    with HTTPServer((HOST, 0), Keys) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield (
                f"http://{HOST}:{server.server_port}/keys",
                jwt.encode({"alg": "RS256", "kid": "k1"}, claims, key),
            )
        finally:
            server.shutdown()
