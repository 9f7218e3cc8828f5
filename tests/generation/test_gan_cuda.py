"""On a GPU the generator draws the same images, trains in bfloat16, and never makes the host wait."""

import numpy as np
import pytest
import torch

import oodscope.generation.gan.loop as loop
from oodscope.data.imageset import ImageSet
from oodscope.generation.gan.recipe import GanRecipe
from oodscope.generation.gan.trained import train_gan
from oodscope.generation.variations.gan import GanVariation
from oodscope.models.generators.stylegan import GeneratorShape, StyleGenerator
from oodscope.training.loop.replay import REHEARSALS

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]

RECIPE = GanRecipe(steps=40, batch_size=32, width=16, discriminator_width=16, precision="bf16-mixed")


def test_the_same_images_on_both_devices():
    torch.manual_seed(0)
    variation = GanVariation(StyleGenerator(GeneratorShape()))
    points = variation.domain.draw(16, torch.Generator().manual_seed(1))
    with torch.no_grad(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        there = variation.to("cuda")(points.cuda()).cpu()
        torch.testing.assert_close(there, variation(points), rtol=0, atol=1e-4)


def test_a_step_never_waits_for_the_device():
    pixels = torch.randint(0, 256, (100, 3, 32, 32), dtype=torch.uint8)
    made = loop.GanLoop(RECIPE, pixels, GeneratorShape(width=16), None, torch.device("cuda", 0), lambda generator: None)
    for _ in range(REHEARSALS * RECIPE.r1_every + 1):
        made._descend()
    assert made.replays[False].recorded and made.replays[True].recorded
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(RECIPE.r1_every + 1):
            made._descend()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_trains_and_goes_on(tmp_path):
    rng = np.random.default_rng(0)
    images = ImageSet.from_arrays("dark", rng.integers(0, 60, (64, 32, 32, 3)).astype(np.uint8))
    stopped = train_gan(images, RECIPE, folder=tmp_path, device="cuda", stop_after=0.0)
    whole = train_gan(images, RECIPE, folder=tmp_path, device="cuda")
    assert (stopped.steps, whole.steps) == (1, 40)
    assert all(value.device.type == "cpu" for value in whole.generator.state_dict().values())
