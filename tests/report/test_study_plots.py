"""What the plots of attacks, cross-validations and generated sets show is what those hold."""

import json

import numpy as np
import pandas as pd
import pytest

import oodscope as oods
from oodscope.base.errors import DataError
from oodscope.deploy.function_scorer import FunctionScorer
from oodscope.report.render.plotly import plotly_json
from oodscope.runs.attack.figures import (
    auroc_against_budget,
    found_parameters,
    lowest_against_budget,
    transfer_matrix,
)
from oodscope.runs.crossval.figures import average_ranks, convergence, estimates, variance_bars
from oodscope.runs.crossval.study import study_metric
from oodscope.runs.generated.figures import (
    confusion,
    information_histograms,
    orders_of_detectors,
    radar,
    reliability_of_network,
)
from oodscope.runs.generated.run import RELIABILITY, GeneratedStudy
from oodscope.runs.generated.sanity import SetCheck
from tests.generation.toys import Shift
from tests.report.test_plot import EVIL
from tests.report.test_score_plots import EXACT, lines, read
from tests.runs.crossval.crossval_factory import make_table
from tests.runs.generated.generated_world import NEAR, SHIFTED, study
from tests.tiny import benchmark


@pytest.fixture(scope="module")
def attack():
    bench = benchmark()
    scorers = {
        EVIL: FunctionScorer(lambda images: images.mean(dim=(1, 2, 3))),
        "std": FunctionScorer(lambda images: images.std(dim=(1, 2, 3))),
    }
    return oods.attack(scorers, bench.id_val, bench.id_test, bench.far[0], {"shift": Shift()}, budget=8, chains=15)


class TestAttack:
    def test_budgets_rise_and_values_are_those_measured(self, attack):
        drawn = lines(auroc_against_budget(attack, "shift", ["std", EVIL]))
        rows = attack.result.measurements.filter(protocol="attack_budget", metric="auroc", group="shift")
        for trace, detector, place in zip(drawn, ["std", EVIL], range(2)):
            own = {int(row.set): row.value for row in rows.filter(detector=detector)}
            assert trace["x"] == sorted(own)
            assert trace["y"] == pytest.approx([own[budget] for budget in sorted(own)], **EXACT)
            assert trace["meta"]["colour"] == place

    def test_lowest_scores_are_those_measured(self, attack):
        drawn = lines(lowest_against_budget(attack, "shift", ["std"]))
        rows = attack.result.measurements.filter(protocol="attack_budget", metric="lowest_score", group="shift")
        own = {int(row.set): row.value for row in rows.filter(detector="std")}
        (trace,) = drawn
        assert dict(zip(trace["x"], trace["y"])) == pytest.approx(own, **EXACT)

    def test_a_detector_keeps_the_position_of_the_page(self, attack):
        places = {"std": 7, EVIL: 3}
        for figure in (
            auroc_against_budget(attack, "shift", ["std", EVIL], places),
            *found_parameters(attack, "shift", ["std", EVIL], places),
        ):
            assert [trace["meta"]["colour"] for trace in lines(figure)] == [7, 3]

    def test_rows_judge_and_columns_were_attacked(self, attack):
        (heat,) = read(transfer_matrix(attack, "shift"))["data"]
        rows = attack.result.measurements.filter(protocol="attack_transfer", group="shift")
        names = attack.detectors
        for i, judge in enumerate(names):
            for j, against in enumerate(names):
                (row,) = rows.filter(detector=judge, set=against)
                assert heat["z"][i][j] == pytest.approx(row.value, **EXACT)
        assert heat["z"][0][1] != heat["z"][1][0]

    def test_found_parameters_are_counted(self, attack):
        (figure,) = found_parameters(attack, "shift")
        found = {name: attack.search(name, "shift").found[:, 0].astype(np.float64) for name in attack.detectors}
        together = np.concatenate(list(found.values()))
        edges = np.linspace(together.min(), together.max(), 25)
        for trace, values in zip(lines(figure), found.values()):
            counts, _ = np.histogram(values, bins=edges)
            assert trace["y"][1:-1] == pytest.approx(counts / len(values), **EXACT)
        assert figure.title == "shift: brightness"

    def test_hostile_names_stay_text(self, attack):
        for figure in (auroc_against_budget(attack, "shift"), transfer_matrix(attack, "shift")):
            assert "<" not in plotly_json(figure)
            assert "&lt;script&gt;" in json.dumps(read(figure))


class TestCrossValidation:
    def test_the_running_mean_ends_at_the_truth(self):
        table = make_table(metrics=("auroc",), hold_outs=30, pairs=3, repetitions=2)
        area, *curves = lines(convergence(study_metric(table, "auroc")))
        values = table.hold_outs("auroc").mean(axis=2)
        assert [trace["name"] for trace in curves] == table.detectors
        for column, trace in enumerate(curves):
            for n, y in zip(trace["x"], trace["y"]):
                expected = 100 * (values[:n, column].mean() - values[:, column].mean())
                assert y == pytest.approx(expected, abs=1e-3 * np.ptp(trace["y"]))
            assert trace["x"][0] == 1
            assert trace["x"][-1] == 30
        half = len(area["x"]) // 2
        assert area["x"][half - 1] == 30
        spread = max(np.std(values[:, column], ddof=1) for column in range(values.shape[1]))
        assert area["y"][half - 1] == pytest.approx(200 * spread / np.sqrt(30), rel=1e-2)

    def test_one_hold_out_does_not_settle(self):
        table = make_table(metrics=("auroc",), hold_outs=1, pairs=2, repetitions=1)
        with pytest.raises(DataError, match="2 complete hold-outs or more"):
            convergence(study_metric(table, "auroc"))

    @pytest.mark.parametrize("hold_outs", [5, 0])
    def test_the_matrix_holds_every_estimate_and_rank(self, hold_outs):
        table = make_table(metrics=("auroc",), hold_outs=hold_outs, pairs=3, repetitions=2)
        (heat,) = read(estimates(study_metric(table, "auroc")))["data"]
        values = table.hold_outs("auroc").mean(axis=0) if hold_outs else table.folds("auroc").mean(axis=(0, 1))
        assert np.array(heat["z"]) == pytest.approx(values.T, **EXACT)
        assert heat["x"] == table.detectors
        assert heat["y"] == [str(cell) for cell in table.cells]
        for cell in range(values.shape[1]):
            order = sorted(range(len(values)), key=lambda row: -values[row, cell])
            assert [heat["customdata"][cell][row][0] for row in order] == list(range(1, len(values) + 1))

    def test_ranks_are_drawn_where_they_are(self):
        study = study_metric(make_table(metrics=("auroc",), hold_outs=30), "auroc")
        data = read(average_ranks(study))["data"]
        found = study.ranks()
        drops = [trace["x"][0] for trace in data if len(trace["x"]) == 3]
        assert sorted(drops) == pytest.approx(sorted(found.average_ranks), **EXACT)
        bars = [trace["x"] for trace in data if trace.get("line", {}).get("width") == 4]
        joined = [(found.average_ranks[g[0]] - 0.05, found.average_ranks[g[-1]] + 0.05) for g in found.groups]
        assert np.array(bars) == pytest.approx(np.array(joined), **EXACT)
        words = data[-1]["text"]
        assert f"CD {found.difference:.2f}" in words
        for name, rank in zip(study.detectors, found.average_ranks):
            assert any(name in text and f"{rank:.2f}" in text for text in words)
            assert f"{name} {rank:.2f}" in average_ranks(study).caption

    def test_bars_share_out_the_variance(self):
        frame = pd.DataFrame(
            {
                "detector": ["msp", "msp", "knn"],
                "id_sample": [1.0, 3.0, 0.0],
                "ood_classes": [2.0, 2.0, -1.0],
                "interaction": [0.0, 0.0, 0.0],
                "training_seed": [0.0, 0.0, 0.0],
            }
        )
        data = read(variance_bars("auroc", frame))["data"]
        assert [trace["x"] for trace in data] == [[0.5, 0], [0.5, 0], [0, 0], [0, 0]]
        assert data[0]["y"] == ["msp (sd 200.00)", "knn (sd 0.00)"]


@pytest.fixture(scope="module")
def done():
    return study()


class TestGenerated:
    def test_reliability_is_that_of_the_bins(self, done):
        network = done.networks[0]
        bins = done.result(network).scores.context.extra[RELIABILITY]
        errors = done.calibration()
        drawn = {trace["name"]: trace for trace in lines(reliability_of_network(done, network))}
        assert len(drawn) == len(bins)
        for name, own in bins.items():
            trace = drawn[f"{name} (ECE {100 * errors[network, name].value:.1f})"]
            filled = [bin for bin, count in enumerate(own["count"]) if count]
            assert trace["customdata"] == [own["count"][bin] for bin in filled]
            assert trace["x"] == pytest.approx([own["confidence"][bin] for bin in filled], **EXACT)
            assert trace["y"] == pytest.approx([own["accuracy"][bin] for bin in filled], **EXACT)

    def test_information_is_counted_under_judges_and_makers(self, done):
        judges, makers = information_histograms(done)
        for figure, field in ((judges, "information"), (makers, "made_information")):
            drawn = {trace["name"]: trace for trace in lines(figure)}
            assert {NEAR, SHIFTED, "id_test"} <= set(drawn)
            assert "dim" not in drawn  # real shifted sets would crowd it
            for each in done.sanity.sets:
                if each.name in drawn:
                    counts = np.array(getattr(each, field))
                    assert drawn[each.name]["y"][1:-1] == pytest.approx(counts / counts.sum(), **EXACT)
        kept = next(trace for trace in lines(makers) if trace["name"] == "kept")
        assert [min(kept["x"]), max(kept["x"])] == pytest.approx(list(done.sanity.window), **EXACT)
        assert "kept" not in [trace["name"] for trace in lines(judges)]

    def test_what_is_not_known_is_not_drawn(self, done):
        bare = [each.model_copy(update={"frechet": None, "made_information": ()}) for each in done.sanity.sets]
        sanity = done.sanity.model_copy(update={"sets": tuple(bare)})
        blank = GeneratedStudy(done.results, sanity, {})
        assert [figure.name for figure in information_histograms(blank)] == ["information-judges"]

    def test_a_confusion_matrix_is_read_row_by_row(self):
        check = SetCheck(name="some", role="near", n=4, confusion=((3, 1), (0, 0)))
        (heat,) = read(confusion(check, ["cat", EVIL]))["data"]
        assert heat["z"] == [[0.75, 0.25], [0, 0]]
        assert heat["y"][0] == "cat" and "<" not in heat["x"][1]
        assert heat["hovertemplate"].startswith("%{y} taken for %{x}: %{z:.1%}")
        assert "75.0 % keep their class" in confusion(check, ["cat", EVIL]).caption

    def test_a_radar_shows_order_not_height(self, done):
        low, high = [0.5, 0.6, 0.7], [0.9, 0.95, 1.0]
        *_, first, second = radar(["a", "b", "c"], {"x": low, "y": high}, [])
        assert first.x == pytest.approx(second.x)
        *_, flat = radar(["a", "b", "c"], {"x": [0.8] * 3}, [])
        assert np.hypot(flat.x, flat.y) == pytest.approx([0.6] * 4)
        network = done.networks[0]
        drawn = [t for t in lines(orders_of_detectors(done, network, [NEAR, *done.real])) if t["mode"] != "text"]
        assert [trace["name"] for trace in drawn] == [NEAR, *done.real]
