"""The pages of docs/: what is generated in them is right and up to date, and what they name is there."""

import ast
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.families import Input, Transform
from headrace.compiler.schema.fields import (
    Choice,
    ConnectionName,
    Integer,
    MessageField,
    Number,
    SecretText,
)
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.secrets import Secret
from headrace.compiler.schema.structures import ListOf, RecordOf
from headrace.compiler.schema.variants import Tagged, VariantOf
from headrace.web.commands.check import check
from headrace.web.docs.__main__ import main, out_of_date
from headrace.web.docs.components import described, pages
from headrace.web.docs.diagnosticspage import Example, codes, examples, joined
from headrace.web.docs.heldpromises import FOLDERS
from headrace.web.docs.markdown import anchor, filled, named, table
from headrace.web.resources import ENDPOINTS
from tests.rooms import REPOSITORY, ROOMS

DOCS = REPOSITORY / "docs"
PAGES = sorted(DOCS.rglob("*.md"))

every_page = pytest.mark.parametrize(
    "page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix()
)


class Stone(Record):
    """What lies in the way."""

    weight: float = option(Number(above=0, max=2.5), "How heavy it is.", default=1)


class Bed(Tagged):
    """What the water runs over."""


class Gravel(Bed, tag="gravel"):
    """Small stones."""

    stones: tuple[Stone, ...] = option(ListOf(RecordOf(Stone), noun="stone"), "The stones.")


class Clay(Bed, tag="clay"):
    """Nothing to tell apart."""


class Brook(Input, kind="brook"):
    """Runs.

    In its bed.

    Shape: of no interest to who writes a config.
    """

    attaches = {"bend": "Where it turned."}

    depth: int = option(Integer(min=1), "How deep.")
    connection: str = option(ConnectionName("well"), "Where it rises.")
    bed: Bed | None = option(VariantOf(Bed), "What is below.", default=None)
    secret: Secret | None = option(SecretText(), "What opens it.", default=None, additive=True)
    mood: str = option(Choice("calm", "wild"), "Either a | or b.", default="calm")
    path: tuple[str, ...] = option(ListOf(MessageField()), "Where to look.", default=())


class Sieve(Transform, kind="sieve"):
    """Takes one of two."""

    one_of = ("Fine", "Coarse")

    fine: Stone | None = option(RecordOf(Stone), "Small.", default=None, wire="Fine")
    coarse: Stone | None = option(RecordOf(Stone), "Large.", default=None, wire="Coarse")


class Pond(Transform, kind="pond"):
    """Has no keys."""


def rows(page: str) -> list[list[str]]:
    """Return the cells of every line of a table, heads and rules left out."""
    lines = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line] for line in lines]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Return a copy of the pages, beside the tests that they list."""
    for folder in (*FOLDERS, "bench"):
        (tmp_path / folder).symlink_to(DOCS.parent / folder)
    return shutil.copytree(DOCS, tmp_path / "docs")


def test_only_what_is_between_the_markers_is_written_again() -> None:
    page = "# a\n\n<!-- generated -->\nold\n<!-- /generated -->\n\nb\n"

    assert filled(page, {"": "new"}) == (
        "# a\n\n<!-- generated -->\n\nnew\n\n<!-- /generated -->\n\nb\n"
    )


def test_parts_are_told_apart_by_name() -> None:
    page = (
        "<!-- generated: one -->\n<!-- /generated -->\n<!-- generated: two -->\n<!-- /generated -->"
    )

    written = filled(page, {"two": "2", "one": "1"})

    assert re.sub(r"\s", "", re.sub("<.*?>", "", written)) == "12"
    assert named(written) == ["one", "two"]
    assert filled(written, {"one": "1", "two": "2"}) == written


def test_a_part_without_markers_comes_at_the_end() -> None:
    assert filled("# a\n", {"": "new"}) == (
        "# a\n\n<!-- generated -->\n\nnew\n\n<!-- /generated -->\n"
    )


def test_a_part_that_nobody_writes_stays() -> None:
    page = "<!-- generated: other -->\nold\n<!-- /generated -->\n"

    assert filled(page, {}) == page


def test_a_cell_of_a_table_is_one_line_without_bars() -> None:
    assert table(("a",), [["b |\n c"]]) == "| a |\n| --- |\n| b \\| c |"


def test_keys_are_listed_with_type_default_and_meaning() -> None:
    assert rows(described(Brook))[:6] == [
        ["`depth`", "integer ≥ 1", "required", "How deep."],
        ["`connection`", "[well connection](../connection/well.md)", "required", "Where it rises."],
        ["`bed`", "[bed](#bed)", "-", "What is below."],
        ["`mood`", "`calm` \\| `wild`", "`calm`", "Either a \\| or b."],
        ["`path`", "list of dotted path", "-", "Where to look."],
        [
            "`secret`",
            "string, may hold `${NAME}`",
            "-",
            "What opens it. *(An addition: the established format has no such key.)*",
        ],
    ]


def test_what_a_key_holds_has_a_section_of_its_own() -> None:
    page = described(Brook)

    bed = page.partition("### bed\n")[2].partition("\n##")[0]
    stone = page.partition("### stone\n")[2].partition("\n##")[0]

    assert "**`gravel`**: Small stones." in bed
    assert "**`clay`**: Nothing to tell apart." in bed
    assert rows(bed) == [["`stones`", "list of [stone](#stone)", "required", "The stones."]]
    assert rows(stone) == [["`weight`", "number > 0, ≤ 2.5", "`1`", "How heavy it is."]]
    assert page.count("### bed\n") == 1


def test_the_description_ends_where_it_is_for_readers_of_the_code() -> None:
    page = described(Brook)

    assert page.startswith("Runs.\n\nIn its bed.\n\n")
    assert "Shape" not in page


def test_an_input_that_cannot_acknowledge_says_so_and_lists_its_metadata() -> None:
    page = described(Brook)

    assert "`ack: on_delivery` is refused" in page
    assert ["`bend`", "Where it turned."] in rows(page)
    assert ["`pipeline`", "Id of the pipeline that reads it."] in rows(page)
    assert "## Metadata" not in described(Pond)


def test_keys_of_which_one_is_given_are_told_together() -> None:
    assert "Exactly one of these." in described(Sieve)
    assert [key for key, *_ in rows(described(Sieve))] == ["`Fine`", "`Coarse`", "`weight`"]


def test_a_component_without_keys_says_so() -> None:
    assert described(Pond) == "Has no keys.\n\n## Keys\n\nIt has none."


def test_the_index_has_every_component_with_its_first_sentence() -> None:
    index = pages(Catalogue([Brook, Sieve]))["components/README.md"][""]

    assert "| [brook](input/brook.md) | Runs. |" in index
    assert "| [sieve](transform/sieve.md) | Takes one of two. |" in index


def test_pages_that_are_out_of_date_are_named_and_refused(docs: Path) -> None:
    stale = docs / "components" / "transform" / "buffer.md"
    stale.write_text(stale.read_text().replace("Hold messages", "Lose messages"))
    before = stale.read_text()

    result = run("--check", "--no-consoles", "--docs", str(docs))

    assert result.exit_code == 1
    assert result.output == f"{stale}: out of date\n"
    assert stale.read_text() == before


def test_pages_are_written_again_and_then_up_to_date(docs: Path) -> None:
    shutil.rmtree(docs / "components")

    written = run("--no-consoles", "--docs", str(docs))
    checked = run("--check", "--no-consoles", "--docs", str(docs))

    assert written.exit_code == 0
    assert (checked.exit_code, checked.output) == (0, "")
    page = (docs / "components" / "transform" / "buffer.md").read_text()
    assert page.startswith("# buffer\n\n<!-- generated -->\n\nHold messages")


def test_the_pages_of_this_repository_are_up_to_date() -> None:
    assert [page.relative_to(DOCS).as_posix() for page, _ in out_of_date(DOCS)] == []


@pytest.fixture(scope="module")
def known() -> list[Example]:
    return examples(DOCS / "errors")


def test_every_code_has_an_example(known: list[Example]) -> None:
    assert [example.code for example in known] == [*codes()]


@pytest.mark.engine
def test_an_example_earns_its_code_and_no_other(known: list[Example]) -> None:
    assert {each.code: each.told for each in known} == {code: {code} for code in codes()}


def test_every_example_is_of_a_code() -> None:
    files = (path.name.partition(".")[0] for path in (DOCS / "errors").iterdir())

    assert {*files} == {*codes()}


MAKERS = ("Fault", "UnknownKey", "refused")


def raised() -> Iterator[str]:
    """Yield the codes that faults are made with."""
    for file in sorted(path for room in ROOMS for path in (REPOSITORY / room).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in MAKERS and node.args:
                yield from codes_of(node.args[0])


def codes_of(argument: ast.expr) -> list[str]:
    """Return the literals an argument may be, or its source where it is none."""
    match argument:
        case ast.Constant(str(code)):
            return [code]
        case ast.IfExp():
            return [*codes_of(argument.body), *codes_of(argument.orelse)]
    return [ast.unparse(argument)]


def test_every_code_that_is_raised_is_in_the_table_and_on_the_page() -> None:
    page = (DOCS / "errors.md").read_text()

    handed_on = {"code"}  # by `refused`, which is one of the makers

    assert {*raised()} - handed_on == {*codes()}
    assert [code for code in codes() if f"\n### {code}\n" not in page] == []


def test_each_code_is_a_kebab_case_word_with_a_sentence():
    for code, meaning in codes().items():
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", code)
        assert re.fullmatch(r"[A-Z].+[^.]\.", meaning)


def test_a_code_is_declared_once() -> None:
    with pytest.raises(ValueError, match=r"^b declares what another does: blank$"):
        joined([("a", {"blank": "Nothing."}), ("b", {"blank": "Empty."})])


def test_every_endpoint_is_on_the_page() -> None:
    page = (DOCS / "api.md").read_text()

    missing = [
        e.operation for e in ENDPOINTS if f"| `{e.method} {e.path}` | `{e.operation}`" not in page
    ]

    assert missing == []


def test_the_lines_that_the_guide_shows_of_a_pipe_are_real(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)

    assert check([Path("docs/getting-started/broken.yaml")]) == 1

    first, second, *_ = capsys.readouterr().out.splitlines()
    assert f"\n{first}\n{second}\n" in (DOCS / "getting-started.md").read_text()


def headings(page: Path) -> set[str]:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return {anchor(heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


@every_page
def test_what_a_page_links_to_is_there(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        file, _, heading = target.partition("#")
        linked = page.parent / file if file else page
        if not linked.exists() or (heading and f"#{heading}" not in headings(linked)):
            broken.append(target)

    assert broken == []


@every_page
def test_the_files_that_a_page_names_are_there(page: Path) -> None:
    named = re.findall(r"`((?:\w+/)+[\w.]+\.(?:py|yaml|md|txt))`", page.read_text())

    assert [file for file in named if not (REPOSITORY / file).exists()] == []


@every_page
def test_a_page_names_no_machine(page: Path) -> None:
    assert re.findall(r"(?<![\w.])/(?:home|root|tmp|work|Users)/\S*", page.read_text()) == []


def test_every_decision_is_in_the_index() -> None:
    index = (DOCS / "decisions" / "README.md").read_text()
    decisions = {path.stem for path in (DOCS / "decisions").glob("*.md")} - {"README"}

    assert set(re.findall(r"^\| \[(.+?)\]\(\1\.md\)", index, re.MULTILINE)) == decisions
