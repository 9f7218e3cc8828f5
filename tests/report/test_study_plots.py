"""What the plots of attacks, cross-validations and generated sets show is what those hold."""

import json

import numpy as np
import pytest

import oodscope as oods
from oodscope.base.errors import DataError
from oodscope.report.plots.budget import auroc_against_budget
from oodscope.report.plots.convergence import convergence
from oodscope.report.plots.crossval_matrix import crossval_matrix
from oodscope.report.plots.found_parameters import found_parameters
from oodscope.report.plots.frechet import frechet_bars
from oodscope.report.plots.information import information_histograms
from oodscope.report.plots.reliability import reliability_diagram
from oodscope.report.plots.transfer import transfer_matrix
from oodscope.runs.generated.run import RELIABILITY, GeneratedStudy
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
        EVIL: oods.FunctionScorer(lambda images: images.mean(dim=(1, 2, 3))),
        "std": oods.FunctionScorer(lambda images: images.std(dim=(1, 2, 3))),
    }
    return oods.attack(scorers, bench.id_val, bench.id_test, bench.far[0], {"shift": Shift()}, budget=8, chains=15)


class TestAttack:
    def test_budgets_rise_and_values_are_those_measured(self, attack):
        drawn = lines(auroc_against_budget(attack, "shift", ["std", EVIL]))
        rows = attack.result.measurements.filter(protocol="adversarial_budget", metric="auroc", group="shift")
        for trace, detector, place in zip(drawn, ["std", EVIL], range(2)):
            own = {int(row.set): row.value for row in rows.filter(detector=detector)}
            assert trace["x"] == sorted(own)
            assert trace["y"] == pytest.approx([own[budget] for budget in sorted(own)], **EXACT)
            assert trace["meta"]["colour"] == place

    def test_rows_judge_and_columns_were_attacked(self, attack):
        (heat,) = read(transfer_matrix(attack, "shift"))["data"]
        rows = attack.result.measurements.filter(protocol="adversarial_transfer", group="shift")
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
            assert "<" not in figure.json()
            assert "&lt;script&gt;" in json.dumps(read(figure))


class TestCrossValidation:
    def test_the_running_mean_ends_at_the_truth(self):
        table = make_table(metrics=("auroc",), hold_outs=30, pairs=3, repetitions=2)
        area, *curves = lines(convergence(table))
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
        with pytest.raises(DataError, match="at least 2 complete hold-outs"):
            convergence(table)

    @pytest.mark.parametrize("hold_outs", [5, 0])
    def test_the_matrix_holds_every_estimate_and_rank(self, hold_outs):
        table = make_table(metrics=("auroc",), hold_outs=hold_outs, pairs=3, repetitions=2)
        (heat,) = read(crossval_matrix(table))["data"]
        values = table.hold_outs("auroc").mean(axis=0) if hold_outs else table.folds("auroc").mean(axis=(0, 1))
        assert np.array(heat["z"]) == pytest.approx(values.T, **EXACT)
        assert heat["x"] == table.detectors
        assert heat["y"] == [str(cell) for cell in table.cells]
        for cell in range(values.shape[1]):
            order = sorted(range(len(values)), key=lambda row: -values[row, cell])
            assert [heat["customdata"][cell][row] for row in order] == list(range(1, len(values) + 1))


@pytest.fixture(scope="module")
def done():
    return study()


class TestGenerated:
    def test_reliability_is_that_of_the_bins(self, done):
        network = done.networks[0]
        bins = done.result(network).scores.context.extra[RELIABILITY]
        errors = done.calibration()
        drawn = {trace["name"]: trace for trace in lines(reliability_diagram(done, network))}
        assert len(drawn) == len(bins)
        for name, own in bins.items():
            trace = drawn[f"{name} (ECE {100 * errors[network, name].value:.1f})"]
            filled = [bin for bin, count in enumerate(own["count"]) if count]
            assert trace["customdata"] == [own["count"][bin] for bin in filled]
            assert trace["x"] == pytest.approx([own["confidence"][bin] for bin in filled], **EXACT)
            assert trace["y"] == pytest.approx([own["accuracy"][bin] for bin in filled], **EXACT)

    def test_bars_are_the_distances_nearest_first(self, done):
        figure = read(frechet_bars(done))
        found = {name: (x, trace["name"]) for trace in figure["data"] for name, x in zip(trace["y"], trace["x"])}
        for each in done.sanity.sets:
            kind = "generated" if each.name in done.sanity.generated else "real"
            assert found[each.name] == (pytest.approx(each.frechet, **EXACT), kind)
        order = figure["layout"]["yaxis"]["categoryarray"]
        assert [found[name][0] for name in order] == sorted(found[name][0] for name in order)

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
        assert frechet_bars(blank) is None
        assert [figure.name for figure in information_histograms(blank)] == ["information-judges"]
