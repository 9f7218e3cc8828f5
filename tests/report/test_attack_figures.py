"""Figures of evaluation via generation: what is drawn is what the attacks stored; unfit runs are refused."""

import dataclasses

import numpy as np
import pytest
import torch

import oodscope as oods
from oodscope.base.errors import DataError
from oodscope.deploy.function_scorer import FunctionScorer
from oodscope.generation.variations.gan import GanVariation
from oodscope.generation.variations.registry import create_variation
from oodscope.report.paper.figure import FIGURES
from oodscope.report.paper.style import house_style, write_figure
from oodscope.runs.attack.sources import source_order
from tests.generation.toys import Shift
from tests.tiny import benchmark

pytestmark = pytest.mark.slow

EVIL = "$_{$<&"
SCORERS = {
    "mean": FunctionScorer(lambda images: images.mean(dim=(1, 2, 3))),
    "spread": FunctionScorer(lambda images: -images.std(dim=(1, 2, 3))),
    "red": FunctionScorer(lambda images: images[:, 0, :4, :4].mean(dim=(1, 2))),
    EVIL: FunctionScorer(lambda images: images.flatten(1).diff(dim=1).abs().mean(dim=1)),
}
GAN = GanVariation(torch.nn.Sequential(torch.nn.Unflatten(1, (3, 8, 8)), torch.nn.Tanh()), dimension=192)


def run(variations, outliers="near", **options):
    bench = benchmark()
    (source, *_) = getattr(bench, outliers)
    settings = {"budget": 12, "chains": 12, **options}
    return oods.attack(SCORERS, bench.id_val, bench.id_test, source, variations, **settings)


@pytest.fixture(scope="module")
def varied():
    return run({name: create_variation(name, image_shape=(3, 8, 8)) for name in ("affine", "color")}, landscape=True)


@pytest.fixture(scope="module")
def made():
    """By a generator: from the same outliers, and from others."""
    return run({"gan": GAN}), run({"gan": GAN}, "far")


def drawn(name, *attacks):
    figure = FIGURES[name].drawn(attacks)
    with house_style():
        # what matplotlib would refuse only when it draws is refused here
        figure.draw_without_rendering()
    return figure


def panel_of(figure, title):
    (panel,) = (each for each in figure.axes if each.get_title() == title)
    return panel


def pictures(panel):
    """Pictures row by row, each with the words under it."""
    words = {(round(text.get_position()[0] - 0.5, 2), round(text.get_position()[1], 2)): text for text in panel.texts}
    rows = {}
    for image in panel.images:
        left, _, bottom, top = image.get_extent()
        under = words.get((round(left, 2), round(bottom - 0.04, 2)))
        rows.setdefault(top, []).append((left, np.asarray(image.get_array()), under.get_text() if under else ""))
        assert image.get_interpolation() == "nearest"
    return [
        [(image, word) for _, image, word in sorted(row, key=lambda one: one[0])] for _, row in sorted(rows.items())
    ][::-1]


def clean(attack):
    rows = attack.result.measurements.filter(protocol="attack", metric="auroc", group="clean")
    return [detector for _, detector in sorted((-row.value, row.detector) for row in rows)]


def check_row(row, images, ranks):
    assert len(row) >= 3
    for (shown, word), image, rank in zip(row, images, ranks):
        assert (shown == image).all()
        assert word == f"{rank:,}"


class TestPictures:
    def test_the_worst_of_the_three_weakest(self, varied, made):
        figure = drawn("evg-3", varied, *made)
        for attack, title in ((varied, "static, affine"), (varied, "static, color"), (made[1], "rain, gan")):
            outliers, variation = title.split(", ")
            rows = pictures(panel_of(figure, title))
            weak = clean(attack)[::-1][:3]
            assert len(rows) == 3
            for detector, row in zip(weak, rows):
                worst = attack.search(detector, variation).worst
                check_row(row, worst.images, worst.ranks)
        names = [text.get_text() for text in figure.axes[0].texts if not text.get_text().isdigit()]
        assert names == clean(varied)[::-1][:3]

    def test_under_generators_all_detectors_are_shown(self, varied, made):
        figure = drawn("evg-4", varied, *made)
        assert [panel.get_title() for panel in figure.axes] == ["static, gan", "rain, gan"]
        for attack, panel in zip(made, figure.axes):
            for detector, row in zip(clean(attack), pictures(panel), strict=True):
                worst = attack.search(detector, "gan").worst
                check_row(row, worst.images, worst.ranks)

    @pytest.mark.parametrize("name", ["evg-6", "evg-7"])
    def test_the_same_source_images_for_all(self, varied, name):
        figure = drawn(name, varied)
        for variation in ("affine", "color"):
            source, *rows = pictures(panel_of(figure, f"static, {variation}"))
            near = benchmark().near[0]
            outliers = near.images(source_order(near)[:5])
            assert all((shown == image).all() for (shown, _), image in zip(source, outliers, strict=True))
            for detector, row in zip(clean(varied), rows, strict=True):
                kept = varied.search(detector, variation).examples
                check_row(row, kept.images, kept.ranks)


def test_transfer(varied, made):
    figure = drawn("evg-5", varied, made[1])
    for attack, title in ((varied, "static, affine"), (varied, "static, color"), (made[1], "rain, gan")):
        outliers, variation = title.split(", ")
        rows = attack.result.measurements.filter(protocol="attack_transfer", group=variation)
        found = {(row.detector, row.set): row.value for row in rows}
        panel, order = panel_of(figure, title), clean(attack)
        expected = np.array([[found[judge, against] for against in order] for judge in order])
        np.testing.assert_allclose(np.asarray(panel.images[0].get_array()), 100 * expected)
        assert {text.get_text() for text in panel.texts} == {f"{100 * value:.0f}" for value in expected.ravel()}
        assert [label.get_text() for label in panel.get_xticklabels()] == order


class TestSearch:
    def test_curves_are_means_and_their_ranges(self, varied):
        _, right, *_ = drawn("evg-2", varied).axes
        lines = {line.get_label(): line for line in right.lines}
        land = varied.landscape
        for name, label in (("mh", "Metropolis–Hastings"), ("coordinate", "coordinate descent")):
            assert lines[label].get_xdata().tolist() == list(land.budgets)
            assert lines[label].get_ydata() == pytest.approx(land.lowest[name].mean(axis=1))
            drawn_ends = [line.get_ydata() for line in right.lines if line.get_linestyle() == ":"]
            for end in (land.lowest[name].min(axis=1), land.lowest[name].max(axis=1)):
                assert any(np.array_equal(end, line) for line in drawn_ends)
        assert "12 images" in right.get_title()

    def test_paths_begin_at_the_image_and_are_marked_at_their_lowest(self, varied):
        left, *_ = drawn("evg-2", varied).axes
        land = varied.landscape
        shown = [np.column_stack(line.get_data()) for line in left.lines]
        for path in land.paths.values():
            assert any(np.array_equal(path[:, :2], line) for line in shown)
            assert any(np.array_equal(path[[np.argmin(path[:, 2])], :2], line) for line in shown)
        assert (shown[-1] == land.paths["mh"][[0], :2]).all()
        assert (left.get_xlabel(), left.get_ylabel()) == land.coordinates


def test_equal_files(varied, tmp_path):
    first, second = (write_figure(drawn("evg-6", varied), tmp_path / f"{number}.svg") for number in (1, 2))
    assert first.read_bytes() == second.read_bytes()
    assert first.read_text().count("data:image/png") >= 2


def without_examples(attack):
    return dataclasses.replace(
        attack, searches=tuple(dataclasses.replace(each, examples=None) for each in attack.searches)
    )


class TestRefused:
    def refused(self, name, *attacks):
        with pytest.raises(DataError) as error:
            drawn(name, *attacks)
        assert "\n" not in str(error.value)
        return str(error.value)

    @pytest.mark.parametrize("name", ["evg-2", "evg-3", "evg-4", "evg-5", "evg-6"])
    def test_no_attack_at_all(self, name):
        assert self.refused(name).startswith(f"{name}: no attack among these runs. It needs: ")

    def test_what_lacks_something(self, varied, made):
        bare = dataclasses.replace(varied, landscape=None)
        assert "repeat the command of the attack with --landscape" in self.refused("evg-2", bare)
        assert "2 landscapes given, one needed" in self.refused("evg-2", varied, varied)
        assert "attacked with affine, color, and with no generator" in self.refused("evg-4", varied)
        assert "attacked with gan only" in self.refused("evg-6", made[0])
        assert "before images of the same sources were kept" in self.refused("evg-6", without_examples(varied))
        assert "attacks on 2 sets given, one needed: static, rain" in self.refused("evg-6", varied, made[1])
        assert "two attacks on static with affine; give one of them" in self.refused("evg-3", varied, varied)

    def test_what_does_not_belong_together(self, varied):
        bench = benchmark()
        other = oods.attack(
            {"mean": SCORERS["mean"]},
            bench.id_val,
            bench.id_test,
            bench.near[0],
            {"shift": Shift()},
            budget=2,
            chains=4,
        )
        assert "one detector was attacked" in self.refused("evg-5", other)
        foreign = oods.attack(
            {"else": SCORERS["mean"]},
            bench.id_val,
            bench.csid[0],
            bench.near[0],
            {"shift": Shift()},
            budget=2,
            chains=4,
        )
        assert "different ID test images" in self.refused("evg-3", varied, foreign)
