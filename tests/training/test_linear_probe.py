"""The linear probe finds the optimum that scikit-learn finds, and chooses its penalty on held-out images."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from oodscope.activations.activations import Activations
from oodscope.base.errors import OodscopeError
from oodscope.training.heads.linear_probe import LinearProbe

CLASSES, WIDTH = 5, 12


def rows(count, seed, spread=1.0):
    centres = np.random.default_rng(7).normal(size=(CLASSES, WIDTH))
    labels = np.arange(count) % CLASSES
    features = (centres[labels] + spread * np.random.default_rng(seed).normal(size=(count, WIDTH))) * 3 + 7
    return Activations(features=features.astype(np.float32), labels=labels)


def sklearn_head(train, penalty):
    """The same problem in its own terms: its C is 1 / (penalty x images), on centred features of mean square one."""
    features = train.features.double().numpy()
    mean = features.mean(axis=0)
    scale = np.sqrt(((features - mean) ** 2).mean())
    model = LogisticRegression(C=1 / (penalty * len(train)), tol=1e-10, max_iter=100_000)
    model.fit((features - mean) / scale, train.labels.numpy())
    weight = model.coef_ / scale
    return weight, model.intercept_ - weight @ mean


@pytest.mark.parametrize(("penalty", "tolerance"), [(1e-1, 1e-5), (1e-3, 1e-5), (1e-5, 1e-4)])
def test_the_optimum_is_scikit_learns(penalty, tolerance):
    train = rows(400, 0)
    fitted = LinearProbe(penalties=(penalty,)).fit(train, train, CLASSES)
    weight, bias = sklearn_head(train, penalty)
    features = train.features.double().numpy()
    ours = features @ fitted.head.weight.double().numpy().T + fitted.head.bias.double().numpy()
    theirs = features @ weight.T + bias
    # a constant added to all logits of an image changes nothing
    difference = (ours - ours.mean(1, keepdims=True)) - (theirs - theirs.mean(1, keepdims=True))
    assert np.abs(difference).max() < tolerance * np.abs(theirs).max()


def test_the_penalty_is_the_best_on_held_out_images():
    train, val = rows(60, 0, spread=2.0), rows(200, 1, spread=2.0)
    fitted = LinearProbe(penalties=(0.01, 1.0, 0.001, 0.1)).fit(train, val, CLASSES)
    losses = {}
    for penalty in (1.0, 0.1, 0.01, 0.001):
        weight, bias = sklearn_head(train, penalty)
        logits = val.features.double().numpy() @ weight.T + bias
        chances = np.exp(logits - logits.max(1, keepdims=True))
        losses[penalty] = log_loss(val.labels.numpy(), chances / chances.sum(1, keepdims=True))
    assert fitted.penalty == min(losses, key=losses.get)
    assert fitted.penalty not in (min(losses), max(losses)), "a world in which neither end wins"
    for penalty, loss in losses.items():
        assert fitted.losses[penalty] == pytest.approx(loss, rel=1e-3)


def test_every_tenth_training_image_stands_in_for_held_out_ones():
    train = rows(100, 0)
    held = np.arange(100) % 10 == 9
    probe = LinearProbe(penalties=(0.1, 0.01))
    ours = probe.fit(train, None, CLASSES)
    split = probe.fit(train.take(np.flatnonzero(~held)), train.take(np.flatnonzero(held)), CLASSES)
    assert torch.equal(ours.head.weight, split.head.weight)
    assert ours.losses == split.losses
    with pytest.raises(OodscopeError, match="needs id_val, or 10 training images or more"):
        LinearProbe().fit(rows(9, 0), None, CLASSES)


def test_two_fits_are_equal_and_chunks_do_not_matter(monkeypatch):
    train, val, probe = rows(100, 0), rows(50, 1), LinearProbe(penalties=(0.1, 0.01))
    first = probe.fit(train, val, CLASSES)
    again = probe.fit(train, val, CLASSES)
    assert torch.equal(first.head.weight, again.head.weight) and torch.equal(first.head.bias, again.head.bias)
    monkeypatch.setattr("oodscope.activations.activations.CHUNK_NUMBERS", 7 * WIDTH)
    pieces = probe.fit(train, val, CLASSES)
    assert pieces.penalty == first.penalty
    torch.testing.assert_close(pieces.head.weight, first.head.weight, rtol=1e-4, atol=1e-6)


def test_a_class_without_images_keeps_its_row():
    train = rows(100, 0)
    kept = train.take(np.flatnonzero(train.labels.numpy() != 4))
    head = LinearProbe(penalties=(1e-3,)).fit(kept, kept, CLASSES).head
    assert head.num_classes == CLASSES
    assert (head.logits(kept.features).argmax(1) != 4).all()


def test_penalties_are_above_zero():
    with pytest.raises(OodscopeError, match="penalties must be above 0, not -1"):
        LinearProbe(penalties=(1.0, -1.0)).fit(rows(20, 0), None, CLASSES)
