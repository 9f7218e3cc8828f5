"""Whether cuDNN tries its kernels is the user's choice, for shapes that come often; the order of sums is not."""

import pytest
import torch

from oodscope.activations import extract
from oodscope.activations.store.store import ActivationStore
from oodscope.models.classifier.network import full_precision, tried_kernels
from oodscope.runs.evaluation.extraction import TRIED, FromNetwork
from tests.tiny import classifier, imageset


@pytest.fixture(params=[False, True])
def switch(request, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", request.param)
    return request.param


@pytest.mark.parametrize("worthwhile", [False, True])
def test_kernels_are_tried_if_the_user_says_so_and_it_pays(switch, worthwhile):
    cudnn = torch.backends.cudnn
    with tried_kernels(worthwhile=worthwhile):
        with full_precision(torch.device("cpu")):
            assert cudnn.benchmark == (switch and worthwhile)
            assert cudnn.deterministic
            assert not cudnn.allow_tf32
        assert cudnn.benchmark == (switch and worthwhile)
    assert cudnn.benchmark == switch


def test_only_batches_that_come_often_are_worth_it(switch, monkeypatch, tmp_path):
    monkeypatch.setattr(extract, "WORTH_TRYING", 32)
    clf, seen = classifier(), []
    forward = clf.forward
    monkeypatch.setattr(
        clf,
        "forward",
        lambda batch, **k: seen.append((len(batch), torch.backends.cudnn.benchmark)) or forward(batch, **k),
    )
    ActivationStore(tmp_path).extract(clf, imageset("a", 40, 0), batch_size=16)
    assert seen[-3:] == [(16, switch), (16, switch), (8, False)]


def test_the_record_says_so(switch):
    extraction = FromNetwork(classifier())
    assert extraction.notes_afterwards() == []  # a processor has no cuDNN
    extraction.device = torch.device("cuda")
    assert extraction.notes_afterwards() == [TRIED] * switch
