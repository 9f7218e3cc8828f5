"""On a GPU near-OOD and shifted generators train in bfloat16, never make the host wait, and repeat their digits."""

import pytest
import torch

import oodscope.training.loop.replay as replay
from oodscope.generation.gan.real import RealImages
from oodscope.generation.near.loop import NearLoop
from oodscope.generation.near.objective import NearObjective
from oodscope.generation.near.recipe import NearRecipe
from oodscope.generation.near.trained import build_networks, near_shape, train_base
from oodscope.generation.shifted.loop import ShiftedLoop, ShiftedObjective
from oodscope.generation.shifted.recipe import ShiftedRecipe
from oodscope.generation.shifted.trained import train_shifted
from oodscope.models.generators.pix2pix import UnetShape
from oodscope.training.loop.replay import REHEARSALS
from tests import tiny

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]

CUDA = torch.device("cuda", 0)
IMAGES = tiny.imageset("id_train", 64, 1)
NEAR = NearRecipe(
    steps=20, batch_size=16, width=16, discriminator_width=16, precision="bf16-mixed", augment=0.5, flip=True
)
SHIFTED = ShiftedRecipe(
    steps=20, batch_size=16, width=16, discriminator_width=16, partner="class", precision="bf16-mixed"
)
DCGAN = NEAR.model_copy(update={"network": "dcgan"})


def distance(first, second):
    return (first - second).square().mean((1, 2, 3))


def brightness(images):
    return images.mean((1, 2, 3))


class Colours:
    """Two members that see six classes in three colours."""

    def logits(self, images):
        return images.mean((2, 3)).repeat(2, 1, 2)


def near_loop(recipe, semantic=brightness):
    real = RealImages(IMAGES, 32, 3, CUDA, conditional=recipe.network == "biggan", flip=True)
    objective = NearObjective(distance, semantic, 1.0, 1.0, ceiling=0.4)
    torch.manual_seed(0)
    networks = build_networks(recipe, near_shape(recipe, IMAGES, 32))
    return NearLoop(recipe, *networks, real, objective, 20, None, lambda generator: None)


def shifted_loop():
    real = RealImages(IMAGES, 32, 3, CUDA, conditional=True)
    objective = ShiftedObjective(distance, Colours(), 2.0, 1.0, 1.0)
    torch.manual_seed(0)
    return ShiftedLoop(SHIFTED, UnetShape(size=32, width=16), real, objective, None, lambda generator: None)


@pytest.mark.parametrize(
    "make", [lambda: near_loop(NEAR), lambda: near_loop(DCGAN), shifted_loop], ids=["biggan", "dcgan", "pix2pix"]
)
def test_a_step_never_waits_for_the_device(make):
    loop = make()
    for _ in range(REHEARSALS + 1):
        loop._descend()
    assert loop.replay.recorded
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(3):
            loop._descend()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def weights(loop):
    """After all steps, and the losses on the way."""
    loop.run(lambda finished: None, None)
    return [*(value.clone() for value in loop.generator.state_dict().values()), *loop.pending]


def assert_equal(first, second):
    assert len(first) == len(second) and all(torch.equal(one, other) for one, other in zip(first, second))


@pytest.mark.parametrize(
    "make", [lambda: near_loop(NEAR), lambda: near_loop(DCGAN), shifted_loop], ids=["biggan", "dcgan", "pix2pix"]
)
def test_a_recording_has_the_digits_of_the_plain_steps(make, monkeypatch):
    replayed = make()
    found = weights(replayed)
    assert replayed.replay.recorded
    monkeypatch.setattr(replay, "REHEARSALS", 10**9)
    plain = make()
    assert_equal(found, weights(plain))
    assert not plain.replay.recorded


def test_a_term_that_asks_the_host_is_taken_plainly():
    def asking(images):
        shade = brightness(images)
        return shade * 1.0 if float(shade.mean()) > -1 else shade

    asked = near_loop(NEAR, asking)
    found = weights(asked)
    assert not asked.replay.recorded
    assert_equal(found, weights(near_loop(NEAR)))


def test_two_trainings_are_equal_to_the_bit(tmp_path):
    first, second = (
        train_base(NEAR, IMAGES, folder=tmp_path / name, size=32, device="cuda").generator.state_dict() for name in "ab"
    )
    assert all(torch.equal(first[key], second[key]) for key in first)
    shifted = [
        train_shifted(SHIFTED, IMAGES, distance, Colours(), folder=tmp_path / name, size=32, device="cuda")
        for name in "cd"
    ]
    states = [each.generator.state_dict() for each in shifted]
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])
