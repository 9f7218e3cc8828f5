"""A figure refuses numbers that cannot be drawn, wherever in its marks they stand."""

import math

import numpy as np
import pytest

from oodscope.base.errors import DataError
from oodscope.document.figure import Bars, Figure, Heatmap, Line, Points, Text, numbers

FINE = Line("a", numbers(np.arange(9)), numbers(np.arange(9)), 0)


def figure(*marks):
    return Figure("made-up", "title", "caption", marks)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, np.float64("nan")])
@pytest.mark.parametrize(
    "mark",
    [
        lambda x: Line("a", (0.0, x), (0.0, 1.0), 0),
        lambda x: Points("a", (0.0, 1.0), (0.0, 1.0), 0, low=(x, 0.0), labels=("one", "two")),
        lambda x: Bars("a", ("one", "two"), (1.0, x), 0),
        lambda x: Heatmap(("r",), ("c", "d"), ((None, x),), ".1f"),
        lambda x: Heatmap(("r",), ("c",), ((1.0,),), ".1f", low=x),
        lambda x: Heatmap(("r",), ("c",), ((1.0,),), ".1f", beside=(((1.0, x),),)),
        lambda x: Text(x, 0.0, "here"),
    ],
)
def test_what_is_not_finite_is_refused(mark, wrong):
    figure(FINE, mark(1.0))
    with pytest.raises(DataError, match="figure made-up: a number is NaN or infinite and cannot be drawn"):
        figure(FINE, mark(wrong))


def test_words_and_empty_fields_are_no_numbers():
    figure(Heatmap(("nan",), ("inf", "b"), ((None, 1),), ".1f", texts=(("nan", ""),), strong=((True, False),)))
    figure(Points("nan", (), (), 0))
