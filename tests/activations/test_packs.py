"""Packs: who finds one decodes nothing, and gets the same bits."""

import numpy as np
import pytest
import torch
from PIL import Image

from oodscope.activations.packing import pack_bytes, pack_images, refuse_full_disk
from oodscope.activations.store.packs import find_pack
from oodscope.activations.store.shards import DamagedError
from oodscope.activations.store.store import ActivationStore
from oodscope.base.errors import StorageError
from oodscope.data.images.files import FileSource
from oodscope.data.images.folders import open_folder
from oodscope.data.preprocess import Preprocess
from oodscope.models.classifier.classifier import Classifier
from oodscope.training.loop.pixels import Streamed
from tests.tiny import TinyNet

COUNT = 30
CUT = Preprocess(size=8, resize=10, interpolation="bicubic")


@pytest.fixture
def images(tmp_path):
    """JPEG files of several sizes, in two classes."""
    rng = np.random.default_rng(0)
    for number in range(COUNT):
        path = tmp_path / "images" / f"class{number % 2}" / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (20 + number, 24, 3), dtype=np.uint8)).save(path)
    return open_folder("pictures", tmp_path / "images")


@pytest.fixture
def decoded(monkeypatch):
    """How often an image file is decoded, from now on."""
    count, original = [0], FileSource.picture

    def picture(self, index):
        count[0] += 1
        return original(self, index)

    monkeypatch.setenv("OODSCOPE_WORKERS", "0")
    monkeypatch.setattr(FileSource, "picture", picture)
    return count


def network(seed, cut=CUT):
    torch.manual_seed(seed)
    return Classifier(TinyNet(), cut, device="cpu")


def test_activations_are_the_same_to_the_bit_and_nothing_is_decoded(images, decoded, tmp_path):
    plain = ActivationStore(tmp_path / "a").extract(network(0), images)
    assert decoded[0] == COUNT
    assert pack_images(images, CUT) == COUNT and decoded[0] == 2 * COUNT
    packed = ActivationStore(tmp_path / "b").extract(network(0), images)
    other = ActivationStore(tmp_path / "b").extract(network(1), images)
    assert decoded[0] == 2 * COUNT
    for name in ("logits", "features"):
        assert np.array_equal(plain[name].numpy(), packed[name].numpy())
    assert not np.array_equal(plain.logits.numpy(), other.logits.numpy())
    assert pack_images(images, CUT) == 0


def test_a_training_reads_the_same_pixels(images, decoded):
    rows = np.array([3, 0, 17])
    plain = Streamed(images, CUT).read(rows)
    pack_images(images, CUT)
    before = decoded[0]
    assert torch.equal(Streamed(images, CUT).read(rows), plain) and decoded[0] == before


def test_another_crop_or_other_images_are_not_served(images, tmp_path):
    pack_images(images, CUT)
    rows = np.arange(COUNT)
    assert find_pack(images, CUT.model_copy(update={"mean": (0.1, 0.2, 0.3)}), rows), "normalisation comes afterwards"
    for other in ({"size": 9}, {"resize": 12}, {"interpolation": "bilinear"}, {"mean": (0.5,), "std": (0.5,)}):
        assert find_pack(images, CUT.model_copy(update=other), rows) is None
    Image.new("RGB", (20, 24)).save(tmp_path / "images" / "class0" / "0.jpg")
    assert find_pack(open_folder("pictures", tmp_path / "images"), CUT, rows) is None


def test_a_part_that_is_packed_serves_that_part(images, decoded):
    half = images.take(np.arange(0, COUNT, 2))
    assert pack_images(half, CUT) == COUNT // 2
    assert find_pack(images, CUT, half.rows) and find_pack(images, CUT, images.rows) is None
    assert pack_images(images, CUT) == COUNT // 2
    assert find_pack(images, CUT, images.rows)


def test_damage_is_refused_by_name(images, tmp_path):
    pack_images(images, CUT)
    (path,) = (tmp_path / "cache" / "pixels").rglob("*.safetensors")
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    pack = find_pack(images, CUT, images.rows)
    with pytest.raises(DamagedError, match=path.name):
        pack.read(images.rows)


def test_a_disk_that_is_too_small_is_one_line():
    assert pack_bytes(1_281_167, Preprocess(size=224)) == 1_281_167 * 150_528
    with pytest.raises(StorageError, match="OODSCOPE_PIXELS"):
        refuse_full_disk(10**18)
