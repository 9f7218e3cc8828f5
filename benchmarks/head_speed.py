"""How many heads a second: all folds at once, the same one by one, and a plain module with torch's Adam.

    python benchmarks/head_speed.py [--device cuda] [--heads 50] [--rows 38400] [--width 1280] [--epochs 10]

Embeddings are a Gaussian mixture: speed does not depend on what they mean. The one-by-one columns train ``--sample``
heads and say heads per second; all three train every head for every epoch. With OUT set, ``head_speed.json`` is
written there.
"""

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from oodscope.training.heads.recipe import HeadRecipe
from oodscope.training.heads.task import HeadTask
from oodscope.training.heads.training import train_heads


def mixture(count: int, width: int, classes: int, device: str) -> tuple[Tensor, Tensor]:
    """Labelled embeddings in which the classes overlap a little."""
    draws = torch.Generator().manual_seed(0)
    labels = torch.arange(count) % classes
    centres = torch.randn(classes, width, generator=draws)
    return (0.2 * centres[labels] + torch.randn(count, width, generator=draws)).to(device), labels.to(device)


def folds(heads: int, rows: int, count: int) -> list[HeadTask]:
    """Random training rows and a quarter as many for validation, sizes apart by a row as in real folds."""
    rng = np.random.default_rng(0)
    tasks = []
    for seed in range(heads):
        order, size = rng.permutation(count), rows - seed % 2
        tasks.append(HeadTask(order[:size], order[size : size + rows // 4], seed))
    return tasks


def plain(recipe: HeadRecipe, embeddings: Tensor, labels: Tensor, task: HeadTask, classes: int) -> float:
    """One head as a tutorial would train it; its validation accuracy."""
    torch.manual_seed(task.seed)
    device, width = embeddings.device, embeddings.shape[1]
    model = nn.Sequential(
        nn.Dropout(recipe.dropout),
        nn.Linear(width, recipe.hidden),
        nn.ReLU(),
        nn.Dropout(recipe.dropout),
        nn.Linear(recipe.hidden, classes),
    ).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=recipe.learning_rate)
    train, val = (torch.from_numpy(rows).to(device) for rows in (task.train, task.val))
    weight = len(train) / (classes * torch.bincount(labels[train], minlength=classes))
    accuracy = 0.0
    for _ in range(recipe.epochs):
        model.train()
        for rows in train[torch.randperm(len(train), device=device)].split(recipe.batch_size):
            optimizer.zero_grad(set_to_none=True)
            cross_entropy(model(embeddings[rows]), labels[rows], weight=weight).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = float((model(embeddings[val]).argmax(1) == labels[val]).float().mean())
    return accuracy


def timed(work: Callable[[], list[float]], device: str) -> tuple[float, list[float]]:
    """Seconds until the device has finished, and what came out."""
    started = perf_counter()
    accuracies = work()
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return perf_counter() - started, accuracies


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    for name, value in (("heads", 50), ("rows", 38_400), ("width", 1280), ("classes", 10), ("epochs", 10)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--batch", type=int, default=HeadRecipe().batch_size)
    parser.add_argument("--sample", type=int, default=10, help="heads trained one by one")
    options = parser.parse_args()
    device, classes, rows = options.device, options.classes, options.rows
    embeddings, labels = mixture(rows + rows // 4 + 1, options.width, classes, device)
    tasks = folds(options.heads, rows, len(embeddings))
    some = tasks[: options.sample]
    # patience beyond the last epoch: validation is measured every epoch, and no head stops
    recipe = HeadRecipe(epochs=options.epochs, patience=options.epochs + 1, batch_size=options.batch)

    def ours(recipe: HeadRecipe, each: list[HeadTask]) -> list[float]:
        trained = train_heads(recipe, embeddings, labels, each, classes, device=device)
        return [head.val_accuracy or 0.0 for head in trained]

    short = recipe.model_copy(update={"epochs": 1})
    for each in (tasks, some[:1]):  # the first call of a kernel is slow
        ours(short, each)
    plain(short, embeddings, labels, some[0], classes)
    half = recipe.model_copy(update={"precision": "bf16-mixed"})
    works: dict[str, tuple[int, Callable[[], list[float]]]] = {
        "at once": (len(tasks), lambda: ours(recipe, tasks)),
        "train_heads, one by one": (len(some), lambda: [ours(recipe, [task])[0] for task in some]),
        "nn.Module and torch.optim.Adam, one by one": (
            len(some),
            lambda: [plain(recipe, embeddings, labels, task, classes) for task in some],
        ),
    }
    if device.startswith("cuda"):  # processors are slow at bfloat16
        works["at once, bf16-mixed"] = (len(tasks), lambda: ours(half, tasks))
    where = torch.cuda.get_device_name() if device.startswith("cuda") else f"CPU, {torch.get_num_threads()} threads"
    shape = f"{options.heads} heads, {rows:,} rows, {options.width} wide, {options.epochs} epochs"
    print(f"{where}: {shape}, batches of {options.batch}")
    print("\n| how | heads | seconds | heads/s | validation accuracy |\n|---|---|---|---|---|")
    found: dict[str, dict[str, float]] = {}
    for name, (count, work) in works.items():
        seconds, accuracies = timed(work, device)
        found[name] = {
            "heads": count,
            "seconds": seconds,
            "per_second": count / seconds,
            "accuracy": np.mean(accuracies),
        }
        print(f"| {name} | {count} | {seconds:.2f} | {count / seconds:.2f} | {np.mean(accuracies):.4f} |", flush=True)
    for name in (each for each in works if "one by one" in each):
        print(f"\nAt once: {found['at once']['per_second'] / found[name]['per_second']:.1f} times as fast as {name}")
    if "OUT" in os.environ:
        text = json.dumps({"device": where, "options": vars(options), "found": found}, indent=1)
        (Path(os.environ["OUT"]) / "head_speed.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
