"""What to take: the leader is not flattered, the candidates are named, and the user's own mixture counts."""

import pytest

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.runs.comparison.recommendation import claim, recommendation
from tests.results.factory import make_scores

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


def test_misuse_is_named():
    with pytest.raises(UnknownNameError, match="Measured: near, far, held_out"):
        recommendation(make_scores(), weights="nearby")
    with pytest.raises(DataError, match="does not rank images"):
        recommendation(make_scores(), protocol="human_centric")
