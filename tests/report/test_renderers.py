"""Both renderers draw every figure of every kind of run, and what they draw are the figure's own numbers."""

import json
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from oodscope.document.figure import Axis, Band, Bars, Figure, Heatmap, Histogram, Line, Points, Text
from oodscope.report.page.figures import attack_plots, detector_plots, result_plots
from oodscope.report.paper.style import house_style
from oodscope.report.render.mpl import mpl_figure
from oodscope.report.render.plotly import plain, plotly_json
from oodscope.results.measurement import Measurements
from oodscope.runs.crossval import figures as crossval_figures
from oodscope.runs.crossval.study import study_metric, variance_table
from oodscope.runs.generated import figures as generated_figures
from oodscope.runs.models import figures as model_figures
from oodscope.runs.models.run import study_of
from tests.browser.made_pages import small_attack, small_result
from tests.report.paper_runs import evaluation
from tests.runs.crossval.crossval_factory import make_table
from tests.runs.generated.generated_world import study as generated_study

EXACT = {"rel": 2e-3, "abs": 2e-4}  # of the four digits that a page keeps


def of_evaluation():
    result = small_result()
    timed = [replace(row, microseconds_per_image=10.0 + len(row.detector)) for row in result.measurements]
    result = replace(result, measurements=Measurements(timed))
    names = result.scores.detectors
    places = {name: place for place, name in enumerate(names)}
    groups = result_plots(result, names, 1, places)
    single = detector_plots(result, names, 1)
    return [each for group in groups for each in group.figures] + [each for own in single.values() for each in own]


def of_attack():
    attack = small_attack()
    places = {name: place for place, name in enumerate(attack.detectors)}
    return [each for group in attack_plots(attack, attack.detectors, 1, places) for each in group.figures]


def of_crossval():
    table = make_table(("ebo", "gen", "knn", "mds"), ("auroc",), pairs=5, repetitions=3, hold_outs=12)
    study = study_metric(table, "auroc")
    return [
        crossval_figures.estimates(study),
        crossval_figures.average_ranks(study),
        crossval_figures.agreement(study),
        crossval_figures.convergence(study),
        crossval_figures.variance_bars("auroc", variance_table(table, "auroc")),
        crossval_figures.pair_p_values(study, 0.05),
        crossval_figures.pair_counts(study, 0.05),
    ]


def of_generated():
    study = generated_study()
    checks = [each for each in study.sanity.sets if each.confusion]
    found = [
        *(generated_figures.confusion(each, study.sanity.class_names) for each in checks),
        *generated_figures.information_histograms(study),
        *(generated_figures.reliability_of_network(study, name) for name in study.networks),
        generated_figures.reliability_on_set(study, "id_test"),
        generated_figures.orders_of_detectors(study, study.networks[0], [*study.sanity.near(), *study.real]),
    ]
    assert None not in found
    return found


def of_models():
    trained = [
        evaluation(f"net {n}", n, labels={"name": f"net {n}", "strategy": strategy, "perturbation": radius})
        for n, (strategy, radius) in enumerate((("plain", 0.0), ("AugMix", 0.5), ("plain", 1.0)))
    ]
    study, metric = study_of(trained), "der99_val_correct"
    return [
        *(model_figures.der_against_accuracy(study, name, metric) for name in study.detectors[:2]),
        model_figures.robust_models(study, metric),
        model_figures.strategy_heatmap(study, metric),
    ]


KINDS = {
    "evaluation": of_evaluation,
    "attack": of_attack,
    "crossval": of_crossval,
    "generated": of_generated,
    "models": of_models,
}


@pytest.mark.parametrize("kind", KINDS)
def test_both_draw_every_figure_with_its_numbers(kind):
    found = KINDS[kind]()
    assert len({figure.name for figure in found}) == len(found)
    for figure in found:
        json.dumps(figure.to_dict(), allow_nan=False)
        assert figure.title and figure.caption
        check_plotly(figure, json.loads(plotly_json(figure)))
        with house_style():
            sheet = mpl_figure(figure)
            FigureCanvasAgg(sheet).draw()
        check_matplotlib(figure, sheet.axes[0])


def test_every_mark_is_drawn_by_some_run():
    drawn = {type(mark) for kind in ("evaluation", "crossval", "generated") for f in KINDS[kind]() for mark in f.marks}
    assert drawn == {Line, Band, Points, Histogram, Bars, Heatmap, Text}


def check_plotly(figure, content):
    traces = iter(content["data"])
    for mark in figure.marks:
        if isinstance(mark, Text):
            continue
        trace = next(traces)
        if not isinstance(mark, Heatmap):
            assert trace["meta"]["colour"] == mark.position
            assert trace["name"] == plain(mark.name)
        if isinstance(mark, Line):  # thinned: every point that is left is one of the curve, and both ends are
            points = np.column_stack([mark.x, mark.y])
            shown = np.column_stack([trace["x"], trace["y"]])
            scale = np.where(np.ptp(points, axis=0) > 0, np.ptp(points, axis=0), 1.0)
            away = np.abs((shown[:, None] - points[None]) / scale).max(axis=2).min(axis=1)
            assert away.max() < 2e-3
            assert shown[[0, -1]] == pytest.approx(points[[0, -1]], **EXACT)
        elif isinstance(mark, Points):
            assert trace["x"] == pytest.approx(mark.x, **EXACT)
            assert trace["y"] == pytest.approx(mark.y, **EXACT)
            if mark.low:
                ends = np.array(trace["y"]) - trace["error_y"]["arrayminus"]
                assert ends == pytest.approx(mark.low, rel=5e-3, abs=5e-3)
        elif isinstance(mark, Histogram):
            assert trace["y"][1:-1] == pytest.approx(mark.heights, **EXACT)
        elif isinstance(mark, Bars):
            assert trace["x"] == pytest.approx(mark.lengths, **EXACT)
            assert trace["y"] == [plain(name) for name in mark.names]
        elif isinstance(mark, Band):
            assert max(trace["y"]) == pytest.approx(max(mark.high), **EXACT)
            assert min(trace["y"]) == pytest.approx(min(mark.low), **EXACT)
        else:
            for row, expected in zip(trace["z"], mark.values, strict=True):
                assert [each is None for each in row] == [each is None for each in expected]
                told = [(a, b) for a, b in zip(row, expected) if b is not None]
                assert [a for a, _ in told] == pytest.approx([b for _, b in told], **EXACT)
    words = [mark.text for mark in figure.marks if isinstance(mark, Text)]
    assert [plain(text) for text in words] == (next(traces)["text"] if words else [])
    assert next(traces, None) is None


def check_matplotlib(figure, panel):
    """What is exact in the figure is exact in print."""
    lines = iter([line for line in panel.lines if line.get_linestyle() != "None"])
    points, stairs = iter(panel.containers), iter(p for p in panel.patches if hasattr(p, "get_data"))
    bars = [container for container in panel.containers if hasattr(container, "patches")]
    for mark in figure.marks:
        if isinstance(mark, Line):
            line = next(lines)
            assert list(line.get_xdata()) == list(mark.x)
            assert list(line.get_ydata()) == list(mark.y)
        elif isinstance(mark, Points):
            drawn = next(points).lines[0]
            assert list(drawn.get_xdata()) == list(mark.x)
            assert list(drawn.get_ydata()) == list(mark.y)
        elif isinstance(mark, Histogram):
            heights, edges, _ = next(stairs).get_data()
            assert list(heights) == list(mark.heights)
            assert list(edges) == list(mark.edges)
        elif isinstance(mark, Bars):
            own = bars.pop(0)
            # a stacked bar is as long as the difference of its ends
            assert [bar.get_width() for bar in own] == pytest.approx(mark.lengths, rel=1e-9, abs=1e-12)
            for bar, name in zip(own, mark.names):
                middle = bar.get_y() + bar.get_height() / 2
                assert figure.y.categories[round(middle)] == name
        elif isinstance(mark, Heatmap):
            values = np.ma.filled(panel.images[0].get_array().astype(float), np.nan)
            expected = [[np.nan if each is None else each for each in row] for row in mark.values]
            assert np.array_equal(values, expected, equal_nan=True)
        elif isinstance(mark, Text):
            assert mark.text in [text.get_text() for text in panel.texts]


def test_bars_on_one_name_stand_end_to_end():
    marks = (Bars("first", ("a", "b"), (1.0, 2.0), 0), Bars("second", ("b", "a"), (3.0, 4.0), 1))
    figure = Figure("bars", "t", "c", marks, Axis(), Axis(scale="names", categories=("a", "b")))
    panel = mpl_figure(figure).axes[0]
    spans = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in panel.patches]
    assert spans == [(0, 1), (0, 2), (2, 5), (1, 5)]
    assert json.loads(plotly_json(figure))["layout"]["barmode"] == "stack"
    assert panel.yaxis_inverted()  # the first name on top, as on a page


def test_axes_say_what_the_figure_says():
    mark = Line("x", (1.0, 10.0), (0.1, 0.9), 0, markers=True)
    figure = Figure(
        "axes", "t", "c", (mark,), Axis("budget", scale="log"), Axis("AUROC", percent=True, range=(0.0, 1.0))
    )
    panel = mpl_figure(figure).axes[0]
    layout = json.loads(plotly_json(figure))["layout"]
    assert (panel.get_xscale(), layout["xaxis"]["type"]) == ("log", "log")
    assert (panel.get_ylim(), layout["yaxis"]["range"]) == ((0, 1), [0, 1])
    assert (panel.get_xlabel(), layout["xaxis"]["title"]["text"]) == ("budget", "budget")
    assert layout["yaxis"]["tickformat"] == "~%"
    assert panel.yaxis.get_major_formatter()(0.5) == "50 %"
