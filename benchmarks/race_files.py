"""Write the files of the race: pictures with the sizes, formats and counts of OpenOOD v1.5's CIFAR-10 benchmark.

    python benchmarks/race_files.py ROOT [SHARE]

The content is random (coarse class patterns and noise), no two files are equal, and ``ROOT/bench.yaml`` opens them. At
a share of 1 these are 215,000 files.
"""

import sys
import time
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from PIL import Image


@dataclass(frozen=True)
class Files:
    """One set: role in the benchmark, number of images, side, classes, format; ``grey`` images have one channel."""

    role: str
    name: str
    count: int
    side: int
    classes: int
    suffix: str = "png"
    grey: bool = False


SETS = (
    Files("id_train", "id_train", 50_000, 32, 10),
    Files("id_val", "id_val", 1_000, 32, 10),
    Files("id_test", "id_test", 9_000, 32, 10),
    Files("ood_val", "ood_val", 1_000, 64, 20, "jpg"),
    Files("near", "cifar100", 9_000, 32, 100),
    Files("near", "tin", 7_793, 64, 180, "jpg"),
    Files("far", "mnist", 70_000, 28, 10, grey=True),
    Files("far", "svhn", 26_032, 32, 10),
    Files("far", "texture", 5_640, 450, 47, "jpg"),
    Files("far", "places365", 35_195, 256, 300, "jpg"),
)
HEAD = """\
name: race
version: "1"
root: {root}
transform: {{size: 32, resize: 32, mean: [0.4914, 0.4822, 0.4465], std: [0.2470, 0.2435, 0.2616]}}
sets:
"""


def write_some(job: tuple[str, int, int, int]) -> int:
    """Rows ``start`` to ``stop`` of one set."""
    root, number, start, stop = job
    told = SETS[number]
    rng = np.random.default_rng([number, start])
    # ID sets share their classes' patterns
    patterns = np.random.default_rng(0 if told.role.startswith("id_") else number).integers(
        0, 256, (told.classes, 6, 6, 3)
    )
    noise = rng.normal(0, 12, (told.side + 64, told.side + 64, 3)).astype(np.float32)
    for row in range(start, stop):
        coarse = (0.5 * patterns[row % told.classes] + 0.5 * rng.integers(0, 256, (6, 6, 3))).astype(np.uint8)
        smooth = Image.fromarray(coarse).resize((told.side, told.side), Image.Resampling.BICUBIC)
        top, left = rng.integers(0, 64, 2)
        values = np.asarray(smooth, dtype=np.float32) + noise[top : top + told.side, left : left + told.side]
        pixels = values.clip(0, 255).astype(np.uint8)
        # the number of the row in two pixels: no two files are equal
        pixels[0, :3, 0] = row % 251, row // 251 % 251, number
        picture = Image.fromarray(pixels[..., 0] if told.grey else pixels)
        picture.save(f"{root}/{told.name}/{row:06}.{told.suffix}", quality=85)
    return stop - start


def main(root: Path, share: float = 1.0) -> None:
    started, jobs, yaml = time.perf_counter(), [], [HEAD.format(root=root.resolve())]
    group = ""
    for number, told in enumerate(SETS):
        count = max(int(told.count * share), 40)
        (root / told.name).mkdir(parents=True)
        listing = root / f"{told.name}.txt"
        rows = (f"{told.name}/{row:06}.{told.suffix} {row % told.classes}\n" for row in range(count))
        listing.write_text("".join(rows))
        if told.role in ("near", "far") and told.role != group:
            group = told.role
            yaml.append(f"  {group}:\n")
        indent = "    " if told.role in ("near", "far") else "  "
        yaml.append(f"{indent}{told.name}: {{source: list, path: {told.name}.txt}}\n")
        step = 500 if told.side < 100 else 100
        jobs += [(str(root), number, start, min(start + step, count)) for start in range(0, count, step)]
    jobs.sort(key=lambda job: -SETS[job[1]].side)
    with get_context("spawn").Pool() as pool:
        written = sum(pool.imap_unordered(write_some, jobs))
    (root / "bench.yaml").write_text("".join(yaml))
    print(f"{written:,} files in {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 1.0)
