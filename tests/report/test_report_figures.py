"""What the figures draw is what the scores say."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oodscope.report.figures import POINTS, histogram, roc, style_of
from oodscope.report.headline import headlines
from oodscope.report.panels import legend, panels
from oodscope.report.plots.bins import shared_edges
from oodscope.report.svg import Plot, bars
from oodscope.results import Measurement, Measurements, pivot
from tests.results.factory import make_result


def drawn_curves(svg: str) -> list[np.ndarray]:
    """The points of each curve, back from pixels to shares; the frame of the plot is the chance line."""
    lines = re.findall(r'<polyline class="line ([^"]*)" points="([^"]*)"', svg)
    points = [np.array([pair.split(",") for pair in text.split()], dtype=float) for _, text in lines]
    frame, curves = points[0], points[1:]
    return [(curve - frame[0]) / (frame[1] - frame[0]) for curve in curves]


def test_the_area_under_the_drawn_curve_is_the_measured_auroc():
    scores = make_result().scores
    measured = make_result().measurements.filter(protocol="standard", metric="auroc", detector="msp")
    sets = {name: scores.scores("msp", set=name) for name in ("held_out", "photographs", "digits", "textures")}
    svg = roc(scores.scores("msp", role="id_test"), sets, dict.fromkeys(sets, "c0"), "x")
    for name, curve in zip(sets, drawn_curves(svg), strict=True):
        assert 2 <= len(curve) <= POINTS
        np.testing.assert_allclose(curve[[0, -1]], [[0, 0], [1, 1]], atol=1e-9)
        (m,) = measured.filter(set=name)
        assert np.trapezoid(curve[:, 1], curve[:, 0]) == pytest.approx(m.value, abs=0.005)


def test_the_second_curve_counts_shifted_images_as_id():
    drawn = panels(make_result().scores, "knn")
    measured = make_result().measurements.filter(protocol="full_spectrum", metric="auroc", detector="knn")
    for name, curve in zip(["held_out", "photographs", "digits", "textures"], drawn_curves(drawn.curves[1].figure)):
        (m,) = measured.filter(set=name)
        assert np.trapezoid(curve[:, 1], curve[:, 0]) == pytest.approx(m.value, abs=0.005)


def test_bars_have_the_heights_they_were_given():
    plot = Plot(100, 100, (0.0, 4.0), (0.0, 1.0), left=0, right=0, top=0, bottom=0)
    path = bars(plot, np.arange(5.0), np.array([0.0, 0.5, 1.0, 0.25]), "id")
    assert 'd="M0 100V100H25V50H50V0H75V75H100V100Z"' in path


def bar_heights(svg: str) -> list[list[float]]:
    paths = re.findall(r'<path class="bars [^"]*" d="M[\d.]+ ([\d.]+)([^"]*)V[\d.]+Z"', svg)
    return [[float(base) - float(top) for top in re.findall(r"V([\d.]+)H", steps)] for base, steps in paths]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_histograms_count_every_score(id_scores, scores):
    both = [np.array(id_scores), np.array(scores)]
    svg = histogram(*both, shared_edges(both), "x", "c0")
    heights = bar_heights(svg)
    assert len(heights) == 2
    tallest = max(max(sample) for sample in heights)
    # both samples are drawn to one scale, and a share of 1 is left for each: no score fell outside
    assert sum(heights[0]) == pytest.approx(sum(heights[1]), rel=0.05, abs=4)
    assert tallest == pytest.approx(88, abs=0.2)


def test_one_outlier_does_not_squeeze_a_histogram():
    scores = np.append(np.random.default_rng(0).normal(size=1000), 1e9)
    assert shared_edges([scores])[-1] < 5


def test_constant_scores_can_be_drawn():
    edges = shared_edges([np.zeros(5), np.zeros(3)])
    assert edges[0] < 0 < edges[-1]
    assert bar_heights(histogram(np.zeros(5), np.zeros(3), edges, "x", "c0"))


def test_every_set_keeps_its_own_style():
    found = legend(make_result().scores)
    assert [entry.name for entry in found] == [
        "held_out",
        "photographs",
        "digits",
        "textures",
        "unseen_fonts",
        "corrupted",
    ]
    assert len({style_of(index) for index in range(18)}) == 18
    drawn = panels(make_result().scores, "knn")
    for entry, panel in zip(found, drawn.histograms, strict=True):
        assert f'class="bars {entry.style}"' in panel.figure and panel.words == entry.name


def near(detector, value, low=None, high=None, tuning="default", group="near"):
    return Measurement(
        run="r",
        benchmark="b",
        benchmark_version="1",
        model="m",
        protocol="standard",
        set="mean",
        group=group,
        metric="auroc",
        detector=detector,
        value=value,
        low=low,
        high=high,
        tuning=tuning,
    )


def said(*rows):
    return [
        f"{line.leader} {line.what} {line.cell.number}. {line.comparison}"
        for line in headlines(pivot(Measurements(rows), "standard").grid)
    ]


def test_a_clear_lead_is_called_clear():
    (text,) = said(near("a", 0.9, 0.88, 0.92), near("b", 0.8, 0.78, 0.82))
    assert text == "a leads near-OOD AUROC with 90.00. b follows at 80.00, and its interval lies clear of the leader's."


def test_a_lead_within_noise_is_called_so():
    (text,) = said(near("a", 0.9, 0.85, 0.92), near("b", 0.89, 0.84, 0.91))
    assert text.endswith("b follows at 89.00. The interval of b overlaps the leader's: not told apart here.")
    (text,) = said(*(near(name, 0.9 - i / 1000, 0.8, 0.95) for i, name in enumerate("abcdef")))
    assert text.endswith("The intervals of b, c, d and 2 more overlap the leader's: not told apart here.")
    (text,) = said(near("a", 0.9, 0.88, 0.92), near("b", 0.87, 0.865, 0.875), near("c", 0.86, 0.8, 0.89))
    assert text.endswith("lies clear of the leader's, unlike c.")


def test_what_is_not_known_is_not_claimed():
    (text,) = said(near("a", 0.9), near("b", 0.8))
    assert text.endswith("b follows at 80.00; without intervals, how much of the lead is noise is not known.")
    (text,) = said(near("a", 0.9, 0.8, 0.95))
    assert text == "a has a near-OOD AUROC of 90.00. It is the only detector of this track, so nothing is compared."


def test_tracks_and_groups_are_headlined_apart():
    texts = said(near("a", 0.8, 0.7, 0.85), near("b", 0.7, 0.6, 0.75), near("c", 0.99, 0.9, 1.0, tuning="ood_val"))
    assert [text.split()[0] for text in texts] == ["a", "c"]
    (text,) = said(near("a", 0.8, group="far"), near("b", 0.7, group="far"))
    assert "leads far-OOD AUROC" in text
