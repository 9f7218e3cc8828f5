"""What the plots of scores show is what slow and independent computations find."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score, roc_curve

from oodscope.base.errors import UnknownNameError
from oodscope.document.figure import Points
from oodscope.protocols.human_centric.figures import der_curves, risk_coverage
from oodscope.report.render.plotly import plotly_json
from oodscope.results.measurement import Measurements
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.evaluation.figures.cost import cost_against_quality, pareto_front
from oodscope.runs.evaluation.figures.disagreement import rank_correlations, verdict_differences
from oodscope.runs.evaluation.figures.separation import roc_of_detector, roc_of_set, score_histograms
from tests.report.test_plot import EVIL
from tests.results.factory import DETECTORS, SETS, make_result, make_scores

EXACT = {"rel": 1e-3, "abs": 1e-4}  # of the four digits that a figure keeps


@pytest.fixture(scope="module")
def scores():
    return make_scores()


def read(figure):
    return json.loads(plotly_json(figure))


def lines(figure):
    return [trace for trace in read(figure)["data"] if trace.get("showlegend", True)]


def of(scores, detector, name):
    return scores.frame.loc[scores.frame["set"] == name, detector].to_numpy()


def furthest(x, y, drawn_x, drawn_y):
    """Pixels from the point of a curve that lies furthest from a drawn line to that line."""
    points = np.stack([540 * x, 366 * y], axis=1)[:, None]
    ends = np.stack([540 * drawn_x, 366 * drawn_y], axis=1)
    start, along = ends[:-1], np.diff(ends, axis=0)
    share = ((points - start) * along).sum(-1) / np.maximum((along**2).sum(-1), 1e-12)
    nearest = start + np.clip(share, 0, 1)[..., None] * along
    return np.linalg.norm(points - nearest, axis=-1).min(axis=1).max()


def away(fpr, tpr, trace, n_id):
    """Pixels between an ROC curve and what is drawn of it, with a linear and with a logarithmic axis."""
    least = 0.5 / n_id
    drawn = np.array(trace["x"]), np.array(trace["y"])
    logarithms = [1 - np.log(np.maximum(x, least)) / np.log(least) for x in (fpr, drawn[0])]
    return furthest(fpr, tpr, *drawn), furthest(logarithms[0], tpr, logarithms[1], drawn[1])


def truth(known, foreign):
    return np.append(np.zeros(len(known)), np.ones(len(foreign))), np.append(known, foreign)


class TestRoc:
    @pytest.mark.parametrize("shifted", [False, True])
    def test_its_points_lie_on_the_curve_of_scikit_learn(self, scores, shifted):
        known = [of(scores, "gen", name) for name in ("id_test", *(["unseen_fonts", "corrupted"] if shifted else []))]
        drawn = lines(roc_of_detector(scores, "gen", shifted=shifted))
        foreign = [name for name, (role, _) in SETS.items() if role in ("near", "far")]
        assert len(drawn) == len(foreign)
        for trace, name in zip(drawn, foreign):
            labels, values = truth(np.concatenate(known), of(scores, "gen", name))
            fpr, tpr, _ = roc_curve(labels, values, drop_intermediate=False)
            assert trace["name"] == f"{name} ({100 * roc_auc_score(labels, values):.1f})"
            assert (trace["x"][0], trace["y"][0], trace["x"][-1], trace["y"][-1]) == (0, 0, 1, 1)
            assert len(trace["x"]) <= 200
            for x, y in zip(trace["x"], trace["y"]):
                assert (np.abs(fpr - x) + np.abs(tpr - y)).min() < 1.1e-4
            # a single image of these small sets moves the curve by more than a pixel
            linear, logarithmic = away(fpr, tpr, trace, sum(map(len, known)))
            assert linear < 1.2
            assert logarithmic < 1.5

    @pytest.mark.parametrize("shift", [0.3, 2.0])
    def test_what_is_left_out_of_a_large_sample_is_less_than_a_pixel(self, shift):
        rng = np.random.default_rng(0)
        scores = make_scores()
        frame = pd.concat([scores.frame] * 6, ignore_index=True)
        frame["unit"] = np.repeat(np.arange(6), len(scores.frame)).astype(str)
        frame["msp"] = rng.normal(size=len(frame)) + shift * (frame["set"] == "held_out")
        (trace, *_) = lines(roc_of_detector(ScoreTable(frame, scores.context), "msp"))
        known, foreign = (frame.loc[frame["set"] == name, "msp"] for name in ("id_test", "held_out"))
        fpr, tpr, _ = roc_curve(*truth(known, foreign), drop_intermediate=False)
        assert max(away(fpr, tpr, trace, len(known))) < 0.85
        assert len(trace["x"]) <= 200

    def test_all_detectors_on_one_set_best_first(self, scores):
        drawn = lines(roc_of_set(scores, "held_out", ["mds", "vim", "msp"]))
        sides = {name: (of(scores, name, "id_test"), of(scores, name, "held_out")) for name in ("mds", "vim", "msp")}
        areas = {name: roc_auc_score(*truth(*both)) for name, both in sides.items()}
        order = sorted(areas, key=lambda name: -areas[name])
        assert [trace["name"] for trace in drawn] == [f"{name} ({100 * areas[name]:.1f})" for name in order]
        places = {trace["name"].split()[0]: trace["meta"]["colour"] for trace in drawn}
        assert places == {"mds": 0, "vim": 1, "msp": 2}

    def test_a_logarithmic_axis_is_offered_down_to_half_an_image(self, scores):
        meta = read(roc_of_detector(scores, "msp"))["layout"]["meta"]
        assert meta["log_axis"] == "x"
        assert meta["log_range"] == pytest.approx([np.log10(0.5 / 700), 0], **EXACT)
        (near, *_) = lines(roc_of_detector(scores, "msp"))
        positive = [x for x in near["x"] if x > 0]
        assert min(positive) == pytest.approx(1 / 700, abs=2 / 700)  # the left end is not thinned away


class TestHistograms:
    def test_counts_are_those_of_numpy(self, scores):
        figure = score_histograms(scores, "ebo")
        drawn = lines(figure)
        everything = [of(scores, "ebo", name) for name in SETS]
        low = min(np.quantile(sample, 0.005) for sample in everything)
        high = max(np.quantile(sample, 0.995) for sample in everything)
        edges = np.linspace(low, high, 41)
        order = ["id_test", *(n for role in ("near", "far", "csid") for n, (r, _) in SETS.items() if r == role)]
        assert [trace["name"] for trace in drawn] == ["ID", *order[1:]]
        assert [trace["meta"]["colour"] for trace in drawn] == ["id", *range(len(order) - 1)]
        for trace, name in zip(drawn, order):
            counts, _ = np.histogram(np.clip(of(scores, "ebo", name), low, high), bins=edges)
            assert trace["y"][1:-1] == pytest.approx(counts / counts.sum(), **EXACT)
            assert trace["x"][1:-1] == pytest.approx((edges[1:] + edges[:-1]) / 2, rel=1e-3, abs=1e-3)
            assert [trace["x"][0], trace["x"][-1]] == pytest.approx([low, high], rel=1e-3)
            assert sum(trace["y"][1:-1]) == pytest.approx(1, abs=2e-3)


def slow_selection(values, right):
    """(coverage, risk, der, threshold) when the images below each threshold are kept."""
    found = []
    for threshold in [*np.unique(values), np.inf]:
        kept = values < threshold
        wrong = int((kept & ~right).sum())
        der = (wrong + int((~kept & right).sum())) / len(values)
        found.append((kept.mean(), wrong / max(1, kept.sum()), der, threshold))
    return np.array(found)


class TestSelection:
    @pytest.mark.parametrize("name", ["held_out", "corrupted"])
    def test_risk_and_error_at_every_threshold(self, scores, name):
        chosen = scores.frame["set"].isin([name, "id_test"] if name == "held_out" else [name]).to_numpy()
        frame = scores.frame[chosen]
        right = ((frame["label"] >= 0) & (frame["label"] == frame["prediction"])).to_numpy()
        slow = slow_selection(frame["knn"].to_numpy(), right)
        (risk,) = lines(risk_coverage(scores, name, ["knn"]))
        for x, y in zip(risk["x"], risk["y"]):
            assert np.abs(slow[1:, :2] - [x, y]).max(axis=1).min() < 2e-4
        mean = np.mean([slow[i, 1] for i in range(1, len(slow))])  # no ties: one image more at each step
        assert risk["name"] == f"knn ({100 * mean:.2f})"
        (der,) = lines(der_curves(scores, name, ["knn"]))
        assert der["name"] == f"knn ({100 * slow[:, 2].min():.2f})"
        for x, y, threshold in zip(der["x"], der["y"], der["customdata"]):
            nearest = np.abs(slow[:, [0, 2]] - [x, y]).max(axis=1).argmin()
            assert np.abs(slow[nearest, [0, 2]] - [x, y]).max() < 2e-4
            if np.isfinite(slow[nearest, 3]):
                assert threshold == pytest.approx(slow[nearest, 3], abs=1e-3)

    def test_no_curve_lies_below_the_dotted_line(self, scores):
        figure = read(der_curves(scores, "held_out"))
        *curves, ideal = figure["data"]
        for curve in curves:
            assert (np.array(curve["y"]) >= np.interp(curve["x"], ideal["x"], ideal["y"]) - 2e-4).all()

    def test_a_stranger_is_named(self, scores):
        with pytest.raises(UnknownNameError, match="held_out"):
            risk_coverage(scores, "held_oud")


class TestDisagreement:
    def test_correlations_are_those_of_scipy(self, scores):
        figure = read(rank_correlations(scores, ["msp", "mds", "knn"]))
        tested = scores.frame["role"].isin(["id_test", "near", "far"])
        (heat,) = figure["data"]
        assert heat["x"] == heat["y"] == ["msp", "mds", "knn"]
        expected = spearmanr(scores.frame.loc[tested, ["msp", "mds", "knn"]]).statistic
        assert np.array(heat["z"]) == pytest.approx(expected, **EXACT)

    def test_who_orders_nothing_has_no_correlation(self, scores):
        frame = scores.frame.assign(msp=1.0)
        (heat,) = read(rank_correlations(ScoreTable(frame, scores.context), ["msp", "knn"]))["data"]
        assert heat["z"] == [[None, None], [None, 1]]

    @pytest.mark.parametrize("tied", [False, True])
    def test_verdicts_are_counted_one_by_one(self, scores, tied):
        chosen = ["msp", "mds", "vim"]
        if tied:  # many images lie exactly at the threshold, and are rejected together
            scores = ScoreTable(scores.frame.assign(**scores.frame[chosen].round(0)), scores.context)
        (heat,) = read(verdict_differences(scores, chosen))["data"]
        limits = {d: np.quantile(of(scores, d, "id_test"), 0.95) for d in chosen}
        for i, first in enumerate(chosen):
            for j, second in enumerate(chosen):
                differ = {"id": [], "ood": []}
                for row in scores.frame[["role", first, second]].itertuples(index=False):
                    if row[0] in ("id_test", "near", "far"):
                        verdicts = row[1] >= limits[first], row[2 if i != j else 1] >= limits[second]
                        differ["id" if row[0] == "id_test" else "ood"].append(verdicts[0] != verdicts[1])
                assert heat["z"][i][j] == pytest.approx(np.mean(differ["id"] + differ["ood"]), **EXACT)
                parts = [np.mean(differ["id"]), np.mean(differ["ood"])]
                assert heat["customdata"][i][j] == pytest.approx(parts, **EXACT)


points = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=12)


class TestCost:
    @settings(max_examples=60, deadline=None)
    @given(points, st.booleans())
    def test_the_front_is_what_brute_force_finds(self, places, up):
        sign = 1 if up else -1

        def beaten(a, b):
            return b[0] <= a[0] and sign * b[1] >= sign * a[1] and a != b

        front = pareto_front([(float(c), float(q)) for c, q in places], higher_is_better=up)
        assert sorted(front) == [n for n, a in enumerate(places) if not any(beaten(a, b) for b in places)]
        assert [places[n][0] for n in front] == sorted(places[n][0] for n in front)

    def test_further_passes_stand_behind_all_arithmetic(self):
        """0.1: ODIN was among the cheapest, because its passes through the network were left out."""
        result = make_result()
        described = dict(result.scores.context.detectors)
        described["msp"] = described["msp"].model_copy(update={"extra_forwards": 2, "extra_backwards": 1})
        scores = ScoreTable(result.scores.frame, result.scores.context.model_copy(update={"detectors": described}))
        costs = {"msp": 0.4}
        rows = [replace(row, microseconds_per_image=costs.get(row.detector, 9.0)) for row in result.measurements]
        result = replace(result, measurements=Measurements(rows), scores=scores)
        drawn = cost_against_quality(result, "standard", "near")
        places = {mark.name: mark.x[0] for mark in drawn.marks if isinstance(mark, Points)}
        assert places.pop("msp") > max(places.values())
        assert [text for _, text in drawn.x.ticks] == ["1", "10", "+4 passes"]
        assert "further passes" in drawn.caption

    def test_each_detector_stands_at_its_cost_and_value(self):
        result = make_result()
        cost = {name: 10 * strength**4 for name, (strength, *_) in DETECTORS.items() if name != "gen"}
        rows = [replace(row, microseconds_per_image=cost.get(row.detector)) for row in result.measurements]
        result = replace(result, measurements=Measurements(rows))
        figure = read(cost_against_quality(result, "standard", "near"))
        front, *markers = figure["data"]
        measured = result.measurements.filter(protocol="standard", group="near", set="mean", metric="auroc")
        found = {trace["name"]: trace for trace in markers}
        assert set(found) == {row.detector for row in measured} - {"gen"}
        for row in measured:
            if row.detector != "gen":
                trace = found[row.detector]
                assert [*trace["x"], *trace["y"]] == pytest.approx([row.microseconds_per_image, row.value], **EXACT)
                ends = [trace["error_y"]["array"][0], trace["error_y"]["arrayminus"][0]]
                assert ends == pytest.approx([row.high - row.value, row.value - row.low], rel=2e-3)
        assert front["x"] == sorted(front["x"])
        assert front["y"] == sorted(front["y"])
        assert max(front["y"]) == pytest.approx(max(trace["y"][0] for trace in markers), **EXACT)
        assert "further up is better" in cost_against_quality(result, "standard", "near").caption
        lower = cost_against_quality(result, "standard", "near", "fpr95_id_positive")
        assert "further down is better" in lower.caption
        falling = read(lower)["data"][0]["y"]
        assert falling == sorted(falling, reverse=True)


def test_hostile_names_stay_text():
    scores = make_scores()
    frame = scores.frame.rename(columns={"knn": EVIL}).astype({"set": str})
    frame["set"] = frame["set"].replace("held_out", EVIL)
    described = {(EVIL if name == "knn" else name): about for name, about in scores.context.detectors.items()}
    table = ScoreTable(frame, {"detectors": described})
    figures = [
        roc_of_detector(table, EVIL),
        roc_of_set(table, EVIL),
        score_histograms(table, EVIL),
        risk_coverage(table, EVIL),
        der_curves(table, EVIL),
        rank_correlations(table),
        verdict_differences(table),
    ]
    assert len({figure.name for figure in figures}) == len(figures)
    for figure in figures:
        content = read(figure)
        for text in strings(content):
            assert "<script" not in text
            assert "<a " not in text
        for trace in content["data"]:
            assert "alert" not in trace.get("hovertemplate", "")


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from strings(each)
