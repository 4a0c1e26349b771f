"""Timelines that differ are written as they came, and nothing else of a file changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.web.commands.cli import commands
from tests.authoring.testing.suite import written


def update(folder: Path, tests: str, *options: str, **env: str) -> tuple[Result, str]:
    """Run `headrace test --update` of a file; return what it did, and the file."""
    file = written(folder, tests)
    arguments = ["test", "--update", str(file), *options]
    result = CliRunner().invoke(commands, arguments, env={"CI": None, **env})
    return result, file.read_bytes().decode()


def renewed(folder: Path, expected: str, given: str = "1s: {temp: 90}") -> str:
    """Return what stands in the place of what a test expects, once it is updated and passes."""
    head = f"tests:\n  it:\n    given: {{line: {{{given}}}}}\n    until: 5s\n    expect:\n"
    result, text = update(folder, f"{head}      line:{expected} # kept\n  # too\n")
    assert result.exit_code == 0, result.output
    assert text.startswith(head)
    assert text.endswith("\n  # too\n")
    return text.removeprefix(f"{head}      ").removesuffix("\n  # too\n")


@pytest.mark.parametrize(
    ("expected", "written_again"),
    [
        (" {1s: {high: 91}}", "line: { 1s: { high: 90 } } # kept"),
        ("\n        1s: {high: 91}", "line:\n        1s: { high: 90 } # kept"),
        (" {}", "line: { 1s: { high: 90 } } # kept"),
        (
            " {2s: {$has: {high: {$type: number}}}}",
            "line: { 1s: { $has: { high: { $type: number } } } } # kept",
        ),
        (
            " {1s: {high: {$near: [80, 0.5]}}}",
            "line: { 1s: { high: { $near: [90, 0.5] } } } # kept",
        ),
        (" {1s: {$count: 3}}", "line: { 1s: { $count: 1 } } # kept"),
        (" {1s: {high: {$any: true}, low: 1}}", "line: { 1s: { high: { $any: true } } } # kept"),
        (" {1s: {$has: {low: 1}}}", "line: { 1s: { $has: {} } } # kept"),
        (" {1s: {low: {$like: x}}}", "line: { 1s: { high: 90 } } # kept"),
    ],
)
def test_what_differs_is_written_as_it_came(
    tmp_path: Path, expected: str, written_again: str
) -> None:
    assert renewed(tmp_path, expected) == written_again


def test_a_moment_that_occurs_twice_makes_a_list(tmp_path: Path) -> None:
    head = "messages: {a: {temp: 90}, b: {temp: 91}}\n"
    case = "tests:\n  it:\n    given: {line: (a b)}\n    expect:\n      line: {}\n"

    result, text = update(tmp_path, head + case)

    assert result.exit_code == 0, result.output
    assert text.endswith("      line: [{ 0s: { high: 90 } }, { 0s: { high: 91 } }]\n")


def test_what_does_not_fit_on_a_line_stands_on_several(tmp_path: Path) -> None:
    many = ", ".join("{temp: 1000}" for _ in range(9))

    assert renewed(tmp_path, " {}", f"1s: [{many}]") == (
        "line:\n        1s:\n" + "\n".join(["          - { high: 1000 }"] * 9) + " # kept"
    )


def test_in_a_batch_of_as_many_messages_each_matcher_stays_at_its_place(tmp_path: Path) -> None:
    expected = " {1s: [{$has: {high: 91}}, {$has: {}}]}"

    assert renewed(tmp_path, expected, "1s: [{temp: 90}, {temp: 95}]") == (
        "line: { 1s: [{ $has: { high: 90 } }, { $has: {} }] } # kept"
    )


def test_marbles_stay_marbles_where_the_names_suffice(tmp_path: Path) -> None:
    head = "messages: {a: {temp: 90}, h: {high: 90}, i: {high: 91}}\ntests:\n  it:\n"

    result, text = update(
        tmp_path, f"{head}    given: {{line: a-a}}\n    expect: {{line: h--i-h}}\n"
    )

    assert result.exit_code == 0, result.output
    assert text.endswith("    expect: { line: h-h }\n") or text.endswith("expect: {line: h-h}\n")


def test_a_file_in_json_stays_one(tmp_path: Path) -> None:
    file = written(tmp_path, "").with_suffix(".json")
    (tmp_path / "config.tests.yaml").unlink()
    file.write_text(
        '{"tests": {"it": {"given": {"line": {"1s": {"temp": 90}}}, "expect": {"line": {}}}}}\r\n'
    )

    result = CliRunner().invoke(commands, ["test", "--update", str(file)], env={"CI": None})

    assert result.exit_code == 0, result.output
    assert file.read_bytes() == (
        b'{"tests": {"it": {"given": {"line": {"1s": {"temp": 90}}}, '
        b'"expect": {"line": { "1s": { "high": 90 } }}}}}\r\n'
    )


def test_the_change_is_printed_before_the_tests_are_run(tmp_path: Path) -> None:
    result, _ = update(
        tmp_path,
        "tests:\n  it:\n    given: {line: {1s: {temp: 90}}}\n    expect: {line: {1s: {high: 9}}}\n",
    )

    assert "-    expect: {line: {1s: {high: 9}}}\n" in result.output
    assert "+    expect: {line: { 1s: { high: 90 } }}\n" in result.output
    assert result.output.index("@@") < result.output.index("1 passed")


def test_only_tests_that_are_selected_are_written(tmp_path: Path) -> None:
    case = "    given: {line: {1s: {temp: 90}}}\n    expect: {line: {}}\n"

    result, text = update(tmp_path, f"tests:\n  one:\n{case}  two:\n{case}", "-k", "two")

    assert result.exit_code == 0, result.output
    assert text == (
        f"tests:\n  one:\n{case}  two:\n{case.replace('{line: {}}', '{line: { 1s: { high: 90 } }}')}"
    )


def test_an_end_that_moves_with_what_is_expected_is_played_again(tmp_path: Path) -> None:
    case = "    given: {line: {1s: {temp: 90}}}\n    expect: {held: {61s: {}, 70s: {}}}\n"

    result, text = update(tmp_path, f"tests:\n  it:\n{case}")

    assert result.exit_code == 0, result.output
    assert "held: { 1m1s: { high: 90 } }" in text


def test_a_bucket_is_written_as_it_was_held(tmp_path: Path) -> None:
    config = (
        "pipelines:\n- id: line\n  inputs: [{type: http}]\n"
        "  state: {bucket: last, key: press}\n"
        "  transforms: [{type: remember, remember: [{field: temp, as: temp}]}]\n"
        "state: {last: {max_keys: 2, idle_timeout_secs: 60}}\n"
    )
    file = written(
        tmp_path,
        "tests:\n  it:\n    given: {line: {1s: {press: a, temp: 9}}}\n"
        "    expect: {state.last: {2s: {a: {temp: 8}}, end: {}}}\n",
        config,
    )

    result = CliRunner().invoke(commands, ["test", "--update", str(file)], env={"CI": None})

    assert result.exit_code == 0, result.output
    assert "{state.last: { 2s: { a: { temp: 9 } }, end: { a: { temp: 9 } } }}" in file.read_text()


def test_what_has_a_name_that_others_use_is_left(tmp_path: Path) -> None:
    case = "given: {line: {1s: {temp: 90}}}\n    expect: {line: "
    tests = f"tests:\n  one:\n    {case}&same {{1s: {{high: 9}}}}}}\n  two:\n    {case}*same}}\n"

    result, text = update(tmp_path, tests, "-k", "one")

    assert result.exit_code == 1
    assert text == tests
    assert "config.tests.yaml::one is left as it is" in result.output


def test_failures_are_never_written(tmp_path: Path) -> None:
    tests = (
        "tests:\n  it:\n    given: {line: {1s: {temp: 90}}}\n"
        "    expect: {line: {1s: {high: 90}}, failures: [{at: 'held.outputs[0]', says: gone}]}\n"
    )

    result, text = update(tmp_path, tests)

    assert (result.exit_code, text) == (1, tests)


@pytest.mark.parametrize("value", ["true", "1", "woodpecker"])
def test_where_ci_is_set_nothing_is_written(tmp_path: Path, value: str) -> None:
    tests = "tests:\n  it:\n    given: {line: {1s: {temp: 90}}}\n    expect: {line: {}}\n"

    result, text = update(tmp_path, tests, CI=value)

    assert (result.exit_code, text) == (2, tests)
    assert "--update writes files, and is refused where CI is set." in result.output


def test_as_json_the_change_is_printed_on_standard_error(tmp_path: Path) -> None:
    tests = "tests:\n  it:\n    given: {line: {1s: {temp: 90}}}\n    expect: {line: {}}\n"

    result, _ = update(tmp_path, tests, "--format", "json")

    assert result.stdout.startswith("[\n")
    assert "+    expect: {line: { 1s: { high: 90 } }}" in result.stderr


def test_a_mark_before_the_text_and_line_breaks_stay(tmp_path: Path) -> None:
    file = written(tmp_path, "")
    text = "tests:\r\n  it:\r\n    given: {line: {1s: {temp: 90}}}\r\n    expect:\r\n      line: '-'\r\n"
    file.write_bytes(b"\xef\xbb\xbf" + text.encode())

    result = CliRunner().invoke(commands, ["test", "--update", str(file)], env={"CI": None})

    assert result.exit_code == 0, result.output
    assert (
        file.read_bytes()
        == b"\xef\xbb\xbf" + text.replace(" '-'", "\r\n        1s: { high: 90 }").encode()
    )
