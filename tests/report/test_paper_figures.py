"""Figures of papers: the numbers drawn are the numbers stored, nothing is clipped, and misfits are told in one line."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text
from scipy.stats import linregress, pearsonr

from oodscope.base.errors import DataError, OodscopeError, UnknownNameError
from oodscope.report.paper import crossval, human, openood
from oodscope.report.paper.figure import FIGURES
from oodscope.report.paper.labels import label_points
from oodscope.report.paper.style import COLOURS, MARKERS, style_of, write_figure
from oodscope.runs.crossval.study import study_metric
from oodscope.runs.models.run import study_of
from tests.report.paper_runs import DETECTORS, evaluation
from tests.report.whole_runs import crossval as crossval_run
from tests.runs.crossval.crossval_factory import make_table

pytestmark = pytest.mark.slow

NAMES = [figure.name for module in (openood, human, crossval) for figure in module.FIGURES]


def labelled(number, detectors=DETECTORS[:5], **labels):
    return evaluation(labels["name"], number, detectors, labels=labels)


@cache
def table():
    return make_table(metrics=("auroc",), pairs=5, repetitions=4, hold_outs=30)


@cache
def runs(name):
    """What each figure is drawn from."""
    if name.startswith("dcv"):
        return [crossval_run(table())]
    radii = [labelled(n, name=f"eps {radius:g}", perturbation=radius) for n, radius in enumerate((0.5, 0.0, 0.01))]
    trained = [labelled(n, name=f"net {n}", strategy=("plain", "AugMix")[n % 2]) for n in range(3)]
    taught = [labelled(0, name="net"), labelled(1, name="net taught", distilled_from="net")]
    several = [evaluation(model, n) for n, model in enumerate(("resnet50", "vit_b_16", "resnet18"))]
    chosen = {"human-5": radii, "human-6": trained, "human-7": taught, "openood-6": several[:1]}
    return list(chosen.get(name, several[:1] if name in ("openood-1", "human-2") else several))


@cache
def drawn(name):
    figure = FIGURES[name].drawn(runs(name))
    FigureCanvasAgg(figure).draw()
    return figure


def value(result, protocol, group, metric, detector):
    (row,) = result.measurements.filter(
        protocol=protocol, group=group, set="mean", metric=metric, detector=detector, run=result.record.id
    )
    return row


def shown(panel, label, axis="x"):
    """Values and ends of intervals of the series of one legend entry, in the order drawn."""
    (container,) = [each for each in panel.containers if each.get_label() == label]
    line, _, (bars,) = container.lines
    ends = np.array(bars.get_segments())[:, :, "xy".index(axis)]
    return np.asarray(getattr(line, f"get_{axis}data")()), ends


def names_on(panel, axis="y"):
    return [text.get_text() for text in getattr(panel, f"get_{axis}ticklabels")()]


class TestOpenOOD:
    def test_standard_against_full_spectrum(self):
        (result,) = runs("openood-1")
        (panel,) = drawn("openood-1").axes
        order = names_on(panel)
        assert sorted(order) == sorted(DETECTORS)
        for protocol, label in (("standard", "standard"), ("full_spectrum", "full-spectrum")):
            rows = [value(result, protocol, "near", "auroc", name) for name in order]
            values, ends = shown(panel, label)
            np.testing.assert_allclose(values, [100 * row.value for row in rows])
            np.testing.assert_allclose(ends, [[100 * row.low, 100 * row.high] for row in rows])
            if protocol == "standard":
                assert (np.diff(values) >= 0).all()  # the best on top

    def test_foundation_models(self):
        results = runs("openood-2")
        panels = drawn("openood-2").axes
        assert [panel.get_title() for panel in panels] == ["MSP", "MLS"]
        for detector, panel in zip(("msp", "mls"), panels):
            for result in results:
                (accuracy,) = result.measurements.filter(protocol="standard", metric="accuracy")
                label = f"{result.record.model} ({100 * accuracy.value:.1f} % accurate)"
                stored = [
                    100 * value(result, protocol, group, "auroc", detector).value
                    for protocol in ("standard", "full_spectrum")
                    for group in ("near", "far")
                ]
                np.testing.assert_allclose(shown(panel, label, "y")[0], stored)
        assert names_on(panels[0], "x")[:2] == ["near\nstandard", "far\nstandard"]

    def test_near_against_far(self):
        (result,) = runs("openood-6")
        (panel,) = drawn("openood-6").axes
        near, far = (
            np.array([100 * value(result, "standard", group, "auroc", name).value for name in DETECTORS])
            for group in ("near", "far")
        )
        np.testing.assert_allclose(panel.collections[0].get_offsets(), np.column_stack([far, near]))
        line = linregress(far, near)
        (fit,) = panel.get_lines()
        np.testing.assert_allclose(fit.get_ydata(), line.slope * fit.get_xdata() + line.intercept)
        assert f"near = {line.slope:.2f} far" in panel.get_title()
        ends = pearsonr(far, near).confidence_interval(0.95)
        assert (
            f"r = {pearsonr(far, near).statistic:.2f} ({ends.low:.2f} to {ends.high:.2f}),  n = 12" in panel.get_title()
        )
        across, up = (each.get_segments() for each in panel.collections if isinstance(each, LineCollection))
        for n, name in enumerate(DETECTORS):
            row = value(result, "standard", "far", "auroc", name)
            np.testing.assert_allclose(across[n][:, 0], [100 * row.low, 100 * row.high])
            row = value(result, "standard", "near", "auroc", name)
            np.testing.assert_allclose(up[n][:, 1], [100 * row.low, 100 * row.high])
        # a name stands nearer to its own point than to any other
        points = dict(zip(DETECTORS, panel.transData.transform(np.column_stack([far, near]))))
        for text in panel.texts:
            box = text.get_window_extent()
            x, y = np.clip(points[text.get_text()], (box.x0, box.y0), (box.x1, box.y1))
            assert np.hypot(*(points[text.get_text()] - (x, y))) < 40
        assert {text.get_text() for text in panel.texts} == set(DETECTORS)

    def test_points_of_several_runs_share_one_line(self):
        several = [evaluation("a", 0), evaluation("b", 1)]
        (panel,) = FIGURES["openood-6"].drawn(several).axes
        assert "n = 24" in panel.get_title()
        assert [label for each in panel.collections if (label := each.get_label()) != "_interval"] == ["a", "b"]

    def test_across_architectures(self):
        results = runs("openood-7")
        panels = drawn("openood-7").axes
        order = names_on(panels[0])
        for group, panel in zip(("near", "far"), panels):
            for container, result in zip(panel.containers, results):
                stored = [100 * value(result, "standard", group, "auroc", name).value for name in order]
                np.testing.assert_allclose(shown(panel, container.get_label())[0], stored)
                assert container.get_label().startswith(result.record.model)

    def test_only_detectors_that_all_networks_have(self):
        two = [evaluation("a", 0), evaluation("b", 1, DETECTORS[3:6])]
        panel = FIGURES["openood-7"].drawn(two).axes[0]
        assert sorted(names_on(panel)) == sorted(DETECTORS[3:6])

    def test_detectors_tuned_differently_are_told_apart(self):
        result = evaluation("a", 0, ("msp", "knn", "vim"))
        rows = [row for row in result.measurements if row.detector == "knn"]
        from dataclasses import replace

        tuned = replace(result, measurements=result.measurements + [replace(r, tuning="ood_val") for r in rows])
        (panel,) = FIGURES["openood-1"].drawn([tuned]).axes
        assert sorted(names_on(panel)) == ["knn (default)", "knn (ood_val)", "msp (default)", "vim (default)"]


class TestHumanCentric:
    def test_all_against_correct(self):
        (result,) = runs("human-2")
        panels = drawn("human-2").axes
        order = names_on(panels[0])
        for panel, metric in zip(panels, ("auroc", "fpr95_id_positive")):
            rows = [
                value(result, "human_centric", "label_shift", metric + suffix, name)
                for suffix in ("", "_correct_id")
                for name in order
            ]
            np.testing.assert_allclose([bar.get_width() for bar in panel.patches], [100 * row.value for row in rows])
            ends = np.concatenate([np.array(bars.get_segments())[:, :, 0] for bars in panel.collections])
            np.testing.assert_allclose(ends, [[100 * row.low, 100 * row.high] for row in rows])
            assert panel.get_xlim() == (0, 100)

    def test_capacity(self):
        study = study_of(runs("human-4"))
        panels = drawn("human-4").axes
        assert [panel.get_title() for panel in panels] == list(DETECTORS)
        for panel in panels:
            lines = {line.get_label(): line.get_xydata() for line in panel.get_lines()}
            expected = {"resnet": ("resnet50", "resnet18"), "vit": ("vit_b_16",)}
            assert lines.keys() == expected.keys()
            for family, models in expected.items():
                points = [
                    (100 * study.accuracy(m), 100 * study.value(m, panel.get_title(), "der99_train_correct"))
                    for m in models
                ]
                np.testing.assert_allclose(lines[family], sorted(points))

    def test_robust_models(self):
        study = study_of(runs("human-5"))
        (panel,) = drawn("human-5").axes
        assert names_on(panel, "x") == ["0", "0.01", "0.5"]
        order = ["eps 0", "eps 0.01", "eps 0.5"]
        *detectors, accuracy = panel.get_lines()
        for line in detectors:
            stored = [100 * study.value(name, line.get_label(), "der99_train_correct") for name in order]
            np.testing.assert_allclose(line.get_ydata(), stored)
        np.testing.assert_allclose(accuracy.get_ydata(), [100 * study.accuracy(name) for name in order])

    def test_strategies(self):
        study = study_of(runs("human-6"))
        panel = drawn("human-6").axes[0]
        for row, models in enumerate((("net 0", "net 2"), ("net 1",))):
            for column, detector in enumerate(study.detectors):
                mean = np.mean([100 * study.value(m, detector, "der99_train_correct") for m in models])
                assert panel.images[0].get_array()[row, column] == pytest.approx(mean)
                (text,) = [t.get_text() for t in panel.texts if t.get_position() == (column, row)]
                assert text == f"{mean:.1f}"

    def test_distillation(self):
        study = study_of(runs("human-7"))
        (panel,) = drawn("human-7").axes
        _, plain, distilled = panel.collections
        for points, model in ((plain, "net"), (distilled, "net taught")):
            stored = [100 * study.value(model, name, "der99_train_correct") for name in names_on(panel)]
            np.testing.assert_allclose(points.get_offsets()[:, 0], stored)


class TestCrossValidation:
    @pytest.fixture(scope="class")
    def study(self):
        return study_metric(table(), "auroc")

    def cells(self, panel):
        return {text.get_position(): text for text in panel.texts}

    def test_pairs(self, study):
        left, right = drawn("dcv-pairs").axes
        p, counts = study.truth_tests.p, study.counts(0.05)
        assert len(left.texts) == len(right.texts) == 28
        for first, second in combinations(range(8), 2):
            place = (first, second - 1)  # rows begin with the second detector
            said, count = (self.cells(panel)[place] for panel in (left, right))
            assert said.get_text() == ("<.001" if p[first, second] < 0.001 else f"{p[first, second]:.3f}")
            assert count.get_text() == str(counts[first, second])
            assert (said.get_fontweight() == "bold") == (count.get_fontweight() == "bold") == (p[first, second] <= 0.05)
        assert names_on(left) == list(study.detectors[1:])
        assert names_on(left, "x") == list(study.detectors[:-1])

    def test_counts_at_each_level(self, study):
        for alpha, panel in zip((0.1, 0.05, 0.01), drawn("dcv-counts").axes):
            counts = study.counts(alpha)
            for (column, row), text in self.cells(panel).items():
                assert text.get_text() == str(counts[row + 1, column])
            rates = study.rates(alpha)
            told = [f"{rate.value:.1f}" if rate.pairs else "–" for rate in (rates.hits, rates.errors)]
            assert f"hit rate {told[0]}, error rate {told[1]}" in panel.get_title()

    def test_agreement(self, study):
        (panel,) = drawn("dcv-agreement").axes
        away = 100 * (study.repetitions - study.truth)
        for index, name in enumerate(study.detectors):
            values, ends = shown(panel, name, "y")
            np.testing.assert_allclose(values, away[:, index].mean(axis=0), atol=1e-9)
            np.testing.assert_allclose(ends[:, 0], away[:, index].min(axis=0), atol=1e-9)
            np.testing.assert_allclose(ends[:, 1], away[:, index].max(axis=0), atol=1e-9)
            np.testing.assert_allclose(shown(panel, name)[0], 100 * study.truth[index])

    def test_ranks(self, study):
        (panel,) = drawn("dcv-ranks").axes
        found = study.ranks()
        words = [text.get_text().strip() for text in panel.texts]
        for name, rank in zip(study.detectors, found.average_ranks):
            assert f"{name} {rank:.2f}" in words or f"{rank:.2f} {name}" in words
        assert f"CD {found.difference:.2f}" in words
        bars = [line.get_xdata() for line in panel.get_lines() if line.get_linewidth() == 2]
        joined = [(found.average_ranks[g[0]], found.average_ranks[g[-1]]) for g in found.groups]
        np.testing.assert_allclose(bars, [(low - 0.05, high + 0.05) for low, high in joined])

    def test_convergence(self, study):
        (panel,) = drawn("dcv-convergence").axes
        series = study.hold_outs.mean(axis=2)
        slow = np.array([series[: n + 1].mean(axis=0) for n in range(len(series))])
        for index, line in enumerate(panel.get_lines()):
            assert line.get_label() == study.detectors[index]
            np.testing.assert_allclose(line.get_ydata(), 100 * (slow - slow[-1])[:, index], atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_clipped_and_no_words_cover_others(name, monkeypatch):
    figure, written = drawn(name), {}
    draw = Text.draw
    monkeypatch.setattr(Text, "draw", lambda text, renderer: (written.setdefault(text), draw(text, renderer)))
    FigureCanvasAgg(figure).draw()
    frame, boxes = figure.bbox, []
    for text in written:
        if text.get_visible() and text.get_text().strip():
            box = text.get_window_extent() if not isinstance(text, Annotation) else Text.get_window_extent(text)
            assert frame.x0 - 1 <= box.x0 and box.x1 <= frame.x1 + 1, text.get_text()
            assert frame.y0 - 1 <= box.y0 and box.y1 <= frame.y1 + 1, text.get_text()
            # boxes of turned words cover more than the words do
            if text.get_rotation() % 90 == 0:
                boxes.append((text.get_text(), box))
    assert boxes
    for (first, one), (second, other) in combinations(boxes, 2):
        width = min(one.x1, other.x1) - max(one.x0, other.x0)
        height = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert not (width > 1 and height > 1), f"{first!r} and {second!r}"
    assert figure.get_figwidth() in (3.4, 7.0)


def test_names_of_a_crowd_do_not_cover_each_other():
    panel = Figure(figsize=(3, 3)).add_subplot()
    points = np.column_stack([np.linspace(0.5, 0.52, 6), np.linspace(0.5, 0.51, 6)])
    panel.set(xlim=(0, 1), ylim=(0, 1))
    assert len(label_points(panel, points, list("abcdef"), avoid=np.empty((0, 2)))) == 6
    boxes = [Text.get_window_extent(text) for text in panel.texts]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_long_names_break_the_legend_into_lines():
    names = [f"vit_large_patch14_reg4_dinov2_lvd142m_number_{number}" for number in range(4)]
    several = [evaluation(name, n, ("msp", "mls")) for n, name in enumerate(names)]
    figure = FIGURES["openood-2"].drawn(several)
    FigureCanvasAgg(figure).draw()
    (legend,) = figure.legends
    assert legend.get_window_extent().x0 >= 0 and legend.get_window_extent().x1 <= figure.bbox.x1
    assert len(legend.get_texts()) == 4


@pytest.mark.parametrize("name", ["openood-6", "human-6", "dcv-ranks"])
@pytest.mark.parametrize("ending", ["pdf", "svg", "png"])
def test_equal_runs_make_equal_files(tmp_path, name, ending):
    files = [write_figure(FIGURES[name].drawn(runs(name)), tmp_path / f"{n}.{ending}") for n in "ab"]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_letters_stay_letters_in_a_pdf(tmp_path):
    content = write_figure(drawn("openood-1"), tmp_path / "figure.pdf").read_bytes()
    assert b"/FontFile2" in content and b"/Subtype /Type3" not in content


def test_a_reader_s_settings_change_nothing(tmp_path):
    from matplotlib import rc_context

    plain = write_figure(FIGURES["human-7"].drawn(runs("human-7")), tmp_path / "a.svg").read_bytes()
    with rc_context({"font.size": 20, "axes.facecolor": "red", "lines.linewidth": 9, "axes.grid": True}):
        assert write_figure(FIGURES["human-7"].drawn(runs("human-7")), tmp_path / "b.svg").read_bytes() == plain


DEUTERANOPIA = [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
PROTANOPIA = [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]


@pytest.mark.parametrize("seen", [np.eye(3), DEUTERANOPIA, PROTANOPIA], ids=["all", "deuteranopia", "protanopia"])
def test_colours_can_be_told_apart(seen):
    """Distance in CIELAB of what an eye makes of them (Machado, Oliveira & Fernandes 2009); 10 is seen at a glance."""
    labs = []
    for colour in COLOURS:
        rgb = np.array(to_rgb(colour))
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        x, y, z = (
            np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
            @ np.clip(np.array(seen) @ linear, 0, 1)
        ) / (0.9505, 1.0, 1.089)
        f = [np.cbrt(v) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z)]
        labs.append((116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])))
    assert min(np.linalg.norm(np.subtract(a, b)) for a, b in combinations(labs, 2)) > 10


def test_forty_nine_series_have_looks_of_their_own():
    assert len({style_of(index) for index in range(len(COLOURS) * len(MARKERS))}) == 49


def misfits():
    plain = evaluation("a", 0, protocols=("standard",))
    full = evaluation("a", 0)
    other = evaluation("b", 1, benchmark_version="2")
    few = evaluation("b", 1, ("knn", "vim"))
    near = [crossval_run(make_table(metrics=("auroc",), pairs=2, repetitions=2, hold_outs=0))]
    return [
        (
            "openood-1",
            (plain,),
            "openood-1: run run-a-0 was measured under standard, not under full_spectrum",
        ),
        ("openood-1", (), "0 evaluations given, at least 1 needed"),
        ("openood-1", (full, evaluation("b", 1)), "2 evaluations given, one needed: run-a-0, run-b-1"),
        ("openood-2", (full,), "1 evaluation given, at least 2 needed"),
        ("openood-2", (full, few), "run run-b-1 lacks msp"),
        ("openood-6", (evaluation("a", 0, ("msp", "knn")),), "at least 3 detectors"),
        ("openood-7", (full, other), "different benchmarks cannot share a figure: toy 1, toy 2"),
        ("openood-7", (evaluation("a", 0, ("msp",)), few), "no detector was measured in every run"),
        ("human-2", (plain,), "not under human_centric"),
        ("human-4", (full,), "at least 2 needed"),
        ("human-5", (full, few), "no two models with different labels 'perturbation'"),
        ("human-6", (full, few), "no two models with different labels 'strategy'"),
        ("human-7", (full, few), "no model has the label 'distilled_from'"),
        ("dcv-pairs", [full], "0 cross-validations given, one needed"),
        ("dcv-pairs", near, "no hold-outs, so there is no benchmark truth"),
        ("dcv-ranks", near, "tests over cells want 8 cells and 2 detectors; the study has 4 and 8"),
    ]


@pytest.mark.parametrize("number", range(16))
def test_a_run_that_does_not_fit_is_told_what_is_missing(number):
    name, given, message = misfits()[number]
    with pytest.raises(DataError) as refused:
        FIGURES[name].drawn(given)
    assert message in str(refused.value)
    assert str(refused.value).endswith(f"It needs: {FIGURES[name].needs}")
    assert "\n" not in str(refused.value)


def test_an_unknown_figure_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match="unknown figure 'openod-6'. Did you mean 'openood-6'"):
        FIGURES["openod-6"]


def test_an_ending_that_is_no_format(tmp_path):
    with pytest.raises(OodscopeError, match="figures are written as png, pdf, svg"):
        write_figure(drawn("openood-1"), tmp_path / "figure.gif")


class TestStudyOfRuns:
    def test_names_families_and_strategies_without_labels(self):
        study = study_of([evaluation("resnet50", 0), evaluation("vit_b_16", 1, recipe="CrossEntropy")])
        assert [member.model.name for member in study.members] == ["resnet50", "vit_b_16"]
        assert [member.model.family for member in study.members] == ["resnet", "vit"]
        assert [member.model.strategy for member in study.members] == ["", "CrossEntropy"]

    def test_two_runs_of_one_model_are_told_apart(self):
        study = study_of([evaluation("net", 0), evaluation("net", 1)])
        assert [member.model.name for member in study.members] == ["net (run-net-0)", "net (run-net-1)"]

    def test_labels_that_nobody_knows(self):
        with pytest.raises(OodscopeError, match="labels of run run-x-0: unknown key 'familly'. Did you mean 'family'"):
            study_of([evaluation("x", 0, labels={"familly": "A"})])
