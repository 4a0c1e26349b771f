"""`headrace serve`: load the files, start the pipelines, serve, and end everything in order.

The composition root: here engine, service, application and server are made, for each other.
"""

from __future__ import annotations

import asyncio
import atexit
import ipaddress
import logging
import os
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote

import uvloop

from headrace.authoring.configfiles import catalogue
from headrace.compiler.clock import Clock
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.config.program import Program
from headrace.compiler.datadir import DataDir
from headrace.compiler.errors import HeadraceError, HistoryRefused, Refused
from headrace.compiler.runtime.engine import Engine as OneProcess
from headrace.compiler.text.diagnostics import Diagnostic, in_file_order
from headrace.compiler.text.render import render, style_for
from headrace.web.app import Application
from headrace.web.auth.accountauth import opened
from headrace.web.commands.collecting import collect_less
from headrace.web.files.reading import Files, Loaded, load, log_each, log_odd
from headrace.web.process.log import Form, StandardError, configure
from headrace.web.process.server import Server
from headrace.web.resources.ingest import Ingest
from headrace.web.service import Service

log = logging.getLogger("headrace.web")


class NotStarted(HeadraceError):
    """Something the server needs from the machine is not to be had."""


@dataclass(frozen=True)
class StartReport:
    """Tells how a start went, on standard error: as text for whoever started it, or as entries of the log.

    In JSON an entry for each thing, so that no line is anything else.
    """

    errors: StandardError
    form: Form

    def runs(self, where: str, to_try: Sequence[str]) -> None:
        """Tell what runs and where; and commands to try, for people alone."""
        if self.form == "json":
            log.info("%s", where)
        else:
            said = f"{where}, try:" if to_try else where
            print("\n  ".join([said, *to_try]), file=self.errors)

    def refused(self, diagnostics: Iterable[Diagnostic], sources: Mapping[str, str]) -> None:
        """Tell all that is wrong with the files, in their order."""
        said = in_file_order(diagnostics)
        if self.form == "json":
            log_each(said)
        else:
            print(render(said, style=style_for(sys.stderr), sources=sources), file=self.errors)

    def not_started(self, reason: object) -> None:
        """Tell what was not to be had."""
        if self.form == "json":
            log.error("%s", reason)
        else:
            print(f"headrace: {reason}", file=self.errors)


def serve(
    files: Files,
    listening: Callable[[], socket.socket],
    *,
    data_dir: Path | None = None,
    is_debug: bool = False,
    log_format: Form = "text",
) -> int:
    """Run the server until a signal ends it; return the exit code.

    ``listening`` gives the socket that it listens on, once the files are read: `bound`, or one that whoever
    started this process has bound, which others may listen on as well. Not to be had: `NotStarted`.
    """
    errors = StandardError(2, log_format)
    atexit.register(errors.drain)  # what is written to it is out before the process ends
    lines = configure(errors, is_debug=is_debug, form=log_format)
    report = StartReport(errors, log_format)
    known = catalogue()
    loaded = load(files, known, data_dir=data_dir, is_starting=True)
    lines.redact = loaded.secrets.redact
    try:
        if loaded.program is None or loaded.is_refused:
            raise Refused(loaded.diagnostics)
        log_odd(loaded)
        known.complete()  # no request waits, with all the others, until a component is imported
        listener = listening()
        root = _made(data_dir)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_run(loaded, loaded.program, known, listener, root, report))
        return 0
    except Refused as cause:
        report.refused(cause.diagnostics, loaded.sources)
    except NotStarted as cause:
        report.not_started(cause)
    except Exception:  # the interpreter would print it as it is, with secrets
        log.exception("headrace broke")
    return 1


async def _run(
    loaded: Loaded,
    program: Program,
    known: Catalogue,
    listener: socket.socket,
    data_dir: DataDir | None,
    report: StartReport,
) -> None:
    clock = Clock(asyncio.get_running_loop())
    try:
        authenticator = await opened(loaded.settings, loaded.secrets, clock)
    except HeadraceError as cause:  # a server that cannot tell who is let in does not start
        raise NotStarted(str(cause)) from cause
    # It runs the pipelines in this process. Nobody else knows that it does.
    engine = OneProcess(
        clock,
        connections=loaded.connections,
        secrets=loaded.secrets,
        data_dir=data_dir,
        base=loaded.base,
        retention_seconds=loaded.settings.history.retention_secs,
        store=loaded.settings.store,
        is_history_durable=loaded.settings.history.durable,
    )
    service = Service(
        engine, known, clock, authenticator, loaded.settings.console, files=loaded.files
    )
    try:
        await _serve(service, loaded, program, listener, report)
    finally:
        await authenticator.close()


async def _serve(
    service: Service,
    loaded: Loaded,
    program: Program,
    listener: socket.socket,
    report: StartReport,
) -> None:
    engine = service.engine

    def ready() -> None:
        service.is_ready = True
        collect_less()
        _announce(service, listener, report)

    def stopping() -> None:
        service.is_ready = False
        engine.hush()

    server = Server(
        Application(service),
        service.clock,
        on_ready=ready,
        on_stopping=stopping,
        ingest=Ingest(service),
    )
    loading = asyncio.ensure_future(engine.load(program))
    _end_on_signal(asyncio.get_running_loop(), server, loading)
    try:
        await loading
    except HistoryRefused as cause:
        raise NotStarted(str(cause)) from cause
    except asyncio.CancelledError:
        if not server.should_exit:
            raise
        await engine.close()
        return
    service.filing.loaded(loaded.layout)
    try:
        await server.serve(sockets=[listener])
    except OSError as cause:  # somebody else began to listen after we were bound
        host, port = listener.getsockname()[:2]
        raise _not_free(host, port, cause) from cause
    finally:
        await engine.close()


def _end_on_signal(
    loop: asyncio.AbstractEventLoop, server: Server, loading: asyncio.Future[None]
) -> None:
    """Have the first signal end the server in order, and the second at once.

    A start that is still loading is given up: a store that cannot be read would have it wait for ever.
    SIGHUP says that the terminal is gone; whoever wants to outlive that has it ignored (nohup).
    """

    def ended(number: signal.Signals) -> None:
        if server.should_exit:
            os._exit(128 + number)
        server.stop()
        loading.cancel()

    ending = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        ending.append(signal.SIGHUP)
    for number in ending:
        loop.add_signal_handler(number, partial(ended, number))


def bound(host: str, port: int) -> socket.socket:
    """Return a socket bound to the address, before anything is started that would have to end.

    Raises:
        NotStarted: it is not free.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except (OSError, UnicodeError) as cause:
        raise _not_free(host, port, cause) from cause
    return listener


def _not_free(host: str, port: int, cause: OSError | UnicodeError) -> NotStarted:
    if isinstance(cause, UnicodeError):  # a part of the name is empty, or longer than 63
        why = "the host name cannot be resolved"
    else:
        why = cause.strerror or str(cause)
    return NotStarted(f"cannot listen on {host}:{port}: {why}")


def _made(data_dir: Path | None) -> DataDir | None:
    """Return the data directory, made if it is not there."""
    if data_dir is None:
        return None
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        return DataDir(data_dir)
    except OSError as cause:
        raise NotStarted(f"--data-dir '{data_dir}': {cause.strerror or cause}") from cause


def _announce(service: Service, listener: socket.socket, report: StartReport) -> None:
    """Tell where the server is, and what works there when it is tried."""
    host, port = listener.getsockname()[:2]
    if not (service.authenticator.is_guarded or ipaddress.ip_address(host).is_loopback):
        log.warning("there are no accounts: whoever reaches %s:%d may do everything", host, port)
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    count = len(service.engine.names())
    where = f"headrace runs {count} pipeline{'' if count == 1 else 's'} at {url}"
    report.runs(where, list(_to_try(service, host, port)))


def _to_try(service: Service, host: str, port: int) -> Iterator[str]:
    """Yield commands that work as they stand: whoever has to sign in knows best with what."""
    address = ipaddress.ip_address(host)
    if getattr(address, "scope_id", None):
        return  # curl, or the shell, reads such an address in ways of its own
    if address.is_unspecified:  # what listens everywhere is reached here as well
        host = "::1" if address.version == 6 else "127.0.0.1"
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    door = _open_door(service, url)
    if service.authenticator.is_guarded:
        yield from filter(None, [door])
        yield f"curl {shlex.quote(f'{url}/')}"
    else:
        yield f"curl -N {shlex.quote(f'{url}/events')}"
        yield door or f"curl {shlex.quote(f'{url}/api/pipelines')}"


def _open_door(service: Service, url: str) -> str | None:
    """Return how to post to the first pipeline that anybody may post to, and post JSON to."""
    for id in service.engine.names():
        way_in = service.engine.way_in(id)
        if way_in is not None and way_in.admits is None and way_in.reads_json:
            path = f"/api/pipelines/{quote(id, safe='')}/messages"
            return f"""curl -d '{{"value": 42}}' {shlex.quote(url + path)}"""
    return None
