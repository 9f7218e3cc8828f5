"""The base recipes that come as job files: OpenOOD's settings, and they start, stop and resume on miniatures."""

import numpy as np
import pytest
import torch

import oodscope.training.loop.lockstep as lockstep
from oodscope.base.config import read_yaml
from oodscope.data.imageset import ImageSet
from oodscope.data.packaged import BENCHMARKS
from oodscope.jobs.run import PACKAGED, kind_of
from oodscope.jobs.train import TrainingJob, read_training
from oodscope.models.zoo.zoo import check_architecture
from oodscope.training.train import train
from tests.training.training_toys import PREPROCESS, StoppedError, TinyNet, colours, same_weights, stop_at

PUBLISHED = {
    "train-cifar10": (100, 128, 0.1, "crop", [0, 1, 2], None),
    "train-cifar100": (100, 128, 0.1, "crop", [0, 1, 2], None),
    "train-imagenet200": (90, 256, 0.1, "resized_crop", [0, 1, 2], None),
    "train-imagenet1k": (30, 256, 0.001, "resized_crop", [0], "pretrained"),
}


def job_of(name) -> TrainingJob:
    declared = read_yaml(PACKAGED / f"{name}.yaml")
    assert kind_of(declared, name) == "training"
    return read_training(declared, name)


def test_every_packaged_training_is_tried():
    assert {path.stem for path in PACKAGED.glob("train-*.yaml")} == set(PUBLISHED)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_settings_are_the_published_ones(name):
    epochs, batch, rate, view, seeds, weights = PUBLISHED[name]
    job = job_of(name)
    (recipe,) = job.train
    assert (recipe.epochs, recipe.batch_size, recipe.learning_rate) == (epochs, batch, rate)
    assert (recipe.momentum, recipe.weight_decay, recipe.keep) == (0.9, 5e-4, "best")
    assert [part.kind for part in recipe.augment.parts()] == [view]
    assert (job.seeds, job.weights) == (seeds, weights)
    assert job.benchmark in BENCHMARKS and job.benchmark == name.removeprefix("train-")
    check_architecture(job.model)
    steps = {"train-cifar10": 391, "train-imagenet1k": 5005}.get(name, 400)
    assert rate * recipe.schedule(epochs * steps, steps) == pytest.approx(1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_it_starts_stops_and_resumes_on_a_miniature(name, tmp_path, monkeypatch):
    monkeypatch.setattr(lockstep, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(lockstep, "SAVING_SHARE", float("inf"))
    (recipe,) = job_of(name).train
    recipe = recipe.model_copy(update={"epochs": 2, "batch_size": 16})
    large = np.kron(np.stack(colours(48).images(range(48))), np.ones((1, 2, 2, 1), np.uint8))
    images = ImageSet.from_arrays("large", large, np.arange(48) % 3, ("0", "1", "2"))
    torch.manual_seed(3)
    start = TinyNet() if name == "train-imagenet1k" else TinyNet  # fine-tuning begins with a network

    def run(**options):
        return train(start, recipe, images, PREPROCESS, val=colours(30, seed=1), device="cpu", **options)

    whole = run()
    for step in (2, 5):
        with pytest.raises(StoppedError):
            run(folder=tmp_path, progress=stop_at(step))
    assert same_weights(run(folder=tmp_path).model, whole.model)
