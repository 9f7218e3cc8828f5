"""The road as one call: what is counted, what is equal, what is refused."""

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve
from torch import nn

import oodscope as oods
from oodscope.base.errors import DataError, DetectorError, ModelError, OodscopeError, UnknownNameError
from oodscope.detectors.base import Needs
from oodscope.detectors.registry import DETECTORS
from tests.tiny import TRANSFORM, ForwardCounter, TinyNet, benchmark, classifier, imageset, network, noise

PLAIN = ["msp", "mls", "ebo", "knn", "mds", "vim", "react", "react+msp"]
BOTH = ["standard", "full_spectrum"]


@pytest.fixture
def store(tmp_path):
    return oods.ActivationStore(tmp_path / "activations")


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    store = oods.ActivationStore(tmp_path_factory.mktemp("store"))
    return oods.evaluate(classifier(), benchmark(), PLAIN, BOTH, store=store)


class TestCounted:
    def run(self, store, detectors, **kwargs):
        clf = classifier()
        assert clf.head is not None
        counter = ForwardCounter(clf.model)
        result = oods.evaluate(clf, benchmark(), detectors, BOTH, store=store, **kwargs)
        assert result.record.forward_images == counter.images
        return counter

    @pytest.mark.slow
    def test_one_pass_per_image_for_all_logit_and_feature_detectors(self, store):
        sizes = {images.name: len(images) for _, images in benchmark().members()}
        used = sum(sizes.values()) - sizes["ood_val"]
        assert self.run(store, PLAIN).images == used
        assert self.run(store, PLAIN).images == 0

    def test_logit_scores_alone_need_no_training_images(self, store):
        sizes = {images.name: len(images) for _, images in benchmark().members()}
        tested = sum(sizes[name] for name in ("id_test", "static", "snow", "rain", "dim"))
        assert self.run(store, ["msp", "ebo"]).images == tested

    def test_a_probe_adds_exactly_its_declared_passes(self, store):
        sizes = {images.name: len(images) for _, images in benchmark().members()}
        tested = sum(sizes[name] for name in ("id_test", "static", "snow", "rain", "dim"))
        probe = oods.create_detector("odin").probes[0]
        counter = self.run(store, ["msp", "odin"])
        assert "recorded forward" in probe.forwards  # its outputs are those of the plain pass, which is not made again
        assert counter.images == tested * len(probe.forwards)
        assert counter.backwards == tested * len(probe.backwards)

    def test_passes_per_image_stand_in_every_row_and_below_the_table(self, store):
        result = oods.evaluate(classifier(), benchmark(), ["msp", "odin"], store=store, intervals="none")
        passes = {row.detector: row.passes for row in result.measurements if row.detector}
        # the recorded forward pass is the plain one; a backward pass counts as two; then the perturbed images
        assert passes == {"msp": 1, "odin": 1 + 2 + 1}
        assert any("per image (a backward pass counts as two): odin 4; the others 1" in n for n in result.table().notes)

    def test_a_search_sees_validation_images_only(self, store):
        """With test images that nobody can read, the search still runs to its end."""
        counter = self.run(store, ["knn", "react", "odin"], tune="ood_val")
        sizes = {images.name: len(images) for _, images in benchmark().members()}
        tested = sum(sizes[name] for name in ("id_test", "static", "snow", "rain", "dim"))
        # odin: eight settings on validation images, one on test images; the pass that records serves as the plain one
        validation = (sizes["id_val"] + sizes["ood_val"]) * (1 + 8)
        assert counter.images == sizes["id_train"] + validation + tested * (1 + 1)


class TestNumbers:
    """Against scikit-learn, from the score table alone."""

    @pytest.mark.slow
    @pytest.mark.parametrize("protocol", BOTH)
    @pytest.mark.parametrize("detector", PLAIN)
    def test_every_metric_of_every_set(self, result, protocol, detector):
        frame = result.scores.frame
        negative = frame["role"].isin(["id_test"] if protocol == "standard" else ["id_test", "csid"])
        rows = result.measurements.filter(protocol=protocol, detector=detector)
        for name, group in (("static", "near"), ("snow", "near"), ("rain", "far")):
            chosen = frame[negative | (frame["set"] == name)]
            truth, scores = (chosen["set"] == name).to_numpy(int), chosen[detector].to_numpy()
            fpr, tpr, _ = roc_curve(truth, scores, drop_intermediate=False)
            fpr_id, tpr_id, _ = roc_curve(1 - truth, -scores, drop_intermediate=False)
            expected = {
                "auroc": roc_auc_score(truth, scores),
                "aupr_out": average_precision_score(truth, scores),
                "aupr_in": average_precision_score(1 - truth, -scores),
                "fpr95_ood_positive": fpr[np.argmax(tpr >= 0.95)],
                "fpr95_id_positive": fpr_id[np.argmax(tpr_id >= 0.95)],
                "tpr5_ood_positive": tpr[fpr <= 0.05].max(),
                "tpr5_id_positive": tpr_id[fpr_id <= 0.05].max(),
            }
            for metric, value in expected.items():
                (row,) = rows.filter(set=name, metric=metric)
                assert row.value == pytest.approx(value, abs=1e-12), metric
                assert row.group == group
                assert row.low <= row.value <= row.high or metric != "auroc"
                assert row.n_id == int(negative.sum())
                assert row.n_ood == int(truth.sum())

    def test_group_means(self, result):
        rows = result.measurements.filter(protocol="standard", detector="msp", group="near", metric="auroc")
        by_set = {row.set: row for row in rows}
        assert by_set["mean"].value == pytest.approx((by_set["static"].value + by_set["snow"].value) / 2)
        assert by_set["mean"].n_ood == 90
        assert by_set["mean"].interval == "delong-logit"

    def test_accuracy_per_set_and_pooled(self, result):
        frame = result.scores.frame
        right = frame["label"] == frame["prediction"]
        rows = {row.set: row for row in result.measurements.filter(protocol="full_spectrum", metric="accuracy")}
        assert set(rows) == {"id_test", "dim", "pooled"}
        assert rows["dim"].value == right[frame["set"] == "dim"].mean()
        assert rows["pooled"].value == right[frame["role"].isin(["id_test", "csid"])].mean()
        assert rows["pooled"].low < rows["pooled"].value < rows["pooled"].high

    def test_outliers_keep_their_own_classes(self, result):
        snow = result.scores.frame[result.scores.frame["set"] == "snow"]
        assert set(snow["label"]) == {-1}
        assert set(snow["own_class"]) == {0, 1, 2}
        assert result.scores.context.classes["snow"] == ["a", "b", "c"]

    def test_numbers_can_be_recomputed_from_the_saved_scores(self, result, tmp_path):
        from oodscope.protocols.registry import create_protocol

        loaded = oods.Result.load(result.save(tmp_path / "run"))
        again = create_protocol("standard").measurements(loaded.scores) + create_protocol("full_spectrum").measurements(
            loaded.scores
        )
        assert again == result.measurements


class TestReproducible:
    @pytest.mark.slow
    def test_two_runs_are_bit_equal(self, tmp_path):
        runs = [
            oods.evaluate(classifier(), benchmark(), [*PLAIN, "odin"], store=oods.ActivationStore(tmp_path / str(n)))
            for n in range(2)
        ]
        first, second = (run.scores.frame for run in runs)
        assert first.equals(second)
        first, second = (run.to_dataframe()[["set", "metric", "value", "low", "high"]] for run in runs)
        assert first.equals(second)

    @pytest.mark.slow
    def test_batch_size_changes_next_to_nothing(self, tmp_path):
        runs = [
            oods.evaluate(
                classifier(), benchmark(2), PLAIN, batch_size=size, store=oods.ActivationStore(tmp_path / str(size))
            )
            for size in (1, 37, 256)
        ]
        for other in runs[1:]:
            for detector in PLAIN:
                one, two = runs[0].scores.scores(detector), other.scores.scores(detector)
                assert np.abs(one - two).max() <= 1e-4 * one.std(), detector
            for a, b in zip(runs[0].measurements, other.measurements):
                assert (a.detector, a.set, a.metric) == (b.detector, b.set, b.metric)
                smallest = min(n for n in (a.n_id, a.n_ood or a.n_id))
                limit = 2 / smallest if a.metric.startswith(("fpr", "tpr")) else 1e-4
                assert abs(a.value - b.value) <= limit, a


class TestTuning:
    def test_the_choice_is_recorded_in_every_row(self, store):
        result = oods.evaluate(classifier(), benchmark(3), ["knn", "msp"], tune="ood_val", store=store)
        (params,) = {row.params["k"] for row in result.measurements.filter(detector="knn")}
        assert params in (50, 100)  # of the grid, what lies below the 150 images of each class
        assert {row.tuning for row in result.measurements if row.detector} == {"ood_val"}
        described = result.scores.context.detectors["knn"]
        assert described.grid_size == 2
        assert 0 <= described.validation_auroc <= 1

    def test_without_validation_outliers_it_is_refused(self, store):
        with pytest.raises(DataError, match="has no ood_val; search with outliers made from id_val: tune='id_only'"):
            oods.evaluate(classifier(), benchmark(ood_val=None), ["knn"], tune="ood_val", store=store)

    def test_outliers_made_from_known_images_need_no_ood_val(self, store):
        result = oods.evaluate(classifier(), benchmark(ood_val=None), ["knn", "odin"], tune="id_only", store=store)
        assert {row.tuning for row in result.measurements if row.detector} == {"id_only"}
        described = result.scores.context.detectors
        assert described["odin"].grid_size == 8
        assert described["odin"].tuning == "id_only"

    def test_no_id_val_no_search(self, store):
        with pytest.raises(DataError, match="has no id_val; without it parameters cannot be searched"):
            oods.evaluate(classifier(), benchmark(id_val=None), ["knn"], tune="id_only", store=store)

    def test_an_unknown_track_is_named(self, store):
        with pytest.raises(UnknownNameError, match="unknown tuning track 'ood-val'. Did you mean 'ood_val'"):
            oods.evaluate(classifier(), benchmark(), ["knn"], tune="ood-val", store=store)


class Averaging(nn.Module):
    """Two heads, averaged: the logits are no linear layer."""

    def __init__(self):
        super().__init__()
        self.one, self.two = TinyNet(), TinyNet()

    def forward(self, x):
        return torch.maximum(self.one(x), self.two(x))


class TestApplies:
    @pytest.mark.slow
    def test_all_means_all_that_apply_and_names_the_rest(self, store):
        clf = oods.Classifier(Averaging(), TRANSFORM, device="cpu")
        result = oods.evaluate(clf, benchmark(), "all", store=store)
        skipped = result.record.skipped
        assert {"ebo", "mls", "msp", "odin", "rankfeat"} <= set(result.scores.detectors)
        assert {"knn", "mds", "react", "vim"} <= set(skipped)
        assert all("linear head" in skipped[name] for name in ("knn", "mds", "react", "vim"))
        assert sorted([*skipped, *result.scores.detectors]) == DETECTORS.names()

    def test_a_named_detector_that_does_not_apply_is_an_error(self, store):
        clf = oods.Classifier(Averaging(), TRANSFORM, device="cpu")
        with pytest.raises(DetectorError, match="knn: needs the features before a linear head, and none was found"):
            oods.evaluate(clf, benchmark(), ["msp", "knn"], store=store)

    @pytest.mark.slow
    def test_without_training_images(self, store):
        result = oods.evaluate(classifier(), benchmark(id_train=None), "all", store=store)
        skipped = result.record.skipped
        assert "needs in-distribution training images (id_train)" in skipped["knn"]
        assert "several networks that vote" in skipped["mutual_information"]
        assert {"msp", "react", "klm", "temp_scaling"} <= set(result.scores.detectors)

    def test_a_plain_module_uses_the_benchmarks_transform(self, store):
        assert oods.evaluate(network(), benchmark(), "msp", store=store).record.model == "TinyNet"

    def test_own_detector_objects(self, store):
        knn = oods.create_detector("knn", k=3)
        result = oods.evaluate(classifier(), benchmark(), [knn, "knn"], store=store)
        assert result.scores.detectors == ["knn(k=3)", "knn"]

    def test_a_detector_of_a_users_own(self, store):
        class Norm(oods.Detector):
            name = "norm"
            needs = Needs.FEATURES

            def _score(self, batch):
                return -batch.features.norm(dim=1)

        assert oods.evaluate(classifier(), benchmark(), [Norm()], store=store).scores.detectors == ["norm"]


class TestRefused:
    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"detectors": ["knnn"]}, UnknownNameError, "unknown detector 'knnn'. Did you mean 'knn'"),
            ({"detectors": []}, DetectorError, "no detector given"),
            ({"detectors": ["msp", "msp"]}, DetectorError, "msp: asked for twice"),
            ({"protocols": ["standrad"]}, UnknownNameError, "unknown protocol 'standrad'. Did you mean 'standard'"),
            ({"protocols": []}, OodscopeError, "no protocol given"),
        ],
    )
    def test_arguments(self, store, arguments, error, message):
        with pytest.raises(error, match=message):
            oods.evaluate(classifier(), benchmark(), store=store, **{"detectors": ["msp"], **arguments})

    def test_full_spectrum_without_shifted_images(self, store):
        with pytest.raises(DataError, match="full_spectrum needs a csid set"):
            oods.evaluate(classifier(), benchmark(csid=()), "msp", "full_spectrum", store=store)

    def test_nothing_to_tell_from(self, store):
        with pytest.raises(DataError, match="at least one near or far set"):
            oods.evaluate(classifier(), benchmark(near=(), far=()), "msp", store=store)

    def test_classifier_of_other_classes(self, store):
        clf = oods.Classifier(network(classes=7), TRANSFORM, device="cpu")
        with pytest.raises(OodscopeError, match="the classifier knows 7 classes, benchmark 'tiny' has 4"):
            oods.evaluate(clf, benchmark(), "msp", store=store)

    def test_nan_from_the_network_names_detector_and_rows(self, store):
        clf = classifier()
        assert clf.head is not None

        def poison(module, args, output):
            if len(output) > 30:
                output = output.clone()
                output[30] = float("nan")
            return output

        clf.model.register_forward_hook(poison)
        with pytest.raises(DetectorError, match=r"^ebo: logits are NaN or infinite in 1 of 80 rows \(30\)"):
            oods.evaluate(clf, benchmark(), "ebo", store=store)

    def test_cuda_that_is_not_there(self):
        if torch.cuda.is_available():
            pytest.skip("there is a CUDA device here")
        with pytest.raises(ModelError, match="cuda"):
            classifier(device="cuda")

    def test_a_leak_is_fatal(self, store):
        with pytest.raises(DataError, match="also in 'id_val'"):
            oods.evaluate(classifier(), benchmark(id_val=imageset("id_val", 80, 3)), "msp", store=store)

    def test_duplicates_are_noted(self, store):
        bench = benchmark(near=(noise("static", 50, 4), noise("snow", 40, 4)))
        notes = oods.evaluate(classifier(), bench, "msp", store=store).record.notes
        assert [note for note in notes if not note.startswith("alarm: ")] == ["40 images of static occur in snow too"]
