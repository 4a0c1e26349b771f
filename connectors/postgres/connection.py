"""A PostgreSQL server as one output meets it: connected to over the driver, its failures in words.

Single connections of the driver and not its pool, which would reconnect by itself and have its own
words for that. Nothing of the environment counts (``PGSSLMODE``, ``PGPASSFILE``, ``PGHOST``): what
the driver would look up there it is told. Its own time limits and its cache of statements are used.

The words for what server and driver object to never hold a value, so that all that fails for the same
reason is one failure, counted.

Source: https://www.postgresql.org/docs/current/errcodes-appendix.html
"""

from __future__ import annotations

import asyncio
import re
import ssl
from contextlib import suppress
from dataclasses import dataclass, field

import asyncpg
from asyncpg import Connection, InterfaceError, InternalClientError, PostgresError

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.errors import (
    BuildRefused,
    FailureClass,
    HeadraceError,
    Unreachable,
    class_of,
)
from headrace.compiler.text.diagnostics import Fault, Path
from headrace.connectors.network.refusal import (
    CONNECT_SECONDS,
    Outage,
    quoted,
    turned_away,
    unanswered,
)
from headrace.connectors.network.tls import PROBE_SECONDS, handshake_fault
from headrace.connectors.postgres.sqlstates import (
    CUT_OFF,
    FAILURE_CLASSES,
    MAY_BE_CONTENT,
    READ_ONLY,
    ROLLED_BACK,
    SESSION_ENDED,
    SESSION_GONE,
)

_ASKS_FOR_TLS = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"
"""The message of the protocol that is sent before anything else.

Source: https://www.postgresql.org/docs/current/protocol-message-formats.html (SSLRequest)
"""
_NO_TLS = "rejected SSL upgrade"
"""How the driver says that somebody there does not know what TLS is."""

_LIMIT = """
SELECT set_config('statement_timeout', $1, false) FROM pg_settings
WHERE name = 'statement_timeout' AND setting::int NOT BETWEEN 1 AND $1::int
"""
"""Limits what a statement may take, unless the server limits it closer. Units: milliseconds."""

_TOLD_AS_SAID = ("08", "0A", "23", "25", "28", "3D", "3F", "40", "42", "53300", "55", "57")
"""Classes whose messages name tables, columns, keys and users, and show no value of a row."""

_LOST = (*SESSION_ENDED.codes, *SESSION_GONE.codes, "53300")
"""The session is over, or there is no room for another."""
_CONNECTION, _KEY_IS_THERE = "08", "23505"

_CALLED = {
    "Raise": "a function raises an exception",
    "InternalServer": "internal error",
    "UnknownPostgres": "an error of its own",
}
"""Errors whose class does not say what they are."""

_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a server may take, and how much it is sent. Units: seconds and bytes."""

    connect_seconds: float = CONNECT_SECONDS
    """How long connecting may take, and whatever else comes before the first batch."""
    answer_seconds: float = 30.0
    """How long a statement may take before the server counts as gone."""
    statement_seconds: float = 25.0
    """How long the server may take over a batch, locks included: then it gives up and says so."""
    create_seconds: float = 600.0
    """How long creating may take: the index of a table that is large already takes its time."""
    close_seconds: float = 1.0
    """How long hanging up in order may take."""
    pauses: tuple[float, float] = (0.1, 0.4)
    """Before a batch is written again that others were in the way of: they need time to go on, or who
    waits for whom is the same again."""
    batch_bytes: int = (1 << 30) - (1 << 16)
    """At what size of a batch the server hangs up, less what is around the values: a gibibyte."""
    told: int = 100
    """Refusals in different words that the log has more of, each once."""


class SaysNo(BuildRefused):
    """The server says no before anything is sent; ``failure`` is the class of that if it comes later."""

    def __init__(self, fault: Fault, failure: FailureClass) -> None:
        super().__init__(fault)
        self.failure: FailureClass = "misconfigured" if failure == "invalid" else failure


@dataclass
class PostgresServer:
    """Where a server is and how to get in, the secrets resolved."""

    host: str
    port: int
    database: str
    user: str
    password: str = field(repr=False)
    tls: ssl.SSLContext | None
    ctx: Context
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        host = f"[{self.host}]" if ":" in self.host else self.host
        self.where = f"{host}:{self.port}"
        self._outage = Outage(self.where)

    async def connect(self) -> Connection:
        """Return a new connection, signed in.

        Raises:
            BuildRefused: the server says no, or TLS as configured cannot work.
            Unreachable: it does not answer, or not now.
        """
        try:
            connection = await asyncpg.connect(
                host=[self.host],
                port=[self.port],
                database=self.database,
                user=self.user,
                password=self.password,
                ssl=self.tls or False,
                timeout=self.limits.connect_seconds,
                command_timeout=self.limits.answer_seconds,
                # The statement of a batch is prepared once for a session, however long it is.
                max_cached_statement_lifetime=0,
                max_cacheable_statement_size=0,
                server_settings={
                    "application_name": f"headrace-{self.ctx.pipeline}",
                    "TimeZone": "UTC",  # for columns that are there already and know no offset
                },
                # What it would otherwise ask the environment for.
                direct_tls=False,
                target_session_attrs="any",
                krbsrvname="postgres",
                gsslib="gssapi",
            )
        except PostgresError as cause:
            if (said := spoken(cause)) is not None:
                raise self.refusal(said) from None
            fault = await self._tls_fault()
            raise turned_away(fault) if fault else self.lost(cause) from None
        except (InterfaceError, InternalClientError, OSError, ValueError) as cause:
            raise self._not_connected(cause) from None
        self._outage.over()
        return connection

    async def limit(self, connection: Connection) -> None:
        """Have the server give up statements that take too long. Raises what the driver does."""
        await connection.execute(
            _LIMIT,
            str(round(self.limits.statement_seconds * 1000)),
            timeout=self.limits.connect_seconds,
        )

    def refusal(self, cause: PostgresError, path: Path = ("connection",)) -> Exception:
        """Return what to raise for an error that stands in the way of everything else.

        ``path`` leads to what of the output it is about.
        """
        if is_loss(cause):
            return self.lost(cause)
        said = self.quoted(str(cause.args[0]))
        fault = Fault("turned-away", f"{self.where} says '{said}'", path=path)
        return SaysNo(fault, failure_class(cause))

    def lost(self, cause: Exception) -> Unreachable:
        """Return what to raise when a connection has broken, or nothing comes over it any more."""
        if (said := spoken(cause)) is not None:
            return self._outage.of(f"says '{self.quoted(reason(said))}'")
        return self._outage.of(
            "does not answer any more"
            if isinstance(cause, TimeoutError)
            else "closed the connection"
        )

    def quoted(self, said: str) -> str:
        """Return what the server says without secrets, and no more of it than people read."""
        return quoted(said, self.ctx.redact)

    def _not_connected(self, cause: Exception) -> Exception:
        """Return what to raise for a connection that did not come about."""
        match cause:
            case ssl.SSLError() if not isinstance(cause, ssl.SSLEOFError):
                return turned_away(handshake_fault(self.where, cause))
            case ConnectionError() if _NO_TLS in str(cause):
                return turned_away(f"{self.where} does not speak TLS")
            case TimeoutError():
                return self._outage.of("does not answer")
            case ConnectionResetError() | ConnectionAbortedError() | BrokenPipeError():
                return self.lost(cause)
            case OSError():
                return self._outage.of(f"does not answer: {unanswered(cause)}")
            case UnicodeError():  # it is longer than a name can be
                return self._outage.of("does not answer: the host name cannot be resolved")
            case _:  # driver and server do not understand each other, for one in how to sign in
                return turned_away(f"{self.where}: {self.quoted(str(cause))}")

    async def _tls_fault(self) -> str | None:
        """Return what a server that only hangs up has against our certificate, if it is that.

        It says so after the handshake, but not to who goes on talking. So a handshake is all there is.
        """
        if self.tls is None:
            return None
        with suppress(OSError):
            async with self.ctx.clock.timeout(PROBE_SECONDS):
                reader, writer = await asyncio.open_connection(self.host, self.port)
                try:
                    writer.write(_ASKS_FOR_TLS)
                    if await reader.read(1) == b"S":
                        await writer.start_tls(self.tls, server_hostname=self.host)
                        await reader.read(1)
                except ssl.SSLError as told:
                    return handshake_fault(self.where, told)
                finally:
                    writer.transport.abort()
        return None


def is_loss(cause: Exception) -> bool:
    """Return whether the connection is of no more use, and not what was to be written."""
    if isinstance(cause, PostgresError):
        code = cause.sqlstate or ""
        return code in _LOST or code.startswith("08")
    # One that is a ValueError as well is the driver's own check of what is to be sent.
    is_of_driver = isinstance(cause, InterfaceError | InternalClientError | OSError)
    return is_of_driver and not isinstance(cause, ValueError)


def spoken(cause: BaseException | None) -> PostgresError | None:
    """Return what the server said; None if it said nothing, and it is the driver that objects.

    For a connection that breaks with a last word the driver has an error of its own, and that word
    as the cause of it.
    """
    if not isinstance(cause, PostgresError):
        return None
    return cause if cause.severity is not None else spoken(cause.__cause__)


def is_rolled_back(cause: Exception) -> bool:
    """Return whether nothing was written, only because something else was at the same time."""
    return getattr(cause, "sqlstate", None) in ROLLED_BACK.codes


def ends_session(cause: Exception) -> bool:
    """Return whether the next session may be treated otherwise than this one."""
    return getattr(cause, "sqlstate", None) in READ_ONLY.codes


def failure_class(cause: Exception, *, may_be_there: bool = False) -> FailureClass:
    """Return the class of what server, driver or connecting failed with.

    ``may_be_there`` tells that the connection broke without a word after the batch was sent: who is away
    does not tell whether it is written, and a key that is there may be its own.
    """
    code = getattr(cause, "sqlstate", None) or ""
    if isinstance(cause, HeadraceError):
        failure = class_of(cause)
    else:
        failure = FAILURE_CLASSES.of(code, code[:2], _CONNECTION if is_loss(cause) else None)
    is_unclear = may_be_there and (failure == "unavailable" or code == _KEY_IS_THERE)
    return CUT_OFF.failure if is_unclear else failure


def may_be_content(cause: Exception) -> bool:
    """Return whether the server has answered, and one of the rows may be why it cannot now."""
    return getattr(cause, "sqlstate", None) in MAY_BE_CONTENT


def is_key_there(cause: Exception) -> bool:
    """Return whether there is a row with a key of one of the rows."""
    return getattr(cause, "sqlstate", None) == _KEY_IS_THERE


def refusal(cause: Exception) -> str:
    """Return why a batch cannot be written, the same for all that cannot be for this reason."""
    if (said := spoken(cause)) is not None:
        return f"the database refuses the batch: {reason(said)} (SQLSTATE {said.sqlstate})"
    return f"the batch cannot be sent: {condition(cause)}"


def reason(cause: PostgresError) -> str:
    """Return the words of the server, or only what its error is called if they may hold a value."""
    code, said = cause.sqlstate or "", str(cause.args[0])
    if code.startswith(_TOLD_AS_SAID):
        return said
    # `invalid input syntax for type uuid: "..."`: what it is about comes last, and in quotes.
    about, _, _ = said.partition(': "')
    if code.startswith("22") and '"' not in about:
        return about
    named = [f"'{name}'" for name in (cause.table_name, cause.column_name) if name]
    return " ".join([condition(cause), *(["of", ".".join(named)] if named else [])])


def condition(cause: Exception) -> str:
    """Return what the name of a class of errors says: ``DiskFullError`` says `disk full`."""
    name = type(cause).__name__.removesuffix("Error")
    return _CALLED.get(name) or _HUMP.sub(" ", name).lower()


def more(cause: Exception, told: str) -> str:
    """Return what was said and is not ``told``, values as well: for the log."""
    said = map(str, filter(None, [*cause.args[:1], getattr(cause, "detail", None)]))
    return ": ".join(each for each in said if each not in told)
