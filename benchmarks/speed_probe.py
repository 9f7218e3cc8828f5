"""What makes the bare network fast in true float32: layout, batch, tried kernels, a recorded graph, folded norms.

    python benchmarks/speed_probe.py [--device auto] [--seconds 0.4] [--output probe.json]

Takes less than a minute on a GPU. ``speed.py`` runs it as its line ``probe``.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

LAYOUTS = ("planes", "channels last")
BATCHES = (256, 1024)


def probe(device: str, seconds: float, batches: tuple[int, ...] = BATCHES) -> dict[str, dict[str, float]]:
    """Images per second of each way, by what is computed: a plain pass, and what ODIN takes (two passes, a gradient).

    Ways are tried from the most to the least likely to win, so that a run that is stopped has seen the best.
    """
    found: dict[str, dict[str, float]] = {"plain": {}, "odin": {}, "tf32": {}}
    for batch in batches:
        for layout in LAYOUTS:
            with _Way(device, layout, batch, tried=True) as way:
                found["plain"][way.name] = way.rate(way.plain, seconds)
                found["odin"][way.name] = way.rate(way.odin, seconds)
                if device.startswith("cuda"):
                    found["plain"][f"{way.name}, graph"] = way.rate(way.graph(), seconds)
    for layout in LAYOUTS:
        with _Way(device, layout, batches[-1], tried=True, deterministic=False) as way:
            found["plain"][way.name] = way.rate(way.plain, seconds)
            found["odin"][way.name] = way.rate(way.odin, seconds)
        with _Way(device, layout, batches[-1], tried=True, folded=True) as way:
            found["plain"][way.name] = way.rate(way.plain, seconds)
        for batch in batches:
            with _Way(device, layout, batch, tried=False, tf32=True) as way:
                found["tf32"][way.name] = way.rate(way.plain, seconds)
    return found


class _Way:
    """One way to run a ResNet-18 on a batch that lies on the device; inside the block its settings hold."""

    def __init__(
        self,
        device: str,
        layout: str,
        batch: int,
        *,
        tried: bool,
        deterministic: bool = True,
        folded: bool = False,
        tf32: bool = False,
    ) -> None:
        words = [layout, f"batches of {batch}", "tried kernels" if tried else "guessed kernels"]
        words += [] if deterministic else ["any order of sums"]
        self.name = ", ".join(words + (["folded norms"] if folded else []))
        self.device, self.layout, self.batch, self.folded = device, layout, batch, folded
        self.tried, self.deterministic, self.tf32 = tried, deterministic, tf32

    def __enter__(self) -> "_Way":
        import torch
        from torch.fx.experimental.optimization import fuse

        from oodscope.models.small.resnet import resnet18_32

        torch.manual_seed(0)
        form = torch.contiguous_format if self.layout == "planes" else torch.channels_last
        network = resnet18_32(10).eval().requires_grad_(False)
        if self.folded:
            network = fuse(network)
        self.network = network.to(self.device).to(memory_format=form)
        self.images = torch.randn(self.batch, 3, 32, 32, device=self.device).to(memory_format=form)
        self._stack = ExitStack()
        precision = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high" if self.tf32 else "highest")
        self._stack.callback(torch.set_float32_matmul_precision, precision)
        self._stack.enter_context(
            torch.backends.cudnn.flags(
                enabled=True, benchmark=self.tried, deterministic=self.deterministic, allow_tf32=self.tf32
            )
        )
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.close()

    def plain(self) -> None:
        import torch

        with torch.no_grad():
            self.network(self.images)

    def odin(self) -> None:
        import torch

        leaf = self.images.clone().requires_grad_(True)
        logits = self.network(leaf)
        loss = torch.nn.functional.cross_entropy(logits / 1000, logits.argmax(dim=1), reduction="sum")
        (gradient,) = torch.autograd.grad(loss, leaf)
        with torch.no_grad():
            self.network(self.images - 0.001 * gradient.sign())

    def graph(self) -> Callable[[], None]:
        """The plain pass recorded once and replayed."""
        import torch

        self.plain()
        torch.cuda.synchronize()
        recorded = torch.cuda.CUDAGraph()
        with torch.cuda.graph(recorded):
            self.plain()
        return recorded.replay

    def rate(self, work: Callable[[], None], seconds: float) -> float:
        import torch

        wait = torch.cuda.synchronize if self.device.startswith("cuda") else (lambda: None)
        work()
        work()
        wait()
        started, count = time.perf_counter(), 0
        while time.perf_counter() - started < seconds or not count:
            for _ in range(4 if self.device.startswith("cuda") else 1):
                work()
                count += self.batch
            wait()
        return count / (time.perf_counter() - started)


def guessed(device: str, seconds: float) -> dict[str, dict[str, float]]:
    """The kernels that cuDNN guesses, by each of its two ways to guess.

    Each in a process of its own: torch keeps a kernel that it has tried for a shape, so that in a process that has
    tried any the guess is never asked for again.
    """
    found: dict[str, dict[str, float]] = {"plain": {}, "odin": {}}
    for mode, words in (("0", ""), ("1", " (second guess)")):
        for kind, rates in _guessed_in_process(device, seconds, mode).items():
            found[kind] |= {f"{name}{words}": rate for name, rate in rates.items()}
    return found


def _guessed_in_process(device: str, seconds: float, mode: str) -> dict[str, dict[str, float]]:
    program = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); from speed_probe import guesses; "
        "print(json.dumps(guesses(sys.argv[2], float(sys.argv[3]))))"
    )
    command = [sys.executable, "-c", program, str(Path(__file__).parent), device, str(seconds)]
    environment = {**os.environ, "TORCH_CUDNN_USE_HEURISTIC_MODE_B": mode}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    answer: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return answer


def guesses(device: str, seconds: float) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {"plain": {}, "odin": {}}
    for layout in LAYOUTS:
        with _Way(device, layout, BATCHES[-1], tried=False) as way:
            found["plain"][way.name] = way.rate(way.plain, seconds)
            found["odin"][way.name] = way.rate(way.odin, seconds)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    found = probe(asked.device, asked.seconds)
    text = json.dumps(found, indent=1)
    print(text)
    if asked.output is not None:
        asked.output.write_text(text)


if __name__ == "__main__":
    main()
