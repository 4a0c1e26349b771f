"""`headrace serve`: load the files, start the pipelines, serve, and end everything in order.

The composition root: here engine, service, application and server are made, for each other.
"""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import logging
import os
import shlex
import signal
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote

import uvloop

from headrace.compiler.clock import Clock
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.config.program import Program
from headrace.compiler.datadir import DataDir
from headrace.compiler.errors import HeadraceError, Refused
from headrace.compiler.runtime.engine import Engine as OneProcess
from headrace.compiler.text.diagnostics import Diagnostic
from headrace.web.app import Application
from headrace.web.auth.access import Authenticator
from headrace.web.auth.accountauth import opened
from headrace.web.commands.telling import StartReport
from headrace.web.engineprotocol import Engine
from headrace.web.files.fileremarks import log_each
from headrace.web.files.reading import Files, Loaded, catalogue, load
from headrace.web.process.log import Form, configure, standard_error
from headrace.web.process.server import Server
from headrace.web.service import Service

log = logging.getLogger("headrace.web")


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    files: Files
    host: str
    port: int
    data_dir: Path | None = None
    is_debug: bool = False
    log_format: Form = "text"


YOUNG_OBJECTS = 10_000
"""How many are made before somebody looks for cycles among them. Messages are no cycles, and a few
batches on their way are thousands: with Python's 700 it is 4 per cent of the work of ingest."""


def collect_less() -> None:
    """Have the garbage collector look where there is some, once everything is up."""
    gc.freeze()  # what a start has made stays: no later collection need look through it
    gc.set_threshold(YOUNG_OBJECTS)


class NotStarted(HeadraceError):
    """Something the server needs from the machine is not to be had."""


def serve(options: Options) -> int:
    """Run the server until a signal ends it; return the exit code."""
    errors = standard_error(options.log_format)
    lines = configure(errors, is_debug=options.is_debug, form=options.log_format)
    telling = StartReport(errors, options.log_format)
    known = catalogue()
    loaded = load(options.files, known, data_dir=options.data_dir, is_starting=True)
    lines.redact = loaded.secrets.redact
    try:
        if loaded.program is None or loaded.is_refused:
            raise Refused(loaded.diagnostics)
        _warn(loaded.diagnostics)
        listener = _bound(options.host, options.port)
        data_dir = _made(options.data_dir)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_run(loaded, loaded.program, known, listener, data_dir, telling))
    except Refused as cause:
        telling.refused(cause.diagnostics, loaded.sources)
        return 1
    except NotStarted as cause:
        telling.not_started(cause)
        return 1
    except Exception:  # the interpreter would print it as it is, with secrets
        log.exception("headrace broke")
        return 1
    return 0


async def _run(
    loaded: Loaded,
    program: Program,
    known: Catalogue,
    listener: socket.socket,
    data_dir: DataDir | None,
    telling: StartReport,
) -> None:
    clock = Clock(asyncio.get_running_loop())
    authenticator = await _opened(loaded, clock)
    service = Service(
        _engine(loaded, clock, data_dir), known, clock, authenticator, files=loaded.files
    )
    try:
        await _serve(service, loaded, program, listener, telling)
    finally:
        await authenticator.close()


def _engine(loaded: Loaded, clock: Clock, data_dir: DataDir | None) -> Engine:
    """Return the engine that runs the pipelines in this process. Nobody else knows that it does."""
    return OneProcess(
        clock,
        connections=loaded.connections,
        secrets=loaded.secrets,
        data_dir=data_dir,
        base=loaded.base,
        retention_seconds=loaded.settings.history.retention_secs,
    )


async def _serve(
    service: Service,
    loaded: Loaded,
    program: Program,
    listener: socket.socket,
    telling: StartReport,
) -> None:
    engine = service.engine

    def ready() -> None:
        service.is_ready = True
        collect_less()
        _announce(service, listener, telling)

    def stopping() -> None:
        service.is_ready = False
        engine.hush()

    server = Server(Application(service), service.clock, on_ready=ready, on_stopping=stopping)
    _end_on_signal(asyncio.get_running_loop(), server)
    await engine.load(program)
    service.filing.loaded(loaded.layout)
    try:
        await server.serve(sockets=[listener])
    except OSError as cause:  # somebody else began to listen after we were bound
        host, port = listener.getsockname()[:2]
        raise _not_free(host, port, cause) from cause
    finally:
        await engine.close()


async def _opened(loaded: Loaded, clock: Clock) -> Authenticator:
    """Return who is let in as whom. A server that cannot tell does not start."""
    try:
        return await opened(loaded.settings, loaded.secrets, clock)
    except HeadraceError as cause:
        raise NotStarted(str(cause)) from cause


def _end_on_signal(loop: asyncio.AbstractEventLoop, server: Server) -> None:
    """Have the first signal end the server in order, and the second at once.

    SIGHUP says that the terminal is gone; whoever wants to outlive that has it ignored (nohup).
    """

    def ended(number: signal.Signals) -> None:
        if server.should_exit:
            os._exit(128 + number)
        server.stop()

    ending = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        ending.append(signal.SIGHUP)
    for number in ending:
        loop.add_signal_handler(number, partial(ended, number))


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket bound to the address, before anything is started that would have to end."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except (OSError, UnicodeError) as cause:  # the latter for what no host can be called
        raise _not_free(host, port, cause) from cause
    return listener


def _not_free(host: str, port: int, cause: Exception) -> NotStarted:
    reason = getattr(cause, "strerror", None) or cause
    return NotStarted(f"cannot listen on {host}:{port}: {reason}")


def _made(data_dir: Path | None) -> DataDir | None:
    """Return the data directory, made if it is not there."""
    if data_dir is None:
        return None
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        return DataDir(data_dir)
    except OSError as cause:
        raise NotStarted(f"--data-dir '{data_dir}': {cause.strerror or cause}") from cause


def _warn(diagnostics: Iterable[Diagnostic]) -> None:
    """Log what is odd about the files. What a build decides, a build says."""
    odd = (diagnostic for diagnostic in diagnostics if diagnostic.code != "unresolved-secret")
    log_each(odd)


def _announce(service: Service, listener: socket.socket, telling: StartReport) -> None:
    """Tell where the server is, and what works there when it is tried."""
    host, port = listener.getsockname()[:2]
    if not (service.authenticator.is_guarded or ipaddress.ip_address(host).is_loopback):
        log.warning("there are no accounts: whoever reaches %s:%d may do everything", host, port)
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    count = len(service.engine.names())
    pipelines = f"{count} pipeline{'' if count == 1 else 's'}"
    telling.runs(f"headrace runs {pipelines} at {url}", list(_to_try(service, host, port)))


def _to_try(service: Service, host: str, port: int) -> Iterator[str]:
    """Yield commands that work as they stand: whoever has to sign in knows best with what."""
    address = ipaddress.ip_address(host)
    if getattr(address, "scope_id", None):
        return  # curl, or the shell, reads such an address in ways of its own
    if address.is_unspecified:  # what listens everywhere is reached here as well
        host = "::1" if address.version == 6 else "127.0.0.1"
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    door = _open_door(service, url)
    if not service.authenticator.is_guarded:
        yield f"curl -N {shlex.quote(f'{url}/events')}"
        yield door or f"curl {shlex.quote(f'{url}/api/pipelines')}"
        return
    if door is not None:
        yield door
    yield f"curl {shlex.quote(f'{url}/')}"


def _open_door(service: Service, url: str) -> str | None:
    """Return how to post to the first pipeline that anybody may post to."""
    for id in service.engine.names():
        way_in = service.engine.way_in(id)
        if way_in is not None and way_in.admits(lambda name: None):
            path = f"/api/pipelines/{quote(id, safe='')}/messages"
            return f"""curl -d '{{"value": 42}}' {shlex.quote(url + path)}"""
    return None
