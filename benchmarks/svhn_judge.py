"""Train the judge of evaluation via generation: a classifier of digits, on the first 5,000 images of the SVHN pack.

    OODSCOPE_DATA=path/to/packs python benchmarks/svhn_judge.py --output artifacts/svhn-judge.safetensors \\
        [--record docs/results/data/svhn-judge.json] [--epochs 30]

It says of varied and generated digits whether they can still be read. Attacked images (5,000-9,999) it never saw; its
accuracy on all of them is printed and kept in the file, with the architecture. Two minutes on a processor.

A training that ends with one class for most images, as that of a ResNet-18 did whose learning rate was .1 from the
first step on (19.6 %, the share of the digit 1), makes no judge: it is repeated with another seed at half the learning
rate, and after ``--tries`` nothing is written.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import oodscope as oods
from oodscope.base.files import write_text
from oodscope.execution.console import ConsoleProgress
from oodscope.models.zoo.zoo import create_model
from oodscope.runs.attack.validity import LEAST
from oodscope.training.train import train
from openood_cifar import TRANSFORM, pack
from svhn_gan import TRAINING

FRAME = TRANSFORM["cifar10"]


def recognised(judge: oods.Classifier, images: oods.ImageSet) -> tuple[float, float]:
    """The share of images whose class the judge names, and the largest share that it gives to one class."""
    named = []
    for rows in np.array_split(np.arange(len(images)), max(1, len(images) // 250)):
        with torch.no_grad():
            named.append(judge.forward(judge.prepare(images.pictures(rows)).to(judge.device)).logits.argmax(1).cpu())
    classes = torch.cat(named).numpy()
    return float((classes == images.labels).mean()), float(np.bincount(classes).max() / len(classes))


def collapsed(images: oods.ImageSet, accuracy: float, largest: float, least: float = LEAST) -> str | None:
    """Why a network is no judge of these images, in words; None if it is one.

    Parameters
    ----------
    accuracy, largest : from ``recognised``.
    """
    common = float(np.bincount(images.labels).max() / len(images))
    if largest > 2 * common:
        return f"it gives one class to {100 * largest:.1f} % of the images, of which {100 * common:.1f} % have one"
    if accuracy < least:
        return f"it recognises {100 * accuracy:.1f} %, less than {100 * least:.0f} %"
    return None


def open_judge(path: Path, device: str) -> tuple[oods.Classifier, Mapping[str, str]]:
    """A judge, and what its file says of it."""
    with safe_open(path, framework="pt") as file:
        told = file.metadata() or {}
    if "architecture" not in told:
        raise SystemExit(f"{path} does not say its architecture: train it again by benchmarks/svhn_judge.py")
    model, _ = create_model(told["architecture"], num_classes=10)
    model.load_state_dict(load_file(path))
    return oods.Classifier(model.eval(), FRAME, device=device, name="digits"), told


def trained(digits: oods.ImageSet, options: argparse.Namespace, attempt: int) -> oods.Classifier:
    """One attempt: each has a seed of its own and half the learning rate of the one before."""
    recipe = oods.create_recipe(
        "cross_entropy",
        epochs=options.epochs,
        learning_rate=options.learning_rate / 2**attempt,
        # at the full rate from the first step on, a deep network may settle on the most frequent digit
        warmup_epochs=min(2, options.epochs - 1),
        augment={"pad": 4, "flip": False},
        seed=77 + attempt,
    )

    def network() -> torch.nn.Module:
        return create_model(options.architecture, num_classes=10)[0]

    folder = Path(tempfile.mkdtemp())
    done = train(network, recipe, digits, FRAME, folder=folder, device=options.device, progress=ConsoleProgress())
    return oods.Classifier(done.model, FRAME, device=options.device, name="digits")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--record", type=Path, help="write what the file says of itself as JSON too")
    parser.add_argument("--architecture", default="small_cnn", help="a name of 'oodscope list models'")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--learning-rate", type=float, default=0.05, help="of the first attempt")
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--least", type=float, default=LEAST, help="share of unseen digits to recognise")
    parser.add_argument("--limit", type=int, default=TRAINING, help="training images")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    digits = pack(Path(os.environ["OODSCOPE_DATA"]).resolve(), "svhn_test_10k")
    seen = digits.take(np.arange(min(options.limit, TRAINING)), "digits")
    unseen = digits.take(np.arange(TRAINING, len(digits)), "unseen")
    for attempt in range(options.tries):
        judge = trained(seen, options, attempt)
        accuracy, largest = recognised(judge, unseen)
        reason = collapsed(unseen, accuracy, largest, options.least)
        print(f"attempt {attempt + 1}: recognises {100 * accuracy:.1f} % of {len(unseen):,} unseen digits", flush=True)
        if reason is None:
            told = {
                "architecture": options.architecture,
                "accuracy": f"{accuracy:.4f}",
                "training": str(len(seen)),
                "unseen": str(len(unseen)),
                "attempts": str(attempt + 1),
                "date": str(date.today()),
            }
            options.output.parent.mkdir(parents=True, exist_ok=True)
            weights = {key: value.cpu().contiguous() for key, value in judge.model.state_dict().items()}
            save_file(weights, options.output, metadata=told)
            if options.record is not None:
                write_text(options.record, json.dumps(told, indent=1) + "\n")
            return 0
        print(f"not a judge: {reason}", flush=True)
    print(f"no judge after {options.tries} trainings, nothing was written: more --epochs, or another --architecture")
    return 1


if __name__ == "__main__":
    sys.exit(main())
