"""Heads trained at once are those trained one by one, and those of a plain loop with torch's own layers and Adam."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import oodscope.training.heads.training as grouping
from oodscope.base.errors import DataError, OodscopeError
from oodscope.training.heads.deck import Deck, keep_share, kept, seeded, uniform
from oodscope.training.heads.recipe import HeadRecipe
from oodscope.training.heads.task import HeadTask
from oodscope.training.heads.training import train_heads
from tests.examples import examples
from tests.training.head_reference import Reference
from tests.training.training_toys import Listener

CLASSES, WIDTH = 4, 10
CPU = torch.device("cpu")
RECIPE = HeadRecipe(hidden=7, learning_rate=0.03, batch_size=32, epochs=7, patience=2, oe_epochs=3, oe_share=0.2)

CHANGES = [{}, {"dropout": 0.0}, {"balanced": False}, {"patience": 0}, {"patience": 1}, {"batch_size": 1000}]


def world(count=400, seed=0, spread=2.0):
    """Embeddings of a mixture, scaled and shifted as no network would; and outliers between the classes."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(CLASSES, count, p=[0.4, 0.3, 0.2, 0.1])
    centres = np.random.default_rng(99).normal(size=(CLASSES, WIDTH))
    points = centres[labels] * 2 + spread * rng.normal(size=(count, WIDTH))
    outliers = rng.normal(size=(150, WIDTH)) * 3
    made = [torch.tensor(5 * each + 1, dtype=torch.float32) for each in (points, outliers)]
    return made[0], torch.tensor(labels), made[1]


X, Y, OUT = world()


def folds(count=5, first=191):
    """Tasks of unequal length; some straddle a number of batches."""
    rng = np.random.default_rng(1)
    tasks = []
    for seed in range(count):
        order, size = rng.permutation(len(X)), first + seed
        tasks.append(HeadTask(order[:size], order[size : size + 90 - 2 * seed], 1000 - 7 * seed))
    return tasks


def train(recipe, tasks, **options):
    return train_heads(recipe, X, Y, tasks, CLASSES, outliers=OUT, device="cpu", **options)


def tensors(head):
    return [head.hidden_weight, head.hidden_bias, head.head.weight, head.head.bias]


def close(ours, theirs, tolerance=1e-4):
    for one, two in zip(ours, theirs):
        torch.testing.assert_close(one, two, rtol=tolerance, atol=tolerance * float(two.abs().max()))


def apart(one, two):
    return max(float((a - b).abs().max()) for a, b in zip(tensors(one), tensors(two)))


def exposures(tasks, heads):
    rng = np.random.default_rng(2)
    outliers = [rng.permutation(len(OUT))[: 60 - 20 * place] for place in range(len(tasks))]
    return [task._replace(outliers=rows, start=head) for task, rows, head in zip(tasks, outliers, heads)]


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_plain_loop_finds_the_same_weights(change):
    recipe = RECIPE.model_copy(update=change)
    tasks = folds(3)
    for task, head in zip(tasks, train(recipe, tasks)):
        values, epoch, accuracy = Reference(recipe, X, Y, task.train, task.val, task.seed, CLASSES).fit()
        close(tensors(head), values)
        assert (head.epoch, head.val_accuracy) == (epoch, pytest.approx(accuracy, abs=1e-12))


def test_a_plain_loop_exposed_to_outliers_finds_the_same_weights():
    tasks = exposures(folds(3), train(RECIPE, folds(3)))
    assert [len(task.outliers) for task in tasks] == [60, 40, 20], "more than the share, nearly, and fewer"
    for task, head in zip(tasks, train(RECIPE, tasks)):
        start = tensors(task.start)
        slow = Reference(RECIPE, X, Y, task.train, task.val, task.seed, CLASSES, task.outliers, start)
        values, accuracy = slow.expose(OUT)
        close(tensors(head), values)
        assert (head.epoch, head.val_accuracy) == (3, pytest.approx(accuracy, abs=1e-12))


@pytest.mark.slow
def test_alone_or_together_in_any_order_and_any_groups(monkeypatch):
    recipe, tasks = RECIPE.model_copy(update={"epochs": 9}), folds(4)
    together = train(recipe, tasks)
    assert len({head.epoch for head in together}) > 1, "heads that stop at different epochs"
    assert len({len(task.train) + 31 >> 5 for task in tasks}) == 2, "tasks with different numbers of steps"
    for others in (train(recipe, tasks[::-1])[::-1], [train(recipe, [task])[0] for task in tasks]):
        for one, two in zip(together, others):
            close(tensors(one), tensors(two))
            assert (one.epoch, one.val_accuracy) == (two.epoch, two.val_accuracy)
    monkeypatch.setattr(grouping, "CPU_BYTES", 1)
    assert grouping.group_tasks(recipe, tasks, WIDTH, CLASSES, CPU) == [[0], [1], [2], [3]]
    for one, two in zip(together, train(recipe, tasks)):
        close(tensors(one), tensors(two))


def test_fresh_heads_and_exposed_ones_share_a_call():
    tasks = folds(2)
    heads = train(RECIPE, tasks)
    exposed = exposures(tasks, heads)
    mixed = train(RECIPE, [exposed[1], tasks[0], exposed[0], tasks[1]])
    expected = train(RECIPE, exposed)
    for one, two in zip(mixed, [expected[1], heads[0], expected[0], heads[1]]):
        close(tensors(one), tensors(two))


def test_the_seed_decides():
    task = folds(1)[0]
    one, again, other = train(RECIPE, [task, task, task._replace(seed=5)])
    assert apart(one, again) < 1e-6 < 1e-2 < apart(one, other)
    far = train(RECIPE, [task._replace(seed=2**64 + 5)])[0]
    assert apart(far, other) < 1e-5, "seeds count modulo 2^64"


def test_scale_of_the_embeddings_does_not_matter():
    tasks = folds(2)
    for one, two in zip(train(RECIPE, tasks), train_heads(RECIPE, 64 * X, Y, tasks, CLASSES, device="cpu")):
        close([one.hidden_weight, one.head.weight], [64 * two.hidden_weight, two.head.weight])


def test_activations_are_those_of_a_network_with_this_head():
    head = train(RECIPE, folds(1))[0]
    found = head.activations(X, Y)
    weight, bias = head.hidden_weight.double().numpy(), head.hidden_bias.double().numpy()
    hidden = np.maximum(X.double().numpy() @ weight.T + bias, 0)
    np.testing.assert_allclose(found.features.numpy(), hidden, rtol=1e-4, atol=1e-4)
    rebuilt = found.features @ found.head.weight.T + found.head.bias
    torch.testing.assert_close(found.logits, rebuilt)
    assert torch.equal(found.labels, Y) and torch.equal(found.prediction, found.logits.argmax(1))
    assert "labels" not in head.activations(X[:5].half()) and head.features(X[:5].half()).dtype == torch.float32


def test_they_learn_and_exposure_flattens_outliers():
    recipe = HeadRecipe(hidden=16, batch_size=32, learning_rate=0.02, oe_share=0.3)
    tasks = folds(2)
    heads = train(recipe, tasks)
    exposed = train(recipe, exposures(tasks, heads))
    for task, before, after in zip(tasks, heads, exposed):
        rest = np.setdiff1d(np.arange(len(X)), np.concatenate([task.train, task.val]))
        for head in (before, after):
            assert (head.activations(X[rest]).prediction == Y[rest]).double().mean() > 0.75
        surest = [head.activations(OUT).logits.softmax(1).amax(1).mean() for head in (before, after)]
        assert surest[1] < surest[0] - 0.1


@pytest.mark.slow
def test_rare_classes_count_as_much_as_frequent_ones():
    def recall(balanced):
        recipe = RECIPE.model_copy(update={"balanced": balanced, "epochs": 25, "patience": 0})
        said = train(recipe, folds(1))[0].activations(X, Y).prediction
        return float((said[Y == 3] == 3).double().mean())

    assert recall(True) > recall(False)


def test_bf16_finds_nearly_the_same():
    recipe = RECIPE.model_copy(update={"patience": 0})
    exact, rough = (train(recipe.model_copy(update={"precision": p}), folds(2)) for p in ("32-true", "bf16-mixed"))
    for one, two in zip(exact, rough):
        assert apart(one, two) > 0
        assert two.head.weight.dtype == torch.float32
        assert two.val_accuracy == pytest.approx(one.val_accuracy, abs=0.05)


def test_progress_counts_every_epoch_of_every_head():
    tasks = folds(4)
    listener = Listener()
    heads = train(RECIPE, [*tasks, *exposures(tasks[:1], train(RECIPE, tasks[:1]))], progress=listener)
    assert sum(listener.calls) == listener.total == 4 * 7 + 3
    assert min(head.epoch for head in heads[:4]) + 2 < 7, "some head stopped early"
    assert train(RECIPE, []) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train": np.array([0, 400])}, "head task 1: train has rows from 0 to 400, but there are 400 embeddings"),
        ({"val": np.array([-1])}, "task 1: val has rows from -1"),
        ({"train": np.flatnonzero(Y.numpy() == 1)}, "fewer than two classes"),
        ({"val": np.array([], dtype=np.int64)}, "patience=2 needs validation rows"),
        ({"outliers": np.arange(5)}, "give both outliers and start"),
    ],
)
def test_unusable_tasks_are_one_line(change, message):
    tasks = folds(2)
    with pytest.raises(DataError, match=message):
        train(RECIPE, [tasks[0], tasks[1]._replace(**change)])


def test_unusable_tables_are_one_line():
    task, head = folds(1)[0], train(RECIPE, folds(1))[0]
    with pytest.raises(DataError, match=r"labels \[399\] do not belong together"):
        train_heads(RECIPE, X, Y[1:], [task], CLASSES, device="cpu")
    with pytest.raises(DataError, match="labels from 0 to 3 do not fit 3 classes"):
        train_heads(RECIPE, X, Y, [task], 3, device="cpu")
    with pytest.raises(DataError, match="outliers are 9 wide, embeddings 10"):
        train_heads(RECIPE, X, Y, [task], CLASSES, outliers=OUT[:, 1:], device="cpu")
    exposed = task._replace(outliers=np.arange(5), start=head)
    with pytest.raises(DataError, match="rows from 0 to 4, but there are 0 embeddings"):
        train_heads(RECIPE, X, Y, [exposed], CLASSES, device="cpu")
    with pytest.raises(DataError, match="there are no outliers"):
        train(RECIPE, [exposed._replace(outliers=np.array([], dtype=np.int64))])
    with pytest.raises(DataError, match="another shape"):
        train(RECIPE.model_copy(update={"hidden": 8}), [exposed])
    with pytest.raises(OodscopeError, match="diverged: the loss of the head with seed 1000 is nan in epoch 1"):
        train_heads(RECIPE, X * float("nan"), Y, [task], CLASSES, device="cpu")


@examples(40)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=5), st.integers(1, 9), st.integers(0, 2**63))
def test_an_epoch_deals_every_row_once_in_batches_of_nearly_equal_size(lengths, steps, seed):
    rows = [np.arange(length) * 3 + place for place, length in enumerate(lengths)]
    deck = Deck.of(rows, CPU).shuffled(seeded([seed + place for place in range(len(rows))], "training", CPU), "order")
    dealt = [deck.dealt(step, steps) for step in range(steps)]
    for place, expected in enumerate(rows):
        batches = [batch[place][valid[place]].tolist() for batch, valid in dealt]
        assert sorted(row for batch in batches for row in batch) == expected.tolist()
        assert max(map(len, batches)) - min(map(len, batches)) <= 1


def test_draws_are_fair():
    draws = seeded(list(range(50)), "training", CPU)
    for dropout in (0.2, 0.5):
        mask = kept(draws, "embeddings 1 1", torch.Size((50, 40, 31)), dropout)
        assert keep_share(dropout) == pytest.approx(1 - dropout, abs=1e-5)
        assert mask.double().mean() == pytest.approx(1 - dropout, abs=0.006)  # 3.7 deviations
        for axis in (0, 1, 2):
            spread = mask.double().mean(axis).std()
            assert spread < 1.5 * (dropout * (1 - dropout) / mask.shape[axis]) ** 0.5
    numbers = uniform(draws, "hidden", 0.3, 400)
    assert numbers.abs().max() <= 0.3 and numbers.mean().abs() < 0.005
    assert numbers.std() == pytest.approx(0.3 / 3**0.5, rel=0.02)
