"""Which pictures and classes of the CIFAR benchmarks are where they should not be?

    OODSCOPE_DATA=path/to/packs python benchmarks/audit_cifar.py OUT [--activations FOLDER]

Two audits by pixels, perceptual hash and class names, with pages in OUT; Tiny ImageNet's classes beside those that
OpenOOD v1.5 removed; and, where FOLDER holds features of the CIFAR-100 network (``cifar100-SET-features.npy`` for
``cifar100_train_25k`` and ``id_test``), what they find in addition.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np
import torch

import oodscope as oods
from oodscope.data.similarity.classnames import overlapping_classes
from oodscope.data.similarity.signatures import read_signatures
from oodscope.data.similarity.wordnet import WordNet
from oodscope.report.page.audit import write_audit
from oodscope.runs.audit.pairs import Member, by_features, by_hash, least_cosine, near_pairs

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.realdata.packs import pack

from openood_cifar import ARTIFACTS

STRONG = ("same name", "same meaning", "kind of")


def named(folder: Path, name: str, home: Path | None = None) -> oods.ImageSet:
    """A pack with the names of its classes; Tiny ImageNet with WordNet ids."""
    images = pack(folder, name, home)
    with np.load((home or folder) / f"{name}.npz") as content:
        names = content["wnids"] if "wnids" in content else content["class_names"]
    return oods.ImageSet(images.name, images.source, images.labels, [str(each) for each in names])


def benchmark(folder: Path, name: str) -> oods.Benchmark:
    train = {"cifar10": "cifar10_train", "cifar100": "cifar100_train_25k"}[name]
    other = {"cifar10": "cifar100_test", "cifar100": "cifar10_test"}[name]
    # the pictures of Tiny ImageNet are compared once, its classes with both
    more = (named(folder, "tinyimagenet_val"),) if name == "cifar100" else ()
    test = named(folder, f"{name}_test")
    whole = pack(folder, train, folder if (folder / f"{train}.npz").exists() else ARTIFACTS)
    return oods.Benchmark(
        name=name,
        version="packs",
        id_train=oods.ImageSet(train, whole.source, whole.labels, test.class_names),
        id_test=test,
        near=(named(folder, other), *more),
        far=(named(folder, "sun_scenes_32"), named(folder, "dtd10_32")),
    )


def compare_with_openood(folder: Path, name: str) -> None:
    """Our overlapping classes beside those of which OpenOOD's lists dropped nine tenths of the images or more."""
    splits = np.load(folder / "openood_v15_splits.npz")
    with np.load(folder / "tinyimagenet_val.npz") as content:
        labels, ids, names = content["labels"], content["wnids"], content["class_names"]
    kept = np.concatenate([splits[f"{name}_test_tin"], splits[f"{name}_val_tin"]])
    whole, left = (np.bincount(each, minlength=len(ids)) for each in (labels, labels[kept]))
    removed = set(np.flatnonzero(left <= 0.1 * whole).tolist())
    id_classes = named(folder, f"{name}_test").class_names
    found: dict[int, list[str]] = {}
    for overlap in overlapping_classes(id_classes, [str(each) for each in ids], WordNet.find()):
        found.setdefault([str(each) for each in ids].index(overlap.ood_class), []).append(overlap.relation)
    strong = {row for row, relations in found.items() if set(relations) & set(STRONG)}
    lost = int((whole - left).sum())
    print(
        f"\n{name}: OpenOOD dropped {lost} images, {len(removed)} classes (nearly) whole; ours: {len(strong)} classes"
    )
    print(f"in both {len(strong & removed)}; only by a weaker relation {len((set(found) - strong) & removed)}")
    print("removed, not found:", "; ".join(str(names[row]).split(",")[0] for row in sorted(removed - set(found))))
    print("found, not removed:", "; ".join(str(names[row]).split(",")[0] for row in sorted(strong - removed)))


def by_embedding(folder: Path, activations: Path) -> None:
    """What features find between CIFAR-100's training and test images that hashes do not."""
    splits = np.load(folder / "openood_v15_splits.npz")
    train = named(folder, "cifar100_train_25k")
    test = named(folder, "cifar100_test").take(splits["cifar100_test_id"], "id_test")
    features = {}
    for images in (train, test):
        values = torch.from_numpy(np.load(activations / f"cifar100-{images.name}-features.npy").astype(np.float32))
        features[images.name] = values / values.norm(dim=1, keepdim=True)
    started = time.perf_counter()
    one, two = (
        Member(role, images, read_signatures(images), images.sample_ids())
        for role, images in (("id_train", train), ("id_test", test))
    )
    least = least_cosine(features, "id_test")
    near = by_features(features[train.name], features["id_test"], least)
    hashed = by_hash(one.signatures, two.signatures) or []
    found = list(near_pairs(one, two, {"hash": hashed, "embedding": near}))
    alone = list(near_pairs(one, two, {"embedding": near}))
    print(f"\nfeatures, cosine at least {least:.4f}: {len(near)} candidates, {len(alone)} confirmed")
    print(f"hash: {len(hashed)} candidates, {sum(p.found_by == 'hash' for p in found)} confirmed")
    print(f"added by features: {sum(p.found_by == 'embedding' for p in found)}; {time.perf_counter() - started:.0f} s")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--activations", type=Path)
    parser.add_argument("--only", nargs="*", default=["cifar100", "cifar10"])
    given = parser.parse_args()
    folder = Path(os.environ["OODSCOPE_DATA"]).resolve()
    for name in given.only:
        bench = benchmark(folder, name)
        found = oods.audit(bench)
        write_audit(found, bench, given.out / name)
        print(f"\n{name}: {found.verdicts()}, seconds { ({k: round(v, 1) for k, v in found.seconds.items()}) }")
        for line in (*found.summary(), *found.notes):
            print("-", line)
        for pair in found.classes:
            if pair.set != "tinyimagenet_val":
                print(f"  {pair.set}: {pair.ood_class} {pair.relation} {pair.id_class} ({pair.detail})")
        compare_with_openood(folder, name)
        sys.stdout.flush()
    if given.activations:
        by_embedding(folder, given.activations)


if __name__ == "__main__":
    main()
