"""Scripts in files and what they import: contract 10.5, and what is said of what cannot be used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace.compiler.errors import BuildRefused
from headrace.operators.script import Script, sources
from headrace.operators.script.compiling import NO_ENGINE
from tests.doubles import StubContext, refusals
from tests.operators.scripted import examined, outcome, script, script_file
from tests.virtual import virtual


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A config's directory."""
    folder = tmp_path / "plant"
    folder.mkdir()
    return folder


def written(base: Path, path: str, text: str | bytes) -> Path:
    file = base / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


# --- where files are


def test_a_path_is_relative_to_the_configs_directory_and_has_its_extension(base: Path) -> None:
    written(base, "scripts/clean.rhai", "emit(msg + 1)")
    written(base, "other.txt", "emit(msg + 2)")

    assert outcome(script_file("scripts/clean.rhai"), [1], base=base).messages == [2]
    assert outcome(script_file("other.txt"), [1], base=base).messages == [3]
    [fault] = examined(script_file("scripts/clean"), base)
    assert (fault.code, fault.path, fault.message, fault.expected) == (
        "missing-file",
        ("source", "path"),
        "there is no script file 'scripts/clean': did you mean 'scripts/clean.rhai'?",
        "a file below the config's directory",
    )


@pytest.mark.parametrize("is_absolute", [True, False])
def test_a_file_is_called_as_the_config_calls_it(base: Path, monkeypatch, is_absolute) -> None:
    written(base, "scripts/a.rhai", "emit(msg")
    monkeypatch.chdir(base)

    [fault] = examined(script_file("scripts/a.rhai"), base if is_absolute else Path())

    assert fault.spot is not None
    assert (fault.spot.file, fault.spot.text) == ("scripts/a.rhai", "emit(msg")


def test_without_a_config_file_there_are_no_script_files(base: Path) -> None:
    [of_source] = examined(script_file("a.rhai"))
    [of_import] = examined('emit(msg);\nimport "lib/a" as a;')

    assert (of_source.code, of_source.path) == ("outside-root", ("source", "path"))
    assert of_source.message == (
        "'a.rhai' cannot be read: without a config file there is no directory for it"
    )
    assert of_import.message == (
        "the script does not compile: 'lib/a.rhai' cannot be read:"
        " without a config file there is no directory for it"
    )
    assert of_import.spot is not None
    assert (of_import.spot.line, of_import.spot.column) == (2, 8)


WAYS_OUT = {
    "/etc/passwd": "is absolute",
    "../a.rhai": "has a segment '..'",
    "a/../b.rhai": "has a segment '..'",
    "./a.rhai": "has a segment '.'",
    "a/./b.rhai": "has a segment '.'",
    "a//b.rhai": "has an empty segment",
    "a/": "has an empty segment",
    "a\0b": "holds a NUL character",
}


@pytest.mark.parametrize(("path", "why"), WAYS_OUT.items())
def test_a_path_that_does_not_only_descend_is_refused(path: str, why: str) -> None:
    [refused] = refusals(Script, {"source": {"type": "file", "path": path}})

    assert refused.startswith("source.path: ")
    assert f" {why}: expected a path below the config's directory" in refused


@pytest.mark.parametrize(("path", "why"), WAYS_OUT.items())
def test_an_import_that_does_not_only_descend_is_refused(base: Path, path: str, why: str) -> None:
    path = path.replace("\0", "\\x00")
    [fault] = examined(f'emit(msg);\n  import "{path}" as a;', base)

    assert fault.spot is not None
    assert (fault.code, fault.spot.line, fault.spot.column) == ("not-compiled", 2, 10)
    assert f"{why}" in fault.message


def test_a_link_inside_is_followed_and_one_that_leads_out_is_refused(base: Path) -> None:
    written(base, "lib/a.rhai", "emit(msg)")
    written(base.parent, "secret.rhai", "emit(0)")
    (base / "b.rhai").symlink_to("lib/a.rhai")
    (base / "c.rhai").symlink_to("../secret.rhai")
    (base / "up").symlink_to("..")

    assert outcome(script_file("b.rhai"), [5], base=base).messages == [5]
    for path in ("c.rhai", "up/secret.rhai"):
        [fault] = examined(script_file(path), base)
        assert (fault.code, fault.message, fault.expected) == (
            "outside-root",
            f"a link leads '{path}' out of the config's directory",
            "a file below the config's directory",
        )
    [of_import] = examined('import "up/secret" as s; emit(1)', base)
    assert "a link leads 'up/secret.rhai' out of the config's directory" in of_import.message


def test_a_directory_that_is_itself_a_link_is_fine(base: Path) -> None:
    written(base, "a.rhai", "emit(msg)")
    link = base.parent / "link"
    link.symlink_to(base)

    assert outcome(script_file("a.rhai"), [5], base=link).messages == [5]


# --- what files hold


def test_what_is_no_file_cannot_be_read(base: Path) -> None:
    (base / "folder.rhai").mkdir()
    os.mkfifo(base / "pipe.rhai")
    (base / "round.rhai").symlink_to("round.rhai")

    said = {
        path: examined(script_file(path), base)[0]
        for path in ("folder.rhai", "pipe.rhai", "round.rhai", "a" * 300)
    }

    assert {fault.code for fault in said.values()} == {"unreadable-file"}
    assert said["pipe.rhai"].message == "the script 'pipe.rhai' cannot be read: it is no file"
    assert said["folder.rhai"].message == (
        "the script 'folder.rhai' cannot be read: Is a directory"
    )


def test_a_script_has_a_mebibyte_at_most(base: Path) -> None:
    fits = "emit(1);" + " " * (sources.LARGEST - 8)
    written(base, "fits.rhai", fits)
    written(base, "large.rhai", fits + " ")

    assert examined(script_file("fits.rhai"), base) == []
    [of_file] = examined(script_file("large.rhai"), base)
    [of_import] = examined('emit(1); import "large" as x;', base)
    [inline] = examined(fits + " ")
    assert (of_file.code, of_file.message) == (
        "too-large",
        "the script 'large.rhai' is larger than 1 MiB",
    )
    assert "the script 'large.rhai' is larger than 1 MiB" in of_import.message
    assert (inline.code, inline.path) == ("too-large", ("source", "code"))


@pytest.mark.parametrize(
    ("octets", "code", "said", "place"),
    [
        (b"emit(1);\n let x = \xff;", "not-text", "byte 19 (0xff) is not UTF-8 text", (2, 10)),
        (b"emit(1)\0", "not-text", "a NUL character: this is not a text file", (1, 8)),
        ("emit(1)".encode("utf-16"), "not-text", "this is UTF-16: save it as UTF-8", (1, 1)),
        (
            "\ufeffemit(1)\0".encode(),
            "not-text",
            "a NUL character: this is not a text file",
            (1, 8),
        ),
    ],
)
def test_what_is_no_text_is_refused_where_it_is_none(base, octets, code, said, place) -> None:
    written(base, "a.rhai", octets)

    [fault] = examined(script_file("a.rhai"), base)

    assert (fault.code, fault.message) == (code, f"'a.rhai': {said}")
    assert fault.spot is not None
    assert (fault.spot.line, fault.spot.column) == place
    assert fault.spot.file == "a.rhai"


@pytest.mark.parametrize("code", ["", " \n\t"])
def test_blank_code_is_refused(base: Path, code: str) -> None:
    written(base, "a.rhai", code)

    [of_file] = examined(script_file("a.rhai"), base)
    assert (of_file.code, of_file.message) == ("blank", "the script 'a.rhai' is blank")
    assert refusals(Script, {"source": {"type": "inline", "code": code}}) == [
        "source.code: this script is blank"
    ]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_line_ends_of_any_system_count_alike(base: Path, ends: str) -> None:
    written(base, "a.rhai", f"// c{ends}emit(1);{ends}  let x = `a{ends}b` + ;")

    [fault] = examined(script_file("a.rhai"), base)

    assert fault.spot is not None
    assert (fault.spot.line, fault.spot.column) == (4, 6)


def test_line_ends_of_any_system_count_alike_in_a_module(base: Path) -> None:
    written(base, "a.rhai", "let x = 1;\r\rlet y = + ;")

    [fault] = examined('import "a" as a; emit(1)', base)

    assert fault.spot is not None
    assert (fault.spot.line, fault.spot.column) == (3, 11)


# --- imports


def test_an_import_is_relative_to_the_base_and_not_to_the_file_that_imports(base: Path) -> None:
    written(base, "lib/outer.rhai", 'import "lib/deep/inner" as i; fn f(x) { i::g(x) }')
    written(base, "lib/deep/inner.rhai", "fn g(x) { x * 2 }")
    written(base, "main.rhai", 'import "lib/outer" as o;\nemit(o::f(msg));')

    assert outcome(script_file("main.rhai"), [4], base=base).messages == [8]
    assert outcome('import "lib/outer" as o; emit(o::f(msg))', [4], base=base).messages == [8]


def test_functions_and_exports_of_a_module_are_visible_and_its_body_ran_once(base: Path) -> None:
    written(base, "lib.rhai", "let n = 1; n += 1; export n; const SECRET = 5; fn f() { 3 }")

    found = outcome('import "lib" as l; emit([l::n, l::f()])', [0, 0], base=base)

    assert found.messages == [[2, 3], [2, 3]]


def test_the_body_of_a_module_sees_no_state_and_a_function_of_it_does(base: Path) -> None:
    written(base, "late.rhai", 'fn f(x) { remember("k", #{ a: x }); recall("k") }')
    written(base, "early.rhai", '\nlet x = recall("k"); export x;')

    assert outcome('import "late" as l; emit(l::f(1))', [0], base=base).messages == [{"a": 1}]
    [fault] = examined('import "early" as e; emit(e::x)', base, has_state=True)
    assert fault.message == (
        "'early.rhai' does not compile: 'recall' works in a run, and a module is loaded before any"
    )
    assert fault.spot is not None
    assert (fault.spot.file, fault.spot.line, fault.spot.column) == ("early.rhai", 2, 9)


def test_a_missing_module_is_told_where_it_is_imported(base: Path) -> None:
    written(base, "lib/a.rhai", '\n\n   import "lib/none" as n;')
    written(base, "main.rhai", 'emit(1);\nimport "lib/a" as a;')

    for fault in (
        *examined(script_file("main.rhai"), base),
        *examined('emit(1);\nimport "lib/a" as a;', base),
    ):
        assert fault.message == (
            "'lib/a.rhai' does not compile: there is no script file 'lib/none.rhai'"
        )
        assert fault.spot is not None
        assert (fault.spot.line, fault.spot.column) == (3, 11)
        assert fault.spot.file == "lib/a.rhai"


def test_an_import_with_its_extension_is_told_to_leave_it_out(base: Path) -> None:
    written(base, "a.rhai", "fn f() {}")

    [fault] = examined('emit(1); import "a.rhai" as a;', base)

    assert fault.message.endswith(
        "there is no script file 'a.rhai.rhai': an import leaves out '.rhai'"
    )


def test_a_circle_is_told_where_it_closes(base: Path) -> None:
    written(base, "a.rhai", 'import "b" as b; fn f() {}')
    written(base, "b.rhai", 'fn f() {}\nimport "a" as a;')
    written(base, "self.rhai", 'emit(1); import "self" as s;')

    [circle] = examined('import "a" as a; emit(1)', base)
    [itself] = examined(script_file("self.rhai"), base)

    assert circle.spot is not None
    assert (circle.spot.file, circle.spot.line) == ("b.rhai", 2)
    assert "'a' -> 'b' -> 'a'" in circle.message
    assert "'self' -> 'self'" in itself.message


def test_a_path_that_is_put_together_fails_when_it_runs(base: Path) -> None:
    written(base, "a.rhai", "fn f() { 1 }")
    code = 'let p = "a";\nimport p as m;\nemit(1)'

    assert examined(code, base) == []
    assert outcome(code, [0], base=base).failure.startswith("script line 2, column 8: ")


def test_32_modules_may_be_imported(base: Path) -> None:
    for n in range(33):
        written(base, f"m{n}.rhai", "fn f() { 1 }")
    imports = [f'import "m{n}" as m{n};' for n in range(33)]

    assert examined("\n".join([*imports[:32], "emit(1)"]), base) == []
    [fault] = examined("\n".join([*imports, "emit(1)"]), base)
    assert "more than 32 modules" in fault.message
    assert fault.spot is not None
    assert fault.spot.line == 33


@virtual
async def test_a_file_is_read_when_the_pipeline_is_built_and_not_again(base: Path) -> None:
    file = written(base, "a.rhai", "emit(1)")
    it = script_file("a.rhai")
    before = it.operator(StubContext(base=base))
    file.write_text("emit(msg")

    assert before is not None
    with pytest.raises(BuildRefused):
        it.operator(StubContext(base=base))


# --- where errors are


def test_an_error_of_a_module_names_its_file(base: Path) -> None:
    written(base, "lib/a.rhai", "fn f(x) {\n  x.b.c\n}")
    written(base, "main.rhai", 'import "lib/a" as a;\n emit(a::f(msg));\n emit(msg.b.c);')

    in_module = outcome(script_file("main.rhai"), [{"b": 1}], base=base)
    in_file = outcome(
        script_file("main.rhai"), [{"b": {"c": {"b": {"c": 1}}}}, {"b": 1}], base=base
    )

    assert in_module.failure.startswith("lib/a.rhai line 2, column 7: ")
    assert "module" not in in_module.failure
    assert in_file.failure.startswith("lib/a.rhai line 2")


def test_an_error_of_a_script_file_names_the_file(base: Path) -> None:
    written(base, "scripts/clean.rhai", "\n\n emit(msg.b.c);")

    found = outcome(script_file("scripts/clean.rhai"), [{"b": 1}], base=base)

    assert found.failure.startswith("scripts/clean.rhai line 3, column 13: ")


def test_what_a_script_file_warns_of_carries_its_name(base: Path) -> None:
    written(base, "scripts/clean.rhai", 'warn("no unit")')

    assert outcome(script_file("scripts/clean.rhai"), [0], base=base).warnings == [
        "scripts/clean.rhai: no unit"
    ]


def test_the_file_of_a_print_is_told(base: Path, caplog) -> None:
    caplog.set_level("INFO")
    written(base, "lib/a.rhai", "fn f(x) {\n  print(x)\n}")
    written(base, "main.rhai", '\nimport "lib/a" as a; debug(msg); a::f("here"); emit(1)')

    outcome(script_file("main.rhai"), [7], base=base)

    assert [each.getMessage() for each in caplog.records] == [
        "pipeline 'p1' transforms[0]: main.rhai line 2: 7",
        "pipeline 'p1' transforms[0]: lib/a.rhai line 2: here",
    ]


def test_the_engine_may_be_missing(monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "rhai", None)

    [fault] = examined("emit(msg)")

    assert fault.message == NO_ENGINE
    assert fault.path == ("source", "code")
    assert script("emit(msg)").dump()["source"]["code"] == "emit(msg)"
