"""The phases of a pipeline: which may follow which, and what others are told of them."""

import pytest

from headrace.compiler.runtime.lifecycle import Lifecycle, Phase

WAYS = {
    (): "starting",
    ("start",): "starting",
    ("run",): "running",
    ("start", "run"): "running",
    ("run", "stop"): "stopped",
    ("run", "stop", "end"): "stopped",
    ("end",): "stopped",
    ("start", "end"): "stopped",
    ("fail",): "failed",
    ("start", "fail"): "failed",
    ("run", "fail"): "failed",
    ("start", "run", "fail"): "failed",
    ("start", "run", "stop"): "stopped",
    ("start", "run", "stop", "end"): "stopped",
    ("start", "run", "stop", "fail"): "failed",
    ("run", "stop", "fail"): "failed",
}
TRANSITIONS = ["start", "run", "stop", "end", "fail"]


def lived(way):
    life = Lifecycle()
    for transition in way:
        getattr(life, transition)()
    return life


@pytest.mark.parametrize("way", WAYS)
def test_a_phase_has_a_status(way):
    assert lived(way).status == WAYS[way]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("transition", TRANSITIONS)
def test_every_transition_is_made_or_refused(way, transition):
    life = lived(way)
    before = life.phase
    if (*way, transition) in WAYS:
        getattr(life, transition)()
        assert life.phase is not before
    else:
        with pytest.raises(RuntimeError, match=f"a pipeline that is {before.name} cannot be"):
            getattr(life, transition)()
        assert life.phase is before


def test_nothing_follows_the_end():
    over = {lived(way).phase for way in WAYS if lived(way).is_over}
    assert over == {Phase.STOPPED, Phase.FAILED}
