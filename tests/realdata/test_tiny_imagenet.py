"""The true Tiny ImageNet validation images, laid out as published: checked, and cut as OpenOOD cuts them."""

import json

import numpy as np
import pytest

from oodscope.data.public.cards import load_card
from oodscope.data.public.check import check_split
from oodscope.data.public.datasetspec import DatasetSpec
from oodscope.data.public.root import DatasetRoot
from oodscope.data.public.state import State, state_of

pytestmark = [pytest.mark.realdata, pytest.mark.slow]


@pytest.fixture(scope="module")
def laid_out(real_data, tmp_path_factory):
    root = tmp_path_factory.mktemp("root")
    folder = root / "tiny-imagenet-200" / "val"
    (folder / "images").mkdir(parents=True)
    with np.load(real_data / "tinyimagenet_val.npz") as pack:
        blob, ends = pack["blob"].tobytes(), pack["offsets"]
        wnids = pack["wnids"][pack["labels"]]
        assert json.loads(str(pack["meta"]))["codec"] == "jpeg-bytes"
    for number in range(10_000):
        (folder / "images" / f"val_{number}.JPEG").write_bytes(blob[ends[number] : ends[number + 1]])
    lines = (f"val_{number}.JPEG\t{wnid}\t0\t0\t63\t63\n" for number, wnid in enumerate(wnids))
    (folder / "val_annotations.txt").write_text("".join(lines))
    return root


def test_ready_after_a_check_and_cut_as_published(laid_out, real_data):
    card = load_card("tiny_imagenet")
    report = check_split(card, "val", laid_out)
    assert (report.ok, report.found, report.expected) == (True, 10_000, 10_000)
    assert state_of(card, "val", laid_out) is State.READY
    splits = np.load(real_data / "openood_v15_splits.npz")
    datasets = DatasetRoot(laid_out)
    for part, count in (("val", 1_000), ("test", 7_793)):
        spec = DatasetSpec(
            source="dataset", dataset="tiny_imagenet", split="val", rows=f"cifar10_tin_{part}", count=count
        )
        cut = spec.open_from(datasets, "tin")
        assert cut.sample_ids() == [f"val_{number}.JPEG" for number in splits[f"cifar10_{part}_tin"]]
        assert len(np.unique(cut.labels)) == (20 if part == "val" else 160)
