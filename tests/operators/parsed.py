"""A transform `parse` as the tests write it, and what it makes of texts, in either form."""

from reactivex.subject import Subject

from headrace.compiler.clock import run_virtual
from headrace.compiler.lowering.chain import lower, plainly
from headrace.operators.parse import Parse
from tests.compiler.lowering.played import exact
from tests.doubles import StubContext
from tests.marbles import over_lists

TOPIC = {"split": {"by": "/", "into": ["site", "machine"]}}


def parse(form, **options):
    """Return one that reads `value`; a Python keyword is written with an underscore behind it."""
    named = {name.rstrip("_"): value for name, value in options.items() if value is not None}
    return Parse.load({"from": "value", **form, **named})


def handed_on(transform, *messages):
    """Return what is handed on of each message by itself, `None` where nothing is, or why it fails.

    The plain form and the generated one have to agree.
    """
    results = []

    async def play():
        results.extend([await handed_on_here(transform, message) for message in messages])

    run_virtual(play)
    return results


async def handed_on_here(transform, message, ctx=None):
    """Return the same of one message, on the loop of the test."""
    plain, generated = [
        await _result(lowering, transform, message, ctx) for lowering in (plainly, lower)
    ]
    assert exact(plain) == exact(generated)
    return plain


def batches_of(transform, *batches, ctx):
    """Return the batches that are handed on; the plain form and the generated one have to agree."""
    seen = []

    async def play():
        for lowering in (plainly, lower):
            ctx.lost.clear()
            seen.append(await _handed_on(lowering, transform, batches, ctx))

    run_virtual(play)
    assert exact(seen[0]) == exact(seen[1])
    return seen[0]


def read(form, text, **options):
    """Return the fields that a text is taken apart into, or why it does not fit."""
    [made] = handed_on(parse(form, keep="parsed", **options), {"value": text})
    return made


async def _result(lowering, transform, message, ctx):
    ctx = ctx or StubContext(place="transforms[0]")
    ctx.failures.clear()
    seen = await _handed_on(lowering, transform, [[message]], ctx)
    if ctx.failures:
        return ctx.failures[0]
    return seen[0][0] if seen else None


async def _handed_on(lowering, transform, batches, ctx):
    seen, source, untouched = [], Subject(), exact([*batches])
    [operator] = lowering([(transform, ctx)], [])
    source.pipe(over_lists(operator)).subscribe(seen.append)
    for batch in batches:
        source.on_next(batch)
    while ctx.pacing.slices.paused:
        await ctx.clock.sleep(0)
    assert exact([*batches]) == untouched
    return seen
