"""On a GPU the same recipes run, mixed precision included, and resume."""

from contextlib import contextmanager

import numpy as np
import pytest
import torch

import oodscope.training.loop.lockstep as lockstep
import oodscope.training.loop.replay as replay
from oodscope.training.augment.crop import Augment
from oodscope.training.augment.reading import KINDS
from oodscope.training.heads.recipe import HeadRecipe
from oodscope.training.heads.session import Session, Table
from oodscope.training.heads.task import HeadTask
from oodscope.training.heads.training import train_heads
from oodscope.training.loop.fabric import arithmetic
from oodscope.training.loop.lockstep import Lockstep
from oodscope.training.loop.loop import Loop
from oodscope.training.loop.sets import Sets, facts_of
from oodscope.training.loop.streams import Streams
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.methods.outlier_exposure import OutlierExposure
from oodscope.training.registry import create_recipe
from oodscope.training.train import train, train_seeds
from tests.training.every_method import MADE, NETWORK, fast
from tests.training.training_toys import (
    PREPROCESS,
    Bare,
    StoppedError,
    TinyNet,
    colours,
    grouped,
    negatives,
    same_weights,
    stop_at,
)

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed", "16-mixed"])
def test_trains_and_resumes_on_a_gpu(tmp_path, monkeypatch, precision):
    monkeypatch.setattr(lockstep, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(lockstep, "SAVING_SHARE", float("inf"))
    recipe = CrossEntropy(epochs=8, batch_size=32, augment=Augment(pad=1), precision=precision)

    def run(**options):
        return train(TinyNet, recipe, colours(480), PREPROCESS, val=colours(120, seed=1), device="auto", **options)

    whole = run()
    with pytest.raises(StoppedError):
        run(folder=tmp_path, progress=stop_at(50))
    resumed = run(folder=tmp_path)
    assert whole.history[-1].val_accuracy > 0.95
    assert resumed.history[-1].loss == pytest.approx(whole.history[-1].loss, rel=0.1)
    assert all(value.device.type == "cpu" for value in resumed.model.state_dict().values())
    assert same_weights(resumed.model, run(folder=tmp_path).model)


GPU = torch.device("cuda", 0)


def looped(recipe, count=480, ood=None):
    torch.manual_seed(0)
    made = Loop(TinyNet(), recipe, Streams(recipe, Sets(colours(count), None, ood), PREPROCESS, GPU))
    made.open_epoch()
    return made


RECORDED = {
    "cross-entropy": (CrossEntropy(batch_size=32), None),
    "adam, balanced": (CrossEntropy(batch_size=32, algorithm="adam", learning_rate=0.01, balanced=True), None),
    "outlier exposure": (OutlierExposure(batch_size=32, ood_batch_size=8), negatives(40)),
}


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_step_has_the_digits_of_the_plain_one_and_never_waits(monkeypatch, name):
    recipe, ood = RECORDED[name]

    def weights(rehearsals, watch=False):
        monkeypatch.setattr(replay, "REHEARSALS", rehearsals)
        made = looped(recipe, 470, ood)  # batches of 32 and of 31
        driver = Lockstep([made])
        with arithmetic(made.device, recipe.precision):
            for epoch in range(2):
                for raws in made.streams.serve(epoch):
                    if watch and epoch:
                        torch.cuda.set_sync_debug_mode("error")
                    driver.descend([raws])
                    torch.cuda.set_sync_debug_mode("default")
        return driver.replay, {key: value.clone() for key, value in made.model.state_dict().items()}

    plain, expected = weights(10**9)
    recorded, found = weights(3, watch=True)
    assert recorded.recorded and not plain.recorded
    for key, value in expected.items():
        torch.testing.assert_close(found[key], value, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
@pytest.mark.parametrize("name", [*MADE, "every augmentation"])
def test_every_method_is_recorded_in_all_its_phases(name, precision):
    settings = {"precision": precision, "learning_rate": 0.01}
    if name == "every augmentation":
        recipe = create_recipe("cross_entropy", augment=[*KINDS], batch_size=32, **settings)
    else:
        recipe = fast(name, **settings)
    torch.manual_seed(0)
    images = grouped(480) if name == "mos" else colours(480)
    sets = Sets(images, None, negatives(40) if recipe.ood_batch_size else None)
    net = recipe.prepare(NETWORK.get(name, TinyNet)(), facts_of(sets, PREPROCESS))
    made = Loop(net, recipe, Streams(recipe, sets, PREPROCESS, GPU))
    driver = Lockstep([made])
    with arithmetic(made.device, precision):
        for epoch in range(3):
            made.epoch, made.step = epoch, 0
            made.open_epoch()
            for raws in made.streams.serve(epoch):
                driver.descend([raws])
    assert driver.replay.recorded is recipe.can_be_recorded()
    assert made.meter.flush()["loss"] > 0
    assert all(value.isfinite().all() for value in net.state_dict().values())


def test_what_asks_the_host_is_taken_plainly():
    class Asking(CrossEntropy):
        def loss(self, model, batch):
            return super().loss(model, batch)._replace(loss=super().loss(model, batch).loss * (1.0 + batch.epoch))

    made = looped(Asking(batch_size=32))
    driver = Lockstep([made])
    for raws in made.streams.serve(0):
        driver.descend([raws])
    assert not driver.replay.recorded, "an heir with a loss of its own must say that it can be recorded"


@contextmanager
def repeatable(device, precision):
    """Arithmetic of which every run has the same digits, so that branches can be compared bit by bit."""
    with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False):
        yield


@pytest.mark.parametrize("name", ["cross_entropy", "regmixup", "outlier_exposure"])
def test_seeds_side_by_side_have_the_digits_of_each_alone(tmp_path, monkeypatch, name):
    monkeypatch.setattr(lockstep, "arithmetic", repeatable)
    widths = []
    joined = lockstep.side_by_side
    monkeypatch.setattr(
        lockstep, "side_by_side", lambda steps, device: widths.append(len(steps)) or joined(steps, device)
    )
    outliers = {"ood_batch_size": 16} if create_recipe(name).ood_batch_size else {}
    recipe = create_recipe(name, epochs=3, batch_size=32, learning_rate=0.05, keep="best", **outliers)
    sets = {"val": colours(60, seed=1), "ood_train": negatives(40) if outliers else None, "device": "cuda"}

    def alone(seed):
        return train(Bare, recipe.model_copy(update={"seed": seed}), colours(470), PREPROCESS, **sets)

    folders = [tmp_path / str(seed) for seed in (0, 1, 2)]
    together = train_seeds([Bare] * 3, recipe, (0, 1, 2), colours(470), PREPROCESS, folders=folders, **sets)
    assert widths == [3]
    for seed, found in enumerate(together):
        expected = alone(seed)
        assert same_weights(found.model, expected.model)
        assert [e.loss for e in found.history] == [e.loss for e in expected.history]


def test_seeds_stopped_apart_go_on_together(tmp_path, monkeypatch):
    monkeypatch.setattr(lockstep, "arithmetic", repeatable)
    monkeypatch.setattr(lockstep, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(lockstep, "SAVING_SHARE", float("inf"))
    recipe = CrossEntropy(epochs=2, batch_size=32)
    folders = [tmp_path / str(seed) for seed in (0, 1)]
    for seed, step in ((0, 9), (1, 22)):
        with pytest.raises(StoppedError):
            train(Bare, recipe.model_copy(update={"seed": seed}), colours(470), PREPROCESS, device="cuda",
                  folder=folders[seed], progress=stop_at(step))  # fmt: skip
    together = train_seeds([Bare] * 2, recipe, (0, 1), colours(470), PREPROCESS, folders=folders, device="cuda")
    for seed, found in enumerate(together):
        whole = train(Bare, recipe.model_copy(update={"seed": seed}), colours(470), PREPROCESS, device="cuda")
        assert same_weights(found.model, whole.model)


def test_a_compiled_network_is_recorded_and_learns_the_same():
    recipe = CrossEntropy(epochs=3, batch_size=32, precision="32-true")
    runs = [
        train(Bare, recipe, colours(470), PREPROCESS, device="cuda", compiled=compiled) for compiled in (False, True)
    ]
    assert runs[1].history[-1].loss == pytest.approx(runs[0].history[-1].loss, rel=0.05)
    assert runs[1].model(torch.rand(2, 3, 12, 12)).shape == (2, 3)


def embeddings(count=3000, width=40, classes=6):
    rng = np.random.default_rng(0)
    labels = np.arange(count) % classes
    points = rng.normal(size=(classes, width))[labels] + 1.5 * rng.normal(size=(count, width))
    return torch.tensor(points, dtype=torch.float32), torch.tensor(labels)


def folds(points, count=4):
    rng = np.random.default_rng(1)
    orders = [rng.permutation(len(points)) for _ in range(count)]
    return [HeadTask(order[: 2000 + seed], order[2000 + seed : 2500], seed) for seed, order in enumerate(orders)]


@pytest.mark.parametrize(("precision", "tolerance"), [("32-true", 0.01), ("bf16-mixed", 0.03)])
def test_heads_agree_with_those_of_the_processor(precision, tolerance):
    points, labels = embeddings()
    recipe = HeadRecipe(hidden=32, batch_size=128, epochs=5, patience=0, precision=precision)
    tasks = folds(points)
    exact = train_heads(recipe.model_copy(update={"precision": "32-true"}), points, labels, tasks, 6, device="cpu")
    ours = train_heads(recipe, points, labels, tasks, 6, device="cuda")
    outliers = torch.randn(300, 40, generator=torch.Generator().manual_seed(0)) * 3
    exposed = [task._replace(outliers=np.arange(300), start=head) for task, head in zip(tasks, ours)]
    flat = train_heads(recipe, points, labels, exposed, 6, outliers=outliers, device="cuda")
    for one, two, three in zip(exact, ours, flat):
        assert two.val_accuracy == pytest.approx(one.val_accuracy, abs=tolerance)
        assert two.hidden_weight.device.type == "cpu"
        found = two.activations(points.cuda(), labels)
        assert found.features.device.type == found.head.weight.device.type == "cuda"
        said = [head.activations(outliers).logits.softmax(1).amax(1).mean() for head in (two, three)]
        assert said[1] < said[0]


def test_an_epoch_of_heads_never_stops_the_device():
    points, labels = (each.cuda() for each in embeddings())
    session = Session(HeadRecipe(hidden=32, batch_size=128), Table(points, labels, None, 6), folds(points))
    session._epoch(1)  # the first use of a kernel may
    torch.cuda.set_sync_debug_mode("error")
    try:
        session._epoch(2)
        session.best = session.best.after(2, session.stack, session._correct(), always=False)
    finally:
        torch.cuda.set_sync_debug_mode("default")
