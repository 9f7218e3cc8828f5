"""Near-OOD generators: terms by hand and by their effect, resumption to the bit, collapse, sampling."""

import copy
import json
import logging

import numpy as np
import pytest
import torch
from PIL import Image
from pydantic import ValidationError
from safetensors.torch import load_file
from torch import nn

import oodscope.generation.gan.resumable as resumable
from oodscope.base.errors import DataError, ModelError, OodscopeError, StorageError
from oodscope.data.imageset import ImageSet
from oodscope.generation.gan.average import settle
from oodscope.generation.gan.health import Health, Variety, measure_health
from oodscope.generation.gan.losses import hinge_discriminator_loss, hinge_generator_loss
from oodscope.generation.gan.real import RealImages
from oodscope.generation.near.loop import NearLoop
from oodscope.generation.near.objective import NearObjective, nearest
from oodscope.generation.near.recipe import LAMBDAS, NearRecipe
from oodscope.generation.near.stages import sample, usable
from oodscope.generation.near.trained import fine_tune, fine_tune_grid, train_base
from oodscope.models.generators.biggan import BigGanGenerator, BigGanShape
from oodscope.models.generators.dcgan import DcganGenerator, DcganShape
from oodscope.models.generators.saved import load_generator
from tests import tiny
from tests.generation.interrupting import Stopper, save_at_every_step

pytestmark = pytest.mark.slow

CPU = torch.device("cpu")
TINY = NearRecipe(steps=4, fine_steps=4, batch_size=8, latent=4, width=4, discriminator_width=4)
IMAGES = tiny.imageset("id_train", 64, 1)


def distance(first, second):
    return (first - second).square().mean((1, 2, 3))


def brightness(images):
    return images.mean((1, 2, 3))


def base(folder, recipe=TINY, **options):
    return train_base(recipe, IMAGES, folder=folder, device="cpu", **options)


def fine(trained, weight, folder, perceptual=distance, semantic=brightness, **options):
    return fine_tune(trained, weight, perceptual, semantic, images=IMAGES, folder=folder, device="cpu", **options)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    return base(folder), folder


@pytest.fixture(scope="module")
def tuned(plain, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuned")
    fine(plain[0], 1.0, folder)
    return folder


def same(first, second) -> bool:
    ours, theirs = (load_file(folder / "generator.safetensors") for folder in (first, second))
    return ours.keys() == theirs.keys() and all(torch.equal(ours[key], theirs[key]) for key in ours)


def test_the_grid_of_the_paper():
    assert LAMBDAS == (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0)


def test_the_weight_that_made_hard_images():
    assert NearRecipe().lambda_perceptual == 8


def test_pairs_by_class_need_classes():
    assert NearRecipe().paired_by_class and not NearRecipe(network="dcgan").paired_by_class
    assert not NearRecipe(pairing="nearest").paired_by_class
    with pytest.raises(ValidationError, match="dcgan knows no classes"):
        NearRecipe(network="dcgan", pairing="class")


def test_hinge_losses_by_hand():
    real, fake = torch.tensor([2.0, 0.5, -1.0]), torch.tensor([-3.0, 0.0, 1.5])
    assert float(hinge_discriminator_loss(real, fake)) == pytest.approx((0 + 0.5 + 2) / 3 + (0 + 1 + 2.5) / 3)
    assert float(hinge_generator_loss(fake)) == pytest.approx(0.5)


def test_partners_are_random_images_of_the_class():
    real = RealImages(IMAGES, 8, 3, CPU, conditional=True)
    classes, pixels = torch.arange(400) % 4, torch.from_numpy(np.stack(IMAGES.images(range(64)))).permute(0, 3, 1, 2)
    drawn = real.of_classes(classes, torch.Generator().manual_seed(0))
    rows = (drawn[:, None] == pixels[None] / 127.5 - 1).flatten(2).all(2).float().argmax(1)
    assert torch.equal(torch.from_numpy(IMAGES.labels)[rows], classes)
    assert len(rows.unique()) == 64, "all images of a class have their turn"
    images, labels = real.draw(50, torch.Generator().manual_seed(1))
    again = (images[:, None] == pixels[None] / 127.5 - 1).flatten(2).all(2).float().argmax(1)
    assert torch.equal(torch.from_numpy(IMAGES.labels)[again], labels) and len(again.unique()) > 20


def test_every_second_image_is_mirrored():
    pixels = np.zeros((16, 8, 8), dtype=np.uint8)
    pixels[:, :, 0] = 255
    real = RealImages(ImageSet.from_arrays("edge", pixels), 8, 1, CPU, conditional=False, flip=True)
    drawn = real.draw(400, torch.Generator().manual_seed(0))[0]
    assert float((drawn[:, 0, 0, 7] == 1).float().mean()) == pytest.approx(0.5, abs=0.1)
    assert bool(((drawn[:, 0, 0, 0] == 1) ^ (drawn[:, 0, 0, 7] == 1)).all())


def test_a_class_without_images_or_an_image_without_class_is_named(tmp_path):
    pixels = np.zeros((16, 8, 8, 3), dtype=np.uint8)
    with pytest.raises(DataError, match="'bird' has no image"):
        train_base(TINY, ImageSet.from_arrays("x", pixels, [0, 2] * 8, ["cat", "bird", "dog"]), folder=tmp_path)
    with pytest.raises(DataError, match="needs a label for every image"):
        RealImages(ImageSet.from_arrays("x", pixels), 8, 3, CPU, conditional=True)


def test_the_objective_by_hand():
    drawn, partner = (
        torch.full((4, 3, 2, 2), 0.5),
        torch.tensor([0.0, 0.5, 1.0, 0.7]).view(4, 1, 1, 1).expand(4, 3, 2, 2),
    )
    drawn = (drawn * torch.tensor([0.4, 0.8, 1.2, 1.6]).view(4, 1, 1, 1)).requires_grad_()
    far = np.mean([0.2**2, 0.1**2, 0.4**2, 0.1**2])
    cost, apart, bright = NearObjective(distance, brightness, 2.0, 3.0)(drawn, [partner])
    assert float(apart) == pytest.approx(far) and float(bright) == pytest.approx(0.5)
    assert float(cost) == pytest.approx(2 * far - 3 * 0.5)
    cost, _, bright = NearObjective(distance, brightness, 2.0, 3.0, ceiling=0.45)(drawn, [partner])
    assert float(bright) == pytest.approx(0.5), "what is noted is not cut off"
    assert float(cost) == pytest.approx(2 * far - 3 * np.mean([0.2, 0.4, 0.45, 0.45]))
    NearObjective(distance, brightness, 0.0, 1.0, ceiling=0.45)(drawn, [partner])[0].backward()
    assert (drawn.grad.flatten(1).abs().sum(1) > 0).tolist() == [True, True, False, False]


def test_the_nearest_candidate_is_the_partner():
    drawn, candidates = torch.rand(5, 3, 4, 4, requires_grad=True), [torch.rand(5, 3, 4, 4) for _ in range(6)]
    chosen = nearest(drawn, candidates, distance)
    for row in range(5):
        apart = [float((each[row] - drawn[row]).square().mean()) for each in candidates]
        assert torch.equal(chosen[row], candidates[int(np.argmin(apart))][row])
    smallest = torch.stack([distance(each, drawn) for each in candidates]).amin(0).mean()
    cost, apart, _ = NearObjective(distance, brightness, 1.0, 0.0)(drawn, candidates)
    assert float(apart) == pytest.approx(float(smallest))
    assert torch.allclose(torch.autograd.grad(cost, drawn)[0], torch.autograd.grad(smallest, drawn)[0])


def test_statistics_of_the_average_are_its_own():
    live = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2))
    average = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2))
    average.register_buffer("other", torch.zeros(1))
    live.register_buffer("other", torch.ones(1))
    batches = torch.randn(3, 4, 1, 5, 5)
    settle(average, live, lambda model, number: model(batches[number]), passes=3)
    seen = torch.stack([average[0](batch).transpose(0, 1).flatten(1).mean(1) for batch in batches]).mean(0)
    torch.testing.assert_close(average[1].running_mean, seen.detach())
    assert not average.training and average[1].momentum == 0.1 and float(average.other) == 1


def test_each_term_moves_samples_its_way(plain, tmp_path):
    """Far more of one term than of the other, so that the game cannot hide it."""
    trained, _ = plain
    quick = trained.recipe.model_copy(update={"fine_steps": 25, "learning_rate": 2e-3, "batch_size": 16})

    def after(name, weight, perceptual_weight, **options):
        recipe = quick.model_copy(update={"lambda_perceptual": perceptual_weight})
        made = fine(replaced(trained, recipe), weight, tmp_path / name, **options)
        return sample(made.generator, 128, 0)[0]

    def black(first, second):
        return brightness(second)

    bright = float(after("bright", 30.0, 0.0).mean())
    neither = float(after("neither", 0.0, 0.0).mean())
    dark = float(after("dark", 0.0, 30.0, perceptual=black).mean())
    assert dark < neither - 0.1 and bright > neither + 0.1, (dark, neither, bright)


def replaced(trained, recipe):
    return type(trained)(**{**vars(trained), "recipe": recipe})


def test_partners_have_the_class_of_the_drawn_image(plain, tmp_path):
    trained, _ = plain
    seen = []

    def look(first, second):
        seen.append(quarter(first))
        return distance(first, second)

    loop = NearLoop(
        trained.recipe,
        *(BigGanGenerator(trained.generator.shape), copy.deepcopy(trained.discriminator)),
        RealImages(IMAGES, 8, 3, CPU, conditional=True),
        NearObjective(look, brightness, 1.0, 1.0),
        *(1, None, lambda generator: None),
    )
    asked = []
    loop.generator.register_forward_hook(lambda model, given, made: asked.append(given[1]))
    loop.run(lambda finished: None, None)
    assert torch.equal(seen[0], asked[2]), "the brightest quarter tells the class of a tiny image"
    assert loop.average.half_life == trained.recipe.average_images
    assert len(asked) == 2 + 1, "two steps of the discriminator, one of the generator"


class Toy(nn.Module):
    """A discriminator of one weight: ``judge(images, classes) * weight + constant(images)``."""

    def __init__(self, judge, constant):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        self.judge, self.constant = judge, constant

    def forward(self, images, classes):
        return self.judge(images, classes) * self.weight + self.constant(images)


def played(toy, steps, **changes):
    """A generator after some steps of the plain game against a toy."""
    torch.manual_seed(0)
    recipe = TINY.model_copy(update={"learning_rate": 3e-3, "batch_size": 16, **changes})
    generator = BigGanGenerator(BigGanShape(size=8, classes=4, latent=4, width=4))
    real = RealImages(IMAGES, 8, 3, CPU, conditional=True)
    loop = NearLoop(recipe, generator, toy, real, None, steps, None, lambda generator: None)
    loop.run(lambda finished: None, None)
    return loop.settled()


def test_the_discriminator_learns_what_is_real():
    # drawn images are grey on average before training; real ones are darker
    dark = Toy(lambda images, classes: -brightness(images), lambda images: 0 * brightness(images))
    played(dark, 1)
    assert float(dark.weight) > 1e-3
    fitting = []

    def fits(images, classes):
        fitting.append(quarter(images) == classes)
        return brightness(images)

    played(Toy(fits, lambda images: 0 * brightness(images)), 1)
    assert bool(fitting[0][:16].all()) and not bool(fitting[0][16:].all()), "a real image comes with its own class"


def quarter(images):
    """The class of a tiny image, told by its brightest quarter."""
    return images.detach().unflatten(2, (2, 4)).unflatten(4, (2, 4)).mean((1, 3, 5)).flatten(1).argmax(1)


def test_the_generator_goes_where_the_discriminator_says_real():
    drawn = [
        sample(played(Toy(lambda images, classes: 0 * brightness(images), constant), 15), 64, 0)[0]
        for constant in (brightness, lambda images: -brightness(images))
    ]
    assert float(drawn[0].mean()) > float(drawn[1].mean()) + 0.1


def test_health_looks_within_classes(plain):
    pixels = torch.from_numpy(np.stack(IMAGES.images(range(64)))).permute(0, 3, 1, 2).flatten(1) / 255
    labels = torch.from_numpy(IMAGES.labels)
    within = np.mean([float(torch.pdist(pixels[labels == each]).mean()) / 192**0.5 for each in range(4)])
    assert plain[0].health.variety.real == pytest.approx(within, rel=0.1)
    assert float(torch.pdist(pixels).mean()) / 192**0.5 > 1.4 * within


def test_killed_and_resumed_is_equal_to_the_bit(plain, tuned, tmp_path, monkeypatch):
    trained, whole = plain
    save_at_every_step(monkeypatch, resumable)
    monkeypatch.setattr(resumable, "REPORT_STEPS", 2)
    with pytest.raises(KeyboardInterrupt):
        base(tmp_path / "base", progress=Stopper(3))
    assert not (tmp_path / "base" / "generator.safetensors").exists() and (tmp_path / "base" / "samples.png").exists()
    rest = Stopper()
    again = base(tmp_path / "base", progress=rest)
    assert rest.calls == [2, 1, 1] and same(tmp_path / "base", whole)
    assert [losses.step for losses in again.history] == [2, 4]
    names = ["discriminator.safetensors", "generator.safetensors", "samples.png", "stage.json"]
    assert sorted(path.name for path in (tmp_path / "base").iterdir()) == names

    with pytest.raises(KeyboardInterrupt):
        fine(trained, 1.0, tmp_path / "killed", progress=Stopper(3))
    resumed = fine(again, 1.0, tmp_path / "killed")
    assert same(tmp_path / "killed", tuned) and resumed.history[-1].semantic is not None
    assert not same(tuned, whole)


def test_stopped_by_the_clock_and_read_back(plain, tmp_path, monkeypatch):
    trained, whole = plain
    stopped = base(tmp_path, stop_after=0.0)
    assert stopped.taken == 1 and not stopped.finished
    assert base(tmp_path).finished and same(tmp_path, whole)
    monkeypatch.setattr(NearLoop, "run", None)
    again = base(tmp_path, TINY.model_copy(update={"fine_steps": 9, "lambda_perceptual": 5.0}))
    assert again.taken == 4 and again.health == trained.health and again.recipe.fine_steps == 9
    assert all(torch.equal(a, b) for a, b in zip(again.discriminator.buffers(), trained.discriminator.buffers()))
    with pytest.raises(StorageError, match="seed was 0 and is now 1"):
        base(tmp_path, TINY.model_copy(update={"seed": 1}))


def test_another_base_or_term_is_another_training(plain, tuned, tmp_path):
    trained, _ = plain
    with pytest.raises(StorageError, match="lambda_semantic was 1.0 and is now 2.0"):
        fine(trained, 2.0, tuned)
    with pytest.raises(StorageError, match="other terms"):
        fine(trained, 1.0, tuned, semantic=lambda images: brightness(images))
    with pytest.raises(StorageError, match="other base"):
        fine(base(tmp_path / "other", TINY.model_copy(update={"steps": 2})), 1.0, tuned)


@pytest.mark.parametrize(
    "change",
    [
        *({"augment": 1.0}, {"flip": True}, {"seed": 1}, {"discriminator_steps": 1}, {"batch_size": 4}),
        *({"learning_rate": 1e-3}, {"precision": "bf16-mixed"}),
    ],
)
def test_every_setting_reaches_the_weights(plain, tmp_path, change):
    made = base(tmp_path, TINY.model_copy(update=change))
    assert not same(tmp_path, plain[1])
    assert all(bool(value.isfinite().all()) for value in made.generator.state_dict().values())


@pytest.mark.parametrize("change", [{"lambda_perceptual": 7.0}, {"semantic_ceiling": 0.1}, {"pairing": "nearest"}])
def test_every_fine_setting_reaches_the_weights(plain, tuned, tmp_path, change):
    trained, _ = plain
    fine(replaced(trained, trained.recipe.model_copy(update=change)), 1.0, tmp_path)
    assert not same(tmp_path, tuned)


def test_grey_images_without_classes(tmp_path):
    rng = np.random.default_rng(0)
    grey = ImageSet.from_arrays("grey", rng.integers(0, 256, (16, 28, 28)).astype(np.uint8))
    recipe = TINY.model_copy(update={"network": "dcgan", "steps": 1, "fine_steps": 1, "nearest_of": 3})
    made = train_base(recipe, grey, folder=tmp_path / "base", device="cpu")
    assert isinstance(made.generator, DcganGenerator) and made.generator.shape.size == 28
    compared = []

    def counted(first, second):
        compared.append(len(first))
        return distance(first, second)

    sound = Health(variety=Variety(drawn=1.0, real=1.0))
    made = type(made)(**{**vars(made), "health": sound})
    fine_tune(made, 1.0, counted, brightness, images=grey, folder=tmp_path / "fine", device="cpu")
    assert compared == [8] * 4, "three candidates, then the nearest"


def test_the_record_tells_the_whole_story(plain, tmp_path):
    trained, folder = plain
    made = fine(trained, 0.75, tmp_path)
    told = json.loads((tmp_path / "stage.json").read_text())
    assert told["lambda_semantic"] == 0.75 and told["seed"] == 0 and told["steps"] == 4 and told["device"] == "cpu"
    assert told["seconds"] == made.seconds > 0 and NearRecipe.model_validate(told["recipe"]) == TINY
    assert told["identity"]["terms"] == [["distance", None], ["brightness", None]]
    assert json.loads((folder / "stage.json").read_text())["shape"]["classes"] == 4
    assert Image.open(tmp_path / "samples.png").size == (4 * 18 + 2, 8 * 18 + 2), "a column for each class"


def test_a_grid_is_trained_until_the_time_is_up(plain, tmp_path):
    trained, _ = plain
    options = {"images": IMAGES, "folder": tmp_path, "device": "cpu"}
    made = fine_tune_grid(trained, distance, brightness, lambdas=(0.5, 2.0), **options)
    assert [each.lambda_semantic for each in made] == [0.5, 2.0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lambda-0.5", "lambda-2"]
    assert not same(tmp_path / "lambda-0.5", tmp_path / "lambda-2")
    assert fine_tune_grid(trained, distance, brightness, stop_after=0.0, **options) == []


def test_samples_are_a_function_of_the_seed(plain):
    generator = plain[0].generator
    images, classes = sample(generator, 10, 3)
    again, _ = sample(generator, 10, 3, batch_size=4)
    torch.testing.assert_close(images, again, rtol=0, atol=1e-6)
    assert float((sample(generator, 10, 4)[0] - images).abs().max()) > 1e-3
    assert classes.tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]
    assert float(images.min()) >= 0 and float(images.max()) <= 1
    loaded = load_generator(plain[1] / "generator.safetensors")
    assert torch.equal(sample(loaded, 10, 3)[0], images)
    assert sample(DcganGenerator(DcganShape(size=8, width=2)).eval(), 3, 0)[1].tolist() == [-1, -1, -1]
    with pytest.raises(ModelError, match="training mode"):
        sample(BigGanGenerator(BigGanShape(size=8, latent=4, width=2)), 2, 0)


def test_collapse_within_classes_is_seen():
    torch.manual_seed(0)
    classes = torch.arange(60) % 3
    real, single = torch.rand(60, 3, 4, 4), torch.rand(3, 3, 4, 4)
    repeated = (single[classes] + 0.01 * torch.rand(60, 3, 4, 4)).clamp(0, 1)
    assert measure_health(repeated, real).collapsed is None, "across classes it looks varied"
    found = measure_health(repeated, real, (classes, classes))
    assert "two of its images differ by" in found.collapsed
    expected = np.mean([torch.pdist(real[classes == each].flatten(1)).mean() / 48**0.5 for each in range(3)])
    assert found.variety.real == pytest.approx(expected, rel=1e-5)


def test_a_generator_far_from_all_images_is_seen():
    torch.manual_seed(0)
    real, near = 0.1 * torch.rand(300, 1, 2, 2), 0.1 * torch.rand(300, 1, 2, 2)
    look = {"features": lambda images: images.flatten(1)}
    sound = measure_health(near, real, **look)
    assert sound.collapsed is None and sound.frechet < 0.1 * sound.spread
    assert sound.spread == pytest.approx(real.flatten(1).var(0).sum().item(), rel=1e-4)
    constant = real.mean(0, keepdim=True) + torch.zeros(300, 1, 2, 2)
    assert measure_health(constant, real, **look).frechet == pytest.approx(sound.spread, rel=1e-3)
    assert "Fréchet distance" in measure_health(near + 0.8, real, **look).collapsed


def test_a_collapsed_generator_is_reported_and_not_used(plain, tmp_path, caplog):
    trained, _ = plain
    flat = Health(variety=Variety(drawn=0.01, real=0.3))
    broken = type(trained)(**{**vars(trained), "health": flat, "lambda_semantic": 2.5})
    with caplog.at_level(logging.WARNING):
        assert usable([trained, broken]) == [trained]
    assert "lambda_semantic 2.5 has collapsed and is not used" in caplog.text and caplog.text.count("collapsed") == 1
    with pytest.raises(ModelError, match="plain generator has collapsed"):
        fine(broken, 1.0, tmp_path)


def test_a_diverged_training_stops_with_advice(plain, tmp_path):
    with pytest.raises(OodscopeError, match="diverged before step .* Lower learning_rate"):
        fine(plain[0], 1.0, tmp_path, semantic=lambda images: brightness(images) * float("nan"))
    assert not (tmp_path / "generator.safetensors").exists()
