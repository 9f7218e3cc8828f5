"""What is special about the detectors that read logits and the head."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.stats import weibull_min

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.detectors.math.softmax import average, gaps, powers_
from oodscope.detectors.methods.openmax import fit_weibull
from oodscope.detectors.registry import create_detector
from tests.detectors.worlds import activations, world

OURS = [
    "msp",
    "ebo",
    "gen",
    "entropy",
    "temp_scaling",
    "klm",
    "openmax",
    "gradnorm",
    "dropout",
    "ensemble_entropy",
    "mutual_information",
    "sirc",
    "weiper",
]


def of(logits, **more):
    return Activations(logits=np.asarray(logits, dtype=np.float32), **more)


def members(logits):
    return Activations(columns={"member_logits": np.asarray(logits, dtype=np.float32)})


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("gen", {"gamma": 0.0}, "gen: gamma must be positive, not 0.0"),
        ("gen", {"top": 0}, "gen: top must be at least 1, not 0"),
        ("openmax", {"tail": 1}, "openmax: tail must be at least 2, not 1"),
        ("openmax", {"alpha": 0}, "openmax: alpha must be at least 1, not 0"),
        ("dropout", {"passes": 0}, "dropout: passes must be at least 1, not 0"),
        ("weiper", {"repeats": 0}, "weiper: repeats must be at least 1, not 0"),
        ("weiper", {"bins": 0}, "weiper: bins must be at least 1, not 0"),
        ("weiper", {"smoothing": 0}, "weiper: smoothing must be at least 1, not 0"),
        ("weiper", {"smoothing_logits": 0}, "weiper: smoothing_logits must be at least 1, not 0"),
        ("dropout", {"drop": 1.0}, r"dropout: drop must lie in \[0, 1\), not 1.0"),
    ],
)
def test_parameters_that_make_no_sense(name, params, message):
    train, _, test = world()
    with pytest.raises(DetectorError, match=message):
        create_detector(name, **params).fit(activations(train)).score(activations(test))


@pytest.mark.parametrize("name", OURS)
def test_a_thousand_classes_few_features_few_images(name):
    """Most classes have neither a training image nor a prediction."""
    train, val, test = world(n=90, classes=1000, width=16)
    train["labels"] = train["logits"].argmax(axis=1)
    detector = create_detector(name)
    detector.fit(activations(train, detector.probes), activations(val, detector.probes))
    scores = detector.score(activations(test, detector.probes))
    assert torch.isfinite(scores).all()
    assert len(scores.unique()) > 1


class TestSoftmax:
    def test_confident_images_keep_distinct_scores(self):
        """Gaps from 0 to 700: float32 probabilities tie at 1 from 17 on, float32 powers at 0 from 104 on."""
        logits = torch.zeros(701, 10)
        logits[:, 3] = torch.arange(701.0)
        for name in ("msp", "entropy"):
            scores = create_detector(name).score(of(logits))
            assert (scores.diff() < 0).all()

    def test_tied_winners_both_count(self):
        assert create_detector("msp").score(of([[5, 5, 5, 5]])).item() == 0.75
        assert create_detector("entropy").score(of([[5, 5, 5, 5]])).item() == pytest.approx(math.log(4), rel=1e-7)
        assert create_detector("ebo").score(of([[5, 5, 5, 5]])).item() == pytest.approx(-5 - math.log(4), rel=1e-7)

    def test_the_rest_is_exact_beside_the_winner(self):
        logits = torch.randn(500, 100, generator=torch.Generator().manual_seed(0)) * 8
        _, rest = powers_(gaps(logits))
        exact = torch.exp(logits.double() - logits.double().amax(1, True)).sort(dim=1).values[:, :-1].sum(dim=1)
        assert torch.allclose(rest, exact, rtol=1e-5, atol=0)

    def test_subnormal_powers_do_not_cost_time(self):
        raised, _ = powers_(torch.linspace(-200, 0, 1000).unsqueeze(0))
        assert raised.min() >= torch.finfo(torch.float32).tiny

    def test_the_mean_of_several_is_uncancelled(self):
        logits = torch.zeros(1, 2, 3)
        logits[0, :, 1] = 40.0
        mean, doubt = average(logits)
        assert mean[0, 1] == 1
        assert doubt.item() == pytest.approx(2 * math.exp(-40), rel=1e-5)


class TestGen:
    def test_the_grid_from_one_sort_equals_one_by_one(self):
        _, val, test = world(classes=60, n=600)
        judged = [activations(val), activations(test)]
        detector = create_detector("gen")
        space = detector.search_space(judged[0])
        for point, scores in zip(space, detector.score_grid(space, judged[0], judged[0], judged), strict=True):
            alone = create_detector("gen", **point)
            for ours, activated in zip(scores, judged):
                assert torch.allclose(ours, alone.score(activated), rtol=1e-5, atol=1e-7)

    def test_numbers_of_classes_beyond_all_are_one(self):
        gammas = 7
        sizes = {5: [10], 60: [10, 50, 100], 1000: [10, 50, 100, 200, 500, 1000]}
        for classes, tops in sizes.items():
            space = create_detector("gen").search_space(of(np.zeros((2, classes))))
            assert sorted({point["top"] for point in space}) == tops
            assert len(space) == gammas * len(tops)

    def test_only_the_most_probable_count(self):
        p = np.array([0.5, 0.3, 0.15, 0.05])
        score = create_detector("gen", gamma=1.0, top=2).score(of([np.log(p)])).item()
        assert score == pytest.approx(0.5 * 0.5 + 0.3 * 0.7, rel=1e-6)


class TestTemperature:
    def likelihood(self, val, temperature):
        logits = torch.from_numpy(val["logits"]) / temperature
        return float(torch.nn.functional.cross_entropy(logits, torch.from_numpy(val["labels"])))

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
    def test_the_likelihood_is_the_best_there_is(self, seed, scale):
        rng = np.random.default_rng(seed)
        logits = (rng.normal(size=(400, 7)) * scale).astype(np.float32)
        labels = np.where(rng.random(400) < 0.6, logits.argmax(axis=1), rng.integers(0, 7, 400))
        val = {"logits": logits.astype(np.float64), "labels": labels}
        ours = create_detector("temp_scaling").fit(of(logits, labels=labels)).temperature_
        best = minimize_scalar(
            lambda t: self.likelihood(val, math.exp(t)), bounds=(-4, 6), method="bounded", options={"xatol": 1e-12}
        )
        assert self.likelihood(val, ours) <= best.fun + 1e-9
        assert ours == pytest.approx(math.exp(best.x), rel=1e-4)

    def test_a_few_passes_suffice(self, monkeypatch):
        from oodscope.detectors.methods.temp_scaling import TempScaling

        passes, plain = [], TempScaling._derivatives
        monkeypatch.setattr(TempScaling, "_derivatives", lambda *a: passes.append(a) or plain(*a))
        rng = np.random.default_rng(0)
        logits = rng.normal(size=(400, 7)) * 3
        labels = np.where(rng.random(400) < 0.6, logits.argmax(axis=1), rng.integers(0, 7, 400))
        create_detector("temp_scaling").fit(of(logits, labels=labels))
        assert len(passes) <= 12

    def test_separable_images_stop_at_the_cold_end(self):
        logits = np.eye(4, dtype=np.float32)[np.arange(40) % 4] * 3
        detector = create_detector("temp_scaling").fit(of(logits, labels=np.arange(40) % 4))
        assert detector.temperature_ == pytest.approx(0.05)
        assert detector.score(of(np.eye(4) * [[1], [2], [5], [30]])).unique().numel() == 4

    def test_meaningless_logits_stop_at_the_hot_end(self):
        logits = np.eye(4, dtype=np.float32)[np.arange(40) % 4] * 3
        detector = create_detector("temp_scaling").fit(of(logits, labels=(np.arange(40) + 1) % 4))
        assert detector.temperature_ == pytest.approx(1000)
        assert detector.score(of(np.eye(4) * [[1], [2], [5], [30]])).unique().numel() == 4

    def test_equal_logits_tell_nothing_and_break_nothing(self):
        detector = create_detector("temp_scaling").fit(of(np.zeros((8, 3)), labels=np.arange(8) % 3))
        assert 0.05 <= detector.temperature_ <= 1000

    def test_the_held_out_images_set_it(self):
        logits = np.random.default_rng(0).normal(size=(100, 3))
        seen = of(logits, labels=logits.argmax(axis=1))
        held_out = of(logits, labels=np.where(np.arange(100) % 4 > 0, logits.argmax(axis=1), 0))
        ours = create_detector("temp_scaling").fit(seen, held_out).temperature_
        assert ours == create_detector("temp_scaling").fit(held_out).temperature_
        assert ours != create_detector("temp_scaling").fit(seen).temperature_


class TestKLM:
    def test_an_image_like_its_template_scores_zero(self):
        rows = np.repeat([[3.0, 1.0, 0.0], [0.0, 4.0, 2.0]], 5, axis=0)
        detector = create_detector("klm").fit(of(rows))
        assert detector.score(of(rows)).max() < 1e-12
        assert detector.score(of([[0.0, 1.0, 3.0]])).item() > 1

    def test_a_class_never_predicted_is_one_hot(self):
        detector = create_detector("klm").fit(of([[3.0, 1.0, 0.0]]))
        assert detector.templates_[2].argmax() == 2
        assert detector.templates_[2, 2] == 1
        p = torch.softmax(torch.tensor([0.0, 0.0, 12.0], dtype=torch.float64), dim=0)
        by_hand = (p * p.log()).sum() - (p[0] + p[1]) * math.log(2.0**-126)
        assert detector.score(of([[0.0, 0.0, 12.0]])).item() == pytest.approx(by_hand.item(), rel=1e-6)

    @pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
    def test_many_classes_are_as_exact_as_few(self, scale, monkeypatch):
        _, val, test = world(classes=60, n=600, scale=scale)
        detector = create_detector("klm").fit(activations(val))
        exact = detector.score(activations(test))
        monkeypatch.setattr("oodscope.detectors.methods.klm.FEW", 0)
        assert torch.allclose(detector.score(activations(test)), exact, rtol=1e-4, atol=0)

    def test_predictions_not_labels_make_templates(self):
        train, val, test = world()
        val["labels"] = np.zeros_like(val["labels"])
        shuffled = create_detector("klm").fit(activations(val)).score(activations(test))
        _, val, _ = world()
        assert shuffled.equal(create_detector("klm").fit(activations(val)).score(activations(test)))


class TestOpenMax:
    @pytest.mark.parametrize("shape", [0.7, 1.0, 3.0, 40.0])
    def test_weibull_fits_as_well_as_scipy(self, shape):
        rng = np.random.default_rng(0)
        values = weibull_min.rvs(shape, scale=2.5, size=(30, 20), random_state=rng)
        ours = fit_weibull(torch.from_numpy(values), torch.ones(30, 20, dtype=torch.bool))
        for row, k, scale in zip(values, *ours):
            theirs = weibull_min.fit(row, floc=0)
            reached = weibull_min.logpdf(row, float(k), scale=float(scale)).sum()
            assert reached >= weibull_min.logpdf(row, theirs[0], scale=theirs[2]).sum() - 1e-6

    def test_weibull_counts_only_what_is_there(self):
        values = weibull_min.rvs(2.0, size=(1, 20), random_state=np.random.default_rng(0))
        padded = np.concatenate([values, np.full((1, 5), 1.0)], axis=1)
        present = torch.arange(25).unsqueeze(0) < 20
        alone = fit_weibull(torch.from_numpy(values), torch.ones(1, 20, dtype=torch.bool))
        among = fit_weibull(torch.from_numpy(padded), present)
        assert torch.allclose(torch.stack(alone), torch.stack(among), rtol=1e-9)

    def test_weibull_of_equal_values_is_a_step(self):
        shape, scale = fit_weibull(torch.full((1, 4), 2.0, dtype=torch.float64), torch.ones(1, 4, dtype=torch.bool))
        assert shape.item() == 1e6
        assert scale.item() == pytest.approx(2.0)

    def test_a_class_without_correct_images_is_never_recalibrated(self):
        labels = np.arange(100) % 5
        logits = np.eye(5)[labels] * 9 + np.random.default_rng(0).normal(size=(100, 5))
        detector = create_detector("openmax", alpha=1).fit(of(logits, labels=np.where(labels == 2, 1, labels)))
        far = np.eye(5) * 50
        assert (detector.score(of(far)) > 0.99).tolist() == [True, True, False, True, True]
        assert detector.score(of(far[2:3])).item() == pytest.approx(math.exp(-50), rel=1e-6)

    def test_nothing_classified_correctly_is_said(self):
        with pytest.raises(DetectorError, match="openmax: no training image is classified correctly"):
            create_detector("openmax").fit(of(np.eye(3), labels=[1, 2, 0]))

    def test_the_tail_does_not_depend_on_chunks(self, monkeypatch):
        train, _, test = world()
        whole = create_detector("openmax").fit(activations(train)).score(activations(test))
        monkeypatch.setattr("oodscope.activations.activations.CHUNK_NUMBERS", 64)
        assert torch.allclose(whole, create_detector("openmax").fit(activations(train)).score(activations(test)))


class TestGradNorm:
    def test_the_closed_form_is_the_gradient(self):
        _, _, test = world()
        weight, bias = (torch.from_numpy(test[key]).requires_grad_() for key in ("weight", "bias"))
        by_autograd = []
        for h in torch.from_numpy(test["features"]):
            loss = -torch.log_softmax(weight @ h + bias, dim=0).sum()
            by_autograd.append(-torch.autograd.grad(loss, weight)[0].abs().sum().item())
        ours = create_detector("gradnorm").score(activations(test)).numpy()
        assert np.allclose(ours, by_autograd, rtol=1e-4)


class TestDropout:
    def test_nothing_dropped_is_msp(self):
        _, _, test = world()
        ours = create_detector("dropout", drop=0.0, passes=2).score(activations(test))
        assert torch.allclose(ours, create_detector("msp").score(activations(test)), rtol=1e-4)

    def test_the_seed_chooses_the_masks(self):
        _, _, test = world()
        first, again, other = (create_detector("dropout", seed=s).score(activations(test)) for s in (0, 0, 1))
        assert first.equal(again)
        assert not torch.allclose(first, other)


class TestEnsembles:
    def test_certain_members_that_disagree(self):
        one_hot = np.eye(4) * 1000
        assert create_detector("mutual_information").score(members([one_hot])).item() == pytest.approx(math.log(4))
        assert create_detector("ensemble_entropy").score(members([one_hot])).item() == pytest.approx(math.log(4))

    def test_members_that_agree_know_as_much_as_one(self):
        alone = np.random.default_rng(0).normal(size=(50, 1, 6)) * 3
        together = members(np.repeat(alone, 5, axis=1))
        agreed = create_detector("mutual_information").score(together)
        assert ((agreed >= 0) & (agreed < 1e-6)).all()
        entropy = create_detector("entropy").score(of(alone[:, 0]))
        assert torch.allclose(create_detector("ensemble_entropy").score(together), entropy, rtol=1e-5)


class TestSirc:
    def test_equal_lengths_leave_the_softmax_as_it_is(self):
        _, _, test = world()
        rows = activations({**test, "features": np.ones_like(test["features"])})
        ours = create_detector("sirc").fit(rows).score(rows)
        assert torch.allclose(ours, 2 * create_detector("msp").score(rows))

    def test_no_features_at_all_stay_finite(self):
        train, _, test = world(offset=1e5)
        detector = create_detector("sirc").fit(activations(train))
        blank = {**test, "features": np.zeros_like(test["features"]), "logits": np.zeros_like(test["logits"])}
        assert torch.isfinite(detector.score(activations(blank))).all()


class TestWeiPer:
    def test_the_grid_from_one_fit_equals_one_by_one(self):
        train, val, test = world()
        train, judged = activations(train), [activations(val), activations(test)]
        detector = create_detector("weiper", repeats=2)
        space = detector.search_space(train)
        assert len(space) == 9
        for point, scores in zip(space, detector.score_grid(space, train, judged[0], judged), strict=True):
            alone = create_detector("weiper", repeats=2, **point).fit(train)
            for ours, activated in zip(scores, judged):
                assert torch.allclose(ours, alone.score(activated), rtol=1e-9)

    def test_repeats_follow_the_number_of_classes(self):
        for classes, repeats in {5: 100, 1000: 10}.items():
            train, _, _ = world(n=30, classes=classes)
            assert len(create_detector("weiper").fit(activations(train)).weight_) == repeats * classes

    def test_the_seed_chooses_the_perturbations(self):
        train, _, test = world()
        first, again, other = (
            create_detector("weiper", seed=s).fit(activations(train)).score(activations(test)) for s in (0, 0, 1)
        )
        assert first.equal(again)
        assert not torch.allclose(first, other)

    def test_equal_features_everywhere_break_nothing(self):
        train, _, _ = world()
        flat = activations({**train, "features": np.ones_like(train["features"])})
        assert torch.isfinite(create_detector("weiper").fit(flat).score(flat)).all()
