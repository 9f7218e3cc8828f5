"""Shifted generators: terms by hand and by their effect, resumption to the bit, redrawing."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import oodscope.generation.gan.resumable as resumable
from oodscope.base.errors import ModelError, StorageError
from oodscope.generation.distances.semantic import information
from oodscope.generation.gan.real import RealImages
from oodscope.generation.gan.resumable import short_memory_adam
from oodscope.generation.shifted.loop import ShiftedLoop, ShiftedObjective, mean_cross_entropy
from oodscope.generation.shifted.recipe import ShiftedRecipe
from oodscope.generation.shifted.trained import shift, train_shifted
from oodscope.models.generators.pix2pix import UnetGenerator, UnetShape
from oodscope.models.generators.saved import load_generator
from tests import tiny
from tests.generation.interrupting import Stopper, save_at_every_step

pytestmark = pytest.mark.slow

TINY = ShiftedRecipe(steps=4, batch_size=8, width=4, discriminator_width=4)
IMAGES = tiny.imageset("id_train", 64, 1)


def distance(first, second):
    return (first - second).square().mean((1, 2, 3))


def brightness(images):
    return images.mean((1, 2, 3))


class Red:
    """Two members that take an image for class 1 if it is red, for class 0 if it is blue."""

    def logits(self, images):
        score = (images[:, 0] - images[:, 2]).mean((1, 2))
        return torch.stack([torch.stack([-score, score, score * 0, score * 0], 1)] * 2)


class Dazzled:
    """Two members that disagree the more, the brighter an image is."""

    def logits(self, images):
        score = 5 * brightness(images)
        return torch.stack([torch.stack([score * (k == member) for k in range(4)], 1) for member in range(2)])


def train(folder, recipe=TINY, members=None, **options):
    return train_shifted(recipe, IMAGES, distance, members or Dazzled(), folder=folder, device="cpu", **options)


def same(first, second) -> bool:
    ours, theirs = (load_file(folder / "generator.safetensors") for folder in (first, second))
    return ours.keys() == theirs.keys() and all(torch.equal(ours[key], theirs[key]) for key in ours)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return train(folder), folder


def test_a_distance_that_shows_and_a_weight_for_the_class():
    recipe = ShiftedRecipe()
    assert (recipe.lambda_perceptual, recipe.lambda_semantic, recipe.lambda_label) == (9, 1, 1)


def test_the_objective_by_hand():
    given, drawn = torch.full((2, 3, 2, 2), 0.2), torch.full((2, 3, 2, 2), 0.7)
    logits = torch.tensor([[[1.0, 2.0, 0.0], [0.0, 0.0, 4.0]], [[-1.0, 0.0, 0.5], [3.0, 1.0, 1.0]]])
    labels, expected = torch.tensor([1, 2]), []
    for member, image in np.ndindex(2, 2):
        weights = np.exp(logits[member, image].double().numpy())
        expected.append(-np.log(weights[labels[image]] / weights.sum()))
    assert float(mean_cross_entropy(logits, labels)) == pytest.approx(np.mean(expected))
    members = SimpleNamespace(logits=lambda images: logits if images is drawn else None)
    terms = ShiftedObjective(distance, members, 2.0, 3.0, 5.0)(given, drawn, labels)
    doubt = float(information(logits).mean())
    total = -2 * 0.25 + 3 * doubt + 5 * np.mean(expected)
    assert [float(term) for term in terms] == pytest.approx([total, 0.25, doubt, np.mean(expected)])


def test_each_term_moves_images_its_way(tmp_path):
    quick = TINY.model_copy(update={"steps": 25, "learning_rate": 3e-3, "batch_size": 16})
    given = torch.from_numpy(np.stack(IMAGES.images(range(64)))).permute(0, 3, 1, 2) / 255
    labels = torch.from_numpy(IMAGES.labels)

    def after(name, perceptual, semantic, label=0.0, **options):
        weights = {"lambda_perceptual": perceptual, "lambda_semantic": semantic, "lambda_label": label}
        recipe = quick.model_copy(update=weights)
        return shift(train(tmp_path / name, recipe, **options).generator, given, 0)

    neither, far, dark = after("neither", 0.0, 0.0), after("far", 50.0, 0.0), after("dark", 0.0, 30.0)
    assert float(distance(given, far).mean()) > 1.5 * float(distance(given, neither).mean()), "unlike the given image"
    assert float(dark.mean()) < float(neither.mean()) - 0.1, "information (here: of bright images) falls"
    told = after("told", 0.0, 0.0, 300.0, members=Red())
    redness = [float((told[:, 0] - told[:, 2])[labels == each].mean()) for each in (0, 1)]
    assert redness[1] > redness[0] + 0.05, "classes keep apart where the ensemble must name them"


class Toy(nn.Module):
    """A discriminator of one weight: ``judge(given, drawn) * weight + constant(drawn)``."""

    def __init__(self, judge, constant):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        self.judge, self.constant = judge, constant

    def forward(self, given, drawn):
        return self.judge(given, drawn) * self.weight + self.constant(drawn)


def played(toy, steps):
    """A generator after some steps of the plain game against a toy."""
    torch.manual_seed(0)
    recipe = TINY.model_copy(update={"steps": steps, "learning_rate": 3e-3, "batch_size": 16})
    real = RealImages(IMAGES, 8, 3, torch.device("cpu"), conditional=True)
    nothing = ShiftedObjective(distance, Dazzled(), 0.0, 0.0, 0.0)
    loop = ShiftedLoop(recipe, UnetShape(size=8, width=4), real, nothing, None, lambda generator: None)
    loop.discriminator, loop.discriminator_adam = toy, short_memory_adam(toy, recipe.learning_rate, loop.device)
    loop.run(lambda finished: None, None)
    return loop.generator.eval()


def test_the_discriminator_learns_that_real_pairs_are_equal():
    alike = Toy(lambda given, drawn: -distance(given, drawn), lambda drawn: 0 * brightness(drawn))
    played(alike, 1)
    assert float(alike.weight) > 1e-3


def test_the_generator_goes_where_the_discriminator_says_real():
    images = torch.rand(32, 3, 8, 8)
    drawn = [
        shift(played(Toy(lambda given, drawn: 0 * brightness(drawn), constant), 15), images, 0)
        for constant in (brightness, lambda drawn: -brightness(drawn))
    ]
    assert float(drawn[0].mean()) > float(drawn[1].mean()) + 0.1


def test_killed_and_resumed_is_equal_to_the_bit(whole, tmp_path, monkeypatch):
    save_at_every_step(monkeypatch, resumable)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, progress=Stopper(3))
    rest = Stopper()
    train(tmp_path, progress=rest)
    assert rest.calls == [2, 1, 1] and same(tmp_path, whole[1])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["generator.safetensors", "samples.png", "stage.json"]


def test_stopped_by_the_clock_and_read_back(whole, tmp_path):
    assert train(tmp_path, stop_after=0.0).taken == 1
    assert train(tmp_path).taken == 4 and same(tmp_path, whole[1])
    again = train(tmp_path)
    assert again.health == whole[0].health and again.taken == 4
    with pytest.raises(StorageError, match="lambda_perceptual was 9.0 and is now 3.0"):
        train(tmp_path, TINY.model_copy(update={"lambda_perceptual": 3.0}))


@pytest.mark.parametrize("change", [{"partner": "class"}, {"flip": True}, {"seed": 1}, {"precision": "bf16-mixed"}])
def test_every_setting_reaches_the_weights(whole, tmp_path, change):
    train(tmp_path, TINY.model_copy(update=change))
    assert not same(tmp_path, whole[1])


def test_redrawing_is_a_function_of_images_and_seed(whole):
    generator, images = whole[0].generator, torch.rand(10, 3, 8, 8)
    first = shift(generator, images, 1)
    assert torch.equal(shift(generator, images, 1), first) and first.shape == images.shape
    assert float(first.min()) >= 0 and float(first.max()) <= 1
    assert float((shift(generator, images, 2) - first).abs().max()) > 1e-4, "dropout is noise"
    assert torch.equal(shift(load_generator(whole[1] / "generator.safetensors"), images, 1), first)
    with pytest.raises(ModelError, match="training mode"):
        shift(UnetGenerator(UnetShape(size=8, width=2)), images, 1)


def test_the_record_tells_the_whole_story(whole):
    told = json.loads((whole[1] / "stage.json").read_text())
    assert ShiftedRecipe.model_validate(told["recipe"]) == TINY and told["seed"] == 0 and told["steps"] == 4
    assert told["seconds"] == whole[0].seconds > 0 and told["set"]["images"] == 64
    assert told["collapsed"] == whole[0].health.collapsed
