"""Early stopping: the weights of the best epoch, after exactly as many epochs as patience allows."""

import numpy as np
import pytest
import torch

import oodscope.training.loop.lockstep as lockstep
from oodscope.base.errors import DataError
from oodscope.data.imageset import ImageSet
from oodscope.training.heads.recipe import HeadRecipe
from oodscope.training.loop.history import Epoch
from oodscope.training.loop.patience import Patience
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.methods.fine_tune import FineTune
from oodscope.training.train import train
from tests.training.training_toys import (
    PREPROCESS,
    RECIPE,
    Listener,
    StoppedError,
    TinyNet,
    colours,
    same_weights,
    stop_at,
    weights,
)

STEPS = 6
PATIENT = RECIPE.model_copy(update={"epochs": 12, "patience": 2})


def unsteady():
    """Validation images of which four in ten have a wrong label: accuracy rises and falls."""
    images = colours(60, seed=1)
    labels = np.where(np.random.default_rng(0).random(60) < 0.4, (images.labels + 1) % 3, images.labels)
    return ImageSet("unsteady", images.source, labels, images.class_names)


def run(recipe=PATIENT, val="unsteady", **options):
    given = unsteady() if val == "unsteady" else val
    return train(TinyNet, recipe, colours(), PREPROCESS, val=given, device="cpu", **options)


def accuracy(model, images):
    with torch.no_grad():
        said = model(PREPROCESS(images.images(range(len(images))))).argmax(1).numpy()
    return float((said == images.labels).mean())


def expected_end(accuracies, patience, epochs):
    """By hand: how many epochs are made, and which one is kept."""
    best, kept, waited = -1.0, 0, 0
    for number, value in enumerate(accuracies[:epochs], start=1):
        waited += 1
        if value > best:
            best, kept, waited = value, number, 0
        if waited == patience:
            return number, kept
    return epochs, kept


@pytest.mark.slow
def test_the_best_epoch_is_kept_and_patience_ends_the_training():
    plain = run(PATIENT.model_copy(update={"patience": 0}))
    accuracies = [epoch.val_accuracy for epoch in plain.history]
    made, kept = expected_end(accuracies, 2, 12)
    assert kept < made < 12, "a world in which it stops early, after the best epoch"
    early = run()
    assert [epoch.val_accuracy for epoch in early.history] == accuracies[:made]
    assert accuracy(early.model, unsteady()) == pytest.approx(max(accuracies[:made]))
    # the very weights of that epoch: the schedule looks at all epochs, so a shorter training would not have them
    marks = {}

    class Marked(CrossEntropy):
        def start_epoch(self, model, epoch, streams):
            marks[epoch] = {name: value.clone() for name, value in model.state_dict().items()}

    train(TinyNet, Marked(**PATIENT.model_dump()), colours(), PREPROCESS, val=unsteady(), device="cpu")
    ours = early.model.state_dict()
    assert all(torch.equal(ours[name], value) for name, value in marks[kept].items())


def test_without_patience_validation_decides_nothing():
    plain = RECIPE.model_copy(update={"epochs": 4})
    assert same_weights(run(plain).model, run(plain, val=None).model)
    assert "patience" not in plain.describe() and PATIENT.describe()["patience"] == 2
    assert FineTune(patience=0).describe()["patience"] == 0, "its own default is another"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    return run(folder=folder), weights(folder)


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, STEPS, 2 * STEPS + 1, 4 * STEPS, -1])
def test_stopped_anywhere_and_resumed_is_byte_equal(tmp_path, monkeypatch, undisturbed, step):
    monkeypatch.setattr(lockstep, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(lockstep, "SAVING_SHARE", float("inf"))
    whole, expected = undisturbed
    steps = len(whole.history) * STEPS + 1 if step < 0 else step
    with pytest.raises(StoppedError):
        run(folder=tmp_path / "stopped", progress=stop_at(steps))
    listener = Listener()
    resumed = run(folder=tmp_path / "stopped", progress=listener)
    assert weights(tmp_path / "stopped") == expected
    assert sum(listener.calls) == listener.total == 12 * STEPS
    assert [e.val_accuracy for e in resumed.history] == [e.val_accuracy for e in whole.history]
    assert same_weights(run(folder=tmp_path / "stopped").model, whole.model), "read back from disk"


def test_it_needs_validation_images():
    with pytest.raises(DataError, match="patience=2 stops by validation accuracy: give a val set, or patience=0"):
        run(val=None)


@pytest.mark.parametrize("patience", [0, 1, 2, 3])
@pytest.mark.parametrize("accuracies", [[0.0, 0.0, 0.0, 0.0], [0.5, 0.6, 0.6, 0.7, 0.1, 0.2], [0.9, 0.1, 0.95, 0.1]])
def test_patience_by_hand(patience, accuracies):
    net = torch.nn.Linear(1, 1)
    watch, history, made = Patience(patience, net), [], None
    for number, value in enumerate(accuracies, start=1):
        torch.nn.init.constant_(net.weight, number)
        history.append(Epoch(loss=0.0, train_accuracy=None, val_accuracy=value, seconds=0.0))
        watch.see(history)
        if watch.ended(history):
            made = number
            break
    end, kept = expected_end(accuracies, patience or 99, len(accuracies))
    assert made == (end if patience and end - kept == patience else None)
    watch.restore()
    assert net.weight.item() == (kept if patience else len(accuracies))


def test_defaults_of_the_paper():
    tuned, head = FineTune(), HeadRecipe()
    assert (tuned.learning_rate, tuned.batch_size, tuned.epochs, tuned.patience) == (1e-4, 64, 30, 3)
    assert (tuned.algorithm, tuned.weight_decay, tuned.balanced) == ("adam", 0.0, True)
    assert (tuned.hidden, tuned.dropout) == (256, 0.2)
    assert (head.hidden, head.dropout, head.epochs, head.patience, head.balanced) == (256, 0.2, 30, 3, True)
    assert (head.oe_weight, head.oe_share, head.oe_epochs) == (1.0, 0.1, 5)
