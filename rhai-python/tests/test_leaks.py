"""Nothing is left behind by a hundred thousand runs, by failures, by pauses, by scripts themselves."""

import gc
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from rhai import RunError, Script

WORKLOADS = Path(__file__).with_name("workloads.py")
NAMES = list(runpy.run_path(str(WORKLOADS))["WORK"])


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("name", NAMES)
def test_memory_and_objects_stay_what_they_were(name):
    ended = subprocess.run(
        [sys.executable, WORKLOADS, name], capture_output=True, text=True, timeout=120
    )

    assert ended.returncode == 0, ended.stderr
    kibibytes, objects, blocks = map(int, ended.stdout.split())
    assert kibibytes < 2_000
    assert objects < 50
    assert blocks < 500


@pytest.mark.long
def test_references_to_a_message_are_given_back():
    message = {"x": 1, "part": {"b": [1]}}
    watched = [message, message["part"], message["part"]["b"]]
    scripts = [
        Script("msg.x = 2; emit(msg); let p = msg.part; emit(p)"),
        Script("let m = msg; m.x = 2; emit(m); throw 1"),
    ]
    gc.collect()
    before = [sys.getrefcount(value) for value in watched]

    for _ in range(100):
        scripts[0].run(message)
        with pytest.raises(RunError):
            scripts[1].run(message)
    gc.collect()

    assert [sys.getrefcount(value) for value in watched] == before


BIG = "let p = []; p.pad(5000, 0); "
MAP = "let a = #{}; a.p = p; let f = || a; a.f = f; "
CIRCLES = {
    "a map": BIG + MAP,
    "an array": BIG + "let a = [0, p]; let f = || a; a[0] = f;",
    "a variable": BIG + "let a = 0; let f = || [a, p]; a = f;",
    "two": BIG + "let a = #{ p: p }; let b = #{}; let f = || a; let g = || b; a.g = g; b.f = f;",
    "in a block": "{ " + BIG + MAP + "}",
    "in a loop": "for i in 0..3 { " + BIG + MAP + "}",
    "many": "loop { let p = [1, 2, 3]; " + MAP + "}",
    "in a function": "fn f() { " + BIG + MAP + "} f();",
    "in a function that does not end": "fn f() { " + BIG + MAP + " loop {} } f()",
    "in a callback": "[1].map(|x| { " + BIG + MAP + "})",
    "in a callback that fails": "[1].map(|x| { " + BIG + MAP + " throw 1 })",
    "in a closure": "let g = || { " + BIG + MAP + "}; g.call();",
    "assigned over": BIG + MAP + "a = 5; f = 5;",
    "emitted": BIG + MAP + "emit(a)",
    "thrown": BIG + MAP + "throw a",
    "in a module": 'import "m" as m; m::f()',
}
REPEATED = """
import resource, sys
import rhai
module = "fn f() { let p = []; p.pad(5000, 0); let a = #{}; a.p = p; let f = || a; a.f = f; }"
script = rhai.Script(sys.argv[1], max_operations=20000, load=lambda path: module)
def rounds(count):
    for _ in range(count):
        try:
            script.run(None)
        except rhai.RunError:
            pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
rounds(20)
before = rounds(1)
print(rounds(400) - before)
"""


@pytest.mark.long
@pytest.mark.parametrize("name", CIRCLES)
def test_circles_of_closures_are_not_left_behind(name):
    """A closure that its own variable holds is a circle: 80 KB each, 32 MB if they stayed."""
    ended = subprocess.run(
        [sys.executable, "-c", REPEATED, CIRCLES[name]], capture_output=True, text=True, timeout=60
    )

    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) < 15
