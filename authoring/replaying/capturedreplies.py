"""The servers that `http` transforms ask, in a replay: they answer as in the capture, by content."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from headrace.authoring.language.capturefile import RecordedReply, content_of
from headrace.authoring.playing.scenario import ScriptedReply
from headrace.compiler.delivery import Batch

UNANSWERED = "the capture has no reply to this request"


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Requests of a transform that the capture has no reply to. ``first`` is the content of one."""

    of: str
    count: int
    first: str


class CapturedReplies:
    """What the servers of one play answer.

    A request is answered with what was answered to the same content: of the same transform, or else of any.
    To what was asked several times, the answers come in turn, and then the last.
    """

    def __init__(self, replies: Iterable[RecordedReply]) -> None:
        self._of_transforms: dict[tuple[str, str], list[ScriptedReply]] = defaultdict(list)
        self._of_any: dict[str, list[ScriptedReply]] = defaultdict(list)
        for each in replies:
            self._of_transforms[each.of, each.request].append(each.reply)
            self._of_any[each.request].append(each.reply)
        self._turns: dict[tuple[str, str], int] = defaultdict(int)
        self._unanswered: dict[str, Unanswered] = {}

    def to(self, of: str, batch: Batch) -> ScriptedReply | str:
        """Return what is answered to a batch of a transform, or why nothing is."""
        content = content_of(batch)
        found = self._of_transforms.get((of, content)) or self._of_any.get(content)
        if found is None:
            before = self._unanswered.get(of)
            self._unanswered[of] = Unanswered(
                of, 1 if before is None else before.count + 1, before.first if before else content
            )
            return UNANSWERED
        turn = self._turns[of, content]
        self._turns[of, content] += 1
        return found[min(turn, len(found) - 1)]

    def unanswered(self) -> list[Unanswered]:
        """Return what could not be answered, by transform."""
        return [*self._unanswered.values()]
