"""What a stopwatch counts, on a machine that is idle, busy, or does not tell."""

import pytest

from tests import stopwatch
from tests.stopwatch import Stopwatch

SAID = """some avg10=50.01 avg60=32.90 avg300=14.67 total={}
full avg10=0.00 avg60=0.00 avg300=0.00 total=7
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Give what sets the time of a machine, and for how many seconds a task has waited on it."""
    file = tmp_path / "cpu"
    now = [0.0]
    monkeypatch.setattr(stopwatch, "PRESSURE", file)
    monkeypatch.setattr(stopwatch, "monotonic", lambda: now[0])

    def be(seconds, waited=None):
        now[0] = seconds
        if waited is not None:
            file.write_text(SAID.format(int(waited * 1e6)))

    return be


@pytest.mark.parametrize(
    ("waited", "counted"), [(0.0, 8.0), (3.0, 5.0), (6.0, 2.0), (7.5, 2.0), (8.0, 2.0)]
)
def test_time_in_which_a_task_waited_counts_not_but_a_quarter_of_all_does(machine, waited, counted):
    machine(100.0, 40.0)
    watch = Stopwatch()

    machine(108.0, 40.0 + waited)

    assert (watch.elapsed, watch.seconds, watch.busy) == (8.0, counted, 8.0 - counted)


def test_where_nobody_tells_all_of_it_counts(machine):
    machine(100.0)
    watch = Stopwatch()

    machine(108.0)

    assert (watch.elapsed, watch.seconds) == (8.0, 8.0)
