"""Train more CIFAR ResNet-18s by OpenOOD's recipe, to see what the seed does to a detector.

    OODSCOPE_DATA=path/to/packs python benchmarks/train_cifar_seeds.py cifar10 SEED [SEED ...] --output FOLDER

SGD with Nesterov momentum 0.9, learning rate 0.1, weight decay 5e-4, cosine per step to 1e-6, batch 128, 100 epochs,
crops of 4 padded pixels and flips; bfloat16 on one GPU with all images in its memory, about 5 s an epoch. The seeds
of one call are trained one after the other; run several calls side by side.
"""

import argparse
import math
import os
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch.nn.functional import cross_entropy, pad

from oodscope.models.zoo.zoo import create_model
from openood_cifar import TRANSFORM, open_benchmark

BATCH, EPOCHS, RATE, LAST_RATE = 128, 100, 0.1, 1e-6


def augmented(images: torch.Tensor, draws: torch.Generator) -> torch.Tensor:
    """One random crop and flip per image, all on the device."""
    count, device = len(images), images.device
    padded = pad(images, (4, 4, 4, 4))
    top, left = (torch.randint(9, (count, 1, 1), generator=draws, device=device) for _ in range(2))
    line = torch.arange(32, device=device)
    columns = left + line.view(1, 1, -1)
    flip = torch.rand(count, 1, 1, generator=draws, device=device) < 0.5
    columns = torch.where(flip, columns.flip(2), columns)
    rows = top + line.view(1, -1, 1)
    picked = padded.permute(0, 2, 3, 1)[torch.arange(count, device=device).view(-1, 1, 1), rows, columns]
    return picked.permute(0, 3, 1, 2)


def train_one(name: str, seed: int, images: torch.Tensor, labels: torch.Tensor, output: Path) -> None:
    torch.manual_seed(seed)
    classes = int(labels.max()) + 1
    model = create_model("resnet18_32", num_classes=classes)[0].cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9, weight_decay=5e-4, nesterov=True)
    draws = torch.Generator("cuda").manual_seed(seed)
    steps_per_epoch, started = len(images) // BATCH + (len(images) % BATCH > 0), time.perf_counter()
    for epoch in range(EPOCHS):
        order = torch.randperm(len(images), generator=draws, device="cuda")
        for step, rows in enumerate(order.split(BATCH)):
            done = (epoch * steps_per_epoch + step) / (EPOCHS * steps_per_epoch)
            for group in optimizer.param_groups:
                group["lr"] = LAST_RATE + (RATE - LAST_RATE) * (1 + math.cos(math.pi * done)) / 2
            batch = augmented(images[rows], draws).contiguous(memory_format=torch.channels_last)
            with torch.autocast("cuda", torch.bfloat16):
                loss = cross_entropy(model(batch), labels[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        if epoch % 10 == 9:
            print(f"{name} seed {seed} epoch {epoch + 1}: {time.perf_counter() - started:.0f} s", flush=True)
    save_file(
        {key: value.contiguous().cpu() for key, value in model.state_dict().items()},
        output / f"{name}_resnet18_s{seed}.safetensors",
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=["cifar10", "cifar100"])
    parser.add_argument("seeds", type=int, nargs="+")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    train = open_benchmark(Path(os.environ["OODSCOPE_DATA"]).resolve(), options.name).id_train
    pixels = TRANSFORM[options.name](train.images(np.arange(len(train)))).cuda()
    labels = torch.from_numpy(train.labels).cuda()
    torch.backends.cudnn.benchmark = True
    for seed in options.seeds:
        train_one(options.name, seed, pixels, labels, options.output)


if __name__ == "__main__":
    main()
