"""How hard is glyphs? Train the small network and rank six detectors, written here from their papers.

Nothing of the package's own detectors is used, so the table can serve as a reference for them.

    python benchmarks/glyphs_difficulty.py --seeds 0 1 2
"""

import argparse
import time

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor, nn

from oodscope.data.glyphs.split import SPLITS, render_split
from oodscope.models.small.cnn import small_cnn

EPOCHS, BATCH, LEARNING_RATE, WEIGHT_DECAY = 10, 64, 0.1, 1e-3
TRAIN_PER_CLASS = 500
DETECTORS = ("msp", "mls", "ebo", "knn", "mds", "vim")
NEAR, FAR = ("near_letters",), ("photographs", "digits", "textures")
SHIFTED = ("unseen_fonts", "corrupted")

Table = dict[tuple[str, str], float]


def as_tensor(images: np.ndarray) -> Tensor:
    """Bytes [N, H, W, C] to floats [N, C, H, W] in [-1, 1]."""
    return torch.from_numpy(images).permute(0, 3, 1, 2).float().div(127.5).sub(1).contiguous()


def train(images: Tensor, labels: Tensor, seed: int) -> nn.Module:
    """SGD with Nesterov momentum under one cycle of the learning rate."""
    torch.manual_seed(seed)
    model = small_cnn(num_classes=20)
    optimiser = torch.optim.SGD(
        model.parameters(), LEARNING_RATE, momentum=0.9, weight_decay=WEIGHT_DECAY, nesterov=True
    )
    steps = EPOCHS * (len(images) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, LEARNING_RATE, total_steps=steps)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(images)).split(BATCH)[: len(images) // BATCH]:
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(images[rows]), labels[rows]).backward()
            optimiser.step()
            schedule.step()
    return model.eval()


@torch.no_grad()
def extract(model: nn.Module, images: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Penultimate features and logits, float64."""
    seen: list[Tensor] = []
    hook = model.fc.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    logits = torch.cat([model(batch) for batch in images.split(500)])
    hook.remove()
    return torch.cat(seen).double().numpy(), logits.double().numpy()


class Scores:
    """The six detectors, larger meaning more OOD."""

    def __init__(self, features: np.ndarray, logits: np.ndarray, labels: np.ndarray, head: nn.Linear) -> None:
        self.bank = features / np.linalg.norm(features, axis=1, keepdims=True)
        self.means = np.stack([features[labels == c].mean(axis=0) for c in range(20)])
        centred = features - self.means[labels]
        self.precision = np.linalg.pinv(centred.T @ centred / len(features))
        weight, bias = head.weight.detach().double().numpy(), head.bias.detach().double().numpy()
        self.origin = -np.linalg.pinv(weight) @ bias
        moved = features - self.origin
        _, vectors = np.linalg.eigh(moved.T @ moved / len(features))
        self.residual = vectors[:, : features.shape[1] // 2]
        self.alpha = logits.max(axis=1).mean() / self._residual_norm(features).mean()

    def _residual_norm(self, features: np.ndarray) -> np.ndarray:
        return np.linalg.norm((features - self.origin) @ self.residual, axis=1)

    def __call__(self, features: np.ndarray, logits: np.ndarray) -> dict[str, np.ndarray]:
        top = logits.max(axis=1)
        energy = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
        unit = features / np.linalg.norm(features, axis=1, keepdims=True)
        nearest = np.partition(2 - 2 * unit @ self.bank.T, 49, axis=1)[:, 49]
        gaps = features[:, None, :] - self.means
        distance = np.einsum("ncd,de,nce->nc", gaps, self.precision, gaps, optimize=True).min(axis=1)
        return {
            "msp": energy - top,  # minus the log of the largest probability: the order of MSP without its ties
            "mls": -top,
            "ebo": -energy,
            "knn": nearest,
            "mds": distance,
            "vim": self.alpha * self._residual_norm(features) - energy,
        }


def auroc(negatives: np.ndarray, positives: np.ndarray) -> float:
    """Chance, in per cent, that an OOD image scores above an ID image; a tie counts half."""
    ranks = rankdata(np.concatenate([negatives, positives]))[len(negatives) :]
    n, m = len(negatives), len(positives)
    return float(100 * (ranks.sum() - m * (m + 1) / 2) / (n * m))


def compare(scores: dict[str, np.ndarray]) -> dict[str, float]:
    """AUROC of one detector, by row of the table; full spectrum counts the shifted ID images as ID."""
    spectrum = np.concatenate([scores[name] for name in ("id_test", *SHIFTED)])
    rows: dict[str, float] = {}
    for prefix, negatives in (("", scores["id_test"]), ("full-spectrum ", spectrum)):
        for name in (*NEAR, *FAR):
            rows[prefix + name] = auroc(negatives, scores[name])
        rows[prefix + "far, mean"] = float(np.mean([rows[prefix + name] for name in FAR]))
    for name in SHIFTED:
        rows[f"id_test against {name}"] = auroc(scores["id_test"], scores[name])
    return rows


def judge(seed: int, per_class: int) -> tuple[dict[str, float], Table]:
    """Seconds and accuracies of one training run, and AUROC by (row, detector)."""
    size = {"id_train": TRAIN_PER_CLASS, "photographs": 5 * per_class}  # two classes; the other sets have ten or more
    splits = {name: render_split(name, per_class=size.get(name, per_class)) for name in SPLITS}
    images = as_tensor(splits["id_train"].images)
    started = time.perf_counter()
    model = train(images, torch.from_numpy(splits["id_train"].labels), seed)
    facts = {"seconds": time.perf_counter() - started}
    seen = {name: extract(model, as_tensor(split.images)) for name, split in splits.items()}
    for name in ("id_train", "id_test", *SHIFTED):
        facts[f"accuracy {name}"] = 100 * float((seen[name][1].argmax(axis=1) == splits[name].labels).mean())
    scorer = Scores(*seen["id_train"], splits["id_train"].labels, model.fc)
    scores = {name: scorer(*seen[name]) for name in ("id_test", *SHIFTED, *NEAR, *FAR)}
    table: Table = {}
    for detector in DETECTORS:
        for row, value in compare({name: columns[detector] for name, columns in scores.items()}).items():
            table[row, detector] = value
    return facts, table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="training seeds")
    parser.add_argument("--per-class", type=int, default=100, help="test images per class")
    arguments = parser.parse_args()
    runs = [judge(seed, arguments.per_class) for seed in arguments.seeds]
    print_row(["training seed", *runs[0][0]], header=True)
    for seed, (facts, _) in zip(arguments.seeds, runs):
        print_row([str(seed), *(f"{value:.1f}" for value in facts.values())])
    print()
    print_row(["AUROC by seed", *DETECTORS, "order of the means"], header=True)
    for row in dict.fromkeys(row for row, _ in runs[0][1]):
        means = {d: float(np.mean([table[row, d] for _, table in runs])) for d in DETECTORS}
        cells = [" / ".join(f"{table[row, d]:.1f}" for _, table in runs) for d in DETECTORS]
        print_row([row, *cells, " > ".join(sorted(DETECTORS, key=lambda d: -means[d]))])


def print_row(cells: list[str], header: bool = False) -> None:
    """One line of a Markdown table."""
    print("| " + " | ".join(cells) + " |")
    if header:
        print("|" + "---|" * len(cells))


if __name__ == "__main__":
    main()
