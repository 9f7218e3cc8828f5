"""What does each corruption cost a classifier, and how fast is it made?

    OODSCOPE_DATA=path/to/packs python benchmarks/corruptions_cifar.py OUTPUT.json [--device cuda] [--limit 100]
    python benchmarks/corruptions_cifar.py OUTPUT.json --show

Accuracy of the CIFAR-10 ResNet-18 on the first ``--limit`` test images under each of the 19 corruptions at each
severity, and images per second of each corruption at 32 and 224 px, severities 1 to 5 mixed. OUTPUT.json is written
after each corruption, and a run that finds one goes on from there.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oodscope.base.files import write_text
from oodscope.data.corruptions.batch import corrupt_batch
from oodscope.data.corruptions.catalog import CORRUPTIONS

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.realdata.packs import CIFAR10, pack, resnet18

SEVERITIES = (1, 2, 3, 4, 5)
BATCHES = {"cpu": {32: 100, 224: 2}, "cuda": {32: 5000, 224: 250}}


def accuracy(network: Any, images: Tensor, labels: Tensor) -> float:
    """In percent."""
    mean, std = (torch.tensor(values, device=images.device).view(1, 3, 1, 1) for values in (CIFAR10.mean, CIFAR10.std))
    right = 0
    with torch.no_grad():
        for start in range(0, len(images), 500):
            batch = (images[start : start + 500] / 255.0 - mean) / std
            right += int((network.forward(batch).logits.argmax(1) == labels[start : start + 500]).sum())
    return 100 * right / len(images)


def images_per_second(name: str, images: Tensor) -> float:
    """After one batch to warm up; on a CPU, per second of one core's own time, which other work does not disturb."""
    clock = time.perf_counter if images.device.type == "cuda" else time.process_time
    for attempt in range(2):
        started = clock()
        corrupt_batch(images, name, np.resize(SEVERITIES, len(images)), seed=attempt)
        if images.device.type == "cuda":
            torch.cuda.synchronize()
    return len(images) / (clock() - started)


def natural(images: Tensor, side: int, count: int) -> Tensor:
    """``count`` pictures of ``side`` pixels: those that are there, enlarged and repeated."""
    chosen = images[torch.arange(count, device=images.device) % len(images)]
    if chosen.shape[-1] == side:
        return chosen
    larger = torch.nn.functional.interpolate(chosen.float(), size=(side, side), mode="bilinear")
    return larger.round().to(torch.uint8)


def measure(folder: Path, output: Path, device: str, limit: int) -> None:
    known = pack(folder, "cifar10_test")
    rows = np.arange(min(limit, len(known)))
    images = torch.from_numpy(np.stack(known.images(rows))).permute(0, 3, 1, 2).contiguous().to(device)
    labels = torch.from_numpy(known.labels[rows]).to(device)
    network = resnet18(folder, "cifar10", CIFAR10, device)
    found: dict[str, Any] = json.loads(output.read_text()) if output.exists() else {}
    if "clean" not in found:
        found = {"images": len(rows), "device": device, "torch": torch.__version__, "rows": {}}
        found["clean"] = accuracy(network, images, labels)
        found["name"] = torch.cuda.get_device_name() if device == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    for name in CORRUPTIONS:
        if name in found["rows"]:
            continue
        by_severity = [accuracy(network, corrupt_batch(images, name, each), labels) for each in SEVERITIES]
        speed = {
            str(side): images_per_second(name, natural(images, side, count)) for side, count in BATCHES[device].items()
        }
        found["rows"][name] = {"accuracy": by_severity, "images_per_second": speed}
        write_text(output, json.dumps(found, indent=1))
        print(name, [f"{each:.1f}" for each in by_severity], speed, flush=True)


def show(found: dict[str, Any]) -> None:
    rows = found["rows"]
    print(f"{found['images']} images, {found['name']}, torch {found['torch']}; clean accuracy {found['clean']:.2f}\n")
    print("| corruption | group | comparable | 1 | 2 | 3 | 4 | 5 | mean | 32 px images/s | 224 px images/s |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for name, row in rows.items():
        info, percent = CORRUPTIONS[name], " | ".join(f"{each:.1f}" for each in row["accuracy"])
        speed = " | ".join(f"{row['images_per_second'][side]:,.0f}" for side in ("32", "224"))
        mean = np.mean(row["accuracy"])
        print(f"| {name} | {info.group} | {'yes' if info.comparable else 'no'} | {percent} | {mean:.1f} | {speed} |")
    for group in ("c", "c_extra"):
        table = np.array([row["accuracy"] for name, row in rows.items() if CORRUPTIONS[name].group == group])
        if not len(table):
            continue  # a run that has not come to them yet
        percent = " | ".join(f"{each:.1f}" for each in table.mean(axis=0))
        print(f"| mean of {group} ({len(table)}) | | | {percent} | {table.mean():.1f} | | |")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=Path)
    parser.add_argument("--device", default="cpu", choices=BATCHES)
    parser.add_argument("--limit", type=int, default=10_000)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    if not options.show:
        measure(Path(os.environ["OODSCOPE_DATA"]).resolve(), options.output, options.device, options.limit)
    show(json.loads(options.output.read_text()))


if __name__ == "__main__":
    main()
