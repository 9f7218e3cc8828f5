"""Radii of a radar plot: ends, order, and the figure of the paper."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from oodscope.base.errors import DataError
from oodscope.metrics.generated.radar import radar_radii
from oodscope.metrics.generated.rank_agreement import kendall
from tests.examples import examples
from tests.metrics.generated.raising_the_bar import SETS, TABLE_1


@examples(40)
@given(arrays(np.float64, (5, 3), elements=st.integers(0, 100).map(float)))
def test_every_axis_reaches_from_a_tenth_to_eleven_tenths_in_its_order(table):
    radii = radar_radii(table)
    for axis, values in zip(radii.T, table.T):
        if values.min() == values.max():
            assert axis.tolist() == [0.6] * 5
        else:
            assert (axis.min(), axis.max()) == pytest.approx((0.1, 1.1))
            assert kendall(axis, values) == pytest.approx(1)
            assert axis == pytest.approx(np.interp(values, [values.min(), values.max()], [0.1, 1.1]))


def test_the_table_of_the_paper():
    radii = radar_radii(TABLE_1)
    best, worst = radii.argmax(axis=0), radii.argmin(axis=0)
    assert best.tolist() == [12] * len(SETS)  # the ensemble of ViT-L-16 on every set
    assert worst.tolist() == [22] * len(SETS)  # Mahalanobis on RN50


@pytest.mark.parametrize("table", [[1.0, 2.0], [[1.0, np.nan]], np.zeros((0, 3))])
def test_mistakes(table):
    with pytest.raises(DataError, match="a finite value for every row and axis"):
        radar_radii(table)
