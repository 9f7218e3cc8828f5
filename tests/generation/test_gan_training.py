"""Training a generator: its arithmetic by hand, its resumption to the bit, and that it learns."""

import json
import logging

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from scipy.spatial.distance import pdist
from torch import nn

import oodscope.generation.gan.loop as loop
import oodscope.generation.gan.resumable as resumable
from oodscope.base.errors import DataError, OodscopeError, StorageError
from oodscope.data.imageset import ImageSet
from oodscope.generation.gan.average import Average
from oodscope.generation.gan.health import Variety, measure_variety
from oodscope.generation.gan.losses import discriminator_loss, generator_loss, gradient_penalty
from oodscope.generation.gan.recipe import GanRecipe
from oodscope.generation.gan.stage import write_grid
from oodscope.generation.gan.trained import train_gan
from oodscope.generation.gan.views import covered, recoloured, shifted, view
from oodscope.models.generators.saved import load_generator, read_record
from oodscope.models.generators.stylegan import GeneratorShape
from tests.generation.interrupting import Stopper, save_at_every_step

pytestmark = pytest.mark.slow

TINY = GanRecipe(steps=7, batch_size=8, latent=4, width=2, discriminator_width=2, r1=1.0, r1_every=3)


def squares(count=64, side=8) -> ImageSet:
    """A red or a blue square on dark ground."""
    rng = np.random.default_rng(0)
    images = np.full((count, side, side, 3), 40, dtype=np.uint8)
    inner = slice(side // 4, side - side // 4)
    images[:, inner, inner] = np.array([[220, 30, 30], [30, 60, 220]])[rng.integers(0, 2, count)][:, None, None]
    return ImageSet.from_arrays("squares", images + rng.integers(0, 10, images.shape).astype(np.uint8))


def train(folder, recipe=TINY, **options):
    return train_gan(squares(), recipe, folder=folder, device="cpu", **options)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    train(folder)
    return load_file(folder / "generator.safetensors")


def same(folder, tensors) -> bool:
    found = load_file(folder / "generator.safetensors")
    return found.keys() == tensors.keys() and all(torch.equal(found[key], tensors[key]) for key in found)


def test_losses_are_log_probabilities():
    real, fake = torch.tensor([0.3, -2.0, 5.0]).double(), torch.tensor([1.0, -1.0, 4.0]).double()
    chance = {"real": 1 / (1 + np.exp(-real.numpy())), "fake": 1 / (1 + np.exp(-fake.numpy()))}
    expected = -np.log(chance["real"]).mean() - np.log(1 - chance["fake"]).mean()
    assert float(discriminator_loss(real, fake)) == pytest.approx(expected)
    assert float(generator_loss(fake)) == pytest.approx(-np.log(chance["fake"]).mean())


class Quadratic(nn.Module):
    """D(x) = sum a x² / 2, whose slope is a x."""

    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.tensor([0.5, 2.0]).double())

    def forward(self, images):
        return (self.a[:, None, None] * images.square()).sum((1, 2, 3)) / 2


def test_gradient_penalty_and_its_gradient_by_hand():
    model, images = Quadratic(), torch.randn(5, 2, 3, 3).double()
    penalty = gradient_penalty(model, images)
    squared = images.square().sum((2, 3)).mean(0)
    assert penalty.item() == pytest.approx(float((model.a.detach() ** 2 * squared).sum() / 2))
    penalty.backward()
    torch.testing.assert_close(model.a.grad, model.a.detach() * squared)


def test_average_by_hand():
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    average = Average(model, half_life=10_000)
    expected = model.weight.detach().clone()
    for step in range(1, 6):
        with torch.no_grad():
            model.weight.normal_()
        average.follow(model, images=100, seen=100 * step)
        # the half-life is a twentieth of what was seen, until that exceeds the one asked for
        keep = 0.5 ** (100 / min(10_000, 5 * step))
        expected = keep * expected + (1 - keep) * model.weight.detach()
    torch.testing.assert_close(average.model.weight, expected)
    assert average.keep(100, 10**9) == pytest.approx(0.5**0.01)
    assert average.model.weight.is_leaf and not average.model.weight.requires_grad, "no graph grows behind the average"


HALF = torch.full((3, 1, 1, 1), 0.5)


def test_views_that_change_nothing():
    images = torch.randn(3, 3, 16, 16)
    torch.testing.assert_close(recoloured(images, HALF, HALF, HALF), images)
    assert torch.equal(shifted(images, HALF, HALF), images)


def test_recolouring_by_hand():
    images = torch.rand(1, 3, 4, 4)
    chance = [torch.full((1, 1, 1, 1), value) for value in (0.9, 0.25, 0.8)]
    pixels = images.numpy() + 0.4
    pixels = pixels.mean(1, keepdims=True) + 0.5 * (pixels - pixels.mean(1, keepdims=True))
    pixels = pixels.mean() + 1.3 * (pixels - pixels.mean())
    np.testing.assert_allclose(recoloured(images, *chance).numpy(), pixels, atol=1e-5)
    grey = torch.rand(1, 1, 4, 4)
    torch.testing.assert_close(recoloured(grey, HALF[:1], chance[1], HALF[:1]), grey)


def test_shifts_reach_an_eighth_and_bring_in_grey():
    image = torch.arange(1, 257, dtype=torch.float32).view(1, 1, 16, 16)
    seen = {}
    for chance in np.linspace(0, 0.999, 25):
        moved = shifted(image, torch.full((1, 1, 1, 1), float(chance)), HALF[:1])[0, 0]
        step = next(s for s in range(-3, 4) if torch.equal(moved, shift_by_hand(image[0, 0], s)))
        seen[step] = True
    assert sorted(seen) == [-2, -1, 0, 1, 2]
    sideways = shifted(image, HALF[:1], torch.ones(1, 1, 1, 1))[0, 0]
    assert torch.equal(sideways, shift_by_hand(image[0, 0].T, 2).T)


def shift_by_hand(image, step):
    moved = torch.zeros_like(image)
    for row in range(16):
        if 0 <= row - step < 16:
            moved[row] = image[row - step]
    return moved


def test_the_cover_is_half_as_wide_as_the_image():
    hidden = covered(torch.ones(1, 1, 16, 16), HALF[:1], HALF[:1])[0, 0] == 0
    assert hidden.sum() == 64 and bool(hidden[4:12, 4:12].all())
    corner = covered(torch.ones(1, 1, 16, 16), torch.zeros(1, 1, 1, 1), torch.ones(1, 1, 1, 1))[0, 0] == 0
    assert corner.sum() == 16 and bool(corner[:4, 12:].all())


def test_each_image_has_its_own_view_and_gradients_pass():
    images = torch.ones(6, 3, 16, 16, requires_grad=True)
    shown = view(images, torch.Generator().manual_seed(0), 1.0)
    assert torch.equal(shown, view(images, torch.Generator().manual_seed(0), 1.0))
    assert len({round(float(each.detach().sum()), 3) for each in shown}) == 6
    shown.sum().backward()
    assert float(images.grad.abs().sum()) > 0


def test_a_share_of_the_images_is_varied():
    images = torch.rand(400, 3, 8, 8)
    shown = view(images, torch.Generator().manual_seed(0), 0.3)
    untouched = (shown == images).flatten(1).all(1).float().mean()
    assert float(untouched) == pytest.approx(0.7, abs=0.08)
    assert torch.equal(view(images, torch.Generator(), 0.0), images)


def test_adam_is_slowed_for_the_lazy_penalty():
    made = loop.GanLoop(
        GanRecipe(width=2, discriminator_width=2),
        torch.zeros(4, 3, 8, 8, dtype=torch.uint8),
        GeneratorShape(size=8, width=2),
        None,
        torch.device("cpu"),
        lambda generator: None,
    )
    lazy, plain = made.discriminator_adam.param_groups[0], made.generator_adam.param_groups[0]
    assert (plain["lr"], plain["betas"]) == (2.5e-3, (0.0, 0.99))
    assert lazy["lr"] == pytest.approx(2.5e-3 * 16 / 17) and lazy["betas"] == (0.0, pytest.approx(0.99 ** (16 / 17)))


def test_the_penalty_is_taken_at_every_third_step_with_three_times_its_weight(tmp_path, monkeypatch):
    penalties, descended = [], []

    def penalty(model, images):
        penalties.append(model.logit.bias.sum() + 1)
        return penalties[-1]

    def backward(lost):
        descended.append(lost.detach().clone())
        torch.autograd.backward(lost)

    monkeypatch.setattr(loop, "gradient_penalty", penalty)
    monkeypatch.setattr(loop, "backward", backward)
    train(tmp_path)
    assert len(penalties) == 3 and len(descended) == 7 + 7 + 3, "at steps 0, 3 and 6 of 7"
    assert [float(descended[place]) for place in (1, 8, 15)] == [pytest.approx(3 * p.item()) for p in penalties]


def test_killed_in_the_middle_and_resumed_is_equal_to_the_bit(tmp_path, undisturbed, monkeypatch):
    save_at_every_step(monkeypatch, resumable)
    monkeypatch.setattr(resumable, "REPORT_STEPS", 3)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, progress=Stopper(3))
    assert not (tmp_path / "generator.safetensors").exists() and (tmp_path / "samples.png").exists()
    rest = Stopper()
    resumed = train(tmp_path, progress=rest)
    assert rest.calls == [2, 1, 1, 1, 1, 1], "the step whose report was interrupted is the only one lost"
    assert same(tmp_path, undisturbed)
    assert resumed.history == train(tmp_path.with_name("whole")).history and len(resumed.history) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["generator.safetensors", "samples.png"]


def test_stopped_by_the_clock_leaves_a_generator_and_goes_on(tmp_path, undisturbed):
    stopped = train(tmp_path, stop_after=0.0)
    assert stopped.steps == 1 and not same(tmp_path, undisturbed)
    assert torch.equal(load_generator(tmp_path / "generator.safetensors").constant, stopped.generator.constant)
    whole = train(tmp_path)
    assert whole.steps == 7 and whole.seconds > stopped.seconds and same(tmp_path, undisturbed)


def test_a_finished_training_is_read_back_and_never_overwritten(tmp_path, monkeypatch):
    first = train(tmp_path)
    with pytest.raises(StorageError, match="seed was 0 and is now 1"):
        train(tmp_path, TINY.model_copy(update={"seed": 1}))
    with pytest.raises(StorageError, match="other shape"):
        train(tmp_path, size=16)
    with pytest.raises(StorageError, match="other training images"):
        train_gan(squares(32), TINY, folder=tmp_path, device="cpu")
    monkeypatch.setattr(loop.GanLoop, "run", None)
    again = train(tmp_path)
    assert torch.equal(again.generator.constant, first.generator.constant)
    assert (again.steps, again.variety, again.seconds) == (first.steps, first.variety, first.seconds)


def test_the_file_tells_the_whole_story(tmp_path):
    done = train(tmp_path)
    told = read_record(tmp_path / "generator.safetensors").training
    assert GanRecipe.model_validate(told["recipe"]) == TINY
    assert told["set"] == {"name": "squares", "images": 64, "fingerprint": squares().fingerprint}
    assert told["steps"] == 7 and told["seconds"] == done.seconds > 0
    assert {"torch", "oodscope"} <= told["versions"].keys()
    assert Image.open(tmp_path / "samples.png").size == (8 * 18 + 2, 8 * 18 + 2)
    json.dumps(told)
    styles = done.generator.styles(torch.randn(4000, 4)).detach()
    assert float(styles.mean(0).norm()) > 0.01, "else the next line says nothing"
    torch.testing.assert_close(done.generator.mean_style, styles.mean(0), rtol=0, atol=0.1 * float(styles.std(0).max()))


@pytest.mark.parametrize("change", [{"augment": 0.0}, {"augment": 1.0}, {"flip": True}, {"seed": 1}, {"r1": 0.0}])
def test_every_setting_reaches_the_weights(tmp_path, undisturbed, change):
    train(tmp_path, TINY.model_copy(update=change))
    assert not same(tmp_path, undisturbed)


def test_bfloat16_trains_too(tmp_path, undisturbed):
    train(tmp_path, TINY.model_copy(update={"precision": "bf16-mixed"}))
    found = load_file(tmp_path / "generator.safetensors")
    assert not same(tmp_path, undisturbed)
    assert all(value.dtype == torch.float32 and bool(value.isfinite().all()) for value in found.values())


def test_samples_move_towards_the_training_images(tmp_path):
    recipe = GanRecipe(steps=90, batch_size=16, latent=8, width=8, discriminator_width=8)
    images = squares(256)
    real = torch.from_numpy(np.stack(images.images(range(256)))).permute(0, 3, 1, 2) / 255

    def error(steps):
        made = train_gan(
            images, recipe.model_copy(update={"steps": steps}), folder=tmp_path / str(steps), device="cpu"
        ).generator
        with torch.no_grad():
            drawn = ((made(torch.randn(256, 8, generator=torch.Generator().manual_seed(0))) + 1) / 2).clamp(0, 1)
        return float((drawn.mean(0) - real.mean(0)).abs().mean())

    assert error(90) < 0.5 * error(1)


def test_grey_images_and_other_sizes(tmp_path):
    grey = ImageSet.from_arrays("grey", np.random.default_rng(0).integers(0, 256, (16, 20, 24)).astype(np.uint8))
    done = train_gan(grey, TINY.model_copy(update={"steps": 1}), folder=tmp_path, size=14, device="cpu")
    assert done.generator.shape.size == 14 and done.generator.shape.channels == 1


def test_variety_is_a_mean_distance_and_its_loss_is_mentioned(caplog):
    images = torch.rand(20, 3, 4, 4)
    same_image = images[:1] + 0.01 * torch.rand(20, 3, 4, 4)
    found = measure_variety(same_image, images)
    assert found.real == pytest.approx(pdist(images.flatten(1).numpy()).mean() / np.sqrt(48), rel=1e-5)
    with caplog.at_level(logging.WARNING):
        Variety(drawn=0.26, real=0.5).warn()
        assert not caplog.records
        found.warn()
    assert "the generator has collapsed" in caplog.text


def test_a_diverged_training_stops_with_advice(tmp_path):
    with pytest.raises(OodscopeError, match="diverged before step 7: .* Lower learning_rate"):
        train(tmp_path, TINY.model_copy(update={"learning_rate": 1e30}))
    assert not (tmp_path / "generator.safetensors").exists()


def test_a_grid_is_read_row_by_row(tmp_path):
    levels = torch.tensor([0.0, 0.2, 0.4]).view(3, 1, 1, 1).expand(3, 3, 4, 4)
    write_grid(levels, tmp_path / "grid.png", columns=2, zoom=3)
    sheet = np.asarray(Image.open(tmp_path / "grid.png"))
    assert sheet.shape == (2 * 14 + 2, 2 * 14 + 2, 3)
    first, second, third, none = sheet[2:14, 2:14], sheet[2:14, 16:28], sheet[16:28, 2:14], sheet[16:28, 16:28]
    assert [set(tile.flatten().tolist()) for tile in (first, second, third, none)] == [{0}, {51}, {102}, {255}]


def test_too_few_images(tmp_path):
    with pytest.raises(DataError, match="15 images are too few"):
        train_gan(squares(15), TINY, folder=tmp_path)
