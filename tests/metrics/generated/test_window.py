"""The window of mutual information: its rule against trying every end, its closed ends, the paper's windows."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oodscope.base.errors import DataError
from oodscope.metrics.generated.information import Window, overlap, overlap_window, raised_window
from tests.examples import examples

fortieths = st.lists(st.integers(0, 60), min_size=1, max_size=25)
"""Every other one lies exactly on the grid of ends."""


def slow_low(val, near):
    """In whole numbers, one end at a time, in fortieths: the first that no other beats."""
    best = None
    for end in range(0, 80, 2):
        error = Fraction(sum(v >= end for v in val), len(val)) + Fraction(sum(v < end for v in near), len(near))
        if best is None or error < best[0]:
            best = (error, end)
    return best


@examples(60)
@given(fortieths, fortieths)
def test_the_rule_against_trying_every_end(val, near):
    error, end = slow_low(val, near)
    assume(end > 0)
    val, near = np.array(val) / 40, np.array(near) / 40
    window = overlap_window(val, near)
    assert (window.low, window.high) == (end / 40, (end + 16) / 40)
    assert overlap(val, near, [window.low])[0] == pytest.approx(float(error))


@examples(60)
@given(st.lists(st.tuples(st.integers(0, 60), st.booleans()), min_size=1, max_size=40), st.integers(1, 5))
def test_a_window_rises_until_few_images_show_their_class(images, enough):
    near, seen = ([image[column] for image in images] for column in (0, 1))
    shares = {}
    for low in range(4, 62, 2):
        inside = [shows for level, shows in images if low <= level <= low + 16]
        if len(inside) >= enough:
            shares[low] = Fraction(sum(inside), len(inside))
    few = [low for low, share in shares.items() if share <= Fraction(9, 20)]
    expected = few[0] if few else min(shares, key=shares.get, default=4)
    window = raised_window(Window(0.1, 0.5), np.array(near) / 40, seen, enough)
    assert (window.low, window.high) == (expected / 40, (expected + 16) / 40)


def test_of_equal_ends_the_smallest():
    assert overlap_window([0.01, 0.02], [0.9, 1.2]) == Window(0.05, 0.45)
    assert overlap_window([0.11, 0.02], [0.9, 1.2]).low == 0.15


def test_equal_ends_are_equal_in_spite_of_rounding():
    """2/10 + 1/10 at the first end is 0.30000000000000004 in floating point, 0/10 + 3/10 at the third is 0.3."""
    val, near = [0.01] * 8 + [0.12] * 2, [0.04] + [0.12] * 2 + [0.9] * 7
    assert overlap_window(val, near).low == 0.05


@pytest.mark.parametrize("end", [0.15, 0.6])
def test_the_last_end_is_tried(end):
    """0.15 / 0.05 is 2.9999999999999996 in floating point."""
    assert overlap_window([end - 0.04], [end]).low == end


def test_an_image_at_the_end_belongs_to_the_window():
    """A validation image at the end counts as wrong, a generated one as right."""
    assert overlap([0.1], [0.1], [0.1]).tolist() == [1.0]
    assert overlap([0.05, 0.1], [0.1, 0.15], [0.1]).tolist() == [0.5]
    assert overlap_window([0.05], [0.1]).low == 0.1
    assert Window(0.2, 0.6).keeps([0.2, 0.6, np.nextafter(0.2, 0), np.nextafter(0.6, 1), 0.4]).tolist() == [
        True,
        True,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(("val", "window"), [(0.07, (0.1, 0.5)), (0.17, (0.2, 0.6)), (0.36, (0.4, 0.8))])
def test_ends_are_the_round_numbers_of_the_paper(val, window):
    """0.2 + 0.4 is 0.6000000000000001 in floating point, which would keep one image too many."""
    assert overlap_window([0.0, val], [0.9]) == Window(*window)


def test_width_and_step_are_the_callers():
    assert overlap_window([0.0, 0.32], [0.9], width=0.25, step=0.1) == Window(0.4, 0.65)


def test_the_error_is_0_where_the_sets_part_and_1_where_nothing_is_said():
    assert overlap([0.0, 0.1], [0.5, 0.7], [0.0, 0.3, 2.0]).tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: overlap_window([0.5, 0.6], [0.1, 0.2]), "the ensemble does not disagree more .* larger weight"),
        (lambda: overlap_window([0.3], [0.3]), "no better than validation images"),
        (lambda: overlap_window([], [0.3]), "the mutual information of validation images are empty"),
        (lambda: overlap_window([0.1], [np.nan]), "of generated images: 1 of 1 are NaN"),
        (lambda: overlap_window([0.1], [0.3], step=0), "above 0; they are 0.4 and 0"),
        (lambda: Window(0.6, 0.2), r"ends later: \[0.6, 0.2\]"),
        (lambda: Window(-0.1, 0.2), "starts at 0 or more"),
    ],
)
def test_mistakes(call, message):
    with pytest.raises(DataError, match=message):
        call()
