"""The few marks of SVG draw what they were given."""

import numpy as np

from oodscope.report.plots.bins import shared_edges
from oodscope.report.svg import Plot, bars, style_of


def test_bars_have_the_heights_they_were_given():
    plot = Plot(100, 100, (0.0, 4.0), (0.0, 1.0), left=0, right=0, top=0, bottom=0)
    path = bars(plot, np.arange(5.0), np.array([0.0, 0.5, 1.0, 0.25]), "id")
    assert 'd="M0 100V100H25V50H50V0H75V75H100V100Z"' in path


def test_one_outlier_does_not_squeeze_a_histogram():
    scores = np.append(np.random.default_rng(0).normal(size=1000), 1e9)
    assert shared_edges([scores])[-1] < 5


def test_constant_scores_can_be_drawn():
    edges = shared_edges([np.zeros(5), np.zeros(3)])
    assert edges[0] < 0 < edges[-1]


def test_every_line_keeps_its_own_style():
    assert len({style_of(index) for index in range(18)}) == 18
    assert [style_of(index) for index in (0, 5, 6, 12)] == ["c0 d0", "c5 d0", "c0 d1", "c0 d2"]
