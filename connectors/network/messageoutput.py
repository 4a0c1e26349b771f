"""What outputs have in common that send each message by itself: as JSON, or as the text of a template."""

from __future__ import annotations

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.families import Fits
from headrace.compiler.component.fieldflow import FieldUse
from headrace.compiler.component.queuedoutput import QueuedOutput
from headrace.compiler.delivery import PART, Batch, is_large, parts
from headrace.compiler.errors import BatchFailed
from headrace.compiler.jsontext import encode
from headrace.compiler.largejson import WritingTurn, encode_each
from headrace.compiler.schema.records import option
from headrace.compiler.texttemplates import TemplateText, TextTemplate, made_texts


class MessageOutput(QueuedOutput):
    """An output that sends each message by itself.

    Its sink asks `bodies` for what is sent, for the whole batch before anything of that is: a message that
    the template cannot be filled in with fails its batch, and nothing of that is sent.
    """

    template: TextTemplate | None = option(
        TemplateText(),
        "What is sent for a message in place of JSON: a text with fields in braces, such as `{value}`. A"
        " batch with a message that lacks one of the fields fails, and nothing of it is sent.",
        default=None,
        additive=True,
        elsewhere="format pattern payload text",
    )

    def field_use(self) -> FieldUse:
        """With a template nothing but its fields is read."""
        if self.template is None:
            return super().field_use()
        return FieldUse.of(reads=self.template.paths)

    def fits(self, ctx: Context) -> Fits | None:
        """With a template it makes the texts."""
        return None if self.template is None else self.bodies(ctx)

    def bodies(self, ctx: Context) -> MessageBodies:
        """Return what makes the bodies of a batch."""
        return MessageBodies(self.template, ctx)


class MessageBodies:
    """Makes of each message what is sent: of a batch in one go, or of a large one in slices."""

    def __init__(self, template: TextTemplate | None, ctx: Context) -> None:
        self._ctx = ctx
        place = f"{ctx.pipeline} {ctx.place}"
        self._made = _as_json if template is None else made_texts(template, place)

    def __call__(self, batch: Batch) -> list[bytes]:
        """Return the bodies.

        Raises:
            BatchFailed: a message has not got what the template asks for.
        """
        return self._made(batch)

    async def of_any(self, batch: Batch) -> list[bytes]:
        """Return the bodies of a batch that may be large; others have their turns meanwhile."""
        if not is_large(batch):
            return self._made(batch)
        try:
            return await encode_each(batch, self._ctx.clock, self._made)
        except BatchFailed as cause:
            raise BatchFailed(str(cause), refused=await self._refused(batch)) from None

    async def _refused(self, batch: Batch) -> dict[int, str]:
        """Return which messages of a large batch have not got what is asked for, and why."""
        refused, turn = dict[int, str](), WritingTurn(self._ctx.clock)
        for number, some in enumerate(parts(batch)):
            try:
                self._made(some)
            except BatchFailed as cause:
                refused |= {number * PART + place: said for place, said in cause.refused.items()}
            await turn.end()
        return refused


def _as_json(batch: Batch) -> list[bytes]:
    return [*map(encode, batch)]
