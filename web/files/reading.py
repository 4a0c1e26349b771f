"""The files that a command line names: read, checked, and all that is wrong with them told at once."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from headrace.authoring.configfiles import ConfigFiles, LoadedConfig
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.durable import nowhere
from headrace.compiler.schema.secrets import Secrets
from headrace.compiler.text.diagnostics import Diagnostic, Severity
from headrace.compiler.text.render import render
from headrace.web.auth.settingsfile import ServerSettings, load_settings
from headrace.web.files.layoutfile import LayoutFile, layout_file, load_layout

LINKS = 40
"""How many links are followed one after the other, as the kernel has it."""

FileIdentity = tuple[str | int, ...]
"""A directory without links and the name of a file in it, or the device and the number of a file."""

Purposes = Iterable[tuple[Path, str]]
"""Files, each with what it is for."""

log = logging.getLogger("headrace.web")


@dataclass(frozen=True)
class Files(ConfigFiles):
    """Those of a config, and server settings."""

    settings: Path | None = None

    def named(self) -> dict[str, Path]:
        """Return the files that were named, by what each is for."""
        return super().named() | ({} if self.settings is None else {"settings": self.settings})

    def companions(self, config: Path) -> Iterator[tuple[Path, str]]:
        """Yield what stands beside a config and is read with it."""
        yield from super().companions(config)
        yield layout_file(config), "layout file"


def written_places(file: Path) -> Iterator[FileIdentity]:
    """Yield where what is put in the place of a file is: a link is replaced, and not followed."""
    yield os.path.realpath(file.parent), file.name
    yield from _number(file, os.lstat)


def read_places(file: Path) -> Iterator[FileIdentity]:
    """Yield where what is read as a file comes from: every link that leads to it, and the file."""
    link = file
    for _ in range(LINKS):
        directory = os.path.realpath(link.parent)
        yield directory, link.name
        try:
            link = Path(directory) / os.readlink(link)
        except (OSError, ValueError):
            break
    yield from _number(file, os.stat)


def _number(file: Path, look: Callable[[Path], os.stat_result]) -> Iterator[FileIdentity]:
    """Yield what tells a regular file from all others, whatever it is called."""
    try:
        found = look(file)
    except (OSError, ValueError):  # the latter for what no file can be called
        return
    if stat.S_ISREG(found.st_mode):
        yield found.st_dev, found.st_ino


def clash(purposes: Purposes) -> tuple[Path, str, str] | None:
    """Return a file that is for two things, and which; None if each is for one."""
    found: dict[FileIdentity, str] = {}
    for file, purpose in purposes:
        for each in read_places(file):
            if found.setdefault(each, purpose) != purpose:
                return file, found[each], purpose
    return None


@dataclass
class Loaded(LoadedConfig[Files]):
    """What the files say, and what is wrong with them."""

    files: Files = field(default_factory=Files)
    settings: ServerSettings = field(default_factory=ServerSettings)
    """Who may reach the server, and for how long it remembers."""
    layout: LayoutFile = field(default_factory=LayoutFile)


def load(
    files: Files,
    catalogue: Catalogue,
    *,
    data_dir: Path | None = None,
    is_starting: bool = False,
) -> Loaded:
    """Read secrets, settings, connections, config and layout, whatever is wrong with any of them.

    References that nothing answers are warned of: who builds the pipelines has the last word, and
    a server that ``is_starting`` about its accounts. With a ``data_dir``, connections that lead out of
    it are refused; without, inputs that are to be kept are warned of.
    """
    loaded = Loaded(files, base=files.base(), data_dir=data_dir)
    if found := clash(files.purposes()):
        file, one, other = found  # what is written as the one would be gone as the other
        message = f"this is the {one}, and cannot be the {other} as well"
        loaded.diagnostics.append(
            Diagnostic(file=files.called(file), code="duplicate", message=message)
        )
    secrets = loaded.take_secrets()
    if files.settings is not None:
        settings_of = partial(
            load_settings,
            secrets=secrets,
            is_starting=is_starting,
            has_data_dir=data_dir is not None,
        )
        settings = loaded.take(files.settings, settings_of, is_secret=True)
        loaded.settings = settings or loaded.settings
    loaded.take_program(catalogue, secrets)
    if data_dir is None and not is_starting:  # the build of one that starts says so
        loaded.diagnostics += _kept_nowhere(loaded)
    read_layout(loaded)
    return loaded


def _kept_nowhere(loaded: Loaded) -> Iterator[Diagnostic]:
    """Yield a warning for whatever is to be kept, where nobody has said in which directory."""
    warning = Severity.WARNING
    if loaded.program is not None:
        yield from loaded.program.of_durable(nowhere(severity=warning))
    for config in () if loaded.program is None else loaded.program.pipelines:
        if config.letters is not None:
            yield config.diagnose(nowhere("dead_letters", warning))
        for index, input in enumerate(config.inputs):
            if input.is_durable:
                yield config.diagnose(nowhere(severity=warning), ("inputs", index))
        for index, output in enumerate(config.outputs):
            if output.is_queued:
                yield config.diagnose(nowhere("queue", warning), ("outputs", index))


def load_again(
    files: Files, catalogue: Catalogue, secrets: Secrets, data_dir: Path | None
) -> Loaded:
    """Read connections and config as `load` does; secrets and ``data_dir`` are those of the start."""
    loaded = Loaded(files, base=files.base(), data_dir=data_dir, secrets=secrets)
    loaded.take_program(catalogue, secrets)
    return loaded


def read_layout(loaded: Loaded) -> None:
    """Read the layout file beside the config, if it is there."""
    config = loaded.files.config
    if config is not None and config.name and os.path.exists(file := layout_file(config)):
        loaded.layout = loaded.take(file, load_layout, "json") or loaded.layout


def log_each(diagnostics: Iterable[Diagnostic]) -> None:
    """Log each of the diagnostics, and in JSON its parts as well."""
    for one in diagnostics:
        level = logging.ERROR if one.severity is Severity.ERROR else logging.WARNING
        log.log(level, "%s", render([one], style="plain"), extra={"diagnostic": one})


def log_odd(loaded: Loaded) -> None:
    """Log what is odd about the files. What a build decides, a build says."""
    log_each(each for each in loaded.diagnostics if each.code != "unresolved-secret")
