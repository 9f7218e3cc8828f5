"""How much work an augmentation gives a GPU within a recorded step, counted on a CPU, and the share that it predicts.

    python benchmarks/augment_work.py docs/results/augment-work.md

A step that is recorded as a CUDA graph costs a fixed time for each kernel and a time for each byte that it writes. Both
are found from three augmentations whose speed was measured on a GPU before their work was reduced
(``docs/results/train-speed.md``), with the kernels and bytes that they had then; what today's versions have is counted
here, operator by operator. The prediction is for planning: what counts is ``train_speed.py`` on a GPU.
"""

import argparse
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from oodscope.base.files import write_text
from oodscope.training.augment.reading import read_augment

BATCH = 128
PLAIN = 42_566
"""Images a second of cross-entropy with crops and mirrors, recorded, when the others were measured."""

MEASURED = {"randaugment": (186, 99.7, 38_477), "augmix": (652, 921.7, 27_570), "pixmix": (1236, 640.0, 24_160)}
"""Kernels, MB written and images a second of the versions that were measured."""

SHARE = 75


class Counting(TorchDispatchMode):
    """Counts operators that would be kernels of a GPU, and the bytes that they write; views are none."""

    def __init__(self) -> None:
        super().__init__()
        self.launches, self.megabytes = 0, 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not (func.is_view or func.overloadpacket.__name__.startswith(("empty", "split"))):
            self.launches += 1
            for each in result if isinstance(result, tuple | list) else [result]:
                self.megabytes += each.numel() * each.element_size() / 1e6 if isinstance(each, torch.Tensor) else 0.0
        return result


def counted(name: str) -> tuple[int, float]:
    """Kernels and MB of one augmentation of a batch of CIFAR images."""
    augment = read_augment(name)
    pixels = torch.randint(0, 256, (BATCH, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    augment(pixels, torch.Generator().manual_seed(0))
    with Counting() as count:
        augment(pixels, torch.Generator().manual_seed(0))
    return count.launches, count.megabytes


def fitted() -> tuple[float, float, float]:
    """Milliseconds of a kernel and of a MB, by least squares, and the largest error of the three, in milliseconds."""
    work = np.array([each[:2] for each in MEASURED.values()])
    extra = np.array([1e3 * BATCH * (1 / rate - 1 / PLAIN) for *_, rate in MEASURED.values()])
    found = np.linalg.lstsq(work, extra, rcond=None)[0]
    return float(found[0]), float(found[1]), float(np.abs(work @ found - extra).max())


def page(measured: str) -> str:
    kernel, megabyte, error = fitted()
    step = 1e3 * BATCH / PLAIN
    work = {name: counted(name) for name in MEASURED}
    shares = {name: 100 * step / (step + kernel * now[0] + megabyte * now[1]) for name, now in work.items()}
    found = ", ".join(
        f"{name} {100 * MEASURED[name][2] / PLAIN:.0f} % then, {shares[name]:.0f} % now" for name in shares
    )
    lines = [
        "# The work of augmentations in a recorded step",
        "",
        "**Question.** Do AugMix and PixMix leave 75 % of the speed of cross-entropy, and why did they not?",
        "",
        f"**Answer.** By counted work: {found}; the shares of now are predicted and not yet measured on a GPU.",
        "",
        "**Command.** `python benchmarks/augment_work.py docs/results/augment-work.md`",
        "",
        f"**Machine.** Operators are counted on a CPU; speeds are those of an H200. **Date.** {measured}",
        "",
        "| augmentation | kernels then | MB then | share measured | kernels now | MB now | share predicted |",
        "|---|---|---|---|---|---|---|",
    ]
    low = []
    for name, (launches, megabytes, rate) in MEASURED.items():
        now, share = work[name], shares[name]
        before = f"{launches} | {megabytes:.0f} | {100 * rate / PLAIN:.0f} %"
        lines.append(f"| {name} | {before} | {now[0]} | {now[1]:.0f} | {share:.0f} % |")
        low += [name] if share < SHARE else []
    lines += [
        "",
        f"A kernel costs {1e3 * kernel:.2f} µs and a MB {1e3 * megabyte:.2f} µs beside a step of {step:.2f} ms; with "
        f"these two numbers the three measured times are met within {1e3 * error:.0f} µs.",
        f"Predicted below {SHARE} %: {', '.join(low) or 'none'}. Not yet measured on a GPU: `train_speed.py --quick`.",
        "That a batch is what a loop over its images makes is a test: `tests/training/test_augment.py`.",
    ]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--measured", default=str(date.today()))
    options = parser.parse_args(arguments)
    write_text(options.output, page(options.measured))


if __name__ == "__main__":
    main()
