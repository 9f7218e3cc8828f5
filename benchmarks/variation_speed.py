"""What one step of a search pays for its variation: microseconds per image, as written and compiled.

python benchmarks/variation_speed.py --device cuda --output variation_speed.json
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from oodscope.generation.variations.base import Variation
from oodscope.generation.variations.registry import create_variation

NAMES = (
    "affine",
    "color",
    "affine+color",
    "linf",
    "blend",
    "corruption",
    "corruption:gaussian_noise",
    "corruption:gaussian_blur",
    "corruption:fog",
    "corruption:brightness",
    "corruption:contrast",
    "corruption:pixelate",
)


def seconds(step: Callable[[], Tensor], device: torch.device, repeats: int) -> float:
    """The median of single calls, each waited for."""
    for _ in range(3):
        step()
    taken = []
    for _ in range(repeats):
        wait(device)
        start = time.perf_counter()
        step()
        wait(device)
        taken.append(time.perf_counter() - start)
    return sorted(taken)[len(taken) // 2]


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def measure(name: str, variation: Variation, images: Tensor, repeats: int, compiled: bool) -> dict[str, object]:
    """Time and, on a GPU, the most memory beyond the images themselves."""
    device = images.device
    points = variation.domain.draw(len(images), torch.Generator(device).manual_seed(0))
    step: Callable[[Tensor, Tensor], Tensor] = lambda u, x: variation(u, x)  # noqa: E731
    if compiled:
        torch.compiler.reset()
        step = torch.compile(step, fullgraph=True, dynamic=False)
    with torch.no_grad():
        start = time.perf_counter()
        first = step(points, images)
        wait(device)
        row: dict[str, object] = {
            "variation": name,
            "compiled": compiled,
            "dimension": variation.domain.dimension,
            "first_call_s": round(time.perf_counter() - start, 2),
            "differs_from_eager": float((first - variation(points, images)).abs().max()),
        }
        if device.type == "cuda":
            held = torch.cuda.memory_allocated(device)
            torch.cuda.reset_peak_memory_stats(device)
        taken = seconds(lambda: step(points, images), device, repeats)
        row["us_per_image"] = round(taken / len(images) * 1e6, 4)
        row["ms_per_step"] = round(taken * 1e3, 3)
        if device.type == "cuda":
            row["extra_mib"] = round((torch.cuda.max_memory_allocated(device) - held) / 2**20, 1)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--only", nargs="*", default=NAMES, help="names of variations")
    parser.add_argument("--eager", action="store_true", help="leave out the compiled ones")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    device, shape = torch.device(options.device), (3, options.side, options.side)
    images = torch.rand(options.images, *shape, device=device)
    partners = torch.rand(1000, *shape)
    rows = []
    print(f"{options.images} images of {options.side} px on {options.device}, torch {torch.__version__}\n")
    print("| variation | parameters | compiled | µs per image | ms per step | first call, s | differs | extra MiB |")
    print("|---|---|---|---|---|---|---|---|")
    for name in options.only:
        variation = create_variation(name, image_shape=shape, partners=partners).to(device)
        for compiled in (False,) if options.eager else (False, True):
            row = measure(name, variation, images, options.repeats, compiled)
            rows.append(row)
            print(
                f"| {name} | {row['dimension']} | {'yes' if compiled else 'no'} | {row['us_per_image']} "
                f"| {row['ms_per_step']} | {row['first_call_s']} | {row['differs_from_eager']:.1e} "
                f"| {row.get('extra_mib', '')} |",
                flush=True,
            )
    if options.output:
        found = {"device": options.device, "images": options.images, "side": options.side, "rows": rows}
        options.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
