"""A scorecard of encoders on real images: what an installation can have without a download, and miniatures.

    OODSCOPE_DATA=path/to/packs python benchmarks/encoders.py FOLDER docs/results/encoders.md

Fills FOLDER with the sets, trains a miniature CLIP on them (contrastive, captions by class name), and runs one job;
what is there is not made again. Wants ``efficientnet-lite-pytorch`` and the packages of its weights.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

import oodscope as oods
from oodscope.base.files import write_text
from oodscope.jobs.run import execute_declared
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.zoo.efficientnet_lite import efficientnet_lite
from oodscope.runs.encoders.run import Scorecard

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.realdata.packs import CIFAR10, load_pack, resnet18

DATA = Path(os.environ.get("OODSCOPE_DATA", ".")).resolve()
NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
PARTS = {"id_train": 2000, "id_val": 500, "id_test": 1500, "shifted": 500}
"""Of the CIFAR-10 test images, which no network here was trained on; drawn with seed 0."""

OUTLIERS = {"cifar100": "cifar100_test", "tin": "tinyimagenet_val", "svhn": "svhn_test_10k", "scenes": "sun_scenes_32"}
COUNT, EPOCHS = 500, 30

CLIP = {
    "embed_dim": 64,
    "vision_cfg": {"image_size": 32, "layers": 3, "width": 96, "head_width": 32, "patch_size": 4},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 64, "heads": 2, "layers": 1},
}


def lite0() -> Classifier:
    """EfficientNet-Lite0 (ImageNet) up to its pooled features."""
    return _without_head("efficientnet-lite0")


def resnet() -> Classifier:
    """The ResNet-18 that was trained on CIFAR-10, with its head."""
    return resnet18(DATA, "cifar10", CIFAR10)


def resnet_features() -> Classifier:
    """The same up to its features."""
    made = resnet()
    made.model.fc = nn.Identity()
    return Classifier(made.model, made.transform, device="cpu", embedding=True)


def random_features() -> Classifier:
    """A ResNet-18 that was never trained, up to its features."""
    torch.manual_seed(0)
    model, _ = oods.create_model("resnet18_32", num_classes=10)
    model.fc = nn.Identity()
    return Classifier(model.eval(), CIFAR10, device="cpu", embedding=True)


def _without_head(name: str) -> Classifier:
    made = efficientnet_lite(name, "cpu")
    made.model._fc = nn.Identity()
    return Classifier(made.model, made.transform, device="cpu", embedding=True, pretrained_on=["imagenet1k"])


def fill(folder: Path) -> None:
    """The sets as npz files."""
    images, extras = load_pack(DATA, "cifar10_test")
    order, start = np.random.default_rng(0).permutation(len(images)), 0
    for name, count in PARTS.items():
        rows = np.sort(order[start : start + count])
        start += count
        known = {"images": images[rows], "labels": extras["labels"][rows].astype(np.int64), "class_names": NAMES}
        if name == "shifted":
            whole = oods.ImageSet.from_arrays(name, known["images"], known["labels"], list(NAMES))
            noisy = oods.corrupt(whole, "gaussian_noise", severity=2)
            known["images"] = np.stack(noisy.images(range(len(noisy))))
        np.savez(folder / f"{name}.npz", **known)
    for name, pack in OUTLIERS.items():
        other, more = load_pack(DATA, pack)
        rows = np.sort(np.random.default_rng(0).permutation(len(other))[:COUNT])
        labels = {"labels": more["labels"][rows].astype(np.int64)} if "labels" in more else {}
        np.savez(folder / f"{name}.npz", images=np.stack([_small(other[row]) for row in rows]), **labels)


def _small(image: np.ndarray) -> np.ndarray:
    from PIL import Image

    return np.asarray(Image.fromarray(image).resize((32, 32), Image.Resampling.BILINEAR))


def clip(folder: Path) -> str:
    """The name of the miniature, known to open_clip from now on; its weights are trained where there are none."""
    import open_clip

    write_text(folder / "mini-clip.json", json.dumps(CLIP))
    open_clip.add_model_config(folder / "mini-clip.json")
    if not (folder / "clip.safetensors").exists():
        torch.manual_seed(0)
        network = open_clip.create_model("mini-clip")
        _train(network, open_clip.get_tokenizer("mini-clip"), dict(np.load(folder / "id_train.npz")))
        save_file(network.state_dict(), folder / "clip.safetensors")
    return "mini-clip"


def _train(network: Any, tokenizer: Any, data: dict[str, np.ndarray]) -> None:
    """Images against the caption of their class: the symmetric loss of CLIP over the classes of a batch."""
    pixels = torch.from_numpy(data["images"]).permute(0, 3, 1, 2).float() / 255
    mean, std = (torch.tensor(each).view(3, 1, 1) for each in (network.visual.image_mean, network.visual.image_std))
    pixels, labels = (pixels - mean) / std, torch.from_numpy(data["labels"])
    captions = tokenizer([f"a photo of a {name}." for name in NAMES])
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.05)
    steps = EPOCHS * (len(pixels) // 100)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=steps)
    for _ in range(EPOCHS):
        order = torch.randperm(len(pixels))
        for rows in order[: len(order) // 100 * 100].view(-1, 100):
            batch = pixels[rows]
            batch = batch.flip(-1) if torch.rand(()) < 0.5 else batch
            image = network.encode_image(batch, normalize=True)
            text = network.encode_text(captions, normalize=True)
            logits = network.logit_scale.exp() * image @ text.T
            loss = nn.functional.cross_entropy(logits, labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()


def job(folder: Path) -> dict[str, Any]:
    """The declaration: real networks of every kind, and the miniature with two sets of sentences."""
    words = {"architecture": f"open_clip:{clip(folder)}", "weights": str(folder / "clip.safetensors")}
    place = {name: str(folder / f"{name}.npz") for name in (*PARTS, *OUTLIERS)}
    return {
        "benchmark": {
            **{role: place[role] for role in ("id_train", "id_val", "id_test")},
            "near": {name: place[name] for name in ("cifar100", "tin")},
            "far": {name: place[name] for name in ("svhn", "scenes")},
            "csid": {"noise": place["shifted"]},
            "transform": {"size": 32, "mean": list(CIFAR10.mean), "std": list(CIFAR10.std)},
        },
        "device": "cpu",
        "output": str(folder / "runs"),
        "encoders": [
            {"name": "ResNet-18, CIFAR-10", "architecture": "python:encoders:resnet"},
            {"name": "ResNet-18, no head", "architecture": "python:encoders:resnet_features", "embedding": True},
            {"name": "EfficientNet-Lite0, no head", "architecture": "python:encoders:lite0", "embedding": True},
            {"name": "EfficientNet-Lite0, probe", "architecture": "python:encoders:lite0", "probe": {}},
            {"name": "untrained, no head", "architecture": "python:encoders:random_features", "embedding": True},
            {**words, "name": "miniature CLIP"},
            {**words, "name": "miniature CLIP, one sentence", "text_head": {"templates": ["a photo of a {}."]}},
        ],
    }


def page(card: Scorecard) -> str:
    """The page: the order in words, what was refused, both tables."""
    parts = ", ".join(f"{count:,} {name}" for name, count in PARTS.items())
    refused = _refused(card.notes) or ["Nothing: all encoders classify by the same words."]
    return "\n".join(
        [
            "# Which encoder separates OOD images, under which detector?",
            "",
            "**Question.** Networks with a head of words, with a linear head and without one, on the same images: "
            "AUROC near, far and with covariate-shifted images as ID, the detection error rate where a network "
            "classifies, and what the detector adds to the time of an image.",
            "",
            "**Answer.** By paired tests on the same images, under each detector that two of them have:",
            "",
            *(f"- {order}" for order in sorted(card.orders, key=lambda each: each.group != "near")),
            "",
            "**Not ranked.**",
            "",
            *(f"- {reason}" for reason in refused),
            "",
            "**Command.** `python benchmarks/encoders.py FOLDER docs/results/encoders.md`; your own: "
            "`oodscope run FILE` with a list `encoders` ([how](../howto/encoders.md)).",
            "",
            "**Machine.** 2 cores shared with other work, CPU: µs/image are of a busy machine.",
            "",
            f"**Date.** {time.strftime('%Y-%m-%d')}",
            "",
            f"{sum(PARTS.values()):,} CIFAR-10 test images: {parts} (`shifted`: Gaussian noise, severity 2), and "
            f"{COUNT} images of each OOD set (near: CIFAR-100, Tiny ImageNet; far: SVHN, SUN scenes), all at 32 "
            "pixels. Detectors are fitted on `id_train`, which no network but the miniature was trained on. "
            "EfficientNet-Lite0 has its published ImageNet weights and looks at 128 pixels; values marked ‡ are of "
            "images or classes that a network has met. "
            f"The miniature CLIP ({EPOCHS} epochs on `id_train`, captions by class name) shows that "
            "networks which classify by words go the same way; its numbers say nothing of CLIP. No CLIP, SigLIP or "
            "DINO could be had without a download: `oodscope run encoders` is the job for them.",
            "",
            card.table("encoders").render("markdown"),
            card.table("heads").render("markdown"),
        ]
    )


def _refused(notes: list[str]) -> list[str]:
    """The notes, those of one reason together."""
    found: dict[str, list[str]] = {}
    for note in notes:
        detector, _, reason = note.partition(": ")
        found.setdefault(reason, []).append(detector)
    return [f"{', '.join(detectors)}: {reason}." for reason, detectors in found.items()]


def main() -> None:
    folder, target = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "scenes.npz").exists():
        fill(folder)
    finished = execute_declared(job(folder), "benchmarks/encoders.py")
    write_text(target, page(finished.result))


if __name__ == "__main__":
    main()
