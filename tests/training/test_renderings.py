"""StyleAugment and DeepAugment as data: a list of pictures and their renderings, and no more steps than without."""

import numpy as np
import pytest
import yaml
from PIL import Image

import oodscope as oods
from oodscope.base.errors import DataError
from oodscope.training.methods.cross_entropy import CrossEntropy
from tests.training.training_toys import PREPROCESS, TinyNet, colours


@pytest.fixture
def bench(tmp_path):
    """Forty-eight pictures, each with two renderings, in one list: originals first."""
    images = colours(48)
    lines = []
    for rendering, change in enumerate((lambda x: x, lambda x: 255 - x, lambda x: x // 2)):
        (tmp_path / str(rendering)).mkdir()
        for row, pixels in enumerate(images.images(range(48))):
            Image.fromarray(change(np.asarray(pixels))).save(tmp_path / str(rendering) / f"{row}.png")
            lines.append(f"{rendering}/{row}.png {images.labels[row]}")
    (tmp_path / "all.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "test.txt").write_text("\n".join(lines[:12]) + "\n")
    listed = {"source": "list", "path": "all.txt"}
    manifest = {
        "name": "rendered",
        "version": "1",
        "description": "x",
        "transform": {"size": 12},
        "classes": list("012"),
    }
    manifest["sets"] = {"id_train": listed, "id_test": {**listed, "path": "test.txt"}}
    (tmp_path / "bench.yaml").write_text(yaml.safe_dump(manifest))
    return oods.load_benchmark(tmp_path / "bench.yaml")


def steps(recipe, images):
    watched = []

    class Counting(CrossEntropy):
        def loss(self, model, batch):
            watched.append(len(batch.labels))
            return super().loss(model, batch)

    oods.train(TinyNet, Counting(**recipe.model_dump()), images, PREPROCESS, device="cpu")
    return len(watched), sum(watched)


def test_renderings_take_the_steps_of_their_pictures(bench):
    plain = CrossEntropy(epochs=6, batch_size=16)
    originals = bench.id_train.take(range(48))
    assert steps(plain, originals) == (18, 6 * 48)
    assert steps(plain.model_copy(update={"renderings": 3}), bench.id_train) == (18, 6 * 48)


def test_a_list_that_is_not_whole_is_refused(bench):
    with pytest.raises(DataError, match="143 images are no 3 renderings of each picture"):
        oods.train(TinyNet, CrossEntropy(renderings=3), bench.id_train.take(range(143)), PREPROCESS, device="cpu")
