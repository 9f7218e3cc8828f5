"""Several seeds step together, and a compiled network steps as before: with the digits of each alone."""

import logging

import pytest
import torch
from torch.optim import SGD

import oodscope.training.loop.compiled as compiled
import oodscope.training.loop.lockstep as lockstep
import oodscope.training.train as calls
from oodscope.training.loop.checkpoint import Checkpoints
from oodscope.training.loop.lockstep import Lockstep, run_loops
from oodscope.training.loop.loop import Loop
from oodscope.training.loop.replay import begin_momentum
from oodscope.training.loop.sets import Sets, facts_of
from oodscope.training.loop.streams import Streams
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.registry import create_recipe
from oodscope.training.train import train, train_seeds
from tests.training.training_toys import (
    PREPROCESS,
    RECIPE,
    Bare,
    Listener,
    StoppedError,
    TinyNet,
    colours,
    negatives,
    same_weights,
    stop_at,
)

CPU = torch.device("cpu")


def loops_of(recipe, seeds, sets, folder=None, model=Bare):
    streams = Streams(recipe, sets, PREPROCESS, CPU)
    made = []
    for seed in seeds:
        torch.manual_seed(seed)
        own = recipe.model_copy(update={"seed": seed})
        kept = Checkpoints(folder / str(seed), "f" * 24) if folder else None
        made.append(Loop(model(), own, streams.of(own), kept))
    return made


def test_a_phase_of_the_training_has_a_recording_of_its_own():
    """A replay is told what the host decided, and tells steps of equal shapes apart by it."""
    recipe = create_recipe("mcd", epochs=3, outlier_epochs=1, batch_size=45, ood_batch_size=8)
    outliers = Sets(colours(90), None, negatives(20))
    torch.manual_seed(0)
    net = recipe.prepare(TinyNet(), facts_of(outliers, PREPROCESS))
    driver = Lockstep([Loop(net, recipe, Streams(recipe, outliers, PREPROCESS, CPU))])
    real, phases = driver.replay, []

    def listening(*seeds, phase=0, **given):
        phases.append(phase)
        return real(*seeds, phase=phase, **given)

    driver.replay = listening
    driver.run(6, lambda count: None)
    assert phases == [0, 0, 0, 0, 1, 1]


def test_a_parameter_may_be_reached_for_the_first_time_in_a_later_phase():
    """Fused SGD refuses it, unless all momentum begins at once; the digits are those of plain SGD."""

    def moved(fused, begun):
        early, late = (torch.nn.Parameter(torch.tensor([1.0, -2.0])) for _ in range(2))
        optimizer = SGD([early, late], lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01, fused=fused)
        if begun:
            begin_momentum(optimizer)
        for phase in (0, 0, 1, 1):
            optimizer.zero_grad()
            loss = (early**3).sum() + ((early * late).sum() if phase else 0.0)
            loss.backward()
            optimizer.step()
        return torch.stack([early, late]).detach()

    with pytest.raises(TypeError, match="NoneType"):
        moved(fused=True, begun=False)
    assert torch.equal(moved(fused=False, begun=True), moved(fused=False, begun=False))
    torch.testing.assert_close(moved(fused=True, begun=True), moved(fused=False, begun=False))


@pytest.mark.parametrize("name", ["cross_entropy", "regmixup", "outlier_exposure"])
def test_loops_side_by_side_have_the_digits_of_each_alone(name):
    outliers = {"ood_batch_size": 8} if create_recipe(name).ood_batch_size else {}
    recipe = create_recipe(name, epochs=2, batch_size=16, learning_rate=0.05, **outliers)
    sets = Sets(colours(90), colours(30, seed=1), negatives(20) if outliers else None)
    together, listener = loops_of(recipe, (0, 1, 2), sets), Listener()
    with listener.stage("", sum(each.total for each in together)) as advance:
        run_loops(together, advance)
    assert sum(listener.calls) == listener.total == 3 * together[0].total
    for each, alone in zip(together, loops_of(recipe, (0, 1, 2), sets)):
        run_loops([alone], lambda done: None)
        assert same_weights(each.model, alone.model)
        for one, two in zip(each.history, alone.history):
            assert (one.loss, one.train_accuracy, one.val_accuracy) == (two.loss, two.train_accuracy, two.val_accuracy)


def test_a_training_that_was_left_behind_catches_up(tmp_path, monkeypatch):
    monkeypatch.setattr(lockstep, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(lockstep, "SAVING_SHARE", float("inf"))
    recipe, sets = CrossEntropy(epochs=3, batch_size=16), Sets(colours(90), None, None)
    for seed, step in ((0, 4), (1, 13)):
        with pytest.raises(StoppedError):
            (lonely,) = loops_of(recipe, (seed,), sets, tmp_path)
            with stop_at(step).stage("", 18) as advance:
                run_loops([lonely], advance)
    together = loops_of(recipe, (0, 1), sets, tmp_path)
    run_loops(together, lambda done: None)
    for each, whole in zip(together, loops_of(recipe, (0, 1), sets)):
        run_loops([whole], lambda done: None)
        assert same_weights(each.model, whole.model)


def test_train_seeds_gives_what_train_gives(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    shown = Listener()
    options = {"folders": folders, "device": "cpu", "progress": shown}
    found = train_seeds([TinyNet] * 2, RECIPE, (0, 5), colours(), PREPROCESS, **options)
    assert shown.description == "train TinyNet, seed 5", "one after the other, as long as there is no GPU"
    for seed, folder, each in zip((0, 5), folders, found):
        recipe = RECIPE.model_copy(update={"seed": seed})
        assert each.recipe == recipe
        assert same_weights(each.model, train(TinyNet, recipe, colours(), PREPROCESS, device="cpu").model)
        assert same_weights(each.model, train(TinyNet, recipe, colours(), PREPROCESS, folder=folder).model)


@pytest.mark.parametrize(
    ("model", "change", "shared"),
    [(Bare, {}, True), (TinyNet, {}, False), (Bare, {"patience": 2}, False), (Bare, {"precision": "16-mixed"}, False)],
)
def test_which_seeds_share_a_graph(model, change, shared):
    recipe = RECIPE.model_copy(update=change)
    work = calls._Work(recipe, Sets(colours(), None, None), PREPROCESS, torch.device("cuda"), None, calls.SILENT)
    assert work._can_share_a_graph(model()) is shared


class TestCompiled:
    def run(self, **options):
        return train(Bare, RECIPE, colours(90), PREPROCESS, val=colours(30, seed=1), device="cpu", **options)

    def test_it_learns_the_same_and_the_network_is_left_as_it_was(self, monkeypatch):
        seen = []

        def backend(graph, inputs):
            seen.append([tuple(each.shape) for each in inputs if each.dim() == 4 and each.shape[1] == 3])
            return graph.forward

        monkeypatch.setattr(compiled, "BACKEND", backend)
        plain, fused = self.run(compiled=False), self.run(compiled=True)
        assert [shape for shapes in seen for shape in shapes if len(shape) == 4 and shape[2] == 12] == [(15, 3, 12, 12)]
        assert same_weights(plain.model, fused.model)
        assert fused.model._compiled_call_impl is None

    def test_what_cannot_be_compiled_runs_as_it_is_with_a_note(self, monkeypatch, caplog):
        caplog.set_level(logging.INFO)

        def broken(graph, inputs):
            raise RuntimeError("no compiler here")

        monkeypatch.setattr(compiled, "BACKEND", broken)
        assert same_weights(self.run(compiled=False).model, self.run(compiled=True).model)
        assert "cannot be compiled and runs as it is" in caplog.text

    def test_an_error_of_the_network_stays_one(self, monkeypatch):
        monkeypatch.setattr(compiled, "BACKEND", "eager")

        class Broken(CrossEntropy):
            def loss(self, model, batch):
                raise ValueError("of its own")

        with pytest.raises(ValueError, match="of its own"):
            train(Bare, Broken(**RECIPE.model_dump()), colours(), PREPROCESS, device="cpu", compiled=True)

    def test_only_long_trainings_on_a_gpu_are_compiled_by_themselves(self):
        assert compiled.worth_compiling(torch.device("cuda"), 39_100)
        assert not compiled.worth_compiling(torch.device("cuda"), 100)
        assert not compiled.worth_compiling(CPU, 39_100)


def test_a_training_ends_by_steps():
    recipe = CrossEntropy(epochs=3, batch_size=16, steps=8)
    (loop,) = loops_of(recipe, (0,), Sets(colours(96), colours(30, seed=1), None))
    run_loops([loop], lambda done: None)
    assert loop.total == 8 and len(loop.history) == 2
    assert Lockstep([loop]).loops[0].ended
    assert recipe.schedule(8, 6) == pytest.approx(1e-6 / recipe.learning_rate)
