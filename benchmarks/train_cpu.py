"""Is training on a CPU as fast as in another checkout, such as an older version?

    python benchmarks/train_cpu.py PATH/OF/OTHER/CHECKOUT [--rounds 5] [--output docs/results/train-cpu.md]

Both checkouts train the demo's network (``small_cnn``, batches of 64, crops and mirrors) on the same random images, in
processes of one thread that take turns; what counts is the processor time of ``train`` itself, which other work on the
machine does not disturb much. The figure is the median over the rounds.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from datetime import date
from pathlib import Path

from oodscope.base.files import write_text

WORK = """
import json, time
import numpy as np
import torch
import oodscope as oods
try:
    from oodscope.training.methods.cross_entropy import CrossEntropy
except ImportError:
    from oodscope.training.cross_entropy import CrossEntropy
torch.set_num_threads(1)
draws = np.random.default_rng(0)
pixels = draws.integers(0, 256, (1024, 32, 32, 3), dtype=np.uint8)
images = oods.ImageSet.from_arrays("noise", pixels, np.arange(1024) % 10)
build = lambda: oods.create_model("small_cnn", num_classes=10)[0]
recipe, size = CrossEntropy(epochs=1, batch_size=64), oods.Preprocess(size=32)
oods.train(build, recipe, images.take(range(128)), size, device="cpu")
begun = time.process_time()
trained = oods.train(build, recipe.model_copy(update={"epochs": 3}), images, size, device="cpu")
print(json.dumps({"seconds": time.process_time() - begun, "loss": trained.history[-1].loss}))
"""


def once(checkout: Path) -> dict[str, float]:
    """Processor seconds and last loss of one training in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", WORK], env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    places = {"this checkout": Path(__file__).parent.parent, "the other": options.other}
    runs = {name: [] for name in places}
    for _ in range(options.rounds):
        for name, place in places.items():
            runs[name].append(once(place))
    medians = {name: statistics.median(each["seconds"] for each in found) for name, found in runs.items()}
    lines = [
        "# Training on a CPU, against version 0.1",
        "",
        "**Question.** Is a training on a CPU slower than in version 0.1?",
        "",
        f"**Command.** `python benchmarks/train_cpu.py PATH --rounds {options.rounds}` with a checkout of 0.1.",
        "",
        f"**Machine.** {platform.machine()}, {os.cpu_count()} cores, one thread a process, Python "
        f"{platform.python_version()}.",
        "",
        f"**Date.** {date.today()}",
        "",
        "| checkout | processor seconds, median | all rounds | last loss |",
        "|---|---|---|---|",
    ]
    for name, found in runs.items():
        every = ", ".join(f"{each['seconds']:.2f}" for each in found)
        lines.append(f"| {name} | {medians[name]:.2f} | {every} | {found[0]['loss']:.6f} |")
    ratio = medians["this checkout"] / medians["the other"]
    word = "no slower" if ratio <= 1.02 else "slower"
    lines += ["", f"This checkout takes {ratio:.2f} times the processor time of the other: {word}."]
    text = "\n".join(lines) + "\n"
    print(text)
    if options.output:
        write_text(options.output, text)


if __name__ == "__main__":
    main()
