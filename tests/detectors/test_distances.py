"""What is special about detectors that measure distances in feature space."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from sklearn.mixture import GaussianMixture

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.detectors.math.bank import neighbours, picked_rows
from oodscope.detectors.math.neighbors import largest
from oodscope.detectors.methods.opengan import Adam, answer, folded, perceptron
from oodscope.detectors.registry import create_detector
from oodscope.metrics.ranking.ranking import Ranking
from tests.detectors.test_against_twins import WORLDS
from tests.detectors.twins import distances
from tests.detectors.worlds import activations, world

FAMILY = ["mds", "rmds", "mahalanobis_pp", "rmds_pp"]


def fitted_to(train, name, **params):
    return create_detector(name, **params).fit(activations(train))


def state_of(detector):
    """What was learnt, as a twin reads it."""
    return {key[:-1]: value.double().numpy() for key, value in detector._state().items()}


def assert_close(ours, theirs):
    tolerance = 1e-4 * np.maximum(np.abs(theirs), theirs.std())
    assert np.all(np.abs(ours.numpy() - theirs) <= tolerance), np.abs(ours.numpy() - theirs).max()


class TestClassGaussians:
    @pytest.mark.parametrize("name", ["rmds", "mahalanobis_pp", "rmds_pp"])
    def test_a_class_without_images_takes_no_part(self, name):
        train, _, test = world()
        kept = train["labels"] != 3
        partial = {**train, **{key: train[key][kept] for key in ("features", "logits", "labels")}}
        assert_close(fitted_to(partial, name).score(activations(test)), getattr(distances, name)(partial, test))

    @pytest.mark.parametrize("name", ["rmds", "rmds_pp"])
    def test_fewer_images_than_features(self, name):
        """Class means then differ where no class varies, and both pseudo-inverses have their own range."""
        train, _, test = world(n=30, width=40)
        assert_close(fitted_to(train, name).score(activations(test)), getattr(distances, name)(train, test))

    @pytest.mark.parametrize("name", FAMILY)
    def test_a_dead_unit_changes_nothing(self, name):
        train, _, test = world()
        whole = fitted_to(train, name).score(activations(test))

        def widened(rows):
            column = np.zeros((len(rows["features"]), 1))
            return rows | {
                "features": np.hstack([rows["features"], column]),
                "weight": np.hstack([rows["weight"], np.zeros((5, 1))]),
            }

        assert torch.allclose(fitted_to(widened(train), name).score(activations(widened(test))), whole, rtol=1e-6)

    def test_relative_distance_keeps_its_digits_far_out(self):
        """Off the data both distances are of size 1e14, their difference is what class means make of it."""
        train, _, test = world(seed=3)
        values, vectors = np.linalg.eigh(np.cov(train["features"].T))
        far = {**test, "features": test["features"] + 1e5 * np.sqrt(values[0]) * vectors[:, 0]}
        ours = fitted_to(train, "rmds").score(activations(far))
        assert_close(ours, distances.rmds(train, {"features": far["features"].astype(np.float32).astype(float)}))

    @pytest.mark.slow
    def test_more_classes_than_features(self):
        train, _, test = world(classes=1000, width=16, n=4000)
        assert_close(fitted_to(train, "rmds").score(activations(test)), fast_rmds(train, test))

    def test_normalised_moments_are_gathered_once_for_both(self):
        train = activations(world()[0])
        create_detector("mahalanobis_pp").fit(train)
        kept = train.moments(normalised=True)
        create_detector("rmds_pp").fit(train)
        assert train.moments(normalised=True) is kept
        lengths = kept.scatter.trace() + kept.total * kept.mean.square().sum()
        assert float(lengths) == pytest.approx(len(train))
        assert train.moments() is not kept


def fast_rmds(train, test):
    """As the twin, for more classes than it has patience for."""
    h, y, x = train["features"], train["labels"], test["features"]
    means = np.array([h[y == c].mean(axis=0) for c in range(1000)])
    within = distances.pinv(np.einsum("ni,nj->ij", h - means[y], h - means[y]) / len(h))
    overall = distances.pinv(np.cov(h.T, bias=True))
    near = np.min([np.einsum("ni,ij,nj->n", x - m, within, x - m) for m in means], axis=0)
    return near - np.einsum("ni,ij,nj->n", x - h.mean(axis=0), overall, x - h.mean(axis=0))


class TestBanks:
    def train(self, labels):
        return Activations(features=np.eye(len(labels), dtype=np.float32), labels=labels)

    def test_a_balanced_bank_takes_as_many_of_each_class(self):
        labels = np.array([0] * 60 + [1] * 30 + [2] * 10)
        chosen = picked_rows("x", self.train(labels), 0.3, 0, balanced=True).numpy()
        assert np.bincount(labels[chosen]).tolist() == [10, 10, 10]

    def test_a_class_that_runs_out_leaves_its_places_to_others(self):
        labels = np.array([0] * 60 + [1] * 36 + [2] * 4)
        chosen = picked_rows("x", self.train(labels), 0.3, 0, balanced=True).numpy()
        assert np.bincount(labels[chosen]).tolist() == [13, 13, 4]

    def test_the_seed_decides(self):
        train = self.train(np.arange(100) % 5)
        first, again, other = (picked_rows("x", train, 0.2, seed, balanced=True) for seed in (0, 0, 1))
        assert first.equal(again)
        assert not first.equal(other)

    def test_the_default_bank_is_all_rows_up_to_a_limit(self, monkeypatch):
        train = self.train(np.arange(100) % 5)
        assert picked_rows("x", train, None, 0).all()
        monkeypatch.setattr("oodscope.detectors.math.bank.BANK_ROWS", 40)
        assert int(picked_rows("x", train, None, 0).sum()) == 40

    def test_never_empty(self):
        assert int(picked_rows("x", self.train(np.zeros(5, dtype=int)), 0.01, 0).sum()) == 1

    @pytest.mark.parametrize("name", ["knn", "nnguide", "relation"])
    @pytest.mark.parametrize("fraction", [0, 1.5])
    def test_fractions_that_make_no_sense(self, name, fraction):
        with pytest.raises(DetectorError, match=rf"{name}: bank_fraction must lie in \(0, 1\], not {fraction}"):
            fitted_to(world()[0], name, bank_fraction=fraction)

    @pytest.mark.parametrize(
        ("labels", "k", "wanted"),
        [
            (np.arange(500) % 5, "auto", 20),
            (np.arange(5000) % 5, "auto", 50),
            (np.array([0] * 300 + [1] * 7), "auto", 1),
            (np.array([0] * 300 + [2] * 300), "auto", 50),
            (np.array([0] * 300 + [-1] * 300), "auto", 50),
            (np.arange(500) % 5, "openood", 50),
            (np.arange(500) % 5, 99, 99),
        ],
    )
    def test_neighbours_follow_the_smallest_class(self, labels, k, wanted, caplog):
        train = Activations(features=np.ones((len(labels), 2), dtype=np.float32), labels=labels)
        everything = torch.ones(len(labels), dtype=torch.bool)
        assert neighbours("knn", k, 50, train, everything) == wanted
        assert not caplog.records

    def test_too_many_neighbours_leave_a_warning(self, caplog):
        """25 images of each class: the 50th neighbour lies in another class, and knn is upside down."""
        train, _, test = world(n=125)
        fitted_to(train, "knn", k="openood")
        assert "k=50 is not below the 25 remembered images of the smallest class" in caplog.text
        fitted_to(train, "knn")
        assert len(caplog.records) == 1

    def test_a_name_that_is_no_number_of_neighbours(self):
        with pytest.raises(DetectorError, match="knn: k must be a number, 'auto' or 'openood', not 'some'"):
            fitted_to(world()[0], "knn", k="some")

    def test_a_search_tries_no_k_that_reaches_the_smallest_class(self):
        rng = np.random.default_rng(0)
        rows = {"features": rng.normal(size=(1120, 4)), "labels": np.r_[np.zeros(1000), np.ones(120)].astype(np.int64)}
        train = Activations(features=torch.from_numpy(rows["features"]), labels=rows["labels"])
        assert create_detector("knn").search_space(train) == [{"k": 50}, {"k": 100}]

    def test_a_grid_with_no_k_that_fits_takes_the_rule(self):
        train, val, test = (activations(rows) for rows in world(n=40))
        detector = create_detector("knn")
        assert detector.search_space(train) == [{"k": "auto"}]
        (scores,) = detector.score_grid([{"k": "auto"}], train, val, [test])
        assert scores[0].equal(create_detector("knn").fit(train).score(test))

    def test_nnguide_averages_the_whole_bank_where_k_is_larger(self):
        train, _, test = world()
        whole = fitted_to(train, "nnguide", k=30, bank_fraction=0.1).score(activations(test))
        assert fitted_to(train, "nnguide", k=10**6, bank_fraction=0.1).score(activations(test)).equal(whole)

    def test_nnguide_needs_a_neighbour(self):
        with pytest.raises(DetectorError, match="nnguide: k must be at least 1, not 0"):
            fitted_to(world()[0], "nnguide", k=0)

    def test_relation_needs_a_power(self):
        with pytest.raises(DetectorError, match="relation: pow must be positive, not 0"):
            fitted_to(world()[0], "relation", pow=0)

    def test_relation_skips_no_tile_that_counts(self, monkeypatch):
        train, _, test = world(classes=40, n=400)
        whole = fitted_to(train, "relation").score(activations(test))
        monkeypatch.setattr("oodscope.detectors.methods.relation.TILE", 7)
        assert torch.allclose(fitted_to(train, "relation").score(activations(test)), whole, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "candidates"),
    [
        ("knn", [{"k": 3}, {"k": 50}]),
        ("nnguide", [{"k": 2}, {"k": 100}]),
        ("relation", [{"pow": 1}, {"pow": 2}, {"pow": 8}]),
        ("vim", [{"dim": 7}, {"dim": 2}, {"dim": None}]),
        ("residual", [{"dim": 7}, {"dim": 2}, {"dim": None}]),
        ("neco", [{"dim": 7}, {"dim": 2}]),
        ("neco", [{"dim": 7}, {"dim": None}]),
        ("kpca", [{"explained": 0.5}, {"explained": 0.9}, {"explained": 0.7}]),
    ],
)
def test_a_grid_gives_what_single_fits_give(name, candidates):
    train, val, test = (activations(rows) for rows in world())
    detector = create_detector(name)
    together = list(detector.score_grid(candidates, train, val, [val, test]))
    assert len(together) == len(candidates)
    for candidate, scores in zip(candidates, together):
        alone = create_detector(name, **candidate).fit(train, val)
        for part, ours in zip((val, test), scores):
            assert torch.allclose(ours, alone.score(part), rtol=1e-6)


class TestPrincipalSpaces:
    @pytest.mark.parametrize("name", ["vim", "residual"])
    def test_no_dimension_of_the_grid_fits_small_features(self, name):
        train = activations(world()[0])
        assert create_detector(name).search_space(train) == [{"dim": None}]
        wide = Activations(features=np.zeros((2, 700), dtype=np.float32), logits=np.zeros((2, 2), dtype=np.float32))
        assert create_detector(name).search_space(wide) == [{"dim": 256}]

    @pytest.mark.parametrize("dim", [0, 12, 13])
    def test_residual_needs_a_residual_space(self, dim):
        with pytest.raises(DetectorError, match=rf"residual: features are 12-dimensional, dim={dim} leaves no"):
            fitted_to(world()[0], "residual", dim=dim)

    def test_one_decomposition_serves_both(self, monkeypatch):
        train = activations(world()[0])
        create_detector("vim").fit(train)
        monkeypatch.setattr("oodscope.detectors.math.principal.eigenbasis", None)
        create_detector("residual", dim=3).fit(train)


class TestGMM:
    @pytest.mark.parametrize("kind", WORLDS)
    def test_equal_scores_from_equal_state(self, kind):
        train, _, test = world(**WORLDS[kind])
        detector = fitted_to(train, "gmm", components=7)
        assert_close(detector.score(activations(test)), distances.gmm(state_of(detector), test))

    def test_climbs_as_high_as_scikit_learn_from_the_same_start(self):
        train, _, _ = world(n=600)
        rows = activations(train)
        start = state_of(create_detector("gmm", components=8, max_iter=1, tol=0).fit(rows))
        ours = create_detector("gmm", components=8, max_iter=300, tol=1e-9).fit(rows)
        points = (train["features"] - start["origin"]) @ start["axes"]
        oracle = GaussianMixture(
            8,
            covariance_type="tied",
            weights_init=start["weights"],
            means_init=start["means"],
            precisions_init=np.linalg.inv(start["covariance"]),
            reg_covar=1e-6 * points.var(axis=0).mean(),
            tol=1e-9,
            max_iter=300,
        ).fit(points)
        assert float(-ours.score(rows).mean()) == pytest.approx(oracle.score(points), rel=1e-6)
        assert float(-create_detector("gmm", components=8, max_iter=1).fit(rows).score(rows).mean()) < oracle.score(
            points
        )

    def test_more_components_than_images_and_fewer_features_than_dim(self):
        train, _, test = world(n=20)
        detector = fitted_to(train, "gmm")
        assert len(detector.weights_) == 20
        assert detector.axes_.shape == (12, 12)
        assert detector.score(activations(test)).isfinite().all()

    def test_the_seed_decides_on_images_and_start(self):
        train, _, test = world()
        first, again, other = (
            fitted_to(train, "gmm", components=5, rows=100, seed=seed).score(activations(test)) for seed in (0, 0, 1)
        )
        assert first.equal(again)
        assert not first.equal(other)

    def test_features_that_are_all_equal(self):
        train, _, _ = world()
        train["features"] = np.ones_like(train["features"])
        with pytest.raises(DetectorError, match="gmm: all training features are equal"):
            fitted_to(train, "gmm")

    @pytest.mark.parametrize("key", ["components", "dim", "rows", "max_iter"])
    def test_counts_must_be_positive(self, key):
        with pytest.raises(DetectorError, match=rf"gmm: {key} must be at least 1, not 0"):
            fitted_to(world()[0], "gmm", **{key: 0})


class TestNECO:
    def test_a_feature_at_the_mean_and_one_that_never_varies(self):
        train, _, test = world()
        train["features"][:, 0] = 2.0
        detector = fitted_to(train, "neco")
        middle = {**test, "features": np.tile(detector.mean_.numpy(), (len(test["features"]), 1))}
        assert detector.score(activations(middle)).isfinite().all()
        moved = {**test, "features": test["features"] + np.eye(12)[0] * 1e4}
        assert float(detector.score(activations(moved)).abs().max()) < 1e-3

    @pytest.mark.parametrize("dim", [0, 13])
    def test_dimensions_that_make_no_sense(self, dim):
        with pytest.raises(DetectorError, match=rf"neco: dim must lie in 1..12, the number of features, not {dim}"):
            fitted_to(world()[0], "neco", dim=dim)

    def test_the_grid_stays_below_the_width(self):
        train = activations(world(width=60)[0])
        assert create_detector("neco").search_space(train) == [{"dim": 10}, {"dim": 50}]


class TestKPCA:
    @pytest.mark.parametrize(
        ("params", "message"),
        [
            ({"explained": 0.0}, r"explained must lie in \(0, 1\), not 0.0"),
            ({"explained": 1.0}, r"explained must lie in \(0, 1\), not 1.0"),
            ({"gamma": -1.0}, "gamma must be positive, not -1.0"),
            ({"width": 0}, "width must be positive, not 0"),
            ({"rows": 0}, "rows must be positive, not 0"),
        ],
    )
    def test_parameters_that_make_no_sense(self, params, message):
        with pytest.raises(DetectorError, match=f"kpca: {message}"):
            fitted_to(world()[0], "kpca", **params)


class TestOpenGAN:
    def test_descends_as_torch_does(self):
        random = torch.Generator().manual_seed(0)
        ours = perceptron((4, 1), random)
        theirs = deepcopy(ours)
        optimiser, adam = torch.optim.Adam(theirs.parameters(), 0.01, (0.5, 0.999)), Adam(ours, 0.01)
        for _ in range(5):
            points = torch.randn(16, 4, generator=random)
            adam.descend(ours(points).square().mean())
            optimiser.zero_grad()
            theirs(points).square().mean().backward()
            optimiser.step()
        assert torch.allclose(ours(points), theirs(points), rtol=1e-5)

    def test_batch_normalisation_folds_into_the_layers(self):
        random = torch.Generator().manual_seed(0)
        network, points = perceptron((4, 6, 5, 1), random), torch.randn(64, 4, generator=random)
        for part in network:
            if isinstance(part, torch.nn.BatchNorm1d):
                part.weight.data.uniform_(0.5, 2, generator=random)
                part.bias.data.normal_(generator=random)
        network(points)
        expected = network.double().eval()(points.double()).squeeze(1)
        assert torch.allclose(answer(folded(network), points.double()), expected)

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", WORLDS)
    def test_equal_scores_from_equal_state(self, kind):
        train, _, test = world(**WORLDS[kind])
        detector = fitted_to(train, "opengan", rounds=1)
        assert_close(detector.score(activations(test)), distances.opengan(state_of(detector), test))

    def test_the_same_seed_gives_the_same_fit_and_touches_no_global_one(self):
        train, _, test = world()
        torch.manual_seed(0)
        before = torch.get_rng_state()
        first, again, other = (
            fitted_to(train, "opengan", rounds=2, seed=seed).score(activations(test)) for seed in (0, 0, 1)
        )
        assert torch.get_rng_state().equal(before)
        assert first.equal(again)
        assert not first.equal(other)

    @pytest.mark.slow
    def test_outliers_choose_among_the_discriminators(self):
        train, val, test = (activations(rows) for rows in world())
        chosen = create_detector("opengan", rounds=6).fit(train, val, ood_val=test)
        blind = create_detector("opengan", rounds=6).fit(train, val)
        auroc = [Ranking(d.score(val).numpy(), d.score(test).numpy()).auroc for d in (chosen, blind)]
        assert auroc[0] >= auroc[1]

    @pytest.mark.slow
    def test_a_longer_search_never_ends_lower(self):
        train, val, test = (activations(rows) for rows in world())
        detectors = [create_detector("opengan", rounds=n, lr=1e-2).fit(train, val, ood_val=test) for n in range(1, 7)]
        aurocs = [Ranking(d.score(val).numpy(), d.score(test).numpy()).auroc for d in detectors]
        assert aurocs == sorted(aurocs)
        assert aurocs[-1] > aurocs[0]

    @pytest.mark.parametrize(("key", "least"), [("rounds", 1), ("width", 1), ("rows", 4)])
    def test_counts_must_be_positive(self, key, least):
        with pytest.raises(DetectorError, match=rf"opengan: {key} must be at least {least}, not 0"):
            fitted_to(world()[0], "opengan", **{key: 0})

    def test_one_image_is_too_few(self):
        with pytest.raises(DetectorError, match="opengan: one training image is too few"):
            create_detector("opengan").fit(activations(world()[0]).take([0]))


@pytest.mark.parametrize("columns", [7, 160, 1003])
def test_two_rounds_find_what_one_would(columns):
    # few distinct values: ties everywhere, also across groups
    values = torch.randint(0, 9, (20, columns), generator=torch.Generator().manual_seed(0)).float()
    top, where = largest(values, 5)
    assert torch.equal(top, values.topk(5, dim=1).values)
    assert torch.equal(values.gather(1, where), top)
    assert all(len(set(row)) == 5 for row in where.tolist())
