"""The mapping that fills a template."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.compiler.casts import are_texts
from headrace.compiler.code import USUAL, Code
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import Missing
from headrace.compiler.schema.fields import Choice, MessageField
from headrace.compiler.schema.records import option
from headrace.compiler.text.diagnostics import Path as Place
from headrace.compiler.texttemplates import ESCAPES, TEXT_COST, TemplateText, TextTemplate
from headrace.operators.formula import Formula
from headrace.operators.mappings.mapping import Writing


class Template(Writing, tag="template", listed=55, elsewhere="format interpolate printf sprintf"):
    """Fills a template: a text with fields in braces.

    A string is put there as it is, a number or boolean as JSON writes it; ``{{`` and ``}}`` are braces.
    A list or an object fails the batch, also where another field is missing. Otherwise one missing field
    makes the whole value missing: `on_missing` says what that means, and by default the batch fails. A
    text of more than 16,777,216 characters fails the batch.
    """

    is_never_object = True

    template: TextTemplate = option(
        TemplateText(),
        "The text, such as `{machine} is at {temp} °C`; at most 100 fields in it.",
        elsewhere="format pattern text value",
    )
    escape: str = option(
        Choice(*ESCAPES, elsewhere={"none": "false no off raw", "url": "percent uri urlencode"}),
        "What is done to each field before it is put there: nothing; what makes it part of a string in JSON"
        " (up to 262,144 characters of all fields together); percent-encoding of all but letters, digits"
        " and `-._~` (up to 65,536).",
        default="none",
        elsewhere="encode escaping quote",
    )
    as_: str = option(
        MessageField(), "Field to write.", elsewhere="alias into name output target to"
    )

    @property
    def reads(self) -> Sequence[tuple[str, Place]]:
        """The fields in braces."""
        return [(path, ("template",)) for path in self.template.paths]

    def value(self, message: JsonValue, ctx: Context) -> JsonValue | Missing:
        """Return the text."""
        return self.template.fill(message, self.escape)

    def source(self, code: Code, ctx: Context, *, optional: bool) -> Formula:
        """Fill it where all is as usual."""
        filled = self.template.expression(code, escape=self.escape, optional=optional)
        different, apart = [*dict.fromkeys(filled.names)], ""
        if len(different) > 1:
            apart = f"{code.constant(are_texts, 'are_texts')}({', '.join(different)})"
        return Formula(
            filled.expression,
            filled.names,
            apart=apart,
            raises_on_none=True,
            cost=f"{TEXT_COST} * len({{0}})",
            costs_if=f"len({{0}}) > {USUAL}",
        )
