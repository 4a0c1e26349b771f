"""The consoles of pages: what a page has somebody type is run, and what it prints is what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.web.docs import consoleruns
from headrace.web.docs.consoles import filled, settled, steps_of

PAGE = """
# A page

`config.yaml` takes readings:

```yaml
- id: readings
  inputs: [{ type: http }]
  outputs: [{ type: stdout }]
```

```console
$ headrace serve --config config.yaml
headrace runs 1 pipeline at http://127.0.0.1:6767, try:
$ curl -d '[{"n": 1}, {"n": 2}]' \\
    http://127.0.0.1:6767/api/pipelines/readings/messages
{"accepted":2}
```

The server prints:

```
{"ts":"2026-01-01T00:00:00.000Z","pipeline":"readings","count":2,"batch":[{"n":1},{"n":2}]}
```

<!-- run: export NAME=there -->
```console
$ printf '%s\\n' $NAME 2031-12-24T18:00:00Z && pwd
there
2026-01-01T00:00:00Z
/srv/plant
```

```sh
rm -rf nothing of this is run
```

<!-- generated -->

```console
$ nor is this
```

<!-- /generated -->
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a checkout with one page."""
    for each in ("specs", "docs/getting-started"):
        (tmp_path / each).mkdir(parents=True)
    return tmp_path


def renewed(root: Path, page: str) -> str:
    """Return how a page should read."""
    (file := root / "docs" / "page.md").write_text(page)
    return dict(consoleruns.out_of_date(root, {})).get(file, page)


def test_a_page_that_is_right_stays_as_it_is_with_its_times(root: Path) -> None:
    assert renewed(root, PAGE) == PAGE


def test_what_is_printed_is_put_in_the_place_of_what_is_not(root: Path) -> None:
    wrong = PAGE.replace('"accepted":2', '"accepted":3').replace("there\n", "\n", 1)

    assert renewed(root, wrong) == PAGE.replace(
        "2026-01-01T00:00:00Z\n/", "2031-12-24T18:00:00Z\n/"
    )


def test_a_command_that_prints_nothing_yet_is_given_what_it_prints(root: Path) -> None:
    bare = PAGE.replace('messages\n{"accepted":2}\n', "messages\n")

    assert renewed(root, bare) == PAGE


def test_the_pages_that_are_about_to_be_written_are_those_that_are_run(root: Path) -> None:
    (file := root / "docs" / "page.md").write_text("# Nothing\n")

    [(page, text)] = consoleruns.out_of_date(root, {file: "```console\n$ echo yes\nno\n```\n"})

    assert (page, text) == (file, "```console\n$ echo yes\nyes\n```\n")


def test_a_command_that_is_not_there_is_named_with_its_page(root: Path) -> None:
    (root / "docs" / "page.md").write_text("```console\n$ no-such-command\n```\n")

    with pytest.raises(consoleruns.NotAsShown, match=r"^docs/page.md: 'no-such-command': "):
        dict(consoleruns.out_of_date(root, {}))


def test_a_server_that_does_not_start_is_told_with_what_it_says(root: Path) -> None:
    (root / "docs" / "page.md").write_text("```console\n$ headrace serve --config none.yaml\n```\n")

    with pytest.raises(consoleruns.NotAsShown, match=r"none\.yaml: no such file"):
        dict(consoleruns.out_of_date(root, {}))


def test_a_session_has_the_files_above_it_and_those_that_stand_only_below() -> None:
    one, two = "`a.json`:\n\n```json\n1\n```\n\n", "`a.json`:\n\n```json\n2\n```\n\n"
    serve, late = "```console\n$ headrace serve\n```\n\n", "```yaml\n# b.yaml\n[]\n```\n"

    first, second = consoleruns.sessions(steps_of(one + serve + two + serve + late))

    told = [[(step.name or step.kind, step.text) for step in each] for each in (first, second)]
    assert [dict(each)["a.json"] for each in told] == ["2\n", "2\n"]
    assert [name for name, _ in told[0]].index("serve") < len(told[0]) - 1
    assert ("b.yaml", "# b.yaml\n[]\n") in told[0]


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("at 2026-11-21T12:09:18.073938+00:00", "at 2031-01-01 00:00:00Z"),
        ('{"started_at":1795262941007}', '{"started_at":1}'),
        ("2026-11-21T12-10-28Z-000001.ndjson", "2027-11-21T12-10-28Z-000001.ndjson"),
        ("$argon2id$v=19$m=65536,t=3,p=1$abc", "$argon2id$v=19$m=65536,t=3,p=1$..."),
    ],
)
def test_what_no_two_runs_have_in_common_is_not_compared(line: str, other: str) -> None:
    assert settled(line) == settled(other).replace("T ", "TT", 1)


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ('{"time": "2010-01-01T00:00:00-08:00"}', '{"time": "2010-01-02T00:00:00-08:00"}'),
        ('"mean":40.45', '"mean":40.46'),
        ('"accepted":1', '"accepted":2'),
    ],
)
def test_all_else_is(line: str, other: str) -> None:
    assert settled(line) != settled(other)


def test_what_a_hidden_command_prints_is_not_shown() -> None:
    page = "<!-- run: echo 1 -->\n```console\n$ echo 2\n2\n```\n"
    hidden, shown = steps_of(page)

    assert filled(page, [(hidden, ["1"]), (shown, ["2"])]) == page
