"""Bins count what lies in them, and span what a reader wants to see."""

import numpy as np

from oodscope.document.bins import bin_shares, even_edges, shared_edges


def test_one_outlier_does_not_squeeze_a_histogram():
    scores = np.append(np.random.default_rng(0).normal(size=1000), 1e9)
    edges = shared_edges([scores])
    assert edges[-1] < 5
    assert bin_shares(scores, edges).sum() == 1  # it counts in the last bin


def test_constant_scores_can_be_drawn():
    edges = shared_edges([np.zeros(5), np.zeros(3)])
    assert edges[0] < 0 < edges[-1]
    assert even_edges(2.0, 2.0, 2).tolist() == [1.5, 2.0, 2.5]
