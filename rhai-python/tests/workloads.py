"""What must leave nothing behind: run as a process of its own, told which one by its name.

It works once to warm up and once more, and prints what the second part left: KiB of memory in use,
objects that the collector knows, blocks that the interpreter holds.
"""

import gc
import itertools
import re
import sys
from contextlib import suppress
from pathlib import Path

from rhai import Paused, Script, ScriptError

MESSAGE = {"x": 1, "name": "a", "part": {"b": [1, 2.5], "a": None}, "wide": 2**70}
LONG = {"max_operations": 10**9}


def attempt(act, *given):
    """Do it, whatever it raises."""
    with suppress(ScriptError, ValueError, TypeError):
        act(*given)


def running(code, value=MESSAGE, **options):
    """A script, and a run of it."""
    script = Script(code, **options)
    return lambda: attempt(script.run, value)


def batches():
    script = Script("msg.x += 1; emit(msg)")
    return lambda: script.run_each([MESSAGE] * 100)


def unheard_of(code):
    """A script, and a run of it on a text that no run saw before."""
    script = Script(code)
    count = itertools.count()
    return lambda: attempt(script.run, {"key": f"name{next(count)}"})


def failing_host():
    def host(value):
        raise KeyError(value)

    code = "try { host(msg.part) } catch (e) {} host(1)"
    return running(code, functions={"host": (1, host)})


def pauses():
    script = Script("let t = 0; for i in 0..2000 { t += i } emit(msg)", **LONG)

    def work():
        run = script.start([MESSAGE] * 3, 0.00001)
        while isinstance(run, Paused) and run.resume(0.0001) is None:
            pass

    return work


def given_up(code, *, close):
    script = Script(code, **LONG)

    def work():
        run = script.start([MESSAGE], 0.00001)
        if close:
            run.close()

    return work


def scripts():
    source = 'import "m" as m; fn f(x) { m::g(x) } emit(f(msg.x))'
    options = {"load": lambda path: "fn g(x) { x }", "functions": {"h": (0, int)}}
    return lambda: Script(source, **options).run(MESSAGE)


class Owner:
    def __init__(self):
        self.script = Script("f()", functions={"f": (0, self.call)})

    def call(self):
        return 1


EMITTING = "msg.x += 1; msg.n = `${msg.x}`; emit(msg); emit(msg.part)"
SHARING = "let a = [1]; let f = |x| a.push(x); f.call(2); emit(a)"
SORTING = "let a = [3, 1]; loop { a.sort(|x, y| { let t = 0; for i in 0..100 { t += i } x - y }) }"
CIRCLE = "let a = #{}; let f = || a; a.f = f; a.s = `x` + msg.name;"
NAMES = (
    "let k = msg.key; is_def_fn(k, 1); try { Fn(k).call() } catch {} let m = #{}; m[k] = k; emit(m)"
)
WORK = {
    "runs that emit": (
        100_000,
        lambda: running(EMITTING),
    ),
    "batches": (1_000, batches),
    "runs that read everything": (50_000, lambda: running("let m = msg; m.other = [m.x]; emit(m)")),
    "runs that fail": (30_000, lambda: running("let m = msg; emit(m); 1 / 0")),
    "budgets that end": (5_000, lambda: running("loop { let a = [1]; }", max_operations=500)),
    "values that cannot leave": (20_000, lambda: running("emit(msg.part); emit(|x| x)")),
    "values that cannot enter": (
        20_000,
        lambda: running("let m = msg", {"a": [1, {1}], "b": "\ud800"}),
    ),
    "host functions": (
        20_000,
        lambda: running("emit(host(host(msg.part)))", functions={"host": (1, lambda v: {"v": v})}),
    ),
    "host functions that fail": (10_000, failing_host),
    "closures that share": (
        20_000,
        lambda: running(SHARING),
    ),
    "values that hold themselves": (20_000, lambda: running(CIRCLE)),
    "notes": (20_000, lambda: running("print(msg.name); debug(msg.part)", note=lambda *note: None)),
    "pauses": (1_000, pauses),
    "runs that are closed": (2_000, lambda: given_up("let a = msg; loop { a.x += 1 }", close=True)),
    "runs that are dropped": (1_000, lambda: given_up(SORTING, close=False)),
    "scripts": (2_000, lambda: scripts()),
    "scripts that do not compile": (5_000, lambda: lambda: attempt(Script, "let x = 1; fn f( {")),
    "scripts in a circle with their owner": (2_000, lambda: lambda: Owner().script.run(None)),
    "strings that no run saw before": (
        30_000,
        lambda: unheard_of("let m = msg; m[m.key] = m.key; emit(m.key + `x`); emit(m)"),
    ),
    "names that no run saw before": (20_000, lambda: unheard_of(NAMES)),
    "texts of json": (
        20_000,
        lambda: unheard_of('emit(parse_json(`{"${msg.key}": "${msg.key}"}`))'),
    ),
}


def memory():
    return int(re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text()).group(1))


def measures():
    gc.collect()
    return memory(), len(gc.get_objects()), sys.getallocatedblocks()


def main(name):
    rounds, prepare = WORK[name]
    work = prepare()
    for _ in range(rounds // 2):
        work()
    before = measures()
    for _ in range(rounds):
        work()
    print(*(now - then for now, then in zip(measures(), before, strict=True)))


if __name__ == "__main__":
    main(sys.argv[1])
