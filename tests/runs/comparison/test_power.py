"""Power of a run: every set with classes has its components and what a point would need."""

import pytest

from oodscope.base.errors import DataError
from oodscope.runs.comparison.power import power
from tests.results.factory import make_result

pytestmark = pytest.mark.slow


def test_components_and_needs_of_a_run():
    found = power(make_result(), detectors=["knn", "msp"], difference=0.05)
    assert set(found.sets) == {"held_out", "photographs", "digits", "textures"} and found.pairs == 1
    own = found.sets["held_out"]
    assert own.classes == 10 and own.id_images == 700 and own.images == pytest.approx(50, rel=0.1)
    table = found.table()
    assert [row.name for row in table.rows] == list(found.sets)
    assert "5 points in 8 of 10 cases" in table.notes[0]
    assert own.power(0.05) > own.power(0.01)
    with pytest.raises(DataError, match="two detectors"):
        power(make_result(), detectors=["knn"])
