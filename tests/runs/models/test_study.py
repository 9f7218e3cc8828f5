"""A study: many models side by side, as a table and as figures."""

import numpy as np
import pytest
from PIL import Image

from oodscope.base.errors import DataError
from oodscope.document.figure import Figure
from oodscope.document.wording import span
from oodscope.report.paper.human import conventional_twice, der_against_accuracy, distillation, strategy_heatmap
from oodscope.report.paper.study import write_study_figures
from oodscope.report.paper.style import save_figure
from oodscope.results.measurement import Measurement, Measurements
from oodscope.runs.models.run import Study, StudyMember, StudyModel

SETS = {"label_shift": ("rain", "snow"), "input_shift": ("id_test", "dim")}
SHARED = {"run": "r", "benchmark": "b", "benchmark_version": "1", "model": "m", "protocol": "human_centric"}


def measured(accuracy, base, detectors=("msp", "knn")):
    """Rows of a model; the value on set i of detector j is ``base + j / 10 + i / 100``, twice that for DER99."""
    rows = [Measurement(**SHARED, set="id_test", group="id", metric="accuracy", value=accuracy)]
    for j, detector in enumerate(detectors):
        for factor, metric in ((2, "der99_val_correct"), (1, "der95_val_correct"), (2, "der99_train_correct")):
            values = {}
            for group, names in SETS.items():
                for name in names:
                    values[group, name] = factor * (base + j / 10 + len(values) / 100)
                    rows.append(row(detector, group, name, metric, values[group, name]))
            for group in ("all", *SETS):
                inside = [value for (of, _), value in values.items() if group in ("all", of)]
                rows.append(row(detector, group, "mean", metric, float(np.mean(inside))))
        for metric, value in (("auroc", 0.8), ("auroc_correct_id", 0.9)):
            rows.append(row(detector, "label_shift", "mean", metric, value - j / 10))
        for metric, value in (("fpr95_id_positive", 0.5), ("fpr95_id_positive_correct_id", 0.3)):
            rows.append(row(detector, "label_shift", "mean", metric, value + j / 10))
    return Measurements(rows)


def row(detector, group, name, metric, value):
    ends = {"low": value - 0.01, "high": value + 0.02}
    return Measurement(**SHARED, detector=detector, group=group, set=name, metric=metric, value=value, **ends)


@pytest.fixture
def study():
    return Study(
        [
            StudyMember(StudyModel(name="small", family="A", strategy="plain"), measured(0.7, 0.2)),
            StudyMember(StudyModel(name="large", family="A", strategy="plain"), measured(0.8, 0.1)),
            StudyMember(
                StudyModel(name="taught|x", family="B", strategy="crops", distilled_from="small"), measured(0.75, 0.15)
            ),
        ]
    )


class TestTable:
    def test_the_frame_has_a_row_for_each_model_detector_and_set(self, study):
        rows = study.to_dataframe().to_dict("records")
        assert len(rows) == 3 * 2 * (4 + 3)
        (cell,) = [r for r in rows if (r["model"], r["detector"], r["set"]) == ("large", "knn", "dim")]
        assert float(cell["der95_val_correct"]) == pytest.approx(0.1 + 0.1 + 0.03)
        assert float(cell["der99_val_correct"]) == pytest.approx(2 * 0.23)
        assert (cell["family"], cell["strategy"], float(cell["accuracy"])) == ("A", "plain", 0.8)

    def test_markdown_has_the_cells_of_the_paper(self, study):
        lines = study.table().render("markdown").splitlines()
        assert lines[2].startswith("| model | accuracy | detector | rain DER99 | snow DER99 |")
        (line,) = [each for each in lines if each.startswith("| small | 70.00 | msp |")]
        cells = dict(zip(lines[2].split(" | "), line.split(" | ")))
        assert cells["rain DER99"] == f"40.00 [{span(0.4 - 0.01, 0.4 + 0.02).replace('–', ', ')}]"
        assert cells["rain DER95"].startswith("20.00 [19.0, ")
        assert any(each.startswith("| taught\\|x |") for each in lines)

    def test_values(self, study):
        assert study.detectors == ["msp", "knn"]
        assert study.accuracy("large") == 0.8
        assert study.value("small", "msp", "der95_val_correct") == pytest.approx(0.2 + 0.015)
        assert study.value("small", "msp", "der95_val_correct", "label_shift") == pytest.approx(0.2 + 0.005)


def rated(name, accuracy, frr, far):
    """A model with its rates on ``id_test``."""
    rates = {"frr95": frr, "far95": far, "der95": accuracy * frr + (1 - accuracy) * far}
    known = Measurement(**SHARED, set="id_test", group="id", metric="accuracy", value=accuracy)
    rows = [row("msp", "input_shift", "id_test", f"{kind}_val_correct", value) for kind, value in rates.items()]
    rows.append(row("msp", "all", "mean", "der95_val_correct", rates["der95"]))
    return StudyMember(StudyModel(name=name), Measurements([known, *rows]))


class TestMatchedAccuracy:
    def test_models_that_differ_in_accuracy_alone_are_equal(self):
        """That architecture matters must not follow from how often a model is right."""
        table = Study([rated("weak", 0.6, 0.05, 0.5), rated("strong", 0.9, 0.05, 0.5)]).table("matched")
        values = [line.cells[0].value for line in table.rows]
        assert values == pytest.approx([0.75 * 0.05 + 0.25 * 0.5] * 2)
        assert "msp 13.5 as they are, 0.0 at one accuracy" in table.notes[0]

    def test_better_scores_still_show(self):
        table = Study([rated("one", 0.6, 0.05, 0.5), rated("two", 0.9, 0.05, 0.7)]).table("matched")
        assert table.rows[1].cells[0].value - table.rows[0].cells[0].value == pytest.approx(0.25 * 0.2)

    def test_one_model_or_missing_rates_have_no_such_table(self, study):
        assert "matched" not in Study([rated("one", 0.6, 0.05, 0.5)]).tables()
        assert "matched" not in study.tables()


class TestRefused:
    def test_two_models_of_one_name(self):
        twice = [StudyMember(StudyModel(name="a"), measured(0.5, 0.1))] * 2
        with pytest.raises(DataError, match="two models of the study are called 'a'"):
            Study(twice)

    def test_a_partner_that_is_not_there(self):
        with pytest.raises(DataError, match="b: distilled_from 'a' is not one of the study's models"):
            Study([StudyMember(StudyModel(name="b", distilled_from="a"), Measurements())])

    def test_nothing(self):
        with pytest.raises(DataError, match="at least one model"):
            Study([])

    def test_a_model_without_the_protocol(self):
        study = Study([StudyMember(StudyModel(name="a"), Measurements())])
        with pytest.raises(DataError, match="a: nothing was measured under human_centric"):
            study.to_dataframe()


class TestFigures:
    def test_points_lie_where_the_numbers_are(self, study):
        msp, knn = der_against_accuracy(study).axes
        drawn = {line.get_label(): line.get_xydata().tolist() for line in msp.get_lines()}
        assert drawn["A"] == [pytest.approx([70, 43]), pytest.approx([80, 23])]
        assert drawn["B"] == [pytest.approx([75, 33])]
        assert msp.get_ylim() == knn.get_ylim()

    def test_another_metric_shows_its_own_numbers(self, study):
        panel = strategy_heatmap(study, "der95_val_correct").axes[0]
        assert [text.get_text() for text in panel.texts] == ["16.5", "26.5", "16.5", "26.5"]

    def test_the_chapter_shows_both_rules(self, study):
        names = [block.name for block in study.chapter().blocks if isinstance(block, Figure)]
        shown = [f"accuracy-{detector}-der99-{rule}" for detector in ("msp", "knn") for rule in ("train", "val")]
        assert [name.partition("-correct")[0] for name in names] == shown

    def test_the_heat_map_averages_the_models_of_a_strategy(self, study):
        panel = strategy_heatmap(study).axes[0]
        assert [text.get_text() for text in panel.texts] == ["33.0", "53.0", "33.0", "53.0"]
        assert [label.get_text() for label in panel.get_yticklabels()] == ["plain", "crops"]

    def test_a_pair_is_plain_and_distilled(self, study):
        (panel,) = distillation(study).axes
        plain, distilled = (points.get_offsets()[:, 0].tolist() for points in panel.collections[1:])
        assert plain == pytest.approx([43, 63])
        assert distilled == pytest.approx([33, 53])

    def test_bars_of_the_conventional_metrics(self, study):
        auroc, fpr = conventional_twice(study.members[0].measurements).axes
        assert [bar.get_width() for bar in auroc.patches] == pytest.approx([80, 70, 90, 80])
        assert [bar.get_width() for bar in fpr.patches] == pytest.approx([50, 60, 30, 40])

    @pytest.mark.slow
    def test_files_can_be_opened_and_are_equal_when_drawn_again(self, study, tmp_path):
        paths = save_figure(der_against_accuracy(study), tmp_path / "a" / "figure")
        assert [path.suffix for path in paths] == [".png", ".pdf", ".svg"]
        with Image.open(paths[0]) as image:
            assert min(image.size) > 300
        assert paths[1].read_bytes().startswith(b"%PDF")
        assert b"<svg" in paths[2].read_bytes()
        again = save_figure(der_against_accuracy(study), tmp_path / "b" / "figure")
        assert [path.read_bytes() for path in again] == [path.read_bytes() for path in paths]

    @pytest.mark.slow
    def test_only_what_the_study_has(self, study, tmp_path, monkeypatch):
        unwritten = (
            "oodscope.report.paper.study.save_figure",
            lambda figure, stem: [stem.with_name(f"{stem.name}.png")],
        )
        monkeypatch.setattr(*unwritten)
        names = {path.stem for path in write_study_figures(study, tmp_path)}
        conventional = {"conventional-small", "conventional-large", "conventional-taught-x"}
        rules = ("train-correct", "val-correct")
        each = {f"{name}-{rule}" for name in ("der-against-accuracy", "strategies", "distillation") for rule in rules}
        assert names == {*each, *conventional}
        alone = Study([StudyMember(StudyModel(name="a"), measured(0.5, 0.1))])
        assert {path.stem for path in write_study_figures(alone, tmp_path / "b")} == {
            *(f"der-against-accuracy-{rule}" for rule in rules),
            "conventional-a",
        }
