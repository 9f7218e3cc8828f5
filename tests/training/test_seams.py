"""What a training method may ask of the trainer: each question is a recipe of a few lines, made here."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import oodscope as oods
import oodscope.training.loop.lockstep as lockstep
from oodscope.activations.activations import Activations
from oodscope.activations.probes.taps import Output
from oodscope.base.errors import DataError, OodscopeError
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.detectors.registry import create_detector
from oodscope.models.classifier.branches import with_branches
from oodscope.training.augment.base import Placement, Unchanged
from oodscope.training.augment.pixmix import PixMix
from oodscope.training.augment.reading import read_augment
from oodscope.training.augment.resized_crop import ResizedCrop
from oodscope.training.loop.sets import Sets, check_apart
from oodscope.training.loop.streams import Streams
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.methods.outlier_exposure import OutlierExposure
from oodscope.training.recipe import ImageRecipe, Step
from oodscope.training.train import train
from tests.training.training_toys import (
    PREPROCESS,
    RECIPE,
    Bare,
    StoppedError,
    TinyNet,
    colours,
    negatives,
    same_weights,
    stop_at,
)

SETTINGS = RECIPE.model_dump()
CPU = torch.device("cpu")


@pytest.fixture
def often(monkeypatch):
    """A checkpoint after every step."""
    monkeypatch.setattr(lockstep, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(lockstep, "SAVING_SHARE", float("inf"))


def run(recipe, images=None, model=TinyNet, **options):
    return train(model, recipe, images or colours(), PREPROCESS, device="cpu", **options)


class Mined(OutlierExposure):
    """In the manner of NTOM: each epoch is dealt the outliers that the network takes for known ones."""

    def prepare(self, model, facts):
        model.register_buffer("chosen", torch.zeros(facts.n_ood // 4, dtype=torch.long))
        return model

    @torch.no_grad()
    def start_epoch(self, model, epoch, streams):
        sure = torch.cat([model(batch.images).softmax(1).amax(1) for batch in streams.ood.walk(16)])
        model.chosen.copy_(sure.topk(len(model.chosen)).indices)

    def outliers(self, model):
        return model.chosen

    def loss(self, model, batch):
        assert torch.isin(batch.ood.rows, model.chosen).all()
        return super().loss(model, batch)


@pytest.mark.slow
def test_outliers_are_chosen_anew_each_epoch_and_kept_over_a_stop(tmp_path, often):
    recipe = Mined(**{**SETTINGS, "ood_batch_size": 8})
    whole = run(recipe, ood_train=negatives(40))
    with pytest.raises(StoppedError):
        run(recipe, ood_train=negatives(40), folder=tmp_path, progress=stop_at(9))
    assert same_weights(whole.model, run(recipe, ood_train=negatives(40), folder=tmp_path).model)
    assert len(whole.model.chosen.unique()) == 10


class Counted(CrossEntropy):
    """Statistics of the final features, in a buffer."""

    def prepare(self, model, facts):
        model.register_buffer("centre", torch.zeros(32))
        return model

    @torch.no_grad()
    def finish(self, model, streams):
        assert not model.training
        model.centre.copy_(torch.cat([model.features(batch.images) for batch in streams.train.walk(50)]).mean(0))


def test_a_last_pass_sees_the_weights_that_are_kept(tmp_path):
    recipe = Counted(**{**SETTINGS, "keep": "best"})
    trained = run(recipe, val=colours(30, seed=1), folder=tmp_path)
    with torch.no_grad():
        expected = trained.model.features(PREPROCESS(colours().images(range(96)))).mean(0)
    torch.testing.assert_close(trained.model.centre, expected)
    assert same_weights(run(recipe, val=colours(30, seed=1), folder=tmp_path).model, trained.model)


def test_a_batch_says_how_its_pixels_were_scaled():
    (batch,) = list(Streams(RECIPE, Sets(colours(9), None, None), PREPROCESS, CPU).batches(0))
    pixels = batch.scale.to_pixels(batch.images)
    assert pixels.min() >= -1e-6 and pixels.max() <= 1 + 1e-6
    torch.testing.assert_close(batch.scale.from_pixels(pixels), batch.images, rtol=1e-5, atol=1e-5)


class Autoencoder(ImageRecipe):
    """Learns to draw the image from its features: no labels, no logits."""

    def prepare(self, model, facts):
        model.fc = nn.Linear(32, 3 * facts.size**2)
        return model

    def loss(self, model, batch):
        return Step((model(batch.images) - batch.images.flatten(1)).square().mean())


@pytest.mark.slow
def test_a_training_without_labels_is_judged_by_its_loss(tmp_path, often):
    unlabelled = [ImageSet("photos", colours(96, seed=seed).source) for seed in (0, 1)]
    recipe = Autoencoder(**{**SETTINGS, "keep": "best", "epochs": 4})
    trained = run(recipe, unlabelled[0], val=unlabelled[1])
    losses = [epoch.val_loss for epoch in trained.history]
    assert losses[-1] < losses[0] and all(epoch.val_accuracy is None for epoch in trained.history)
    with pytest.raises(StoppedError):
        run(recipe, unlabelled[0], val=unlabelled[1], folder=tmp_path, progress=stop_at(9))
    assert same_weights(run(recipe, unlabelled[0], val=unlabelled[1], folder=tmp_path).model, trained.model)
    with pytest.raises(DataError, match="validation loss"):
        run(recipe, unlabelled[0])


class Frozen(CrossEntropy):
    def prepare(self, model, facts):
        for part in (model.conv, model.norm):
            part.requires_grad_(False)
        return model


def test_frozen_layers_keep_their_statistics():
    torch.manual_seed(RECIPE.seed)
    fresh = TinyNet()
    trained = run(Frozen(**SETTINGS)).model
    for name in ("conv.weight", "norm.weight", "norm.running_mean", "norm.num_batches_tracked"):
        assert torch.equal(trained.state_dict()[name], fresh.state_dict()[name])
    assert not torch.equal(trained.fc.weight, fresh.fc.weight)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "steps", "epochs"), [({"steps": 8}, 8, 2), ({"renderings": 2}, 9, 2), ({"steps": 99}, 18, 3)]
)
def test_trainings_that_end_by_steps(tmp_path, often, change, steps, epochs):
    recipe = CrossEntropy(**{**SETTINGS, **change})
    assert recipe.total_steps(6) == steps
    whole = run(recipe)
    assert len(whole.history) == epochs
    with pytest.raises(StoppedError):
        run(recipe, folder=tmp_path, progress=stop_at(steps))
    assert same_weights(run(recipe, folder=tmp_path).model, whole.model)


def test_schedules():
    falling = CrossEntropy(epochs=10, decay="steps", milestones=(0.6, 0.9), learning_rate=1.0)
    assert [falling.schedule(step, 10) for step in (0, 59, 60, 89, 90)] == pytest.approx([1, 1, 0.1, 0.1, 0.01])
    assert CrossEntropy(decay="constant").schedule(39_000, 391) == 1.0
    plain = CrossEntropy(learning_rate=0.1, epochs=100)
    assert 0.1 * plain.schedule(50, 1) == pytest.approx(0.0500005)
    assert 0.1 * plain.schedule(99, 1) == pytest.approx(2.567173e-05, rel=1e-6)
    assert "decay" not in plain.describe() and "milestones" in falling.describe()


def test_gradients_are_cut_to_a_length():
    free, cut = (
        run(CrossEntropy(**{**SETTINGS, "clip_norm": norm, "weight_decay": 0}), model=Bare) for norm in (0.0, 1e-6)
    )
    torch.manual_seed(RECIPE.seed)
    fresh = Bare()
    moved = [(each.model.fc.weight - fresh.fc.weight).abs().max() for each in (free, cut)]
    assert moved[1] < 1e-3 < moved[0]


class TestResizedCrop:
    def whole(self):
        """One picture larger than the input, its left half black and its right half white."""
        picture = np.zeros((40, 60, 3), np.uint8)
        picture[:, 30:] = 255
        return picture

    def test_boxes_have_their_area_and_shape(self):
        crop = ResizedCrop()
        top, left, tall, wide = crop._boxes(torch.rand(4000, 4, 10, generator=torch.Generator().manual_seed(0)), 40, 60)
        assert (top >= 0).all() and (left >= 0).all() and (top + tall <= 40).all() and (left + wide <= 60).all()
        share = tall * wide / 2400
        assert share.min() < 0.1 and share.max() > 0.8 and share.mean() == pytest.approx(0.45, abs=0.08)
        # whole pixels: a box of 10 by 13 may be drawn for one of 10.4 by 12.6
        assert ((wide + 0.5) / (tall - 0.5)).min() > 0.75 - 0.02 and ((wide - 0.5) / (tall + 0.5)).max() < 4 / 3 + 0.02

    def test_a_box_that_never_fits_is_the_middle(self):
        crop = ResizedCrop(area=(1.0, 1.0), shape=(1.0, 1.0))
        boxes = crop._boxes(torch.rand(2, 4, 10), 40, 60)
        assert [each.tolist() for each in boxes] == [[0, 0], [10, 10], [40, 40], [40, 40]]

    def test_whole_pictures_are_cut_by_address_before_the_centre_crop(self):
        images = ImageSet.from_arrays("wide", np.stack([self.whole()] * 24), np.arange(24) % 3)
        recipe = CrossEntropy(batch_size=24, augment="resized_crop")
        streams = Streams(recipe, Sets(images, None, None), PREPROCESS, CPU)
        assert streams.train.crop is not None

        def pixels(epoch):
            (batch,) = streams.batches(epoch)
            return batch.scale.to_pixels(batch.images)[batch.rows.argsort()]

        first, again, later = pixels(0), pixels(0), pixels(1)
        assert torch.equal(first, again) and not torch.equal(first, later)
        shares = first.mean((1, 2, 3))
        assert shares.min() < 0.2 and shares.max() > 0.8, "a centre crop would show both halves"
        assert len({tuple(each.flatten().tolist()) for each in first}) > 12
        (plain,) = streams.train.walk(24)
        assert plain.scale.to_pixels(plain.images).mean() == pytest.approx(0.5, abs=0.02)

    def test_small_pictures_are_cut_on_the_device(self):
        recipe = CrossEntropy(batch_size=24, augment=["resized_crop", "cutout"])
        streams = Streams(recipe, Sets(colours(24), None, None), PREPROCESS, CPU)
        assert streams.train.crop is None
        whole = ResizedCrop(area=(1.0, 1.0), shape=(1.0, 1.0), flip=False)
        pixels = torch.randint(0, 256, (4, 3, 12, 12), dtype=torch.uint8)
        assert torch.equal(whole(pixels, torch.Generator().manual_seed(0)), pixels)
        assert isinstance(whole.placed(Placement(cut=True)), Unchanged)

    def test_one_picture(self):
        cut = ResizedCrop(area=(1.0, 1.0), shape=(1.0, 2.0), flip=False)
        found = cut.cut(Image.fromarray(self.whole()), 12, torch.Generator().manual_seed(0))
        assert found.shape == (12, 12, 3) and found[:, 0].max() < 30 and found[:, -1].min() > 200

    def test_it_comes_first(self):
        with pytest.raises(OodscopeError, match="'resized_crop' cuts whole pictures, so it comes first"):
            read_augment(["cutout", "resized_crop"])

    @pytest.mark.slow
    def test_it_trains_and_resumes(self, tmp_path, often):
        images = ImageSet.from_arrays("large", np.kron(np.stack(colours().images(range(96))), np.ones((1, 2, 2, 1), np.uint8)), np.arange(96) % 3)  # fmt: skip # noqa: E501
        recipe = CrossEntropy(**{**SETTINGS, "augment": read_augment({"kind": "resized_crop", "area": [0.5, 1]})})
        whole = run(recipe, images)
        with pytest.raises(StoppedError):
            run(recipe, images, folder=tmp_path, progress=stop_at(9))
        assert same_weights(run(recipe, images, folder=tmp_path).model, whole.model)


class TestPictures:
    recipe = CrossEntropy(**{**SETTINGS, "augment": PixMix(source="pictures", rounds=2)})

    def test_they_are_mixed_with_and_part_of_the_identity(self, tmp_path):
        bright = ImageSet.from_arrays("bright", np.full((4, 16, 16, 3), 255, np.uint8))
        dark = ImageSet.from_arrays("dark", np.zeros((4, 16, 16, 3), np.uint8))
        mixed = []
        for pictures in (bright, bright, dark):
            streams = Streams(self.recipe, Sets(colours(96), None, None, pictures), PREPROCESS, CPU)
            mixed.append(torch.cat([batch.images for batch in streams.batches(0)]))
        assert torch.equal(mixed[0], mixed[1])
        changed = (mixed[0] != mixed[2]).flatten(1).any(1).float().mean()
        assert 0.2 < changed < 0.8, "rounds are drawn, and half of them mix with the image itself"
        run(self.recipe, pictures=bright, folder=tmp_path)
        with pytest.raises(OodscopeError, match="other pictures"):
            run(self.recipe, pictures=dark, folder=tmp_path)

    def test_without_them_it_is_one_line(self):
        with pytest.raises(DataError, match="pixmix mixes with further pictures, but there is no pictures set"):
            run(self.recipe)


class Rejecting(CrossEntropy):
    """K + 1 outputs, of which the last is no class."""

    def prepare(self, model, facts):
        return with_branches(model, {"reject": 1})


def test_the_odds_of_rejection():
    """Oracle of the specification, and no tie where the probability rounds to 1."""
    columns = {Output("reject").column: torch.tensor([[3.0], [60.0], [61.0]])}
    batch = Activations(logits=torch.tensor([[2.0, 1, 0]] * 3), columns=columns)
    found = create_detector("reject").score(batch)
    assert found[0].item() == pytest.approx(0.592394, abs=1e-6)
    assert found[0].sigmoid().item() == pytest.approx(0.643914, abs=1e-6)
    assert found[2] > found[1] and found[1].sigmoid() == found[2].sigmoid() == 1


@pytest.mark.slow
def test_outputs_beside_logits_are_columns_at_no_extra_pass(tmp_path):
    scale = Preprocess(size=12)
    recipe = Rejecting(epochs=1, batch_size=16)
    trained = oods.train(
        lambda: oods.create_model("small_cnn", num_classes=3)[0], recipe, colours(48), scale, device="cpu"
    )
    classifier = oods.Classifier(trained.model, scale, device="cpu")
    assert classifier.num_classes == 3
    bench = oods.Benchmark("colours", "1", id_test=colours(30, seed=3, name="test"), near=(negatives(20),))
    calls = []
    hook = trained.model.register_forward_hook(lambda _, images, __: calls.append(len(images[0])))
    plain = oods.evaluate(classifier, bench, ["msp"], store=oods.ActivationStore(tmp_path / "plain"))
    passes = list(calls)
    calls.clear()
    result = oods.evaluate(classifier, bench, ["reject", "msp"], store=oods.ActivationStore(tmp_path / "both"))
    hook.remove()
    assert calls[-2:] == passes == [30, 20], "the passes before are of a few images of noise, to see what it returns"
    assert sum(calls[:-2]) <= 12 and list(plain.scores.detectors) == ["msp"]
    with torch.no_grad():
        output = trained.model(scale(bench.id_test.images(range(30))))
        expected = output["reject"].flatten() - output["logits"].logsumexp(1)
    found = result.scores.scores("reject", set="test")
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-5)


def named(name, classes, seed):
    plain = colours(12, seed=seed, name=name)
    return ImageSet(name, plain.source, plain.labels, classes)


@pytest.mark.parametrize(
    ("tested", "message"),
    [
        (named("birds", ("owl", "wren", "Kite"), 5), "class 'kite' of near set 'birds' is also one of the training"),
        (named("copies", ("a", "b", "c"), 4), "12 of 12 images of near set 'copies' are among the training outliers"),
    ],
)
def test_outliers_that_meet_a_test_set_are_refused(tested, message):
    with pytest.raises(DataError, match=message):
        check_apart(named("outliers", ("kite", "ball", "car"), 4), [("id_test", colours(9)), ("near", tested)])


def test_numbered_classes_and_id_classes_are_no_meeting():
    check_apart(colours(12, seed=4), [("near", colours(12, seed=5))])
    check_apart(named("outliers", ("owl", "b", "c"), 4), [("id_test", named("birds", ("owl", "y", "z"), 5))])
