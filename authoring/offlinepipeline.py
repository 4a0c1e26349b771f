"""One pipeline in a notebook or a test: messages go in, what leaves its last transform comes out.

    from headrace import Pipeline
    heat = Pipeline.from_yaml("config.yaml", "alarms")
    came = heat.run([{"site": "north", "high": 90}], every="1s", until="5m")
    assert came.messages == [{"site": "north", "text": "hot at north"}]

It runs in virtual time, in the build that runs in production; nothing else of the config runs with it.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from errno import ENOENT
from functools import cache
from os import PathLike
from pathlib import Path
from string import ascii_letters
from typing import TYPE_CHECKING

from headrace.authoring.configfiles import ConfigFiles, catalogue, load_config
from headrace.authoring.language.durations import as_start, seconds, told
from headrace.authoring.language.marbles import render
from headrace.authoring.language.replies import replies as replies_of
from headrace.authoring.playing.played import Played, SaidAt
from headrace.authoring.playing.player import play
from headrace.authoring.playing.playlength import DEFAULT_MAX_MOMENTS
from headrace.authoring.playing.scenario import (
    START,
    Arriving,
    BucketLook,
    GivenArrival,
    GivenState,
    Replies,
    Scenario,
)
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.pipelineconfig import FAMILY_OF, PipelineConfig
from headrace.compiler.config.program import Program
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.errors import HeadraceError, Refused
from headrace.compiler.text.diagnostics import Severity
from headrace.compiler.text.suggest import meant_or_there, one_of

if TYPE_CHECKING:
    import pandas
    import polars

Given = Iterable[JsonValue] | Mapping[str, JsonValue]
"""Messages, one after the other, a list among them being a batch; or by their moments (``"90s"``)."""

MOST_SHOWN = 50
"""Batches that a notebook shows of what came."""


class NoSuchPipeline(HeadraceError):
    """A config has no pipeline of that id, or several and none was named."""


class WrongReply(HeadraceError):
    """What a server is to answer is not written as a reply is."""


@cache
def _known() -> Catalogue:
    return catalogue()


@dataclass(frozen=True)
class Came:
    """What came of a run.

    Units: moments are seconds since its start; `math.inf` is the end, when what is held is let go.
    """

    batches: list[tuple[float, Batch]]
    """What left the last transform, each batch with its moment."""
    failures: list[SaidAt]
    """What failed: when, where and why."""
    warnings: list[SaidAt]
    state: Mapping[str, Mapping[str, JsonValue]] = field(default_factory=dict)
    """What its bucket held at the end: names and values by key."""

    @property
    def messages(self) -> list[JsonValue]:
        """All messages that came, in their order."""
        return [message for _, batch in self.batches for message in batch]

    def to_pandas(self) -> pandas.DataFrame:
        """Return the messages as a data frame of pandas, which has to be installed."""
        import pandas

        return pandas.DataFrame(self.messages)

    def to_polars(self) -> polars.DataFrame:
        """Return the messages as a data frame of polars, which has to be installed."""
        import polars

        return polars.DataFrame(self.messages)

    def _repr_html_(self) -> str:
        """Return a line of marbles, as a test could expect it, and what each of them is."""
        shown = [*zip(self.batches, ascii_letters[:MOST_SHOWN], strict=False)]
        line = render((at, letter) for (at, _), letter in shown)
        rows = [(letter, told(at), repr(batch)) for (at, batch), letter in shown]
        rows += [("", told(each.at), f"{each.place} failed: {each.text}") for each in self.failures]
        more = len(self.batches) - MOST_SHOWN
        rows += [("", "", f"and {more:,} batches more")] if more > 0 else []
        cells = "".join(
            f"<tr>{''.join(f'<td>{_text(each)}</td>' for each in row)}</tr>" for row in rows
        )
        head = "<tr><th></th><th>at</th><th>what came</th></tr>"
        return f"<pre>{_text(line)}</pre><table>{head}{cells}</table>"


class Pipeline:
    """A pipeline that can be run offline, as often as wanted: each run begins anew."""

    def __init__(self, config: PipelineConfig, program: Program, base: Path | None) -> None:
        self._config, self._program, self._base = config, program, base

    @classmethod
    def from_yaml(cls, path: str | PathLike[str], id: str | None = None) -> Pipeline:
        """Return a pipeline of a config file, YAML or JSON; ``id`` may be left out where there is one.

        Raises:
            Refused: the config is refused, with every reason.
            NoSuchPipeline: nothing in it is called so.
            FileNotFoundError: there is no such file.
        """
        return cls._loaded(ConfigFiles(Path(path)), id)

    @classmethod
    def from_text(cls, text: str, id: str | None = None) -> Pipeline:
        """Return a pipeline of a config that is text. Raises as `from_yaml` does."""
        return cls._loaded(ConfigFiles(piped=text.encode(errors="surrogatepass")), id)

    @classmethod
    def _loaded(cls, files: ConfigFiles, id: str | None) -> Pipeline:
        if files.config is not None and not files.config.exists():
            raise FileNotFoundError(ENOENT, "no such config", str(files.config))
        loaded = load_config(files, _known())
        # Nothing is connected to: what a connection says, or whether it is there, makes no difference.
        wrong = [
            one
            for one in loaded.diagnostics
            if one.severity is Severity.ERROR and (one.code != "unknown-connection" or files.config)
        ]
        if loaded.program is None or wrong:
            raise Refused(wrong or loaded.diagnostics)
        pipelines = loaded.program.pipelines
        found = [each for each in pipelines if id in (None, each.id)]
        if len(found) != 1:
            names = loaded.program.named
            if id is None:
                there = one_of(names) if names else "none has an id"
                raise NoSuchPipeline(f"which pipeline is it: {there}")
            raise NoSuchPipeline(f"there is no pipeline '{id}' ({meant_or_there(id, names)})")
        return cls(found[0], loaded.program, loaded.base)

    @property
    def id(self) -> str:
        """What it is called."""
        return self._config.id or "pipeline"

    def run(
        self,
        messages: Given,
        *,
        every: str = "1s",
        until: str | None = None,
        start: datetime = START,
        replies: Mapping[int, JsonValue] | None = None,
        state: Mapping[str, Mapping[str, JsonValue]] | None = None,
        max_moments: int = DEFAULT_MAX_MOMENTS,
    ) -> Came:
        """Run it: messages come one after the other from 0s on, or at their moments.

        ``every`` is the time between two of them, ``until`` when it is ended (left out: at the last of
        them), ``start`` what the wall shows at 0s. ``replies`` are what the server of an `http` transform
        answers, by its index, as a test file writes it. ``state`` is what its bucket holds at first.
        ``max_moments`` is how many moments may pass at which timers are due, beside 100 for each of the
        messages.

        Raises:
            NotADuration: a moment is not written as one (``90s``, ``1m30s``).
            WrongReply: a reply is not written as one.
            ValueError: ``start`` has no offset, or is too near to an end of the calendar; or
                ``max_moments`` is less than 1.
            Refused: it cannot be built, with every reason.
            PlayTooLong: it has taken as many moments as it may.
        """
        if max_moments < 1:
            raise ValueError(f"max_moments is {max_moments}, and has to be at least 1")
        arrivals = [
            GivenArrival(at, (self.id, 0), Arriving(what if isinstance(what, list) else [what]))
            for at, what in _timed(messages, seconds(every))
        ]
        bucket = None if self._config.state is None else self._config.state.bucket
        begun = [] if bucket is None or state is None else [GivenState(0.0, bucket, state)]
        last = max((each.at for each in arrivals), default=0.0)
        end = last if until is None else seconds(until)
        looks = [] if bucket is None else [BucketLook(end, bucket)]
        scenario = Scenario(
            steps=[*begun, *sorted(arrivals, key=lambda each: each.at), *looks],
            until=end,
            started_at=as_start(start),
            replies=dict(self._replied(replies or {})),
            seed=self.id,
            feeds_all=True,
            max_moments=max_moments,
        )
        config = replace(self._config, id=self.id, outputs=()).standing(self._config.site)
        played = play(Program((config,), self._program.buckets), scenario, base=self._base)
        return self._came(played, None if bucket is None else (bucket, end))

    def _replied(
        self, written: Mapping[int, JsonValue]
    ) -> Iterator[tuple[tuple[str, int], Replies]]:
        asking = [*self._config.asking()]
        for index, value in written.items():
            if index not in asking:
                raise WrongReply(f"replies[{index!r}]: {_asked(asking)}")
            answer, faults = replies_of(value)
            if faults:
                raise WrongReply(f"replies[{index}]: {faults[0].message}")
            yield (self.id, index), answer

    def _came(self, played: Played, look: tuple[str, float] | None) -> Came:
        state = {} if look is None else dict(played.states[look])
        return Came(played.handed_on[self.id], played.failures, played.warnings, state)

    def __repr__(self) -> str:
        return f"<Pipeline '{self.id}': {' → '.join(self._stages())}>"

    def _repr_html_(self) -> str:
        boxes = " → ".join(f"<code>{_text(each)}</code>" for each in self._stages())
        return f"<p><b>{_text(self.id)}</b> {boxes}</p>"

    def _stages(self) -> list[str]:
        """Return the kinds of its components, from its inputs to its outputs."""
        listed = (getattr(self._config, name) for name in FAMILY_OF)
        groups = [[each.kind for each in components] for components in listed]
        inputs, transforms, outputs = groups
        return [" + ".join(inputs), *transforms, *([" + ".join(outputs)] if outputs else [])]


def _asked(asking: Sequence[int]) -> str:
    """Return which transforms get replies."""
    indices = " or ".join(map(str, asking))
    return f"a server is asked by transform {indices}" if asking else "no transform asks a server"


def _timed(given: Given, every: float) -> Iterator[tuple[float, JsonValue]]:
    if isinstance(given, Mapping):
        yield from ((seconds(at), what) for at, what in given.items())
    else:
        yield from ((round(number * every, 6), what) for number, what in enumerate(given))


def _text(value: str) -> str:
    return html.escape(value)
