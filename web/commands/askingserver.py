"""How commands ask a server: one request at a time, with the credential of the environment.

Python's own client is used, so that a command loads nothing else.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, InvalidURL
from urllib.parse import urlsplit

import msgspec

from headrace.web.commands.arguments import ADDRESS

DEFAULT_URL = f"http://{ADDRESS}"
TOKEN, USER, PASSWORD = "HEADRACE_TOKEN", "HEADRACE_USER", "HEADRACE_PASSWORD"
"""Where the credential is: a token, or a name and its password. None is ever on a command line."""
PATIENCE_SECONDS = 60.0
"""How long nothing comes, not even a blank line, from a server that is gone."""
MOST_ERROR_BYTES = 64 * 1024
MOST_ERROR_CHARACTERS = 1000


class _Refusal(msgspec.Struct):
    """What headrace answers where it refuses."""

    error: str


_REFUSAL = msgspec.json.Decoder(_Refusal)


class ServerRefuses(Exception):
    """A server does not answer what it is asked, or refuses; the text says why.

    ``status``: that of its answer, if there is one.
    """

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


class NoSuchLetter(ServerRefuses):
    """A server has no dead letter with the id that is meant."""


def ask(
    url: str, environment: Mapping[str, str], method: str, path: str, body: bytes | None = None
) -> HTTPResponse:
    """Ask a server, and return its answer, whatever it says. ``body``: JSON.

    Raises:
        ServerRefuses: there is none.
    """
    try:
        connection, prefix = _connection(url)
        headers = _credential(environment)
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, f"{prefix}{path}", body, headers=headers)
        return connection.getresponse()
    except TimeoutError:
        raise ServerRefuses(f"{url} does not answer") from None
    except ssl.SSLError as cause:
        raise ServerRefuses(f"{url}: TLS: {cause.reason or cause}") from None
    except OSError as cause:
        why = (cause.strerror or str(cause)).lower()
        raise ServerRefuses(f"no server answers at {url}: {why}") from None
    except InvalidURL as cause:
        raise ServerRefuses(f"--url is no url: {cause}") from None
    except UnicodeError:
        raise ServerRefuses(f"--url is '{url}', which no server can be called") from None
    except HTTPException:
        raise ServerRefuses(f"what answers at {url} does not speak HTTP") from None


def _connection(url: str) -> tuple[HTTPConnection, str]:
    """Return a connection to a server, and what its paths begin with."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as cause:
        raise ServerRefuses(f"--url is no url: {cause}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ServerRefuses(
            f"--url is '{url}': expected an http or https url such as {DEFAULT_URL}"
        )
    if parts.username is not None:
        said = f"name and password go into {USER} and {PASSWORD} of the environment"
        raise ServerRefuses(
            f"--url has a credential, which everybody on this machine can see: {said}"
        )
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    return kind(parts.hostname, port, timeout=PATIENCE_SECONDS), parts.path.rstrip("/")


def _credential(environment: Mapping[str, str]) -> dict[str, str]:
    if token := environment.get(TOKEN):
        return {"Authorization": f"Bearer {_header(token, TOKEN)}"}
    if user := environment.get(USER):
        told = f"{user}:{environment.get(PASSWORD, '')}".encode()
        return {"Authorization": f"Basic {base64.b64encode(told).decode()}"}
    return {}


def _header(value: str, name: str) -> str:
    if not value.isascii() or not value.isprintable():
        raise ServerRefuses(f"{name} has characters that no token has")
    return value


def refusal(response: HTTPResponse, url: str, lacking: str) -> str:
    """Return why a server refuses, in its own words where it is one of headrace.

    ``lacking``: what an older one may not have.
    """
    try:
        with response:
            told = _REFUSAL.decode(response.read(MOST_ERROR_BYTES)).error
    except (OSError, HTTPException, ValueError, RecursionError):
        return (
            f"what answers at {url} is no headrace server, or one without {lacking}: it answers"
            f" {response.status} {response.reason}"
        )
    if response.status == 401:
        return f"{told}: put a token into {TOKEN}, or name and password into {USER} and {PASSWORD}"
    return told[:MOST_ERROR_CHARACTERS]
