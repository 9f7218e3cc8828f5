"""Figures of Raising the Bar: what is drawn is what the study stored; unfit studies are refused in one line."""

import dataclasses

import numpy as np
import pytest

from oodscope.base.errors import DataError
from oodscope.report.paper.figure import FIGURES
from oodscope.report.paper.style import house_style
from oodscope.runs.generated.figures import radar
from tests.runs.generated.generated_world import DIM, NEAR, SHIFTED, study

ALL = ["rtb-4", "rtb-5", "rtb-6", "rtb-7", "rtb-8", "rtb-9a", "rtb-9b"]


@pytest.fixture(scope="module")
def done():
    return study()


def drawn(name, *studies):
    figure = FIGURES[name].drawn(studies)
    with house_style():
        figure.draw_without_rendering()
    return figure


def panels(figure):
    """By the first line of the title."""
    return {panel.get_title().split("\n")[0]: panel for panel in figure.axes if panel.get_title()}


def test_confusions(done):
    found = panels(drawn("rtb-4", done))
    assert list(found) == ["id_test", SHIFTED, NEAR]
    for name, panel in found.items():
        counts = np.array(done.sanity.of(name).confusion)
        expected = np.array([[100 * cell / row.sum() for cell in row] for row in counts])
        assert np.asarray(panel.images[0].get_array()) == pytest.approx(expected)
        kept = 100 * np.trace(counts) / counts.sum()
        assert f"{kept:.1f} % keep their class" in panel.get_title()


def bars(panel):
    names = [label.get_text() for label in panel.get_yticklabels()]
    return dict(zip(names, panel.patches, strict=True))


def check_bars(panel, expected, generated):
    found = bars(panel)
    assert {name: bar.get_width() for name, bar in found.items()} == expected
    widths = [bar.get_width() for bar in found.values()]
    assert widths == sorted(widths)
    assert [name for name, bar in found.items() if bar.get_hatch()] == generated
    assert {text.get_text().strip() for text in panel.texts} == {f"{value:.3g}" for value in expected.values()}


def test_frechet_distances(done):
    found, sets = panels(drawn("rtb-5", done)), done.sanity.sets
    check_bars(found["covariate shift"], {each.name: each.frechet for each in sets if each.role == "csid"}, [SHIFTED])
    foreign = {each.name: each.frechet for each in sets if each.role in ("near", "far")}
    check_bars(found["OOD images"], foreign, [NEAR])
    assert len(foreign) == 3


def test_perceptual_distances(done):
    (panel,) = drawn("rtb-9a", done).axes
    check_bars(panel, {name: done.sanity.of(name).perceptual for name in (SHIFTED, DIM)}, [SHIFTED])


@pytest.mark.slow
def test_auroc_by_network(done):
    figure = drawn("rtb-6", done, done)
    rows = done.separation()
    shown = [panel for panel in figure.axes if panel.get_title()]
    assert len(shown) == 2 * 9  # of ten detectors, for each study
    for panel in shown:
        assert len(panel.containers) == 3
        for container in panel.containers:
            name, points = container.get_label(), container.lines[0]
            places = np.round(points.get_xdata()).astype(int)
            found = [rows[done.networks[place], panel.get_title(), name] for place in places]
            assert points.get_ydata() == pytest.approx([100 * row.value for row in found])
            assert points.get_markerfacecolor() == ("white" if name != NEAR else points.get_color())
            (ends,) = container.lines[2]
            reach = [segment[:, 1] for segment in ends.get_segments()]
            assert np.array(reach) == pytest.approx(np.array([[100 * row.low, 100 * row.high] for row in found]))
        with_it = [each for each in done.networks if (each, panel.get_title(), NEAR) in rows]
        assert len(places) == len(with_it)
    # those that most networks have come first
    assert {panel.get_title() for panel in shown[:2]} == {"msp", "mls"}


def test_reliability_plots(done):
    found = panels(drawn("rtb-7", done))
    assert list(found)[:2] == ["id_test", SHIFTED]
    errors = done.calibration()
    mean = {name: np.mean([errors[network, name].value for network in done.networks]) for name in (DIM, "soft")}
    assert list(found)[2:] == sorted(mean, key=mean.get, reverse=True)
    for name, panel in found.items():
        _, *lines = panel.lines
        assert len(lines) == len(done.results)
        for line, result in zip(lines, done.results):
            bins = result.scores.context.extra["reliability"][name]
            kept = [n for n, count in enumerate(bins["count"]) if count]
            assert line.get_xdata().tolist() == [bins["confidence"][n] for n in kept]
            assert line.get_ydata().tolist() == [bins["accuracy"][n] for n in kept]
        told = [100 * errors[network, name].value for network in done.networks]
        assert panel.get_title().endswith(f"ECE {min(told):.1f} to {max(told):.1f} %")


def test_orderings(done):
    found, rows = panels(drawn("rtb-8", done)), done.separation()
    assert len(found) == 3
    for network, panel in zip(done.networks, found.values()):
        spokes = [text.get_text() for text in panel.texts]
        lines = {line.get_label(): line for line in panel.lines if not line.get_label().startswith("_")}
        assert list(lines) == [NEAR, "static", "rain"]
        for name, line in lines.items():
            values = np.array([rows[network, each, name].value for each in spokes])
            reach = np.hypot(*line.get_data())
            assert reach[-1] == reach[0]
            span = np.ptp(values)
            expected = 0.1 + (values - values.min()) / span if span else np.full(len(values), 0.6)
            assert reach[:-1] == pytest.approx(expected)


def test_a_radar_begins_at_the_top_and_goes_clockwise():
    *_, line = radar(["up", "right", "down", "left"], {"x": [1.0, 2.0, 0.0, 2.0]}, [])
    expected = [(0, 0.6), (1.1, 0), (0, -0.1), (-1.1, 0), (0, 0.6)]
    assert line.name == "x"
    assert np.column_stack([line.x, line.y]) == pytest.approx(np.array(expected), abs=1e-12)


def test_near_by_class(done):
    (panel,) = drawn("rtb-9b", done).axes
    sample, names = done.samples[NEAR], done.sanity.class_names
    assert [text.get_text() for text in panel.texts] == list(names)
    for row, _ in enumerate(names):
        pitch = 1.06
        own = [image for image in panel.images if image.get_extent()[3] == pytest.approx(-row * pitch)]
        own.sort(key=lambda image: image.get_extent()[0])
        expected = sample.images[sample.source == row][:8]
        assert len(own) == len(expected) >= 7
        for image, pixels in zip(own, expected):
            assert (np.asarray(image.get_array()) == pixels).all()


def changed(done, **sanity):
    return dataclasses.replace(done, sanity=done.sanity.model_copy(update=sanity))


class TestRefused:
    def refused(self, name, *studies):
        with pytest.raises(DataError) as error:
            drawn(name, *studies)
        assert "\n" not in str(error.value)
        return str(error.value)

    @pytest.mark.parametrize("name", ALL)
    def test_no_study_at_all(self, name):
        assert self.refused(name).startswith(f"{name}: no study of generated sets among these runs. It needs: ")

    def test_what_lacks_something(self, done):
        plain, near, shifted = (changed(done, generated=names) for names in ((), (NEAR,), (SHIFTED,)))
        assert "no generated set whose images" in self.refused("rtb-4", plain)
        assert "no Fréchet distance of a generated set" in self.refused("rtb-5", plain)
        assert "no generated near set in the study" in self.refused("rtb-6", done, shifted)
        assert "no generated shifted set in the study" in self.refused("rtb-7", near)
        assert "no generated near set in the study" in self.refused("rtb-8", shifted)
        assert "no real near or far set" in self.refused("rtb-8", changed(done, generated=(NEAR, "static", "rain")))
        assert "no perceptual distance of a generated set" in self.refused("rtb-9a", near)
        assert "no images of a generated near set" in self.refused("rtb-9b", shifted)
        assert "2 studies of generated sets given, one needed" in self.refused("rtb-5", done, done)

    def test_what_is_one_sided_shows_one_side(self, done):
        assert list(panels(drawn("rtb-5", changed(done, generated=(NEAR,))))) == ["OOD images"]
        assert list(panels(drawn("rtb-4", changed(done, generated=(NEAR,))))) == ["id_test", NEAR]


def test_the_page_of_all_figures_is_current():
    from pathlib import Path

    from oodscope.cli.figures_page import page

    told = Path(__file__).parents[2] / "docs" / "figures.md"
    assert told.read_text(encoding="utf-8") == page(), "run: make catalog"
    for name, figure in FIGURES.items():
        assert f"| `{name}` | {figure.number or '–'} | {figure.needs} |" in page()
        picture = told.parent / "images" / "figures" / f"{name}.png"
        assert f"](images/figures/{name}.png)" in page() and 2_000 < picture.stat().st_size < 300_000
