"""What the newer detectors' papers prove of them, and what they refuse."""

import numpy as np
import pytest
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


def test_unverified_forms_are_marked():
    names = ("core", "mahalanobis", "maha_free", "logitgap", "grood", "ora")
    assert [create_detector(name).unverified_form for name in names] == [True, True, True, False, False, False]
