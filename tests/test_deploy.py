"""What is in `deploy/`, and the container file: they fit the command and the checkout."""

from __future__ import annotations

import fnmatch
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from headrace.web.commands.cli import commands
from headrace.web.process.server import REQUEST_SECONDS
from tests.clients import HOST, PATIENCE
from tests.server import environment, serving
from tests.services.server import free_port

REPOSITORY = Path(__file__).parent.parent
UNIT = REPOSITORY / "deploy" / "headrace.service"
CONTAINERFILE = (REPOSITORY / "Containerfile").read_text()
INSTRUCTIONS = [
    line.partition(" ")[::2]
    for line in re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", CONTAINERFILE, flags=re.M)).splitlines()
    if line
]
IGNORED = [
    line for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line[:1] != "#"
]


def given(word: str) -> list[str]:
    """Return what stands behind each instruction of a kind."""
    return [" ".join(rest.split()) for name, rest in INSTRUCTIONS if name == word]


def known_options() -> set[str]:
    return {name for param in commands.commands["serve"].params for name in param.opts}


def unit() -> dict[str, list[str]]:
    """Return what a unit says, several values to a key in order."""
    said: dict[str, list[str]] = {}
    for line in UNIT.read_text().replace("\\\n", " ").splitlines():
        if line and line[0] not in "#[":
            key, _, value = line.partition("=")
            said.setdefault(key, []).append(" ".join(value.split()))
    return said


def test_the_image_is_made_of_what_is_in_the_checkout() -> None:
    copied = [shlex.split(rest) for rest in given("COPY") if not rest.startswith("--from")]
    sources = [source for *names, _ in copied for source in names]

    assert sources
    assert [name for name in sources if not (REPOSITORY / name).exists()] == []
    assert {f"!{name}" for name in sources} == {line for line in IGNORED if line[0] == "!"}


def test_of_the_checkout_everything_else_stays_outside() -> None:
    assert IGNORED[0] == "*"
    for leftover in ("compiler/__pycache__", "rhai-python/python/rhai/_rhai.so"):
        assert any(fnmatch.fnmatch(f"/{leftover}", f"/{one}".replace("**", "*")) for one in IGNORED)


def test_every_install_is_held_to_the_constraints_and_the_engine_to_its_wheel() -> None:
    installs = [
        rest for rest in given("RUN") if " install " in f" {rest}" and "groupadd" not in rest
    ]
    builds = [rest for rest in given("RUN") if rest.startswith("uv build")]

    assert len(installs) == 2
    assert all("-c constraints.txt" in rest for rest in installs)
    assert all("--build-constraints constraints.txt" in rest for rest in [*builds, installs[-1]])
    assert "--no-sources-package rhai-python /wheels/*.whl ." in installs[-1]


def test_nothing_fetches_a_compiler_and_none_stays_in_the_image() -> None:
    *_, last = CONTAINERFILE.partition("\nFROM python:${PYTHON}-slim")

    assert "MATURIN_NO_INSTALL_RUST=1" in " ".join(given("ENV"))
    assert re.findall(r"--from=(\S+)", last) == ["build"]
    assert not re.search(r"apt-get|pip|cargo|rust", last)


def test_the_engine_is_compiled_by_a_rust_that_is_new_enough() -> None:
    [needed] = re.findall(
        r'rust-version = "(.*)"', (REPOSITORY / "rhai-python" / "Cargo.toml").read_text()
    )

    assert f"RUST={needed}" in given("ARG")


def test_the_image_runs_as_nobody_in_particular() -> None:
    assert given("USER") == ["10001:10001"]


def test_the_command_of_the_image_starts_a_server_that_its_health_check_finds(
    tmp_path: Path,
) -> None:
    [command], [entry] = given("CMD"), given("ENTRYPOINT")
    port = free_port()
    here = {**environment(), "HEADRACE_LISTEN": f"{HOST}:{port}"}
    [check] = given("HEALTHCHECK")
    asked = [shutil.which("python") or "python", *json.loads(check.partition(" CMD ")[2])[1:]]

    def exit_code() -> int:
        return subprocess.run(asked, env=here, capture_output=True, timeout=PATIENCE).returncode

    assert json.loads(entry) == ["headrace"]
    serve, _, folder = json.loads(command)
    with serving(
        tmp_path, None, "--data-dir", str(tmp_path / folder[1:]), command=(serve,)
    ) as server:
        here["HEADRACE_LISTEN"] = f"{HOST}:{server.port}"
        assert exit_code() == 0
    assert exit_code() == 1


def test_the_unit_calls_the_command_as_it_is() -> None:
    [started] = unit()["ExecStart"]
    program, command, *rest = shlex.split(started)

    assert Path(program).name == "headrace"
    assert command == "serve"
    assert {word for word in rest if word.startswith("--")} <= known_options()


def test_the_unit_gives_a_stop_the_time_that_it_may_take() -> None:
    [limit] = unit()["TimeoutStopSec"]

    assert int(limit.removesuffix("s")) > REQUEST_SECONDS + 5


def test_each_credential_that_the_unit_names_is_handed_over() -> None:
    handed = {value.partition(":")[0] for value in unit()["LoadCredential"]}

    assert set(re.findall(r"\$\{CREDENTIALS_DIRECTORY\}/(\S+)", unit()["ExecStart"][0])) == handed


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Give the unit with a program that is there, so that only the unit can be wrong."""
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/opt/headrace/bin/headrace", "/bin/true"))
    return copy


def analysed(*arguments: str) -> subprocess.CompletedProcess[str]:
    if (analyse := shutil.which("systemd-analyze")) is None:
        pytest.skip("systemd-analyze is not installed")
    return subprocess.run(
        [analyse, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def test_systemd_finds_no_fault_with_the_unit(installed: Path) -> None:
    told = analysed("verify", "--man=no", str(installed))

    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")


def test_systemd_finds_the_unit_exposed_to_little(installed: Path) -> None:
    told = analysed("security", "--offline=true", "--threshold=20", "--no-pager", str(installed))

    assert told.returncode == 0, told.stdout
