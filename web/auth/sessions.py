"""Sessions: what a login makes, kept in memory and known by a random id that a cookie carries.

A session ends

    when it is dropped         somebody logs out, and every copy of the cookie is worth nothing
    when it was idle           so many seconds without a request
    with the token             that it was made from, whatever is done with it
    when there are too many    the one that was idle longest makes room

and with the server. What waits for its end, an event stream, is told at once. An open event stream is
no request: it ends with a session that nobody uses otherwise.

The cookie:

    headrace_session=<64 hex>; HttpOnly; SameSite=Strict; Path=/

`Secure` is added when the request came over TLS, which a proxy tells, and with `SameSite=None`, which
no browser takes without. No `Max-Age`: it ends with the browser, or with the session.

Source: RFC 6265, and its successor for `SameSite`.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from dataclasses import dataclass, replace
from hashlib import sha256

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Headers
from headrace.web.auth.access import Caller

MOST = 10_000
MOST_OF_ONE = 1_000
"""Sessions of one user, so that a script that logs in with every run costs nobody else theirs."""
ID_CHARACTERS = 64
COOKIE = "headrace_session"

_BEGINNING = f"{COOKIE}=".encode()
_LENGTH = len(_BEGINNING) + ID_CHARACTERS
_IDS = re.compile(rf"(?:^|;)[ \t]*{COOKIE}[ \t]*=[ \t]*([^; \t]*)".encode())


@dataclass(slots=True, eq=False)
class Session:
    """Who is signed in, since when nothing was asked, and until when at most."""

    caller: Caller
    ends: float
    used: float
    is_over: asyncio.Event
    timer: asyncio.TimerHandle | None = None


class Sessions:
    """The sessions of a server, by the digest of their id: nothing in memory could be sent as one.

    Units: seconds by the clock's own count, but ``ends_at``: since 1970.
    """

    def __init__(self, clock: Clock, idle_seconds: float, *, most: int = MOST) -> None:
        self._clock = clock
        self._idle = idle_seconds
        self._most = most
        self._sessions: dict[bytes, Session] = {}  # what was used last stands last

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, caller: Caller, ends_at: float | None = None) -> str:
        """Return the id of a new session."""
        self._make_room(caller)
        now = self._clock.monotonic()
        ends = float("inf") if ends_at is None else now + ends_at - self._clock.seconds()
        id = secrets.token_hex(ID_CHARACTERS // 2)
        key = _key(id.encode())
        is_over = asyncio.Event()
        self._sessions[key] = Session(replace(caller, ended=is_over.wait), ends, now, is_over)
        self._watch(key)
        return id

    def find(self, id: bytes) -> Caller | None:
        """Return who is signed in with an id, which counts as a use of the session."""
        key = _key(id)
        session = self._sessions.get(key)
        if session is None:
            return None
        now = self._clock.monotonic()
        if now >= session.ends or now >= session.used + self._idle:  # its timer may be late
            self._drop(key)
            return None
        session.used = now
        self._sessions[key] = self._sessions.pop(key)
        return session.caller

    def drop(self, id: bytes) -> None:
        """End a session, if there is one."""
        self._drop(_key(id))

    def _drop(self, key: bytes) -> None:
        if (session := self._sessions.pop(key, None)) is not None:
            session.is_over.set()
            if session.timer is not None:
                session.timer.cancel()

    def _make_room(self, caller: Caller) -> None:
        """Drop what was idle longest: of the user, if they have too many, or else of all."""
        name = caller.username
        own = [key for key, each in self._sessions.items() if each.caller.username == name]
        if len(own) >= MOST_OF_ONE:
            self._drop(own[0])
        elif len(self._sessions) >= self._most:
            self._drop(next(iter(self._sessions)))

    def _watch(self, key: bytes) -> None:
        """Drop a session when its time is over; look again later if it was used meanwhile."""
        if (session := self._sessions.get(key)) is None:
            return
        end = min(session.ends, session.used + self._idle)
        if end <= self._clock.monotonic():
            self._drop(key)
        else:
            session.timer = self._clock.call_at(end, lambda: self._watch(key))


def _key(id: bytes) -> bytes:
    return sha256(id).digest()


@dataclass(frozen=True, slots=True)
class Cookies:
    """Writes the cookie: ``same_site`` is strict, lax or none."""

    same_site: str = "strict"

    def holding(self, id: str, headers: Headers) -> str:
        """Return the cookie with a session, as an answer to a request with some headers sets it."""
        return f"{COOKIE}={id}; {self._attributes(headers)}"

    def cleared(self, headers: Headers) -> str:
        """Return the cookie that has a browser forget it."""
        return f"{COOKIE}=; {self._attributes(headers)}; Max-Age=0"

    def _attributes(self, headers: Headers) -> str:
        is_secure = self.same_site == "none" or is_over_tls(headers)
        same_site = f"SameSite={self.same_site.capitalize()}"
        return "; ".join(["HttpOnly", same_site, "Path=/", *(["Secure"] if is_secure else [])])


def session_ids(headers: Headers) -> list[bytes]:
    """Return what the session cookies of a request hold; there may be several of that name."""
    found: list[bytes] = []
    for name, value in headers:
        if name == b"cookie":
            if len(value) == _LENGTH and value.startswith(_BEGINNING):  # nearly always, and quicker
                found.append(value[-ID_CHARACTERS:])
            else:
                found += _IDS.findall(value)
    return found


def is_over_tls(headers: Headers) -> bool:
    """Return whether a client came over TLS, as the proxy tells that it came to first."""
    told = next((value for name, value in headers if name == b"x-forwarded-proto"), b"")
    return told.partition(b",")[0].strip().lower() == b"https"
