"""The graph says what torch says, for any number of images; what cannot be a graph says why."""

import sys

import numpy as np
import pytest
import torch
from torch import nn

import oodscope as oods
from oodscope.base.errors import DetectorError
from oodscope.deploy import onnx as exporting
from oodscope.deploy.onnx import OUTPUTS, ScorerGraph, draw, export_onnx
from tests.tiny import classifier, images, imageset

pytestmark = pytest.mark.slow

onnxruntime = pytest.importorskip("onnxruntime")

CHECKED = ["ash", "ebo", "gen", "knn", "mds", "mls", "msp", "openmax", "react", "react+gen", "vim"]
OWN_PASSES = {"adascale_a", "adascale_l", "cover", "iodin", "mds_ensemble", "odin", "pro", "rankfeat", "ross"}


def scorer(name, clf=None):
    return oods.fit_scorer(
        clf or classifier(), name, imageset("held out", 60, 2), imageset("train", 200, 1), target=0.1
    )


def session(content):
    return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])


def pixels(count, seed=9):
    return torch.from_numpy(images(count, seed)[0]).permute(0, 3, 1, 2).float() / 255


class Side(nn.Module):
    """Several scorers side by side: one export for all."""

    def __init__(self, scorers):
        super().__init__()
        self.graphs = nn.ModuleList([ScorerGraph(each) for each in scorers])

    def forward(self, batch):
        return tuple(graph(batch)[1] for graph in self.graphs)


def test_a_graph_equals_torch_for_any_number_of_images():
    clf = classifier()
    scorers = [scorer(name, clf) for name in CHECKED]
    outputs = [f"score {number}" for number in range(len(scorers))]
    graph = session(draw(Side(scorers), pixels(4), outputs, "all"))
    for count in (1, 13):
        found = graph.run(outputs, {"images": pixels(count).numpy()})
        expected = [each.score_tensor(pixels(count)).numpy() for each in scorers]
        off = {name: np.abs(b - a).max() / np.abs(a).max() for name, a, b in zip(CHECKED, expected, found)}
        assert {name: share for name, share in off.items() if not share <= 1e-4} == {}
        assert {theirs.shape for theirs in found} == {(count,)}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A scorer, its file, and how far the two are apart."""
    made, path = scorer("knn"), tmp_path_factory.mktemp("onnx") / "knn.onnx"
    return made, path, export_onnx(made, path, imageset("real", 10, 3))


def test_an_exported_file_judges_as_the_scorer_does(exported):
    made, path, off = exported
    assert set(off) == {"noise", "images"}
    assert max(off.values()) < 1e-5
    graph = session(path.read_bytes())
    logits, score, accepted = graph.run(list(OUTPUTS), {"images": pixels(40).numpy()})
    expected = made.predict(images(40, 9)[0])
    assert logits.argmax(axis=1).tolist() == [each.class_index for each in expected]
    assert np.allclose(score, [each.score for each in expected], rtol=1e-4)
    assert accepted.tolist() == [each.accepted for each in expected]
    assert set(accepted) == {True, False}


def test_a_graph_that_differs_is_refused(exported, tmp_path, monkeypatch):
    _, path, _ = exported
    monkeypatch.setattr(exporting, "draw", lambda *_: path.read_bytes())
    with pytest.raises(DetectorError, match="mds: the ONNX graph differs from torch by .* more than 0.0001"):
        export_onnx(scorer("mds"), tmp_path / "a.onnx")
    assert not (tmp_path / "a.onnx").exists()


@pytest.mark.parametrize("name", sorted(OWN_PASSES))
def test_passes_of_ones_own_are_no_graph(name, tmp_path):
    with pytest.raises(DetectorError, match=f"{name}: cannot be exported: it makes passes of its own"):
        export_onnx(scorer(name), tmp_path / "a.onnx")


def test_what_cannot_be_traced_says_so(tmp_path):
    """Weiper asks how many images there are, and the exporter would draw that number."""
    with pytest.raises(DetectorError, match="^weiper: cannot be drawn as one graph for any number") as refusal:
        export_onnx(scorer("weiper"), tmp_path / "a.onnx")
    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "a.onnx").exists()


def test_without_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(DetectorError, match=r"export needs onnxruntime: pip install 'oodscope\[onnx\]'"):
        export_onnx(scorer("msp"), tmp_path / "a.onnx")
