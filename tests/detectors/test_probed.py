"""What is special about detectors that read what probes found."""

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from oodscope.activations.activations import Activations
from oodscope.activations.probes.perturbation import SteppedMaps
from oodscope.activations.probes.taps import PooledMaps
from oodscope.base.errors import DetectorError
from oodscope.detectors.methods.mds_ensemble import _weights
from oodscope.detectors.registry import create_detector
from tests.detectors.twins import probed
from tests.detectors.worlds import activations, world


class TestMDSEnsemble:
    def rows(self, count, seed, shifted=False):
        """Three stages; only the last one tells outliers."""
        rng = np.random.default_rng(seed)
        maps = rng.normal(size=(count, 3, 8)).astype(np.float32)
        if shifted:
            maps[:, 2] += 0.7
        return Activations(
            logits=rng.normal(size=(count, 4)).astype(np.float32),
            labels=np.arange(count) % 4,
            columns={PooledMaps().column: maps},
        )

    def auroc(self, detector):
        scores = [detector.score(self.rows(300, 5, shifted)).numpy() for shifted in (False, True)]
        return roc_auc_score([0] * 300 + [1] * 300, np.concatenate(scores))

    def test_weights_are_learnt_from_validation_outliers(self):
        train, val = self.rows(400, 0), self.rows(200, 1)
        blind = create_detector("mds_ensemble", epsilon=0.0).fit(train, val)
        seeing = create_detector("mds_ensemble", epsilon=0.0).fit(train, val, ood_val=self.rows(200, 2, shifted=True))
        assert seeing.alpha_.argmax() == 2
        assert seeing.alpha_[2] > 5 * seeing.alpha_[:2].abs().max()
        assert self.auroc(seeing) > self.auroc(blind)

    def test_weights_are_those_of_a_logistic_regression(self):
        """Two distances of which the first is 2 deviations larger for outliers; the oracle's penalty is on raw ones."""
        rng = np.random.default_rng(0)
        known, outliers = rng.normal(0, 1, (500, 2)), rng.normal([2, 0], 1, (500, 2))
        weights, level = _weights(torch.from_numpy(known), torch.from_numpy(outliers))
        assert weights.tolist() == pytest.approx([1.985, 0.0], abs=0.02)
        assert level == pytest.approx(-weights.sum().item(), abs=0.15), "the odds are even halfway, at a distance of 1"

    def test_the_step_is_a_probe_of_the_fitted_gaussians(self):
        train = self.rows(400, 0)
        detector = create_detector("mds_ensemble")
        assert detector.probes == (PooledMaps(),)
        (probe,) = detector.fit(train).probes
        assert isinstance(probe, SteppedMaps)
        assert len(probe.forwards) == 1 + 3
        assert len(probe.backwards) == 3
        (other,) = create_detector("mds_ensemble").fit(self.rows(400, 9)).probes
        assert probe != other
        assert probe == create_detector("mds_ensemble").fit(train).probes[0]

    def test_stages_must_be_known(self):
        with pytest.raises(DetectorError, match="stages must be 'all' or 'first', not 'last'"):
            create_detector("mds_ensemble", stages="last").fit(self.rows(40, 0))


class TestGram:
    def test_every_tenth_training_image_stands_in_for_held_out_ones(self):
        train, _, test = world(n=400)
        detector = create_detector("gram")
        detector.fit(activations(train, detector.probes))
        held = np.arange(400) % 10 == 9
        split = {key: column[~held] for key, column in train.items() if len(column) == 400}
        split |= {key: train[key] for key in ("weight", "bias")}
        split |= {"val_gram": train["gram"][held], "val_logits": train["logits"][held]}
        ours = detector.score(activations(test, detector.probes)).numpy()
        assert np.allclose(ours, probed.gram(split, test), rtol=1e-4)

    def test_too_few_images(self):
        train, _, _ = world(n=400)
        detector = create_detector("gram")
        few = activations(train, detector.probes).take(range(9))
        with pytest.raises(DetectorError, match="needs 10 training images or more where none are held out"):
            detector.fit(few)

    def test_powers_start_at_one(self):
        train, _, _ = world()
        detector = create_detector("gram", powers=0)
        with pytest.raises(DetectorError, match="powers must be 1 or more, not 0"):
            detector.fit(activations(train, detector.probes))


def test_rankfeat_is_the_energy_of_the_mean_logits():
    pair = np.array([[[1.0, 3.0], [3.0, 1.0]]], dtype=np.float32)
    detector = create_detector("rankfeat")
    score = detector.score(Activations(columns={detector.probes[0].column: pair}))
    assert score.item() == pytest.approx(-(2 + np.log(2)))
    assert score.dtype == torch.float64
