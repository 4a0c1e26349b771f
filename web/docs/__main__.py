"""`python -m headrace.web.docs`: write the generated parts of docs/, or tell which are out of date."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from headrace.authoring.configfiles import catalogue
from headrace.compiler.jsontext import encode
from headrace.web.docs import (
    api,
    comparingpage,
    components,
    consoleruns,
    deliverypage,
    diagnosticspage,
    dryruns,
    durabilitypage,
    explainingpage,
    speedpage,
    testingpage,
    transcripts,
)
from headrace.web.docs.markdown import RegionTexts, filled
from headrace.web.openapi import described
from headrace.web.resources import ENDPOINTS


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; name what is out of date and exit 1.")
@click.option(
    "--docs",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default="docs",
    show_default=True,
    help="The folder of the pages.",
)
@click.option(
    "--consoles/--no-consoles",
    default=True,
    show_default=True,
    help="Run what pages have somebody type, and compare what it prints; of the whole checkout.",
)
@click.option("--openapi", is_flag=True, help="Print the description of the API, and do no more.")
def main(check: bool, docs: Path, consoles: bool, openapi: bool) -> None:
    """Write the generated parts of the pages again. A promise without a test is an error either way."""
    if openapi:
        return click.echo(encode(described(catalogue(), ENDPOINTS)))
    stale = dict(out_of_date(docs))
    if consoles:
        try:
            stale |= dict(consoleruns.out_of_date(docs.absolute().parent, stale))
        except consoleruns.NotAsShown as cause:
            raise click.ClickException(str(cause)) from cause
    for page, text in stale.items():
        click.echo(f"{page}: {'out of date' if check else 'written'}")
        if not check:
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text)
    wrong = [*deliverypage.complaints(docs, catalogue())]
    for complaint in wrong:
        click.echo(complaint)
    if wrong or (check and stale):
        raise SystemExit(1)


def out_of_date(docs: Path) -> Iterator[tuple[Path, str]]:
    """Yield the pages that do not read as they should, each with how it should."""
    for name, parts in sorted(generated(docs).items()):
        page = docs / name
        text = page.read_text() if page.exists() else f"# {page.stem}\n"
        if (written := filled(text, parts)) != text or not page.exists():
            yield page, written


def generated(docs: Path) -> dict[str, RegionTexts]:
    """Return the generated parts of all pages, by path."""
    return {
        **components.pages(catalogue()),
        **diagnosticspage.pages(docs / "errors"),
        **transcripts.pages(docs),
        **testingpage.pages(docs),
        **explainingpage.pages(docs),
        **deliverypage.pages(docs, catalogue()),
        **durabilitypage.pages(docs),
        **comparingpage.pages(docs),
        **api.pages(),
        **dryruns.pages(docs),
        **speedpage.pages(docs),
    }


if __name__ == "__main__":
    main(prog_name="python -m headrace.web.docs")
