"""What the tests share: a way to run a line of script, and a process to try attacks on."""

import json
import select
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

try:
    import rhai
except ImportError:
    rhai = None

# A run may take long on a busy machine; that is no fault of the example. Where the run asks for `few`, a
# test tries a fifth of the examples that it wants.
for name, count in [("few", 20), ("full", 100)]:
    settings.register_profile(
        name,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
        max_examples=count,
    )
if settings.get_current_profile_name() not in ("few", "full"):
    settings.load_profile("full")

PATIENCE = 20.0


class WithoutEngine(pytest.Module):
    """A file of tests whose engine is not installed: it is skipped as one."""

    def collect(self):
        pytest.skip(
            "the script engine is not installed: it is compiled with Rust 1.85 or newer",
            allow_module_level=True,
        )


def pytest_pycollect_makemodule(module_path, parent):
    return None if rhai else WithoutEngine.from_parent(parent, path=module_path)


@pytest.fixture
def run():
    """Compile ``code`` with ``options``, run it once on ``value``, give what it emitted."""

    def run(code, value=None, **options):
        return rhai.Script(code, **options).run(value)

    return run


@pytest.fixture
def pause():
    """Start a run that is longer than its first slice; give it back paused."""

    def pause(code, values=(1,), seconds=0.001, **options):
        script = rhai.Script(code, max_operations=10**9, time_limit=30.0, **options)
        run = script.start(list(values), seconds)
        assert isinstance(run, rhai.Paused)
        return run

    return pause


@pytest.fixture
def finish():
    """Go on with a run until it is over, in slices; what it gives, at once if it is over already."""

    def finish(run, seconds=0.01):
        got = run
        while not isinstance(got, list):
            got = run.resume(seconds)
        return got

    return finish


class Victim:
    """A process that attacks are tried on; a fresh one takes the place of one that is lost."""

    def __init__(self):
        self.process = None

    def ask(self, request):
        """The answer of the process (see victim.py), or what became of it."""
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("victim.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        line = self.process.stdout.readline() if ready else b""
        return json.loads(line) if line else self.lost("died" if ready else "did not end")

    def lost(self, how):
        process = self.process
        self.close()
        return {"stop": f"the process {how} ({process.returncode})", "alive": False}

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None


@pytest.fixture(scope="session")
def victim():
    one = Victim()
    yield one
    one.close()


@pytest.fixture
def withstand(victim):
    """Try an attack: it ends in time with one of ``stops``, takes no memory to speak of, kills nobody."""

    def withstand(code, stops, *, small_stack=False, options=(), **more):
        # On a busy machine what another limit is to stop may take a while.
        unhurried = {} if "time_limit" in stops else {"time_limit": 20}
        options = {**unhurried, **dict(options)}
        asked = {"code": code, "small_stack": small_stack, "options": options, **more}
        for _ in range(5):
            answer = victim.ask(asked)
            # A module's time cannot be chosen. What ends by it though it had no processor tries again.
            if answer["stop"] != "time_limit" or "time_limit" in stops or answer["seconds"] > 0.5:
                break

        assert answer["stop"] in stops, answer
        assert answer["alive"], answer
        assert answer["seconds"] < 3.0, answer
        assert answer["grown"] < 200, answer

    return withstand
