"""On a GPU the same recipes run, mixed precision included, and resume."""

import pytest
import torch
from training_toys import PREPROCESS, StoppedError, TinyNet, colours, same_weights, stop_at

import oodscope.training.loop as loop
from oodscope.training import Augment, CrossEntropy, train

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed", "16-mixed"])
def test_trains_and_resumes_on_a_gpu(tmp_path, monkeypatch, precision):
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(loop, "SAVING_SHARE", float("inf"))
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
