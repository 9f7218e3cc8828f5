"""What to take: the leader is not flattered, the candidates are named, and the user's own mixture counts."""

import pytest

from oodscope.base.errors import DataError, UnknownNameError, UsageError
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.comparison.recommendation import claim, read_weights, recommendation, recommended
from tests.results.factory import make_result, make_scores

pytestmark = pytest.mark.slow


def test_near_far_and_mixtures_have_their_own_recommendation():
    scores = make_scores()
    near, far = (recommendation(scores, weights=group) for group in ("near", "far"))
    assert near.leader == "vim" and near.statement == "classes" and near.of == 8
    assert near.low < near.value < near.high and near.value <= near.apparent + 1e-9
    assert {"vim", "knn"} <= set(near.candidates) and "mds" not in near.candidates
    assert claim(near) == str(near)
    assert f"{len(near.candidates)} of 8 detectors may be best for other OOD classes" in str(near)
    mixed = recommendation(scores, weights={"near": 1, "far": 3})
    assert mixed.apparent == pytest.approx(0.25 * near.apparent + 0.75 * far.apparent, abs=0.01)
    assert "a mixture of 25 % near, 75 % far" in str(mixed)
    assert recommendation(scores, weights={"held_out": 1.0}).apparent == pytest.approx(near.apparent)


def test_no_interval_leaves_the_range_of_a_share():
    scores = make_scores()
    frame = scores.frame.copy()
    # all but one of the near images lie above every ID image
    near = (frame["role"] == "near").to_numpy().copy()
    near[near.argmax()] = False
    frame.loc[near, "vim"] += 1e6
    found = recommendation(ScoreTable(frame, scores.context))
    assert found.leader == "vim" and 0.9 < found.low < found.value <= found.high <= 1.0


def test_misuse_is_named():
    with pytest.raises(UnknownNameError, match="Measured: near, far, held_out"):
        recommendation(make_scores(), weights="nearby")
    with pytest.raises(DataError, match="does not rank images"):
        recommendation(make_scores(), protocol="human_centric")


def test_pages_and_terminal_say_near_far_and_the_users_weights_by_track():
    """0.1's verdict knew near-OOD only; the best detector for far appeared nowhere (finding I4)."""
    said = recommended(make_result(), {"near": 0.8, "far": 0.2})
    tracks = {each.tuning for each in make_scores().context.detectors.values()}
    assert len(tracks) > 1, "detectors of two tracks are never compared"
    for where in ("On near OOD", "On far OOD", "On a mixture of 80 % near, 20 % far"):
        assert any(each.startswith(where) for each in said), where
    assert not any("of 8 detectors" in each for each in said)


@pytest.mark.parametrize("wrong", ["near", "near=", "=1", "near=x", "near=-1", "near=inf", "near=nan"])
def test_weights_that_are_none_are_named(wrong):
    with pytest.raises(UsageError, match="write GROUP=NUMBER"):
        read_weights([wrong])


def test_weights_are_read():
    assert read_weights(["near=0.8", "far=0.2"]) == {"near": 0.8, "far": 0.2} and read_weights([]) == {}
    with pytest.raises(UsageError, match="given twice"):
        read_weights(["near=1", "near=2"])
    with pytest.raises(UsageError, match="above 0"):
        read_weights(["near=0"])
