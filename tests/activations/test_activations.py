"""Activations: columns from anywhere, read in pieces."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from oodscope.activations.activations import Activations
from oodscope.base.errors import ActivationError
from tests.examples import examples


def rows(n=10, classes=3, width=4, seed=0, **changes):
    rng = np.random.default_rng(seed)
    columns = {
        "logits": rng.normal(size=(n, classes)).astype(np.float32),
        "features": rng.normal(size=(n, width)).astype(np.float32),
        "labels": rng.integers(0, classes, size=n),
    }
    return Activations(**{**columns, **changes})


def test_plain_arrays_lists_and_tensors_are_welcome():
    made = Activations(logits=[[0.0, 1.0], [2.0, 0.0]], labels=torch.tensor([1, 0]))
    assert len(made) == 2
    assert made.prediction.tolist() == [1, 0]
    assert repr(made) == "Activations(2 rows: logits [2, 2], labels [2])"


def test_prediction_may_differ_from_the_argmax():
    assert rows(prediction=np.full(10, 2)).prediction.tolist() == [2] * 10


def test_chunks_are_float32_and_together_the_whole():
    made = rows(n=10, features=np.arange(40, dtype=np.float16).reshape(10, 4))
    chunks = list(made.chunks(rows=3))
    assert [len(chunk) for chunk in chunks] == [3, 3, 3, 1]
    assert chunks[0].features.dtype == torch.float32
    assert torch.cat([chunk.features for chunk in chunks]).equal(made.features.float())


def test_take_keeps_head_and_order():
    made = rows(weight=np.zeros((3, 4)), bias=np.zeros(3))
    taken = made.take([4, 1])
    assert taken.labels.tolist() == made.labels[[4, 1]].tolist()
    assert taken.head is made.head


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": [1, 2]}, "columns differ in length: logits 10, features 10, labels 2"),
        ({"logits": np.zeros(10)}, r"logits must be a matrix, not of shape \[10\]"),
        ({"weight": np.zeros((3, 5))}, r"features have 4 columns, the head's weight is \[3, 5\]"),
        ({"logits": np.zeros((10, 2))} | {"weight": np.zeros((3, 4))}, r"logits have 2 columns"),
        ({"logits": [["a"] * 3] * 10}, "logits must be numbers"),
    ],
)
def test_bad_columns(changes, message):
    with pytest.raises(ActivationError, match=message):
        rows(**changes)


def test_no_rows_and_no_columns():
    with pytest.raises(ActivationError, match="empty: no rows"):
        Activations(logits=np.zeros((0, 3)))
    with pytest.raises(ActivationError, match="at least one column"):
        Activations()


def test_unknown_column_suggests_the_nearest():
    with pytest.raises(ActivationError, match="no column 'feature'. Did you mean 'features'"):
        rows()["feature"]


@examples(30)
@given(st.integers(1, 60), st.integers(1, 5), st.integers(1, 6), st.integers(0, 99), st.sampled_from([0.0, 1e4]))
def test_moments_are_those_of_the_definition(n, classes, width, seed, offset):
    rng = np.random.default_rng(seed)
    features = (rng.normal(size=(n, width)) + offset).astype(np.float32)
    labels = rng.integers(0, classes, size=n)
    made = Activations(logits=np.zeros((n, classes)), features=features, labels=labels)
    made_of_pieces = made.moments()
    h = features.astype(np.float64)
    mean = h.mean(axis=0)
    within = np.zeros((width, width))
    for c in range(classes):
        own = h[labels == c]
        assert made_of_pieces.counts[c] == len(own)
        if len(own):
            assert np.allclose(made_of_pieces.means[c], own.mean(axis=0))
            within += (own - own.mean(axis=0)).T @ (own - own.mean(axis=0)) / n
    assert np.allclose(made_of_pieces.mean, mean)
    assert np.allclose(made_of_pieces.covariance, (h - mean).T @ (h - mean) / n, atol=1e-8)
    assert np.allclose(made_of_pieces.within, within, atol=1e-8)
    assert np.allclose(made_of_pieces.second_about(torch.zeros(width)), h.T @ h / n, rtol=1e-9, atol=1e-8)


def test_moments_are_gathered_once(monkeypatch):
    made = rows()
    first = made.moments()
    monkeypatch.setattr(Activations, "chunks", None)
    assert made.moments() is first
