"""Human-centric evaluation: every row from the score table, by hand; what is scored; what is refused."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import oodscope as oods
from oodscope.base.errors import DataError
from oodscope.metrics.rejection.rate_intervals import order_statistics_interval
from oodscope.metrics.rejection.rejection import Rejection
from oodscope.metrics.rejection.threshold import ThresholdSample
from oodscope.metrics.resampling.bootstrap import percentile_interval
from oodscope.metrics.resampling.resampling import bootstrap
from oodscope.protocols.human_centric.figures import der_over_share
from oodscope.protocols.human_centric.protocol import HumanCentric, Prices
from oodscope.protocols.registry import create_protocol, stored_protocol
from oodscope.results.scoretable import ScoreTable
from tests.metrics.rejection import slow_rejection as slow
from tests.tiny import benchmark, classifier, imageset

DETECTORS = ["msp", "knn"]
OOD_ROLES, KNOWN = ["static", "snow", "rain"], ["id_test", "dim"]
SOURCES = {"val_correct": "id_val", "train_correct": "id_train", "train_all": "id_train"}
PRICES = Prices(false_rejection=1, false_acceptance=10)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return oods.ActivationStore(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def result(store):
    both = ["standard", HumanCentric(costs=PRICES)]
    return oods.evaluate(classifier(), benchmark(), DETECTORS, both, store=store)


def sample(result, detector, *names):
    """Scores of some sets, and whether the prediction is right."""
    frame = result.scores.frame
    part = frame[frame["set"].isin(names)]
    return part[detector].tolist(), ((part["label"] == part["prediction"]) & (part["label"] >= 0)).tolist()


def value(result, detector, metric, name, **more):
    (row,) = result.measurements.filter(protocol="human_centric", detector=detector, metric=metric, set=name, **more)
    assert row.low is None or row.low <= row.high
    return row.value


def gamma(result, detector, source, keep):
    scores, correct = sample(result, detector, SOURCES[source])
    chosen = [-s for s, right in zip(scores, correct) if right or source == "train_all"]
    return -slow.quantile(chosen, (100 - keep, 100))


@pytest.mark.parametrize("keep", [95, 99])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("detector", DETECTORS)
class TestAtThresholds:
    @pytest.mark.slow
    def test_every_rate_of_every_set(self, result, detector, source, keep):
        limit = gamma(result, detector, source, keep)
        for name in OOD_ROLES + KNOWN:
            scores, correct = sample(result, detector, name)
            kept_right, lost, wrongly_kept, rejected = slow.decisions(scores, correct, limit)
            n = len(scores)
            assert value(result, detector, f"der{keep}_{source}", name) == (lost + wrongly_kept) / n
            assert value(result, detector, f"far{keep}_{source}", name) == wrongly_kept / (wrongly_kept + rejected)
            assert value(result, detector, f"cost{keep}_{source}", name) == (lost + 10 * wrongly_kept) / n
            if name in KNOWN:
                assert value(result, detector, f"frr{keep}_{source}", name) == lost / (lost + kept_right)

    def test_means_are_unweighted_and_of_whole_groups(self, result, detector, source, keep):
        metric = f"der{keep}_{source}"
        each = {name: value(result, detector, metric, name) for name in OOD_ROLES + KNOWN}
        for group, names in {"all": OOD_ROLES + KNOWN, "label_shift": OOD_ROLES, "input_shift": KNOWN}.items():
            mean = value(result, detector, metric, "mean", group=group)
            assert mean == pytest.approx(np.mean([each[name] for name in names]))
        rejected = result.measurements.filter(detector=detector, metric=f"frr{keep}_{source}", set="mean")
        assert [row.group for row in rejected] == ["input_shift"]

    def test_threshold_and_tie_mass_are_recorded(self, result, detector, source, keep):
        role = SOURCES[source]
        found = value(result, detector, f"threshold{keep}_{source}", role, group="threshold")
        assert found == pytest.approx(gamma(result, detector, source, keep))
        scores, correct = sample(result, detector, role)
        chosen = np.array(scores)[np.array(correct) | (source == "train_all")]
        assert value(result, detector, f"tied{keep}_{source}", role) == np.mean(chosen == found)


@pytest.mark.parametrize("detector", DETECTORS)
class TestWithoutThreshold:
    def test_a_foreign_set_is_mixed_with_id_test(self, result, detector):
        names = {"augrc": slow.augrc, "aurc": slow.aurc, "e_aurc": slow.e_aurc, "der_oracle": slow.oracle_der}
        for metric, reference in names.items():
            for name in OOD_ROLES + KNOWN:
                mixed = sample(result, detector, *({"id_test", name} if name in OOD_ROLES else {name}))
                assert value(result, detector, metric, name) == pytest.approx(reference(*mixed))

    def test_the_conventional_metrics_twice(self, result, detector):
        scores, correct = sample(result, detector, "id_test")
        for suffix, known in (("", scores), ("_correct_id", [s for s, right in zip(scores, correct) if right])):
            for name in OOD_ROLES:
                foreign, _ = sample(result, detector, name)
                both = known + foreign, [True] * len(known) + [False] * len(foreign)
                assert value(result, detector, f"auroc{suffix}", name) == pytest.approx(slow.auroc_failure(*both))
                limit = sorted(known)[int(np.ceil(0.95 * len(known))) - 1]
                kept = np.mean(np.array(foreign) <= limit)
                assert value(result, detector, f"fpr95_id_positive{suffix}", name) == kept
            groups = result.measurements.filter(protocol="human_centric", detector=detector, set="mean")
            assert groups.filter(metric=f"auroc{suffix}").distinct("group") == ["label_shift"]


class TestBaselines:
    def test_belong_to_the_classifier(self, result):
        for name in OOD_ROLES + KNOWN:
            accuracy = np.mean(sample(result, "msp", name)[1])
            assert value(result, "", "der_accept_all", name) == pytest.approx(1 - accuracy)
            assert value(result, "", "der_reject_all", name) == pytest.approx(accuracy)
        (row,) = result.measurements.filter(metric="der_accept_all", set="id_test")
        assert row.interval == "wilson"

    def test_stand_below_every_table_of_error_rates(self, result):
        told = result.table("human_centric").render("markdown")
        assert "DER95 (val correct) ↓" in told
        assert "Without a detector: accept all" in told
        assert "Without a detector" not in result.table("human_centric", "augrc").render("markdown")


class TestIntervals:
    def test_der_counts_the_noise_of_the_threshold_too(self):
        """Against resampling the threshold sample and the set; an OOD set near the threshold feels it most."""
        rng = np.random.default_rng(0)
        val, known, foreign = rng.normal(size=110), rng.normal(0.2, 1, size=200), rng.normal(1.5, 1, size=600)
        right = rng.random(200) < 0.7
        sets = {"id_val": (val, True), "id_train": (val, True), "id_test": (known, right), "rain": (foreign, False)}
        rows = create_protocol("human_centric").measurements(by_hand(sets)).filter(metric="der95_val_correct")
        replicates = {"id_test": [], "rain": []}
        for _ in range(2000):
            limit = np.quantile(rng.choice(val, 110), 0.95)
            for name, found in replicates.items():
                scores, correct = sets[name][0], np.broadcast_to(sets[name][1], len(sets[name][0]))
                drawn = rng.integers(len(scores), size=len(scores))
                found.append(np.mean((scores[drawn] >= limit) == correct[drawn]))
        for name, found in replicates.items():
            (row,) = rows.filter(set=name)
            expected = percentile_interval(np.array(found))
            assert (row.low, row.high) == pytest.approx((expected.low, expected.high), abs=0.02)
        fixed = 1.96 * np.sqrt(row.value * (1 - row.value) / 600)
        assert row.high - row.low > 2 * (2 * fixed)

    def test_fpr95_has_the_interval_of_the_full_bootstrap(self):
        rng = np.random.default_rng(1)
        known, foreign = rng.normal(size=300), rng.normal(1.5, 1, size=200)
        table = by_hand(
            {"id_val": (known, True), "id_train": (known, True), "id_test": (known, True), "rain": (foreign, False)}
        )
        (row,) = create_protocol("human_centric").measurements(table).filter(metric="fpr95_id_positive", set="rain")
        expected = bootstrap(known, {"rain": foreign}, seed=3).interval("fpr95_id_positive", "rain")
        assert (row.low, row.high) == pytest.approx((expected.low, expected.high), abs=0.03)


def by_hand(sets):
    """A score table of one detector; a set is its scores and what is right in it (far sets: nothing is)."""
    frames = []
    for name, (scores, right) in sets.items():
        role = name if name.startswith("id_") else "far"
        right = np.broadcast_to(right, len(scores))
        frames.append(
            pd.DataFrame(
                {
                    "sample_id": [f"{name}/{i}" for i in range(len(scores))],
                    "set": name,
                    "role": role,
                    "label": 0 if role != "far" else -1,
                    "own_class": 0,
                    "prediction": np.where(right, 0, 1),
                    "unit": "all",
                    "d": np.asarray(scores, dtype=float),
                }
            )
        )
    costs = {"fit_seconds": 0.0, "microseconds_per_image": 0.0, "peak_mib": 0.0}
    about = {"run": "r", "benchmark": "b", "benchmark_version": "1", "model": "m", "seed": 0}
    described = {"name": "d", "params": {}, "tuning": "default", **costs}
    return ScoreTable(pd.concat(frames, ignore_index=True), {"detectors": {"d": described}, **about})


class TestDegenerate:
    def test_equal_scores_reject_everything(self):
        same = {name: (np.zeros(8), True) for name in ("id_val", "id_train", "id_test")} | {
            "rain": (np.zeros(5), False)
        }
        rows = create_protocol("human_centric").measurements(by_hand(same))
        assert [row.value for row in rows.filter(metric="der95_val_correct", set="id_test")] == [1.0]
        assert [row.value for row in rows.filter(metric="der95_val_correct", set="rain")] == [0.0]
        assert [row.value for row in rows.filter(metric="tied95_val_correct")] == [1.0]

    def test_one_image_each(self):
        one = {name: ([0.5], True) for name in ("id_val", "id_train")} | {
            "id_test": ([0.1], True),
            "rain": ([0.9], False),
        }
        rows = create_protocol("human_centric").measurements(by_hand(one))
        assert [row.value for row in rows.filter(metric="der95_val_correct", group="all")] == [0.0]
        # without a wrong image there is no false acceptance to speak of
        assert not rows.filter(metric="far95_val_correct", set="id_test")

    def test_no_correct_training_image(self):
        none = {"id_val": ([0.5], True), "id_train": ([0.1, 0.2], False), "id_test": ([0.1], True)}
        with pytest.raises(DataError, match=r"none of the 2 images of id_train is classified correctly.*train_correct"):
            create_protocol("human_centric").measurements(by_hand(none))

    def test_a_table_without_any_threshold_images(self):
        with pytest.raises(DataError, match="needs scores of id_train or id_val, which set its thresholds"):
            create_protocol("human_centric").measurements(by_hand({"id_test": ([0.1], True)}))

    def test_a_table_without_test_images(self):
        with pytest.raises(DataError, match="needs an id_test set"):
            create_protocol("human_centric").measurements(by_hand({"id_val": ([0.1], True)}))

    def test_a_benchmark_without_threshold_images_is_refused_before_extraction(self, store):
        before = store.forwarded
        with pytest.raises(DataError, match="human_centric needs id_train or id_val: .* 'tiny' has neither"):
            bare = benchmark(id_val=None, id_train=None)
            oods.evaluate(classifier(3), bare, ["msp"], "human_centric", store=store)
        assert store.forwarded == before


class TestSources:
    @pytest.mark.parametrize(("role", "present"), [("id_val", "train_correct"), ("id_train", "val_correct")])
    def test_a_source_that_is_missing_is_left_out_and_named(self, store, role, present, tmp_path):
        """The benchmark of the paper has no ``id_val``; its own rule needs training images alone."""
        result = oods.evaluate(classifier(), benchmark(**{role: None}), ["msp"], "human_centric", store=store)
        measured = {row.metric for row in result.measurements}
        assert f"der95_{present}" in measured
        assert not any(metric.endswith(role.removeprefix("id_") + "_correct") for metric in measured)
        assert any(f"no {role}, so no threshold" in note for note in result.record.notes)
        assert result.table().facts["metric"] == f"der95_{present}"
        assert oods.write_report(result, tmp_path / "report.html").is_file()

    def test_the_packaged_benchmark_of_the_paper_passes_the_check(self):
        from oodscope.base.config import read_yaml
        from oodscope.data.packaged import BENCHMARKS

        roles = set(read_yaml(BENCHMARKS["human-centric"])["sets"])
        assert "id_val" not in roles
        assert roles & set(HumanCentric.roles)

    def test_every_row_at_a_threshold_carries_the_rejected_share_of_correct_images(self, result):
        rows = [row for row in result.measurements if row.metric.startswith(("der95_", "der99_", "far", "frr"))]
        assert rows
        for row in rows:
            suffix = row.metric[3:]
            (realised,) = result.measurements.filter(metric=f"frr{suffix}", set="id_test", detector=row.detector)
            assert row.rejected_correct == realised.value

    def test_a_detector_fitted_on_the_images_of_a_threshold_is_not_ranked_there(self, store):
        result = oods.evaluate(classifier(), benchmark(), ["msp", "klm"], "human_centric", store=store)
        rows = result.measurements.filter(metric="der95_val_correct")
        assert {row.detector for row in rows if row.unranked} == {"klm"}
        assert not any(row.unranked for row in result.measurements.filter(metric="der95_train_correct"))
        table = result.table("human_centric", "der95_val_correct")
        assert table.rows[-1].name == "klm"
        assert not any(number.best for number in table.rows[-1].numbers if number is not None)
        assert any("not ranked (klm: fitted on the images of its threshold" in note for note in table.notes)
        (trial,) = result.trials()
        assert [entry.detector for entry in trial.entries] == ["msp"]


class TestShareOfOutliers:
    def test_the_curve_joins_the_two_rates_and_stands_in_the_report(self, result):
        figure = der_over_share(result.scores, "static", DETECTORS)
        for line, detector in zip(figure.marks, DETECTORS):
            ends = [value(result, detector, "der95_val_correct", name) for name in ("id_test", "static")]
            assert [line.y[0], line.y[-1]] == pytest.approx(ends, abs=1e-3)
            assert line.y[len(line.y) // 2] == pytest.approx(sum(ends) / 2, abs=1e-3)
        drawn = create_protocol("human_centric").figures(result.scores, DETECTORS, {})
        assert [each.name for each in drawn if each.name.startswith("der-share")] == ["der-share-static"]

    def test_without_validation_images_there_is_none(self, store):
        result = oods.evaluate(classifier(), benchmark(id_val=None), ["msp"], "human_centric", store=store)
        drawn = create_protocol("human_centric").figures(result.scores, ["msp"], {})
        assert not any(each.name.startswith("der-share") for each in drawn)


class TestFewImages:
    def test_few_images_behind_a_threshold_widen_its_intervals(self):
        """A bootstrap of 100 images for a 99 % threshold covers 70 % where it promises 95."""
        rng = np.random.default_rng(0)
        truth = norm.cdf(norm.ppf(0.99) - 1.5)
        intervals = []
        for _ in range(300):
            rejection = Rejection(rng.normal(1.5, 1, size=300), np.zeros(300, dtype=bool))
            intervals.append(order_statistics_interval(rejection, ThresholdSample(rng.normal(size=100)), 0.99, "der"))
        assert np.mean([each.low <= truth <= each.high for each in intervals]) > 0.95
        assert np.mean([each.high - each.low for each in intervals]) < 0.6
        sets = {"id_val": (rng.normal(size=100), True), "id_test": (rng.normal(size=50), True)}
        rows = create_protocol("human_centric").measurements(by_hand({**sets, "rain": (rng.normal(size=9), False)}))
        assert {row.interval for row in rows.filter(metric="der99_val_correct")} == {"order-statistics-wilson"}
        assert {row.interval for row in rows.filter(metric="der95_val_correct")} == {"bootstrap-stratified-1000"}

    def test_classes_that_differ_widen_the_interval_over_classes(self):
        rng = np.random.default_rng(1)
        classes = np.repeat(np.arange(10), 40)
        foreign = rng.normal(1.5, 0.5, size=400) + rng.normal(0, 1, size=10)[classes]
        sets = {"id_val": (rng.normal(size=400), True), "id_test": (rng.normal(size=200), True)}
        table = by_hand({**sets, "rain": (foreign, False)})
        frame = table.frame.copy()
        frame.loc[frame["set"] == "rain", "own_class"] = classes
        rows = create_protocol("human_centric").measurements(ScoreTable(frame, table.context))
        (row,) = rows.filter(metric="der95_val_correct", set="rain")
        assert row.class_high - row.class_low > 2 * (row.high - row.low)
        # by hand: t with 9 degrees of freedom around class means, all classes of one size
        kept = foreign < np.quantile(sets["id_val"][0], 0.95)
        means = kept.reshape(10, 40).mean(axis=1)
        assert row.value == pytest.approx(kept.mean())
        plain = 2.262 * means.std(ddof=1) / np.sqrt(10)
        assert (row.class_high - row.class_low) / 2 == pytest.approx(plain, rel=0.15)
        (mean,) = rows.filter(metric="der95_val_correct", group="all")
        assert mean.class_low < mean.value < mean.class_high
        assert rows.filter(metric="der95_val_correct", set="id_test")[0].class_low is None


class TestBesideOtherProtocols:
    def test_standard_and_the_scores_do_not_change(self, result, store):
        alone = oods.evaluate(classifier(), benchmark(), DETECTORS, store=store)
        mine = alone.scores.frame
        both = result.scores.frame[result.scores.frame["set"].isin(OOD_ROLES + KNOWN)].reset_index(drop=True)
        pd.testing.assert_frame_equal(mine[DETECTORS], both[DETECTORS])
        varying = {"run": "", "fit_seconds": 0, "microseconds_per_image": 0, "peak_mib": 0}
        known, new = (
            [dataclasses.replace(row, **varying) for row in each.measurements.filter(protocol="standard")]
            for each in (alone, result)
        )
        assert known == new
        assert "human_centric" not in alone.scores.context.protocols

    def test_the_saved_scores_suffice(self, result, tmp_path):
        result.scores.save(tmp_path / "scores.parquet")
        stored = ScoreTable.load(tmp_path / "scores.parquet")
        again = stored_protocol(stored, "human_centric").measurements(stored)
        assert again == result.measurements.filter(protocol="human_centric")

    def test_the_report_leads_with_it(self, result, tmp_path):
        page = oods.write_report(result, tmp_path / "report.html").read_text()
        assert "DER95 (val correct)" in page
        assert 'data-metric="frr95_train_correct"' in page
        assert 'data-metric="der_accept_all"' not in page


class TestTrainingRows:
    images = imageset("id_train", 202, 1)
    bench = dataclasses.replace(benchmark(), id_train=images)

    def test_a_split_shares_each_class_evenly(self):
        rows = HumanCentric(threshold_split=True).prepare(self.bench, seed=0)
        fitted, scored = set(rows.id_train.rows.tolist()), set(rows.scored_train.rows.tolist())
        assert not fitted & scored
        assert fitted | scored == set(range(202))
        for label, count in zip(*np.unique(self.images.labels, return_counts=True)):
            assert (rows.id_train.labels == label).sum() == -(-count // 2)
        other = HumanCentric(threshold_split=True).prepare(self.bench, seed=1)
        assert set(other.id_train.rows.tolist()) != fitted

    def test_a_limit_draws_a_subset_and_leaves_the_fit_alone(self):
        rows = HumanCentric(train_rows=50).prepare(self.bench, seed=0)
        assert (len(rows.id_train), len(rows.scored_train)) == (202, 50)
        assert len(set(rows.scored_train.rows.tolist())) == 50

    def test_a_limit_scores_fewer_images_with_the_same_detectors(self, store, result):
        options = HumanCentric(train_rows=50)
        few = oods.evaluate(classifier(), benchmark(), ["knn"], options, store=store)
        assert (few.scores.frame["role"] == "id_train").sum() == 50
        assert few.scores.scores("knn", role="near").tolist() == result.scores.scores("knn", role="near").tolist()

    def test_detectors_do_not_meet_the_images_that_set_their_threshold(self, store, result):
        options = HumanCentric(threshold_split=True)
        split = oods.evaluate(classifier(), benchmark(), DETECTORS, options, store=store)
        assert split.scores.context.training_rows == {"fitted": 100, "scored": 100}
        assert "detectors were fitted on 100 images of id_train, thresholds taken from 100 others" in split.record.notes
        assert split.scores.context.protocols["human_centric"]["threshold_split"] is True
        (frame,) = [split.scores.frame.query("role == 'id_train'")]
        whole = result.scores.frame.query("role == 'id_train'").set_index("sample_id")
        assert len(frame) == 100
        # a network's own score is the same; the distance to a bank grows once the image is not in it
        assert frame["msp"].to_numpy() == pytest.approx(whole.loc[frame["sample_id"], "msp"].to_numpy())
        distances = {}
        for name, protocol in (("whole", HumanCentric()), ("split", options)):
            near = oods.create_detector("knn", k=5)
            rows = oods.evaluate(classifier(), benchmark(), [near], protocol, store=store).scores.frame
            distances[name] = rows.query("role == 'id_train'").set_index("sample_id")["knn(k=5)"]
        assert (distances["split"] > distances["whole"].loc[distances["split"].index]).all()
