"""Trainings that bring a network of their own."""

import numpy as np
import pytest
import torch
from torch import nn

from oodscope.base.errors import DataError, ModelError, UsageError
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.execution.progress import SILENT
from oodscope.jobs.stages import check_training, train_chains
from oodscope.training.loop import lockstep
from oodscope.training.methods.autoencoder import AutoencoderRecipe
from oodscope.training.methods.glow import GlowRecipe
from oodscope.training.methods.nae import NAERecipe
from oodscope.training.methods.pixelcnn import PixelCNNRecipe
from oodscope.training.recipe import Batch, Scale, TrainingFacts
from oodscope.training.train import train
from tests import tiny
from tests.training.training_toys import StoppedError, same_weights, stop_at

FAST = {"epochs": 2, "batch_size": 32}
RECIPES = {
    "autoencoder": AutoencoderRecipe(**FAST, width=8, code=8),
    "glow": GlowRecipe(**FAST, flow_steps=2, width=8),
    "pixelcnn": PixelCNNRecipe(**FAST, filters=6, blocks=1, resolutions=2, mixtures=2),
    "nae": NAERecipe(
        **{**FAST, "epochs": 3}, plain_epochs=2, width=8, code=4, memory=64, latent_steps=2, pixel_steps=2
    ),
}
PLAIN = Preprocess(size=8)


def smooth(count=128, seed=0):
    """Pictures with little detail, without labels."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(60, 200, (count, 2, 2, 3)).repeat(4, 1).repeat(4, 2)
    return ImageSet.from_arrays(f"smooth{seed}", (coarse + rng.integers(-6, 7, coarse.shape)).astype(np.uint8))


def noise(count=256):
    pixels = np.random.default_rng(9).integers(0, 256, (count, 8, 8, 3)).astype(np.uint8)
    return ImageSet.from_arrays("noise", pixels)


def pixels(images):
    return torch.from_numpy(np.stack(images.images(np.arange(len(images))))).permute(0, 3, 1, 2) / 255


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_noise_is_found_odd_and_halves_of_id_are_not(name):
    recipe = RECIPES[name].model_copy(update={"epochs": RECIPES[name].epochs + 10, "learning_rate": 3e-3})
    trained = train(nn.Identity(), recipe, smooth(), PLAIN, device="cpu")
    with torch.no_grad():
        usual, odd = (trained.model(pixels(each)) for each in (smooth(400, 2), noise(64)))
    assert float((odd[:, None] > usual).float().mean()) > 0.97
    half = float((usual[:200, None] > usual[200:]).float().mean())
    assert abs(half - 0.5) < 3 * np.sqrt(401 / (12 * 200 * 200)), "two halves are told apart no better than chance"


@pytest.mark.parametrize("name", ["glow", "pixelcnn"])
def test_uniform_noise_costs_eight_bits_even_if_trained_on_it(name):
    trained = train(nn.Identity(), RECIPES[name], noise(), PLAIN, device="cpu")
    shown = pixels(noise())
    with torch.no_grad():
        if name == "glow":
            bits = trained.model.dequantised(shown, torch.rand(shown.shape, generator=torch.Generator().manual_seed(0)))
        else:
            bits = trained.model(shown)
    assert 8 <= float(bits.mean()) < 10


@pytest.mark.parametrize("name", ["glow", "nae"])
def test_stopped_in_the_middle_and_resumed_is_equal(name, tmp_path, monkeypatch):
    """The actnorms are not set again, and the memory of chains comes back."""
    recipe = RECIPES[name]
    whole = train(nn.Identity(), recipe, smooth(), PLAIN, device="cpu").model
    monkeypatch.setattr(lockstep, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(lockstep, "SAVING_SHARE", float("inf"))
    with pytest.raises(StoppedError):
        stop = stop_at(10 if name == "nae" else 5)
        train(nn.Identity(), recipe, smooth(), PLAIN, folder=tmp_path, device="cpu", progress=stop)
    again = train(nn.Identity(), recipe, smooth(), PLAIN, folder=tmp_path, device="cpu").model
    assert same_weights(whole, again)


def test_validation_images_are_judged_by_their_loss():
    recipe = RECIPES["nae"].model_copy(update={"keep": "best"})
    trained = train(nn.Identity(), recipe, smooth(), PLAIN, val=smooth(32, 1), device="cpu")
    assert all(epoch.val_loss is not None and epoch.val_accuracy is None for epoch in trained.history)
    with pytest.raises(DataError, match="keep='best' chooses by validation loss: give a val set"):
        train(nn.Identity(), recipe, smooth(), PLAIN, device="cpu")


def batch(recipe, count=8):
    shown = torch.randint(256, (count, 3, 8, 8), generator=torch.Generator().manual_seed(0)) / 255
    scale = Scale(torch.full((1, 3, 1, 1), 0.4), torch.full((1, 3, 1, 1), 0.2))
    draws = torch.Generator().manual_seed(1)
    rows = torch.arange(count)
    return shown, Batch(scale.from_pixels(shown), rows, rows, draws=draws, scale=scale, epoch=0)


def test_pixels_come_back_from_the_normalised_batch_and_some_are_replaced():
    plain, mutated = GlowRecipe(), GlowRecipe(mutation=0.25)
    shown, given = batch(plain)
    assert torch.equal((plain.pixels(given) * 255).round(), (shown * 255).round())
    changed = (mutated.pixels(given) != plain.pixels(given)).float().mean().item()
    assert changed == pytest.approx(0.25 * 255 / 256, abs=0.04)


def test_the_rate_falls_to_a_tenth_and_then_to_that_of_sampling():
    recipe = NAERecipe(epochs=43, plain_epochs=40)
    rates = [recipe.learning_rate * recipe.schedule(step, 10) for step in (0, 399, 400, 429)]
    assert rates == pytest.approx([1e-3, 1e-4, 1e-5, 1e-5], rel=0.01)


@pytest.mark.parametrize(
    ("recipe", "size", "words"),
    [
        (GlowRecipe(), 28, "a flow of 3 levels halves its images 3 times"),
        (PixelCNNRecipe(), 30, "a PixelCNN of 3 resolutions"),
        (AutoencoderRecipe(), 20, "the autoencoder halves its images 3 times"),
        (NAERecipe(), 20, "the normalised autoencoder halves its images 3 times"),
    ],
)
def test_sizes_that_cannot_be_halved_are_refused_before_any_training(recipe, size, words):
    with pytest.raises(ModelError, match=words):
        recipe.check(TrainingFacts(class_names=(), n_train=10, size=size))


def test_grey_images_get_a_grey_flow():
    grey = Preprocess(size=8, mean=(0.0,), std=(1.0,))
    trained = train(nn.Identity(), RECIPES["glow"].model_copy(update={"epochs": 1}), smooth(64), grey, device="cpu")
    assert trained.model.shape.channels == 1
    with pytest.raises(ModelError, match="grey images .1 channel., and these have 3 channels"):
        trained.model(torch.rand(1, 3, 8, 8))


def test_it_is_no_stage_of_a_chain_and_starts_from_no_weights(tmp_path):
    glow = RECIPES["glow"]
    with pytest.raises(UsageError, match="glow trains a network of its own, so it can be no stage of a chain"):
        check_training([glow, glow], tiny.benchmark())
    with pytest.raises(UsageError, match="from random weights; remove weights"):
        train_chains("glow", [[glow]], tiny.benchmark(), [[tmp_path]], "cpu", SILENT, weights="a.safetensors")
