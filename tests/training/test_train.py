"""Learning happens, is reproducible, and fails in one line."""

import ast
import signal
from pathlib import Path

import numpy as np
import pytest
import torch

import oodscope.training.loop.pixels as pixels
from oodscope.base.errors import DataError, ModelError, OodscopeError
from oodscope.data.imageset import ImageSet
from oodscope.training.augment.crop import Augment
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.recipe import Step
from oodscope.training.train import train
from tests.training.training_toys import PREPROCESS, RECIPE, Listener, TinyNet, colours, same_weights


def run(recipe=RECIPE, model=TinyNet, images=None, **options):
    return train(model, recipe, images or colours(), PREPROCESS, device="cpu", **options)


def test_learns_an_easy_task_and_says_so():
    recipe = CrossEntropy(epochs=8, batch_size=32, augment=Augment(pad=1))
    result = run(recipe, images=colours(480), val=colours(120, seed=1))
    first, last = result.history[0], result.history[-1]
    assert len(result.history) == 8
    assert last.val_accuracy > 0.95 and last.train_accuracy > 0.9
    assert last.loss < 0.5 * first.loss
    assert all(epoch.seconds > 0 for epoch in result.history)
    unseen = colours(90, seed=2)
    with torch.no_grad():
        predicted = result.model(PREPROCESS(unseen.images(range(90)))).argmax(1).numpy()
    assert (predicted == unseen.labels).mean() > 0.95


def test_cannot_learn_labels_that_mean_nothing():
    images = colours(480)
    shuffled = ImageSet("noise", images.source, np.random.default_rng(0).permutation(images.labels))
    history = run(CrossEntropy(epochs=4, batch_size=32), images=shuffled, val=shuffled).history
    assert history[-1].val_accuracy < 0.6


def test_seed_decides_everything():
    one, again, other = run(), run(), run(RECIPE.model_copy(update={"seed": 1}))
    assert same_weights(one.model, again.model)
    assert not same_weights(one.model, other.model)


def test_network_and_global_random_numbers_are_left_as_they_were():
    network = TinyNet()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    one = run(model=network)
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert same_weights(one.model, run(model=network).model)


def test_images_read_ahead_give_the_same_weights_as_images_in_memory(monkeypatch):
    resident = run(val=colours(30, seed=1))
    monkeypatch.setattr(pixels, "RESIDENT_BYTES", 0)
    monkeypatch.setattr(pixels, "Resident", None)
    streamed = run(val=colours(30, seed=1))
    assert same_weights(resident.model, streamed.model)
    assert [e.val_accuracy for e in resident.history] == [e.val_accuracy for e in streamed.history]


def test_bf16_mixed_trains_on_the_cpu():
    exact = run()
    mixed = run(RECIPE.model_copy(update={"precision": "bf16-mixed"}), val=colours(30, seed=1))
    assert not same_weights(exact.model, mixed.model)
    assert all(value.dtype != torch.bfloat16 for value in mixed.model.state_dict().values())
    assert mixed.history[-1].loss == pytest.approx(exact.history[-1].loss, rel=0.05)


def test_progress_counts_every_step():
    listener = Listener()
    run(progress=listener)
    assert listener.description == "train TinyNet"
    assert sum(listener.calls) == listener.total == 3 * 6


def test_lightning_is_imported_only_to_train():
    for source in Path(pixels.__file__).parent.glob("*.py"):
        for node in ast.parse(source.read_text()).body:
            assert "lightning" not in ast.unparse(node).splitlines()[0], source


def test_signal_handlers_stay_ours():
    before = [signal.getsignal(number) for number in signal.valid_signals()]
    run()
    assert [signal.getsignal(number) for number in signal.valid_signals()] == before


class TurnsToNaN(CrossEntropy):
    """Sound for an epoch and two steps, then not a number."""

    def loss(self, model, batch):
        step = super().loss(model, batch)
        model.steps = getattr(model, "steps", 0) + 1
        return Step(step.loss * float("nan"), step.logits) if model.steps > 8 else step


def test_divergence_names_epoch_step_and_rate(tmp_path):
    with pytest.raises(OodscopeError, match=r"nan in epoch 2, step 3, at learning rate 0\.0") as caught:
        run(TurnsToNaN(**RECIPE.model_dump()), folder=tmp_path)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "training.json").exists()


def test_real_divergence_is_noticed():
    with pytest.raises(OodscopeError, match="training diverged"):
        run(RECIPE.model_copy(update={"learning_rate": 1e25}))


@pytest.mark.parametrize(
    ("labels", "message"),
    [(None, "96 of 96 images have no label"), ([0] * 96, "one class only"), ([0, 1, -1] * 32, "32 of 96")],
)
def test_unusable_labels(labels, message):
    images = ImageSet("photos", colours().source, labels)
    with pytest.raises(DataError, match=rf"'photos'.*{message}"):
        run(images=images)


def test_validation_of_other_classes():
    with pytest.raises(DataError, match="different classes"):
        run(val=colours(20, classes=2, name="pairs"))


def test_network_that_does_not_fit_the_data():
    with pytest.raises(ModelError, match=r"TinyNet gives an output of shape \[2, 2\].*3 classes need \[2, 3\]"):
        run(model=lambda: TinyNet(2))
    with pytest.raises(ModelError, match=r"cannot take a batch of shape \[2, 3, 12, 12\]"):
        run(model=lambda: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(10, 3)))


@pytest.mark.slow
def test_devices_that_are_not_there():
    missing = f"cuda:{torch.cuda.device_count()}"
    with pytest.raises(OodscopeError, match=f"{missing}' is not there: torch sees"):
        train(TinyNet, RECIPE, colours(), PREPROCESS, device=missing)
    with pytest.raises(OodscopeError, match="unknown device 'gpu'"):
        train(TinyNet, RECIPE, colours(), PREPROCESS, device="gpu")
    with pytest.raises(OodscopeError, match="16-mixed' needs a GPU"):
        run(RECIPE.model_copy(update={"precision": "16-mixed"}))
