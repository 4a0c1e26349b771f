"""Several runs at once: of one script, of several, in host functions, in threads."""

import gc
import threading

import pytest
from rhai import Paused, RunError, Script

LONG = "let n = 0; for i in 0..200000 { n += i } emit(n + msg)"
SUM = sum(range(200_000))
FAR = {"max_operations": 10**9, "time_limit": 30.0}


def test_the_same_script_runs_while_one_run_of_it_is_paused(finish):
    script = Script(LONG, **FAR)
    run = script.start([1], 0.001)
    assert isinstance(run, Paused)

    assert script.run(5) == [SUM + 5]
    other = script.start([7], 0.001)
    assert finish(run) == [SUM + 1]
    assert finish(other) == [SUM + 7]


def test_the_script_may_be_dropped_while_its_run_is_paused(pause, finish):
    run = pause(LONG)

    gc.collect()
    assert finish(run) == [SUM + 1]


def test_a_hundred_runs_take_turns():
    script = Script("let n = 0; for i in 0..5000 { n += msg } emit(n)", **FAR)
    runs = {i: script.start([i], 0.0001) for i in range(100)}
    done = {i: run[0] for i, run in runs.items() if isinstance(run, list)}

    while len(done) < 100:
        for i in runs.keys() - done.keys():
            got = runs[i].resume(0.0002)
            if got is not None:
                done[i] = got[0]

    assert done == {i: 5000 * i for i in range(100)}


def test_each_run_keeps_what_it_emitted_and_where_its_values_came_from():
    wait = "for i in 0..3000 { t += i }"
    code = f"let t = 0; {wait} msg.n = 1; {wait} emit(msg); emit(msg.part)"
    script = Script(code, **FAR)
    messages = [{"z": i, "part": {"b": i, "a": i}} for i in range(20)]
    runs = [script.start([message], 0.00005) for message in messages]

    results = [run if isinstance(run, list) else None for run in runs]
    while None in results:
        for i, run in enumerate(runs):
            if results[i] is None:
                results[i] = run.resume(0.0001)

    for message, (out, part) in zip(messages, results, strict=True):
        assert list(out) == ["z", "part", "n"]
        assert part is message["part"]
        assert out["part"] is message["part"]


class TestHostFunctions:
    def test_they_are_called_across_slices(self, pause, finish):
        seen = []
        code = "let t = 0; for i in 0..20 { for j in 0..5000 { t += j } host(i) } emit(1)"

        run = pause(code, functions={"host": (1, seen.append)})

        assert seen != list(range(20))
        assert finish(run, 0.001) == [1]
        assert seen == list(range(20))

    def test_they_may_run_and_start_other_scripts(self, finish):
        inner = Script("let n = 0; for i in 0..3000 { n += 1 } emit(n)", **FAR)

        def host(i):
            if i % 2:
                return inner.run(None)[0]
            return finish(inner.start([None], 0.0001), 0.0001)[0]

        code = "let t = 0; for i in 0..20 { t += host(i) } emit(t)"
        script = Script(code, functions={"host": (1, host)}, **FAR)

        assert finish(script.start([None], 0.0005), 0.0005) == [60_000]

    def test_they_may_start_a_run_and_leave_it_paused(self, finish):
        left = []
        inner = Script(LONG, **FAR)
        host = lambda i: left.append(inner.start([i], 0.0005))  # noqa: E731
        script = Script("for i in 0..3 { host(i) } emit(1)", functions={"host": (1, host)}, **FAR)

        assert script.run(None) == [1]
        assert [finish(run) for run in left] == [[SUM], [SUM + 1], [SUM + 2]]

    def test_one_may_go_on_with_a_run_that_was_started_outside(self, pause, finish):
        outside = pause(LONG)
        script = Script("emit(host())", functions={"host": (0, lambda: finish(outside))})

        assert script.run(None) == [[SUM + 1]]

    def test_their_errors_come_out_of_resume(self, pause, finish):
        def host():
            raise LookupError("not there")

        run = pause(
            "let t = 0; for i in 0..100000 { t += i }\nhost()", functions={"host": (0, host)}
        )

        with pytest.raises(RunError, match="not there") as caught:
            finish(run)
        assert isinstance(caught.value.__cause__, LookupError)
        assert (caught.value.line, caught.value.column) == (2, 1)


def elsewhere(work):
    """Do ``work`` in another thread; give what it gives or raise what it raises."""
    box = []

    def job():
        try:
            box.append((work(), None))
        except BaseException as error:
            box.append((None, error))

    thread = threading.Thread(target=job)
    thread.start()
    thread.join(60)
    result, error = box[0]
    if error is not None:
        raise error
    return result


class TestThreads:
    """A paused run belongs to the thread that started it."""

    def test_no_other_thread_goes_on_with_it_and_its_own_does(self, pause, finish):
        run = pause(LONG)

        with pytest.raises(RuntimeError, match="thread"):
            elsewhere(lambda: run.resume(0.01))

        assert finish(run) == [SUM + 1]

    def test_no_other_thread_closes_it_and_its_own_does(self, pause):
        run = pause("let a = [2, 1]; a.sort(|x, y| { loop {} })")

        with pytest.raises(RuntimeError, match="thread"):
            elsewhere(run.close)

        run.close()
        with pytest.raises(RuntimeError):
            run.resume(0.01)

    def test_its_script_runs_on_when_another_thread_drops_it(self):
        script = Script("if msg == 0 { loop {} } emit(msg)", **FAR)

        for _ in range(20):
            box = [script.start([0], 0.0005)]
            assert isinstance(box[0], Paused)
            elsewhere(box.clear)
            assert script.run(5) == [5]

    @pytest.mark.long
    def test_its_script_runs_on_when_its_thread_is_gone(self):
        script = Script("if msg == 0 { loop {} } emit(msg)", **FAR)

        for _ in range(5):
            run = elsewhere(lambda: script.start([0], 0.0005))
            with pytest.raises(RuntimeError, match="thread"):
                run.resume(0.01)
            del run
            gc.collect()
            assert script.run(5) == [5]

    def test_each_thread_has_runs_of_one_script(self, finish):
        script = Script(LONG, **FAR)

        def work(number, results):
            for i in range(5):
                results.append(finish(script.start([number * 10 + i], 0.0005), 0.0005))

        lists = [[] for _ in range(4)]
        threads = [threading.Thread(target=work, args=pair) for pair in enumerate(lists)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

        assert lists == [[[SUM + number * 10 + i] for i in range(5)] for number in range(4)]

    def test_what_runs_right_now_is_left_alone(self, pause, finish):
        errors = []
        runs = []

        def host():
            for meddle in (lambda: runs[0].resume(0.1), runs[0].close):
                with pytest.raises(RuntimeError) as caught:
                    meddle()
                errors.append(caught.value)

        code = "let t = 0; for i in 0..200000 { t += i } host(); emit(1)"
        runs.append(pause(code, functions={"host": (0, host)}))

        assert finish(runs[0]) == [1]
        assert len(errors) == 2
