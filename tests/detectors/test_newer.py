"""What the newer detectors' papers prove of them, and what they refuse."""

import numpy as np
import pytest
import scipy.stats
import torch
from sklearn.covariance import ledoit_wolf

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.detectors.registry import create_detector
from tests.detectors.worlds import activations, world


def scores(name, train, val, test, **params):
    detector = create_detector(name, **params)
    return detector.fit(activations(train), activations(val)).score(activations(test)).numpy()


class TestLogitGap:
    def test_all_other_classes_give_the_gap_to_the_mean(self):
        _, _, test = world()
        z = test["logits"]
        theirs = -5 / 4 * (z.max(axis=1) - z.mean(axis=1))
        assert np.allclose(create_detector("logitgap", top=4).score(activations(test)), theirs, rtol=1e-12)

    def test_a_shift_changes_nothing_and_a_scale_goes_through(self):
        logits = torch.randn(50, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        detector = create_detector("logitgap", top=3)
        plain = detector.of_logits(logits)
        assert torch.allclose(detector.of_logits(logits + 7.5), plain, rtol=1e-9)
        assert torch.allclose(detector.of_logits(2.5 * logits), 2.5 * plain, rtol=1e-12)

    def test_its_grid_ends_with_the_classes(self):
        train = activations(world(classes=60)[0])
        space = [point["top"] for point in create_detector("logitgap").search_space(train)]
        assert space == [1, 3, 5, 6, 10, 20, 59]
        assert [p["top"] for p in create_detector("logitgap").search_space(activations(world()[0]))] == [1, 3, 4]

    def test_top_must_be_there(self):
        with pytest.raises(DetectorError, match="logitgap: top must be at least 1, not 0"):
            create_detector("logitgap", top=0).score(activations(world()[2]))


class TestRAS:
    @pytest.mark.parametrize("change", [np.exp, np.sqrt, lambda h: 3 * h - 2, lambda h: h**3])
    def test_any_strictly_increasing_map_of_the_features_changes_nothing(self, change):
        train, val, test = world()
        detector = create_detector("ras").fit(activations(train), activations(val))
        moved = activations({**test, "features": change(test["features"])})
        assert detector.score(moved).equal(detector.score(activations(test)))

    def test_among_equal_features_the_earlier_is_the_smaller(self):
        train, val, test = world(width=3)
        detector = create_detector("ras").fit(activations(train), activations(val))
        flat = {**test, "features": np.ones_like(test["features"])}
        rising = {**test, "features": np.ones_like(test["features"]) * np.arange(3)}
        assert detector.score(activations(flat)).equal(detector.score(activations(rising)))

    def test_magnitudes_keep_their_signs(self):
        train, val, test = world()
        signed = [{**part, "features": part["features"] - 1.5} for part in (train, val, test)]
        by_value, by_size = (scores("ras", *signed, by=by) for by in ("value", "magnitude"))
        assert not np.allclose(by_value, by_size)

    def test_combines_with_a_logit_score(self):
        assert (scores("ras+msp", *world()) <= 1).all()

    def test_orders_have_names(self):
        with pytest.raises(DetectorError, match="ras: by must be one of value, magnitude, not 'size'"):
            scores("ras", *world(), by="size")


class TestORA:
    def triangles(self, train, test):
        """Angles at the centre and at the foot point of each boundary, from the points themselves."""
        w, centre = train["weight"], train["features"].mean(axis=0)
        for h, z in zip(test["features"], test["logits"]):
            top, rows = int(np.argmax(z)), []
            for c in range(len(z)):
                if c != top:
                    across = w[top] - w[c]
                    foot = h - (z[top] - z[c]) * across / (across @ across)
                    rows.append([sine(h - centre, foot - centre), sine(h - foot, centre - foot)])
            yield np.array(rows)

    def test_fdbd_is_the_mean_ratio_of_sines(self):
        train, val, test = world()
        found = [np.mean(rows[:, 0] / rows[:, 1]) for rows in self.triangles(train, test)]
        # fdbd sums over the four boundaries
        assert np.allclose(scores("fdbd", train, val, test), -4 * np.array(found), rtol=1e-5)

    def test_angles_are_those_of_the_triangles(self):
        train, val, test = world()
        sines = [rows[:, 0] for rows in self.triangles(train, test)]
        ours = -np.pi * scores("ora", train, val, test)
        assert all(np.abs(np.sin(angle) - own).min() < 1e-6 for angle, own in zip(ours, sines))

    def test_reductions_have_names(self):
        with pytest.raises(DetectorError, match="ora: reduce must be one of max, mean, not 'min'"):
            scores("ora", *world(), reduce="min")


def sine(a, b):
    cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    return np.sqrt(max(0.0, 1 - cosine**2))


class TestCORE:
    def test_what_the_head_does_not_read_leaves_the_energy_alone(self):
        """A vector across the head's rows and all mean residuals shortens the cosine and does nothing else."""
        train, val, test = world(width=20)
        detector = create_detector("core").fit(activations(train), activations(val))
        rows = torch.cat([detector.read_, detector.usual_])
        across = torch.linalg.svd(rows, full_matrices=True)[2][-1].numpy()
        assert np.abs(rows.numpy() @ across).max() < 1e-12
        moved = {**test, "features": test["features"] + 2 * across}
        ours, later = (detector._terms(activations(part)) for part in (test, moved))
        lengths = [detector._residual(torch.tensor(part["features"])).norm(dim=1) for part in (test, moved)]
        assert torch.allclose(later[:, 0], ours[:, 0], rtol=1e-12)
        assert torch.allclose(later[:, 1] * lengths[1], ours[:, 1] * lengths[0], rtol=1e-5)

    def test_a_head_that_reads_everything_is_refused(self):
        with pytest.raises(DetectorError, match="core: the head of 20 classes reads all 12 features"):
            scores("core", *world(classes=20))


class TestGROOD:
    def test_the_gradient_is_that_of_the_cross_entropy(self):
        train, val, test = world()
        detector = create_detector("grood").fit(activations(train), activations(val))
        features = torch.tensor(test["features"])
        for target in range(5):
            outlier = detector.outlier_.clone().requires_grad_()
            distances = torch.stack([(features - p).norm(dim=1) for p in [*detector.means_, outlier]], dim=1)
            loss = torch.nn.functional.cross_entropy(-distances, torch.full((len(features),), target), reduction="none")
            rows = [torch.autograd.grad(each, outlier, retain_graph=True)[0] for each in loss[:20]]
            theirs = torch.stack(rows)
            ours = detector._gradient(activations(test))[:20]
            # the gradient points from the prototype to the image, or back: the same distances
            assert torch.allclose(ours, theirs, rtol=1e-5, atol=1e-9) or torch.allclose(
                ours, -theirs, rtol=1e-5, atol=1e-9
            )

    def test_validation_outliers_must_be_there(self):
        train, val, test = (activations(rows) for rows in world())
        detector = create_detector("grood", prototype="ood_val")
        with pytest.raises(DetectorError, match="grood: prototype=ood_val needs validation outliers"):
            detector.fit(train, val)
        detector.fit(train, val, ood_val=test)
        assert torch.allclose(detector.outlier_, test.features.double().mean(dim=0), rtol=1e-6)


class TestCFOOD:
    def test_the_grid_from_one_fit_equals_one_by_one(self):
        train, val, test = (activations(rows) for rows in world())
        detector = create_detector("cfood")
        space = detector.search_space(train)
        for point, found in zip(space, detector.score_grid(space, train, val, [val, test]), strict=True):
            alone = create_detector("cfood", **point).fit(train, val)
            assert all(ours.equal(alone.score(part)) for ours, part in zip(found, (val, test)))

    def test_references_have_a_limit(self, monkeypatch):
        monkeypatch.setattr("oodscope.detectors.methods.cfood.REFERENCES", 12)
        assert len(create_detector("cfood").fit(activations(world()[0])).bank_) == 12

    @pytest.mark.parametrize("params", [{"quantile": 0}, {"quantile": 1.5}, {"bank_fraction": 0}, {"bank_fraction": 2}])
    def test_parameters_that_make_no_sense(self, params):
        with pytest.raises(DetectorError, match=rf"cfood: {next(iter(params))} must lie in \(0, 1\]"):
            scores("cfood", *world(), **params)


class TestMahalanobis:
    @pytest.mark.parametrize(("beta", "name"), [(0, "mds"), (1, "mahalanobis_pp")])
    def test_its_ends_are_the_two_published_detectors(self, beta, name):
        worlds = world()
        assert np.allclose(scores("mahalanobis", *worlds, beta=beta), scores(name, *worlds), rtol=1e-9)

    def test_neither_logits_nor_labels_are_needed_without_classes(self):
        train, _, test = world()
        known, new = (Activations(features=rows["features"].astype(np.float32)) for rows in (train, test))
        assert torch.isfinite(create_detector("maha_free").fit(known).score(new)).all()

    def test_few_images_are_shrunk_as_ledoit_and_wolf_do(self):
        train, val, test = world(n=60)
        shrunk, _ = ledoit_wolf(train["features"])
        offsets = test["features"] - train["features"].mean(axis=0)
        theirs = np.einsum("ni,ij,nj->n", offsets, np.linalg.inv(shrunk), offsets)
        assert np.allclose(scores("maha_free", train, val, test, beta=0.0), theirs, rtol=1e-6)


class TestAverage:
    def test_a_members_scale_does_not_count(self):
        """Ten times the temperature is the same order of images with other numbers."""
        train, val, test = world()
        both = scores("average", train, val, test, members="mls,knn")
        detector = create_detector("average", members="mls,knn").fit(activations(train), activations(val))
        detector.held_out_[0] *= 10
        detector.spread_[0] *= 10
        scaled = {**test, "logits": 10 * test["logits"]}
        assert np.allclose(detector.score(activations(scaled)).numpy(), both, rtol=1e-5)

    def test_needs_what_its_members_need(self):
        detector = create_detector("average", members="vim,gram")
        members = create_detector("vim").needs | create_detector("gram").needs
        assert detector.needs & members == members
        assert detector.probes == create_detector("gram").probes
        assert detector.id == "average(members=vim,gram)"

    @pytest.mark.parametrize("members", ["", "knn", "average,knn"])
    def test_members_that_make_no_sense(self, members):
        with pytest.raises(DetectorError, match="average: members must be two detectors or more"):
            scores("average", *world(), members=members)

    def test_without_held_out_images_it_warns(self, caplog):
        create_detector("average").fit(activations(world()[0]))
        assert "no held-out images" in caplog.text


class TestActSub:
    def test_the_parts_make_the_whole(self):
        worlds = world()
        energy, nearness = (-scores("actsub", *worlds, part=part) for part in ("decisive", "insignificant"))
        floor = create_detector("actsub").fit(activations(worlds[0])).floor_
        assert np.allclose(scores("actsub", *worlds, power=1.5), -(energy - floor) * nearness**1.5, rtol=1e-9)

    def test_what_no_class_reads_leaves_the_energy_alone(self):
        """A vector across the decisive axes moves the other part only."""
        train, val, test = world(width=20)
        detector = create_detector("actsub", part="decisive").fit(activations(train), activations(val))
        across = torch.linalg.svd(detector.axes_.T, full_matrices=True)[2][-1].numpy()
        moved = {**test, "features": test["features"] + 3 * across}
        assert torch.allclose(detector.score(activations(moved)), detector.score(activations(test)), rtol=1e-5)

    def test_the_grid_from_one_fit_equals_one_by_one(self):
        train, val, test = (activations(rows) for rows in world())
        detector = create_detector("actsub")
        space = detector.search_space(train)
        for point, found in zip(space, detector.score_grid(space, train, val, [val, test]), strict=True):
            alone = create_detector("actsub", **point).fit(train, val)
            assert all(torch.allclose(ours, alone.score(part)) for ours, part in zip(found, (val, test)))

    def test_negative_energies_do_not_turn_the_order_around(self):
        train, val, test = world()
        low = [{**part, "bias": part["bias"] - 1e4} for part in (train, val, test)]
        assert np.corrcoef(scores("actsub", *low), scores("actsub", *low, part="insignificant"))[0, 1] > 0


class TestCombOOD:
    def test_exponents_are_those_of_the_largest_likelihood(self):
        train, _, _ = world()
        found = create_detector("combood").fit(activations(train)).exponents_
        trials = np.linspace(-5, 5, 201)
        likelihood = [scipy.stats.yeojohnson_llf(power, train["features"][:, 3]) for power in trials]
        assert float(found[3]) == pytest.approx(trials[int(np.argmax(likelihood))], abs=0.06)

    def test_training_images_have_mean_zero(self):
        train, val, _ = world()
        assert abs(scores("combood", train, val, train).mean()) < 1e-4


class TestLayers:
    def maps(self, rows, detector):
        return activations(rows, detector.probes)

    def test_one_stage_ranks_as_the_detector_itself(self):
        train, val, test = world()
        detector = create_detector("layers", stages="1")
        found = detector.fit(self.maps(train, detector), self.maps(val, detector)).score(self.maps(test, detector))
        stage = [{**rows, "features": rows["maps"][:, 1]} for rows in (train, val, test)]
        assert np.array_equal(found.numpy().argsort(), scores("knn", *stage).argsort())

    def test_fisher_is_at_most_what_all_last_ranks_give(self):
        train, val, test = world()
        detector = create_detector("layers", detector="mds", aggregate="fisher")
        detector.fit(self.maps(train, detector), self.maps(val, detector))
        far = {**test, "maps": 50 * test["maps"]}
        most = -2 * 3 * np.log(1 / (len(val["labels"]) + 1))
        assert np.allclose(detector.score(self.maps(far, detector)).numpy(), most)

    @pytest.mark.parametrize(
        ("params", "message"),
        [
            ({"detector": "vim"}, "layers: vim needs more than features"),
            ({"stages": "0,7"}, "layers: stages must be 'all' or numbers from 0 to 2"),
            ({"aggregate": "sum"}, "layers: aggregate must be one of mean, fisher, max"),
        ],
    )
    def test_parameters_that_make_no_sense(self, params, message):
        train, val, _ = world()
        with pytest.raises(DetectorError, match=message):
            detector = create_detector("layers", **params)
            detector.fit(self.maps(train, detector), self.maps(val, detector))


class TestROSS:
    def test_a_shift_of_the_confidence_shifts_the_score(self):
        train, val, test = world()
        detector = create_detector("ross")
        shifted = [{**rows, "noisy": rows["noisy"] + 2.0} for rows in (val, test)]
        plain, moved = (
            create_detector("ross")
            .fit(None, activations(known, detector.probes))
            .score(activations(new, detector.probes))
            for known, new in ((val, test), shifted)
        )
        assert torch.allclose(moved, plain + 2, rtol=1e-5)

    def test_below_the_threshold_it_is_the_median(self):
        train, val, test = world()
        detector = create_detector("ross", quantile=1.0).fit(None, activations(val, create_detector("ross").probes))
        low = {**test, "noisy": test["noisy"] + 5}
        found = detector.score(activations(low, detector.probes)).numpy()
        assert np.allclose(found, np.median(low["noisy"], axis=1), rtol=1e-6)


class TestMFS:
    def test_all_features_are_the_detector_itself(self):
        train, val, test = world()
        detector = create_detector("mfs", share=1.0)
        detector.fit(activations(train, detector.probes), activations(val, detector.probes))
        assert np.allclose(detector.score(activations(test)).numpy(), scores("mahalanobis_pp", train, val, test))

    def test_the_feature_that_mixtures_move_is_kept(self):
        train, val, _ = world()
        mixed = np.repeat(val["features"][:, None], 3, axis=1)
        mixed[:, :, 7] += 5
        detector = create_detector("mfs", detector="knn", share=0.01)
        rows = {**val, "mixed": mixed}
        detector.fit(activations(train), activations(rows, detector.probes))
        assert detector.kept_.tolist() == [7]
        assert detector.probes == ()

    def test_without_mixtures_it_says_so(self):
        train, val, _ = world()
        with pytest.raises(DetectorError, match=r"mfs: needs mixed_features\(seed=0\) of held-out images"):
            create_detector("mfs").fit(activations(train), activations(val))


def test_copies_need_a_score_of_logits():
    with pytest.raises(DetectorError, match="pro: detector must be a score of logits"):
        create_detector("pro", detector="knn").of_logits(torch.zeros(2, 3))
    with pytest.raises(DetectorError, match="cover: corruptions must be names"):
        create_detector("cover", corruptions="gaussian_nose").probes  # noqa: B018


def test_unverified_forms_are_marked():
    unverified = {"core", "mahalanobis", "maha_free", "mm_pp", "cover"}
    others = {"logitgap", "grood", "ora", "actsub", "mfs", "combood", "layers", "pro", "ross"}
    assert {name for name in unverified | others if create_detector(name).unverified_form} == unverified
