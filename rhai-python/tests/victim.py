"""The process that attacks are tried on: asked in lines of JSON, it answers in such.

A question has ``code`` and maybe ``options`` (keywords of Script), ``value``, ``modules`` (path to source),
``heard`` (somebody listens to print) and ``small_stack`` (in a thread with 256 KiB of stack). The
answer: ``stop`` (the limit that ended it, the class of another error, or "ok"), its ``text``, how
many ``seconds`` and megabytes (``grown``) it took, and whether a next script still runs (``alive``).
"""

import json
import re
import sys
import threading
import time
from pathlib import Path

import rhai

STATUS = Path("/proc/self/status")


def peak():
    """The most memory that was in use since it was last forgotten, in megabytes; 0 where unknown."""
    if not STATUS.exists():
        return 0
    return int(re.search(r"VmHWM:\s+(\d+)", STATUS.read_text()).group(1)) // 1024


def forget_peak():
    if STATUS.exists():
        Path("/proc/self/clear_refs").write_text("5")


def attack(code, options, value=None, modules=None, heard=False):
    """What stopped it, and what it said."""
    functions = {"host": (1, lambda value: value), "none": (0, lambda: None)}
    note = (lambda *note: None) if heard else None
    load = modules.__getitem__ if modules else None
    try:
        script = rhai.Script(code, functions=functions, note=note, load=load, **options)
        return "ok", repr(script.run(value))[:200]
    except rhai.BudgetError as error:
        return error.limit, str(error)[:200]
    except (rhai.ScriptError, ValueError, TypeError) as error:
        return type(error).__name__, str(error)[:200]


def answer(small_stack=False, options=(), **question):
    ends = []

    def job():
        try:
            ends.append(attack(options=dict(options), **question))
        except BaseException as error:
            ends.append(("broken: " + type(error).__name__, str(error)[:200]))

    forget_peak()
    before = peak()
    began = time.process_time()  # of the work: others may have the machine
    if small_stack:
        threading.stack_size(256 * 1024)
        thread = threading.Thread(target=job)
        thread.start()
        thread.join()
        threading.stack_size(0)
    else:
        job()
    seconds = time.process_time() - began
    stop, text = ends[0]
    grown = peak() - before
    alive = rhai.Script("emit(msg + 1)").run(41) == [42]
    return {"stop": stop, "text": text, "seconds": seconds, "grown": grown, "alive": alive}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(**json.loads(line))), flush=True)
