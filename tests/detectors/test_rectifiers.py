"""What is special about rectifiers and scores of the predicted class."""

import numpy as np
import pytest
import torch

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.detectors.base import Detector
from oodscope.detectors.math.quantiles import percentiles
from oodscope.detectors.rectifier import kept, top_mask, top_values
from oodscope.detectors.registry import create_detector
from tests.detectors.twins import rectifiers
from tests.detectors.worlds import activations, world

NAMES = list(rectifiers.CASES)


def fitted(name, train, val, **params):
    detector = create_detector(name, **params)
    return detector.fit(activations(train, detector.probes), activations(val, detector.probes))


def scores(name, train, val, test, **params):
    detector = fitted(name, train, val, **params)
    return detector.score(activations(test, detector.probes)).numpy()


def with_logits(rows, weight, bias):
    return {**rows, "weight": weight, "bias": bias, "logits": rows["features"] @ weight.T + bias}


class TestTopShare:
    def test_keeps_at_least_one(self):
        assert kept(12, 99.9) == 1
        assert kept(512, 90) == 51
        assert kept(512, 0) == 512

    def test_exactly_k_and_ties_to_the_earlier(self):
        rows = torch.tensor([[1.0, 2.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0], [4.0, 3.0, 2.0, 1.0]])
        mask = top_mask(rows, top_values(rows, 3), 2)
        assert mask.tolist() == [
            [True, True, False, False],
            [True, True, False, False],
            [True, True, False, False],
        ]

    @pytest.mark.parametrize("name", ["ash", "ash_s", "ash_p", "scale"])
    def test_refuses_features_below_zero(self, name):
        train, val, test = world()
        test["features"][5, 3] = -1.0
        with pytest.raises(DetectorError, match=rf"{name}: needs features of zero or more.*row 5 first"):
            scores(name, train, val, test)

    @pytest.mark.parametrize("name", ["ash", "ash_s", "ash_p", "scale"])
    def test_an_image_without_features_has_the_energy_of_the_bias(self, name):
        train, val, test = world()
        test["features"][0] = 0.0
        assert scores(name, train, val, test)[0] == pytest.approx(-np.log(np.exp(train["bias"]).sum()), rel=1e-6)

    def test_scaling_may_exceed_float32(self):
        """A flat image of 2,048 features is scaled by the exponential of a hundred."""
        flat = {"features": np.ones((1, 2048), dtype=np.float32), "weight": np.ones((2, 2048)), "bias": [0.0, 0.0]}
        score = create_detector("scale", percentile=99).score(Activations(**flat))
        assert float(score) == pytest.approx(-2048 * np.exp(2048 / kept(2048, 99)), rel=1e-5)

    @pytest.mark.parametrize("percentile", [-1, 100])
    @pytest.mark.parametrize("name", ["ash", "ash_s", "ash_p", "scale", "dice"])
    def test_percentiles_that_make_no_sense(self, name, percentile):
        with pytest.raises(DetectorError, match=rf"{name}: percentile must lie in \[0, 100\), not {percentile}"):
            scores(name, *world(), percentile=percentile)

    @pytest.mark.parametrize("name", ["ash", "scale", "vra", "dice", "optfs", "adascale_l"])
    def test_combines_with_any_logit_score(self, name):
        train, val, test = world()
        plain, combined = scores(name, train, val, test), scores(f"{name}+msp", train, val, test)
        assert ((combined >= 0) & (combined <= 1)).all()
        assert not np.allclose(plain, combined)
        assert create_detector(f"{name}+msp").id == f"{name}+msp"


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in NAMES if create_detector(n).grid])
def test_the_grid_at_once_equals_the_grid_one_by_one(name):
    train, val, test = world(width=20)
    detector = create_detector(name)
    rows = [activations(part, detector.probes) for part in (train, val, test)]
    candidates = detector.search_space(rows[0])
    at_once = list(detector.score_grid(candidates, rows[0], rows[1], rows[1:]))
    one_by_one = list(Detector.score_grid(detector, candidates, rows[0], rows[1], rows[1:]))
    assert len(at_once) == len(candidates)
    for found, wanted in zip(at_once, one_by_one):
        for ours, theirs in zip(found, wanted):
            assert torch.allclose(ours, theirs, rtol=1e-6, atol=1e-9)
    assert not detector.fitted


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [{"classes": 2}, {"classes": 1000, "n": 1200, "width": 16}])
def test_two_classes_and_a_thousand(name, shape):
    assert np.isfinite(scores(name, *world(**shape))).all()


@pytest.mark.parametrize("name", ["she", "dice", "cadref", "nci"])
def test_a_class_without_training_images(name):
    train, val, test = world()
    kept_rows = train["labels"] != 3
    partial = {
        key: column[kept_rows] if not key.startswith("val_") and len(column) == len(kept_rows) else column
        for key, column in train.items()
    }
    # nothing was predicted as the class either
    partial["logits"] = partial["logits"] - 1e3 * (np.arange(5) == 3)
    theirs = getattr(rectifiers, name)(partial, test)
    assert np.allclose(scores(name, partial, val, test), theirs, rtol=1e-5)


@pytest.mark.parametrize("recognised", [[], [0]])
def test_she_falls_back_to_what_there_is(recognised):
    """Class 1 was never recognised; class 2 has no images."""
    features = np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 5.0]], dtype=np.float32)
    labels, said = np.array([0, 0, 1]), np.array([0 if recognised else 1, 0 if recognised else 1, 0])
    train = Activations(features=features, labels=labels, logits=np.eye(3, dtype=np.float32)[said])
    detector = create_detector("she").fit(train)
    common = [2.0, 0.0] if recognised else [4 / 3, 5 / 3]
    assert torch.allclose(detector.patterns_, torch.tensor([[2.0, 0.0], [0.0, 5.0], common], dtype=torch.float64))


def test_she_names_its_metrics():
    with pytest.raises(DetectorError, match="she: metric must be one of inner_product, euclidean, cosine, not 'l1'"):
        scores("she", *world(), metric="l1")


class TestVRA:
    def test_zero_is_the_papers_form_and_clipping_openoods(self):
        train, val, test = world()
        assert not np.allclose(scores("vra", train, val, test), scores("vra", train, val, test, clip_low=True))

    def test_differs_from_react_on_rectified_features(self):
        """A third of the values are zero: a low percentile among them silences nothing."""
        train, val, test = ({**part, "features": np.maximum(part["features"] - 1, 0)} for part in world())
        react = scores("react", train, val, test, percentile=95)
        assert np.mean(val["features"] == 0) > 0.2
        assert not np.allclose(scores("vra", train, val, test), react)
        assert np.allclose(scores("vra", train, val, test, low=10), react)

    def test_gamma_must_not_be_negative(self):
        with pytest.raises(DetectorError, match="vra: gamma must not be negative, not -1"):
            scores("vra", *world(), gamma=-1)

    @pytest.mark.parametrize("params", [{"low": 95}, {"low": -1}, {"high": 101}])
    def test_percentiles_that_make_no_sense(self, params):
        with pytest.raises(DetectorError, match="vra: needs 0 <= low < high <= 100"):
            scores("vra", *world(), **params)

    def test_training_images_stand_in_for_held_out_ones(self):
        train, _, test = world()
        alone = create_detector("vra").fit(activations(train)).score(activations(test)).numpy()
        assert np.allclose(alone, rectifiers.vra({**train, "val_features": train["features"]}, test), rtol=1e-5)


class TestFDBD:
    def test_equal_weights_have_no_boundary(self):
        train, val, test = world()
        often, other = test["logits"].argmax(axis=1)[0], (test["logits"].argmax(axis=1)[0] + 1) % 5
        weight, bias = train["weight"].copy(), train["bias"].copy()
        weight[other], bias[other] = weight[often], bias[often] - 1
        without = np.arange(5) != other
        doubled = [with_logits(part, weight, bias) for part in (train, val, test)]
        alone = [with_logits(part, weight[without], bias[without]) for part in (train, val, test)]
        for part in alone:
            part["labels"] = part["labels"] % 4
        theirs = doubled[2]["logits"].max(axis=1) == doubled[2]["logits"][:, often]
        assert theirs[0]
        assert np.allclose(scores("fdbd", *doubled)[theirs], scores("fdbd", *alone)[theirs], rtol=1e-6)

    def test_a_feature_at_the_mean_is_finite(self):
        features = np.array([[1.0, 1.0], [1.0, 1.0]], dtype=np.float32)
        rows = Activations(features=features, weight=np.eye(2), bias=np.zeros(2), logits=np.eye(2))
        assert torch.isfinite(create_detector("fdbd").fit(rows).score(rows)).all()
        assert torch.isfinite(create_detector("nci").fit(rows).score(rows)).all()


class TestAdaScale:
    def test_the_grid_is_the_36_pairs(self):
        train, _, _ = world()
        points = create_detector("adascale_a").search_space(activations(train))
        assert len(points) == 36
        assert all(point["low"] < point["high"] for point in points)

    @pytest.mark.parametrize("params", [{"low": 85}, {"low": -1}, {"high": 100}])
    def test_ranges_that_make_no_sense(self, params):
        with pytest.raises(DetectorError, match="adascale_l: needs 0 <= low < high < 100"):
            scores("adascale_l", *world(), **params)

    @pytest.mark.parametrize("name", ["adascale_a", "adascale_l"])
    def test_signed_features_are_welcome(self, name):
        train, val, test = world()
        for part in (train, val, test):
            part["features"] = part["features"] - 1.0
            part["logits"] = part["features"] @ train["weight"].T + train["bias"]
        train["val_features"] = val["features"]
        theirs = getattr(rectifiers, name)(train, test)
        assert np.allclose(scores(name, train, val, test), theirs, rtol=1e-4, atol=1e-4 * theirs.std())

    @pytest.mark.parametrize("name", ["adascale_a", "adascale_l"])
    def test_an_image_counts_among_those_no_firmer_than_itself(self, name):
        train, val, _ = world(n=30)
        theirs = getattr(rectifiers, name)(train, val, low=50, high=95)
        assert np.allclose(scores(name, train, val, val, low=50, high=95), theirs, rtol=1e-4)

    def test_remembers_at_most_five_thousand_drawn_by_seed(self, monkeypatch):
        monkeypatch.setattr("oodscope.detectors.methods.adascale.REMEMBERED", 20)
        train, val, _ = world()
        first, again, other = (fitted("adascale_a", train, val, seed=seed).instability_ for seed in (0, 0, 1))
        assert len(first) == 20
        assert first.equal(again)
        assert not first.equal(other)


class TestOptFS:
    def test_values_beyond_the_ranges_are_dropped(self):
        train, val, test = world()
        far = {**test, "features": np.full_like(test["features"], 1e6)}
        assert np.allclose(scores("optfs", train, val, far), 0)

    def test_features_that_are_all_equal(self):
        train, val, test = world()
        with pytest.raises(DetectorError, match="optfs: all training features are equal"):
            scores("optfs", {**train, "features": np.ones_like(train["features"])}, val, test)

    def test_intervals_must_be_there(self):
        with pytest.raises(DetectorError, match="optfs: intervals must be at least 1, not 0"):
            scores("optfs", *world(), intervals=0)


class TestNAC:
    def test_looks_at_as_many_rows_as_it_is_told(self):
        train, val, _ = world()
        detector = fitted("nac", train, val, rows=40, enough=1)
        assert int(detector.coverage_.sum()) <= 40 * 12
        assert not detector.coverage_.equal(fitted("nac", train, val, rows=40, enough=1, seed=1).coverage_)

    @pytest.mark.parametrize(
        ("params", "message"),
        [({"alpha": 0.0}, "alpha must be positive"), ({"bins": 0}, "bins must be"), ({"enough": 0}, "enough must be")],
    )
    def test_parameters_that_make_no_sense(self, params, message):
        with pytest.raises(DetectorError, match=f"nac: {message}"):
            scores("nac", *world(), **params)

    def test_the_gradient_is_that_of_the_divergence(self):
        from oodscope.detectors.methods.nac import _influence

        train, _, _ = world(n=20)
        features = torch.tensor(train["features"], requires_grad=True)
        weight, bias = torch.tensor(train["weight"]), torch.tensor(train["bias"])
        log_p = (features @ weight.T + bias).log_softmax(dim=1)
        divergence = (0.2 * (np.log(0.2) - log_p)).sum()
        (gradient,) = torch.autograd.grad(divergence, features)
        assert torch.allclose(_influence(activations(train)), (features * gradient).detach(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("ash_s", {"percentile": 80}),
        ("adascale_a", {"low": 60, "high": 75}),
        ("adascale_l", {"low": 60, "high": 75}),
        ("nac", {"alpha": 1.0}),
    ],
)
def test_noise_scores_above_data_at_parameters_that_fit_the_data(name, params):
    """Classes of three features out of fifteen: the largest share must hold three, the sigmoid must not saturate."""
    rng = np.random.default_rng(0)
    weight = np.kron(np.eye(5), np.ones(3)) - 0.2

    def rows(features):
        moved = features + 0.01 * rng.normal(size=features.shape) ** 2
        head = {"weight": weight, "bias": np.zeros(5), "labels": np.arange(len(features)) % 5}
        return {"features": features, "logits": features @ weight.T, "perturbed_features": moved, **head}

    def known(count):
        return rows(np.abs(4 * (weight > 0)[np.arange(count) % 5] + rng.normal(size=(count, 15)) * 0.3))

    train, val, inside = known(500), known(100), known(200)
    outside = rows(np.abs(rng.normal(size=(200, 15))))
    detector = fitted(name, train, val, **params)
    known_scores, noise_scores = (detector.score(activations(part, detector.probes)) for part in (inside, outside))
    assert noise_scores.median() > known_scores.quantile(0.95)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("in_memory", [0, 2**24])
def test_percentiles_are_exact_whether_ordered_or_counted(signed, ties, in_memory, monkeypatch):
    monkeypatch.setattr("oodscope.activations.activations.CHUNK_NUMBERS", 100)
    monkeypatch.setattr("oodscope.detectors.math.quantiles.IN_MEMORY", in_memory)
    values = np.random.default_rng(0).normal(size=(37, 9)).astype(np.float32)
    values = values if signed else np.abs(values)
    values = values.round() if ties else values
    wanted = [0, 0.1, 10, 50, 90, 99.9, 100]
    found = percentiles(Activations(features=values), "features", wanted, torch.device("cpu"))
    assert np.allclose(found, np.percentile(values.astype(np.float64), wanted), rtol=1e-12, atol=0)
