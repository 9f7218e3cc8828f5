"""Generated sets from plan to files: the order of the choice, every method, and the same images again."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from oodscope.base.errors import DataError, ModelError, OodscopeError, StorageError
from oodscope.data.generated.files import open_generated
from oodscope.data.generated.record import read_generated
from oodscope.generation.distances.semantic import EnsembleInformation
from oodscope.generation.near.stages import sample
from oodscope.generation.sets.making import difference, make_set, plan_of, remake_set
from oodscope.generation.sets.plan import SetPlan
from oodscope.generation.sets.pool import Pool, frame_of, read_pool
from oodscope.generation.sets.selecting import select_near, select_shifted
from oodscope.metrics.generated.information import Window, overlap_window
from oodscope.models.generators.saved import save_generator
from oodscope.models.generators.stylegan import GeneratorShape, StyleGenerator
from oodscope.training.augment.crop import Augment
from oodscope.training.methods.cross_entropy import CrossEntropy
from tests import tiny

ENSEMBLE = CrossEntropy(epochs=2, batch_size=40, learning_rate=0.05, augment=Augment(pad=0, flip=False))
SMALL = {"architectures": ("small_cnn", "small_cnn"), "ensemble": ENSEMBLE}
GAN = {"steps": 2, "batch_size": 4, "width": 4, "discriminator_width": 4}


class Brightness:
    """An ensemble whose mutual information is the red of the first pixel, 0 to 2.55 nats, and whose class its green."""

    def of_pixels(self, pixels):
        return pixels[:, 0, 0, 0].double().numpy() / 100

    def information_and_class(self, pixels):
        return self.of_pixels(pixels), pixels[:, 1, 0, 0].long()


def bright(levels):
    """Images that show the class that they were made from."""
    pixels = torch.zeros(len(levels), 3, 4, 4, dtype=torch.uint8)
    pixels[:, 0, 0, 0] = torch.tensor(levels)
    pixels[:, 1, 0, 0] = torch.arange(len(levels))
    return Pool.of(pixels, torch.arange(len(levels)))


def test_the_window_is_that_of_pool_and_validation():
    val, pool = bright([0, 1, 2, 3, 4] * 4), bright([2, 3, 17, 20, 25, 40, 54, 60, 61, 99])
    pool.pixels[:, 1] = 77
    chosen = select_near(pool, val, Brightness(), 4)
    assert chosen.class_seen == 0.0
    expected = overlap_window(np.array([0, 1, 2, 3, 4] * 4) / 100, pool.pixels[:, 0, 0, 0].numpy() / 100)
    assert chosen.window == expected == Window(0.05, 0.45)
    assert chosen.pool.labels.tolist() == [2, 3, 4, 5] and chosen.kept == 4
    assert chosen.information.tolist() == pytest.approx([0.17, 0.2, 0.25, 0.4])
    assert torch.equal(chosen.pool.pixels, pool.pixels[2:6])


def test_the_window_rises_while_most_images_show_their_class():
    val, pool = bright([0, 1, 2, 3, 4] * 4), bright([2, 3, 17, 20, 25, 40, 54, 60, 61, 99])
    pool.pixels[6:, 1] = 77
    chosen = select_near(pool, val, Brightness(), 5)
    assert chosen.window == Window(0.25, 0.65) and chosen.class_seen == 0.4
    assert chosen.pool.labels.tolist() == [4, 5, 6, 7, 8]
    as_many = select_near(pool, val, Brightness(), 6)
    assert as_many.window == Window(0.05, 0.45), "not where it would leave fewer than were asked for"


def test_ends_belong_to_a_given_window_and_the_count_is_drawn():
    pool, val = bright([19, 20, 30, 40, 50, 60, 61] * 20), bright([0])
    chosen = select_near(pool, val, Brightness(), 30, seed=1, window=Window(0.2, 0.6))
    assert chosen.kept == 100 and len(chosen.pool) == 30
    assert set((chosen.information * 100).round().astype(int)) == {20, 30, 40, 50, 60}
    assert (np.diff(chosen.pool.labels.numpy()) > 0).all(), "in the order of the pool"
    other = select_near(pool, val, Brightness(), 30, seed=2, window=Window(0.2, 0.6))
    assert chosen.pool.labels.tolist() != other.pool.labels.tolist()
    histograms = chosen.histograms()
    assert {name: sum(counts) for name, counts in histograms.items()} == {"val": 1, "pool": 140, "chosen": 30}
    assert histograms["pool"][:5] == [0, 0, 0, 20, 20], "bars of .05 from 0 on"


def test_shifted_images_are_as_certain_as_validation_images():
    val, pool = bright(list(range(101))), bright([0, 50, 95, 96, 200])
    chosen = select_shifted(pool, val, Brightness(), 10)
    assert chosen.window == Window(0.0, 0.95) and chosen.pool.labels.tolist() == [0, 1, 2]
    sure = select_shifted(pool, bright([0] * 20), Brightness(), 10)
    assert sure.window == Window(0.0, 0.05), "members that know every image by heart may still be called agreed"


def test_shifted_images_show_the_class_that_they_were_drawn_from():
    val, pool = bright(list(range(101))), bright([0, 50, 95, 96, 200])
    pool.pixels[1, 1] = 77
    chosen = select_shifted(pool, val, Brightness(), 10)
    assert chosen.pool.labels.tolist() == [0, 2] and chosen.kept == 2
    pool.pixels[:, 1] = 77
    with pytest.raises(DataError, match="none of 5 shifted images.*larger lambda_label"):
        select_shifted(pool, val, Brightness(), 10)


def test_an_empty_choice_says_what_there_was():
    with pytest.raises(DataError, match=r"none of 2 generated images.*within \[0.5, 0.9\].*0.01 to 0.03, median 0.02"):
        select_near(bright([1, 3]), bright([0]), Brightness(), 5, window=Window(0.5, 0.9))


def test_pools_hold_what_will_be_stored():
    floats = torch.tensor([0.0, 0.0019, 0.0021, 1.0]).view(4, 1, 1, 1)
    assert Pool.of(floats, torch.zeros(4)).pixels.flatten().tolist() == [0, 0, 1, 255]
    with pytest.raises(DataError, match="as many labels"):
        Pool.of(floats, torch.zeros(3))
    images = tiny.imageset("some", 20, 0)
    pool = read_pool(images, frame_of(images))
    assert np.array_equal(pool.pixels.permute(0, 2, 3, 1).numpy(), np.stack(images.images(range(20))))
    assert pool.labels.tolist() == images.labels.tolist() and pool.rows.tolist() == list(range(20))


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """One folder for what is trained, so that the ensemble is trained once."""
    return tmp_path_factory.mktemp("work")


def made(plan, folder, work, **options):
    sets = tiny.imageset("id_train", 120, 1), tiny.imageset("id_val", 40, 2)
    return make_set(plan, *sets, folder, work=work, device="cpu", **options)


def plan(**settings):
    return SetPlan(**{"count": 12, "pool": 40, "window": (0.0, 1.0), "class_share": 1.0, **SMALL, **settings})


@pytest.fixture(scope="module")
def recombined(tmp_path_factory, work):
    folder = tmp_path_factory.mktemp("sets") / "near"
    return folder, made(plan(pieces=2), folder, work)


def test_recombination_without_a_generator(recombined):
    folder, result = recombined
    images, recipe = open_generated(folder), read_generated(folder).recipe
    assert len(images) == 12 and images.class_names == tuple(f"class {c}" for c in range(4))
    assert recipe["method"] == "recombination" and recipe["window"] == [0.0, 1.0]
    assert recipe["pool"] == {"images": 40, "kept": 40, "chosen": 12}
    assert recipe["ensemble"] == {each.name: each.fingerprint for each in result.ensemble}
    assert recipe["id_train"]["images"] == 120 and recipe["versions"]["torch"] == torch.__version__
    known = {
        (y, x, image[4 * y : 4 * y + 4, 4 * x : 4 * x + 4].tobytes())
        for image in tiny.images(120, 1)[0]
        for y in range(2)
        for x in range(2)
    }
    for image in images.images(range(12)):
        cells = {(y, x, image[4 * y : 4 * y + 4, 4 * x : 4 * x + 4].tobytes()) for y in range(2) for x in range(2)}
        assert cells <= known


def test_a_set_is_made_again_from_its_recipe(recombined, tmp_path):
    folder, _ = recombined
    train, val = tiny.imageset("id_train", 120, 1), tiny.imageset("id_val", 40, 2)
    options = {"work": tmp_path / "elsewhere", "device": "cpu"}
    assert remake_set(folder, train, val, tmp_path / "again", **options) == ""
    assert read_generated(tmp_path / "again") == read_generated(folder)
    other = made(plan_of(folder).model_copy(update={"seed": 1}), tmp_path / "other", tmp_path / "elsewhere").record
    found = difference(read_generated(folder), other)
    assert found.startswith("12 of 12 images differ; the recipes differ in plan")
    with pytest.raises(DataError, match=r"recipe.json: made from other images as id_val \(id_val, 40 images\)"):
        remake_set(folder, train, tiny.imageset("id_val", 40, 9), tmp_path / "no", **options)


def test_information_is_that_of_the_stored_pixels(recombined):
    from oodscope.generation.distances.semantic import EnsembleInformation

    folder, result = recombined
    images = open_generated(folder)
    pixels = torch.from_numpy(np.stack(images.images(range(12)))).permute(0, 3, 1, 2)
    told = [each.information for each in read_generated(folder).files]
    assert told == pytest.approx(EnsembleInformation(result.ensemble).of_pixels(pixels).tolist(), abs=1e-7)


def test_latents_of_a_plain_generator(tmp_path, work):
    torch.manual_seed(0)
    shape = GeneratorShape(size=8, channels=3, latent=4, width=3, mapping_layers=1)
    save_generator(StyleGenerator(shape), tmp_path / "g.safetensors", {})
    asked = plan(method="latent", generator=str(tmp_path / "g.safetensors"), budget=3, lambdas=(1.0,), pool=14)
    record = made(asked, tmp_path / "near", work).record
    assert record.recipe["perceptual"] == "cosine-distance:small_cnn-seed0"
    assert record.recipe["generator"]["dimension"] == 4
    assert len(open_generated(tmp_path / "near")) == 12
    other = GeneratorShape(size=16, channels=3, latent=4, width=3, mapping_layers=1)
    save_generator(StyleGenerator(other), tmp_path / "h.safetensors", {})
    with pytest.raises(OodscopeError, match=r"draws images of \[3, 16, 16\].*are \[3, 8, 8\]"):
        made(asked.model_copy(update={"generator": str(tmp_path / "h.safetensors")}), tmp_path / "no", work)


@pytest.fixture
def any_variety(monkeypatch):
    """Generators of two steps draw much the same image each time; let them pass for good ones."""
    monkeypatch.setattr("oodscope.generation.gan.health.COLLAPSED", 0.0)


def test_generators_fine_tuned_for_each_weight(tmp_path, work, any_variety, monkeypatch):
    seeds = []

    def watched(generator, count, seed):
        seeds.append(seed)
        return sample(generator, count, seed)

    monkeypatch.setattr("oodscope.generation.sets.pool.sample", watched)
    near = {**GAN, "network": "dcgan", "fine_steps": 2, "latent": 4}
    record = made(plan(method="gan", near=near, lambdas=(0.5, 3.0), pool=21), tmp_path / "near", work).record
    assert set(record.recipe["generators"]) == {"0.5", "3"}
    assert record.recipe["pool"]["images"] == 22, "an equal share of each"
    assert len(set(seeds)) == 2, "of other latents"


def test_a_generator_without_classes_keeps_those_of_the_plain_images(tmp_path, work, any_variety, monkeypatch):
    drawn = {}

    def watched(generator, count, seed):
        drawn.setdefault(seed, []).append(sample(generator, count, seed)[0])
        return sample(generator, count, seed)

    monkeypatch.setattr("oodscope.generation.sets.pool.sample", watched)
    near = {**GAN, "network": "dcgan", "fine_steps": 2, "latent": 4}
    result = made(plan(method="gan", near=near, lambdas=(0.5,), pool=12), tmp_path / "near", work)
    ((tuned, plain),) = drawn.values()
    assert not torch.equal(tuned, plain)
    seen = EnsembleInformation(result.ensemble).information_and_class(Pool.of(plain, torch.zeros(12)).pixels)[1]
    assert open_generated(tmp_path / "near").labels.tolist() == seen.tolist()


SHIFTED = {"kind": "shifted", "method": "gan", "shifted": {**GAN, "lambda_label": 1.0}, "pool": 60, "window": None}


def test_collapsed_generators_make_no_set(tmp_path, work):
    with pytest.raises(ModelError, match="the generator of shifted images collapsed"):
        made(plan(**SHIFTED), tmp_path / "shifted", work)
    near = {**GAN, "network": "dcgan", "fine_steps": 2, "latent": 4, "seed": 9}
    with pytest.raises(ModelError, match="has collapsed, so none is fine-tuned"):
        made(plan(method="gan", near=near), tmp_path / "near", work)
    assert not list(tmp_path.iterdir())


def test_shifted_images_know_where_they_come_from(tmp_path, work, any_variety):
    test, asked = tiny.imageset("id_test", 30, 3), plan(**SHIFTED)
    record = made(asked, tmp_path / "shifted", work, redrawn=test).record
    assert record.kind == "shifted" and record.recipe["redrawn"]["fingerprint"] == test.fingerprint
    assert record.recipe["window"][0] == 0.0
    for each in record.files:
        assert each.row is not None and each.label == test.labels[each.row]


def test_a_set_is_not_made_over_another(recombined, work):
    with pytest.raises(StorageError, match="holds a generated set already"):
        made(plan(), recombined[0], work)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"pool": 5}, "a pool of 5 images cannot give 12"),
        ({"kind": "shifted"}, "by method gan only, not by recombination"),
        ({"method": "latent"}, "needs the generator"),
        ({"generator": "g.safetensors"}, "method latent, and no other"),
        ({"architectures": ("small_cnn",)}, "at least 2 items"),
    ],
)
def test_plans_that_contradict_themselves(settings, said):
    with pytest.raises(ValidationError, match=said):
        plan(**settings)
