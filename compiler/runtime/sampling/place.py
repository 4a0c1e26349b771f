"""Where a sampled input stands: what it says goes to the log, and back to who asked."""

from __future__ import annotations

from collections.abc import Callable

from headrace.compiler.edges import Source
from headrace.compiler.runtime.built import BuiltComponents
from headrace.compiler.runtime.componentcontext import ComponentContext, World
from headrace.compiler.runtime.monitoring.failures import Failures, cut
from headrace.compiler.runtime.monitoring.pipelinerecord import Signatures

MOST_KEPT = 10
"""Different warnings, and failures, that are told of one sample: the first ones."""


class SamplePlace(ComponentContext):
    """The context of an input that is sampled. Its failures are logged, and are those of no pipeline."""

    def __init__(
        self,
        parts: BuiltComponents,
        world: World,
        attach: Callable[[str], Source],
        broke_off: Callable[[BaseException], None],
    ) -> None:
        """Take what gives the output of another pipeline, and who is told when reading breaks off."""
        table = Signatures(world.clock, 0)
        failures = Failures(parts.pipeline, world.clock, lambda *_: None, table)
        super().__init__(world, parts, failures, "input", 0)
        self.place = "input"
        self._attach, self._broke_off = attach, broke_off
        self.warnings: list[str] = []
        """What was warned of, without secrets."""
        self.failed: list[str] = []
        """What went wrong, without secrets."""
        self.outage: str | None = None
        """Why nothing can be read at the moment, without secrets."""

    def attach(self, upstream: str) -> Source:
        return self._attach(upstream)

    def warn(self, text: str) -> None:
        super().warn(text)
        self._keep(text, self.warnings)

    def fail(self, message: str) -> None:
        """Log a failure the first time: it may come again with every try."""
        if self._keep(message, self.failed):
            super().fail(message)

    def report(self, cause: BaseException) -> None:
        """Take note that a life of the source is over, or never began."""
        super().report(cause)
        self.outage = self._shown(str(cause) or type(cause).__name__)
        self._broke_off(cause)

    def note(self, text: str) -> None:
        """Take note that another life has begun: nothing else ends well after all."""
        super().note(text)
        self.outage = None

    def without_secrets(self, text: str) -> str:
        """Return a text without secrets, whosever they are."""
        return self._world.secrets.redact(self.redact(text))

    def _shown(self, text: str) -> str:
        return cut(" ".join(self.without_secrets(text).split()))

    def _keep(self, text: str, texts: list[str]) -> bool:
        text = self._shown(text)
        is_new = text not in texts and len(texts) < MOST_KEPT
        if is_new:
            texts.append(text)
        return is_new
