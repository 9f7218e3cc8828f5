"""The seam: other methods are a few lines, and inherit data, checkpoints and exactness."""

import math
from itertools import pairwise

import pytest
import torch
from pydantic import ValidationError
from torch import nn
from torch.nn.functional import cross_entropy, normalize

import oodscope.training.loop.lockstep as lockstep
from oodscope.base.errors import DataError
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.methods.outlier_exposure import OutlierExposure
from oodscope.training.recipe import Recipe, Step
from oodscope.training.train import train
from tests.training.training_toys import (
    PREPROCESS,
    RECIPE,
    StoppedError,
    TinyNet,
    colours,
    negatives,
    same_weights,
    stop_at,
)

SETTINGS = RECIPE.model_dump()


class Prototypes(Recipe):
    """In the manner of CIDER: a projection head, two views, prototypes that follow the data."""

    def prepare(self, model, facts):
        model.project = nn.Linear(32, 16)
        model.register_buffer("prototypes", torch.zeros(facts.num_classes, 16))
        return model

    def view(self, pixels, generator, role):
        return torch.cat([self.augment(pixels, generator), self.augment(pixels, generator)])

    def optimizer(self, model):
        head = {"params": model.project.parameters(), "lr": 2 * self.learning_rate, "weight_decay": 0.0}
        return torch.optim.SGD([{"params": model.conv.parameters()}, head], lr=self.learning_rate)

    @torch.no_grad()
    def start_epoch(self, model, epoch, streams):
        if epoch in (0, 2):
            for batch in streams.train.walk(batch_size=50):
                model.prototypes.index_add_(0, batch.labels, model.project(model.features(batch.images)))

    def loss(self, model, batch):
        points = normalize(model.project(model.features(batch.images)))
        labels = batch.labels.repeat(2)
        model.prototypes.index_add_(0, labels, 0.1 * points.detach().float())
        return Step(cross_entropy(points @ normalize(model.prototypes).T / 0.1, labels))


def run(recipe, **options):
    return train(TinyNet, recipe, colours(), PREPROCESS, device="cpu", **options)


@pytest.mark.slow
def test_outlier_exposure_flattens_predictions_on_outliers():
    outliers = negatives(40)
    settings = {**SETTINGS, "epochs": 6, "ood_batch_size": 16}
    exposed = run(OutlierExposure(**settings, weight=2.0), ood_train=outliers)
    plain = run(CrossEntropy(**{**settings, "ood_batch_size": 0}), ood_train=outliers)
    pixels = PREPROCESS(outliers.images(range(40)))
    with torch.no_grad():
        confidence = [model(pixels).softmax(1).amax(1).mean() for model in (exposed.model, plain.model)]
    assert confidence[0] < confidence[1] - 0.2
    assert same_weights(plain.model, run(CrossEntropy(**{**settings, "ood_batch_size": 0})).model)


def test_outlier_exposure_without_outliers_is_one_line():
    with pytest.raises(DataError, match="OutlierExposure learns from outliers"):
        run(OutlierExposure(epochs=1))


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_heads_buffers_views_and_groups_survive_an_interruption(tmp_path, monkeypatch, precision):
    monkeypatch.setattr(lockstep, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(lockstep, "SAVING_SHARE", float("inf"))
    recipe = Prototypes(**{**SETTINGS, "precision": precision})
    whole = run(recipe)
    for step in (1, 8, 13, 14):
        with pytest.raises(StoppedError):
            run(recipe, folder=tmp_path, progress=stop_at(step))
    resumed = run(recipe, folder=tmp_path)
    assert same_weights(whole.model, resumed.model)
    assert whole.history[-1].train_accuracy is None
    assert whole.history[-1].loss < whole.history[0].loss
    fresh = TinyNet()
    assert whole.model.project.weight.shape == (16, 32) and not hasattr(fresh, "project")


class Rates(CrossEntropy):
    """Writes down the learning rates that the optimiser really used."""

    def optimizer(self, model):
        slow = {"params": model.fc.parameters(), "lr": self.learning_rate / 10}
        made = torch.optim.SGD([{"params": model.conv.parameters()}, slow], lr=self.learning_rate)
        made.register_step_pre_hook(
            lambda optimizer, *_: RATES.append([group["lr"] for group in optimizer.param_groups])
        )
        return made


RATES: list[list[float]] = []


def test_rates_follow_the_cosine_of_openood_in_every_group():
    RATES.clear()
    run(Rates(**SETTINGS))
    total = 18
    expected = [1e-6 + (0.05 - 1e-6) * 0.5 * (1 + math.cos(step / total * math.pi)) for step in range(total)]
    assert [rates[0] for rates in RATES] == pytest.approx(expected)
    assert [rates[1] for rates in RATES] == pytest.approx([rate / 10 for rate in expected])


def test_warmup_rises_to_the_full_rate_and_then_falls():
    factors = [CrossEntropy(epochs=10, warmup_epochs=2).schedule(step, 5) for step in range(50)]
    assert factors[:10] == pytest.approx([(step + 1) / 10 for step in range(10)])
    assert factors[10] == 1.0
    assert all(later < earlier for earlier, later in pairwise(factors[10:]))


def test_defaults_are_those_of_openood():
    plain = CrossEntropy()
    assert (plain.epochs, plain.batch_size, plain.learning_rate) == (100, 128, 0.1)
    assert (plain.momentum, plain.weight_decay) == (0.9, 5e-4)
    assert (plain.augment.pad, plain.augment.flip) == (4, True)
    group = plain.optimizer(TinyNet()).param_groups[0]
    assert group["nesterov"] and group["momentum"] == 0.9 and group["weight_decay"] == 5e-4


def test_settings_are_closed_and_sane():
    for wrong in ({"epoch": 3}, {"epochs": 0}, {"seed": -1}, {"precision": "8"}, {"augment": {"flips": True}}):
        with pytest.raises(ValidationError):
            CrossEntropy(**wrong)
    with pytest.raises(TypeError, match="abstract"):
        Recipe()
