"""How fast is an evaluation from files, on this machine: the race that docs/results/speed.md reports.

    python benchmarks/speed.py --output OUT [--race-files SCRIPT] [--sample imagenet1k_sample_224.npz]
                               [--budget-seconds 420] [--scale 1.0] [--device auto]

Writes the race's files (``race_files.py``), then times line by line, imports and the first touch of the device
excluded. After each line ``OUT/speed.json`` and ``OUT/speed.md`` hold what is known so far; a line for which the budget
is too small is skipped and says so. pytorch-ood takes part if it is installed (``pip install -e '.[benchmarks]'``).
``--scale 0.01 --device cpu`` rehearses everything with one file in a hundred.
"""

import argparse
import inspect
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

TWENTY = ["msp", "mls", "ebo", "odin", "gen", "temp_scaling", "klm", "knn", "mds", "rmds"]
TWENTY += ["vim", "residual", "react", "ash", "scale", "dice", "she", "fdbd", "nci", "nnguide"]
SEVEN = ["msp", "mls", "ebo", "odin", "mds", "knn", "vim"]
BATCH = 256


class GpuBusy:
    """Share of the time that the GPU was busy inside the block, by ``nvidia-smi``; ``None`` where there is none."""

    def __init__(self, device: str) -> None:
        self.share: float | None = None
        self._watched = device.startswith("cuda") and shutil.which("nvidia-smi") is not None

    def __enter__(self) -> "GpuBusy":
        if self._watched:
            query = [
                "nvidia-smi",
                "--query-gpu=utilization.gpu",
                "--format=csv,noheader,nounits",
                "-lms",
                "200",
                "-i",
                "0",
            ]
            self._process = subprocess.Popen(query, stdout=subprocess.PIPE, text=True)
            self._said: list[str] = []
            self._reader = Thread(target=lambda: self._said.extend(self._process.stdout or ()), daemon=True)
            self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._watched:
            self._process.terminate()
            self._reader.join(timeout=5)
            values = [int(line) for line in self._said if line.strip().isdigit()]
            self.share = sum(values) / len(values) / 100 if values else None


@dataclass
class Race:
    """What all lines share."""

    files: Path
    work: Path
    device: str
    scale: float
    sample: Path | None
    started: float
    budget: float
    notes: dict[str, Any] = field(default_factory=dict)

    def left(self) -> float:
        return self.budget - (time.perf_counter() - self.started)


def prepare(race: Race) -> Any:
    """A ResNet-18 whose head separates the race's classes without a training: class means of its own features."""
    import torch

    import oodscope as oods
    from oodscope.models.small.resnet import resnet18_32

    torch.manual_seed(0)
    bench = oods.load_benchmark(race.files / "bench.yaml")
    count = min(2000, len(bench.id_train))
    rows = torch.linspace(0, len(bench.id_train) - 1, count).long().numpy()
    batch = bench.transform(bench.id_train.images(rows))
    labels = torch.from_numpy(bench.id_train.labels[rows])
    device = torch.device(race.device)
    model = resnet18_32(len(bench.class_names)).to(device)
    head, model.fc = model.fc, torch.nn.Identity()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = None
    with torch.no_grad():
        for piece in batch.split(BATCH):
            model.train()(piece.to(device))
        features = torch.cat([model.eval()(piece.to(device)) for piece in batch.split(BATCH)])
        centre = features.mean(dim=0)
        means = torch.stack([features[labels.to(device) == each].mean(dim=0) for each in range(len(bench.class_names))])
        weight = 4 * (means - centre) / (means - centre).norm(dim=1, keepdim=True).square()
        head.weight.copy_(weight)
        head.bias.copy_(-weight @ centre)
    model.fc = head
    return model


def evaluate(race: Race, detectors: list[str], tune: str, cache: str, precision: str = "float32") -> dict[str, Any]:
    """One evaluation from files, with a cache of its own or one that an earlier line filled."""
    import oodscope as oods

    os.environ["OODSCOPE_CACHE"] = str(race.work / cache)
    options: dict[str, Any] = (
        {"intervals": "full"} if "intervals" in inspect.signature(oods.evaluate).parameters else {}
    )
    watch = Stages()
    with GpuBusy(race.device) as busy:
        started = time.perf_counter()
        bench = oods.load_benchmark(race.files / "bench.yaml")
        clf = oods.Classifier(race.notes["model"], device=race.device, name="resnet18", precision=precision)
        result = oods.evaluate(clf, bench, detectors, tune=tune, batch_size=BATCH, progress=watch, **options)
        seconds = time.perf_counter() - started
    images = sum(len(images) for _, images in bench.members())
    near = [row for row in result.measurements if (row.metric, row.group, row.set) == ("auroc", "near", "mean")]
    auroc = {row.detector: row.value for row in near}
    return {
        "seconds": seconds,
        "images": images,
        "forwards": result.record.forward_images,
        "busy": busy.share,
        "stages": watch.seconds,
        "near_auroc": auroc,
    }


class Stages:
    """A ``Progress`` that notes how long each stage took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def stage(self, name: str, total: int) -> Any:
        from contextlib import contextmanager

        @contextmanager
        def timed() -> Any:
            started = time.perf_counter()
            try:
                yield lambda finished, remark=None: None
            finally:
                kind = name.split(" ", maxsplit=1)[0]
                self.seconds[kind] = self.seconds.get(kind, 0.0) + time.perf_counter() - started

        return timed()


def cold(race: Race) -> dict[str, Any]:
    return evaluate(race, TWENTY, "ood_val", "twenty")


def warm(race: Race) -> dict[str, Any]:
    return evaluate(race, TWENTY, "ood_val", "twenty")


def msp(race: Race, precision: str = "float32") -> dict[str, Any]:
    return evaluate(race, ["msp"], "default", f"msp-{precision}", precision)


def msp_tf32(race: Race) -> dict[str, Any]:
    return msp(race, "tf32")


def seven(race: Race, precision: str = "float32") -> dict[str, Any]:
    return evaluate(race, SEVEN, "default", f"seven-{precision}", precision)


def seven_tf32(race: Race) -> dict[str, Any]:
    return seven(race, "tf32")


def peer(race: Race) -> dict[str, Any]:
    from speed_peer import run_seven

    return run_seven(race.files / "bench.yaml", race.notes["model"], race.device, BATCH)


def png32(race: Race) -> dict[str, Any]:
    import oodscope as oods

    bench = oods.load_benchmark(race.files / "bench.yaml")
    return extraction(race, bench.id_train, bench.transform, race.notes["model"], "float32", 20.0)


def jpeg256(race: Race) -> dict[str, Any]:
    import oodscope as oods

    bench = oods.load_benchmark(race.files / "bench.yaml")
    return extraction(race, bench.far[-1], bench.transform, race.notes["model"], "float32", 20.0)


def resnet50(race: Race, precision: str = "float32") -> dict[str, Any]:
    import torch
    from torchvision.models import resnet50 as build

    import oodscope as oods
    from oodscope.data.images.files import FileSource

    if race.sample is None:
        return {"skipped": "no sample pack was named (--sample)"}
    folder = race.work / "sample"
    names = 50 if race.scale >= 1 else 1
    if not folder.exists():
        write_sample(race.sample, folder, names, max(8, int(1000 * min(1.0, 10 * race.scale))))
    torch.manual_seed(0)
    paths = sorted(path.name for path in folder.iterdir())
    images = oods.ImageSet("sample", FileSource(folder, paths))
    transform = oods.Preprocess(size=224, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    return extraction(race, images, transform, build().to(race.device), precision, 35.0)


def resnet50_bf16(race: Race) -> dict[str, Any]:
    return resnet50(race, "bf16")


def resnet50_tf32(race: Race) -> dict[str, Any]:
    return resnet50(race, "tf32")


def tf32(race: Race) -> dict[str, Any]:
    """The same evaluation with TF32, so that every detector shows what that does to its numbers."""
    return evaluate(race, TWENTY, "ood_val", "tf32", "tf32")


def write_sample(pack: Path, folder: Path, names: int, count: int) -> None:
    """The JPEGs of the sample pack as files, each under several names."""
    import numpy as np

    folder.mkdir()
    with np.load(pack, allow_pickle=False) as content:
        blob, offsets = content["blob"].tobytes(), content["offsets"]
    for row in range(min(count, len(offsets) - 1)):
        first = folder / f"{row:04}-00.jpg"
        first.write_bytes(blob[offsets[row] : offsets[row + 1]])
        for copy in range(1, names):
            (folder / f"{row:04}-{copy:02}.jpg").hardlink_to(first)


def extraction(race: Race, images: Any, transform: Any, model: Any, precision: str, most: float) -> dict[str, Any]:
    """Images per second of extraction, of the bare network in the same precision and layout, and of decoding alone.

    Processes are started and digests known before the clock starts; ``most`` bounds the seconds by taking fewer images.
    """
    import numpy as np

    import oodscope as oods
    from oodscope.execution.workers import session_workers, worker_session
    from speed_rates import bare_rate, decode_rate

    os.environ["OODSCOPE_CACHE"] = str(race.work / "extraction")
    clf = oods.Classifier(model, transform, device=race.device, precision=precision)
    assert clf.head is not None
    bare = bare_rate(clf, transform, BATCH, 3.0 * min(1.0, race.scale * 20))
    files = [str(images.source.encoded(int(row))) for row in images.rows]
    alone = decode_rate(files[: int(20_000 * min(1.0, 10 * race.scale))], transform)
    expected = min(bare, alone)
    rows = np.arange(min(len(images), max(BATCH, int(most * expected))))
    with worker_session(), tempfile.TemporaryDirectory(dir=race.work) as folder:
        pool = session_workers(start=True)
        warm_up = oods.ImageSet("first", images.source, rows=images.rows[rows[: 16 * 4 * BATCH]])
        oods.ActivationStore(f"{folder}/first").extract(clf, warm_up, batch_size=BATCH)
        part = images.take(rows)
        assert part.source.key
        with GpuBusy(race.device) as busy:
            started = time.perf_counter()
            oods.ActivationStore(f"{folder}/timed").extract(clf, part, batch_size=BATCH)
            seconds = time.perf_counter() - started
        start_seconds = None if pool is None else pool.start_seconds
    return {
        "seconds": seconds,
        "images": len(rows),
        "rate": len(rows) / seconds,
        "bare": bare,
        "decoding": alone,
        "share": len(rows) / seconds / expected,
        "busy": busy.share,
        "precision": precision,
        "start_seconds": start_seconds,
    }


LINES: dict[str, tuple[Callable[[Race], dict[str, Any]], float]] = {
    "cold": (cold, 20.0),
    "warm": (warm, 10.0),
    "msp": (msp, 15.0),
    "seven": (seven, 20.0),
    "peer": (peer, 100.0),
    "jpeg256": (jpeg256, 20.0),
    "resnet50": (resnet50, 45.0),
    "png32": (png32, 15.0),
    "resnet50_bf16": (resnet50_bf16, 25.0),
    "resnet50_tf32": (resnet50_tf32, 30.0),
    "tf32": (tf32, 30.0),
    "msp_tf32": (msp_tf32, 15.0),
    "seven_tf32": (seven_tf32, 20.0),
}
"""Each line, and the seconds that must be left for it to begin."""


def machine(device: str) -> str:
    import torch

    gpu = f"{torch.cuda.get_device_name()}, " if device.startswith("cuda") else ""
    return f"{gpu}{len(os.sched_getaffinity(0))} cores, torch {torch.__version__}, Python {platform.python_version()}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--race-files", type=Path, default=Path(__file__).parent / "race_files.py")
    parser.add_argument("--sample", type=Path)
    parser.add_argument("--work", type=Path, help="where files and caches go; by default a temporary folder")
    parser.add_argument("--budget-seconds", type=float, default=3600.0)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--lines", default=",".join(LINES))
    asked = parser.parse_args()
    started = time.perf_counter()
    asked.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        work = asked.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        run(asked, work, started)


def run(asked: argparse.Namespace, work: Path, started: float) -> None:
    from speed_page import write_page

    files = work / "race"
    if not (files / "bench.yaml").exists():
        subprocess.run([sys.executable, str(asked.race_files), str(files), str(asked.scale)], check=True)
    written = time.perf_counter() - started
    import torch

    from oodscope.models.classifier.network import choose_device

    device = str(choose_device(asked.device))
    torch.zeros(1, device=device)
    race = Race(files, work, device, asked.scale, asked.sample, started, asked.budget_seconds)
    race.notes["model"] = prepare(race)
    facts = {
        "machine": machine(device),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "command": f"python benchmarks/speed.py --output OUT --sample SAMPLE --lines {asked.lines}",
        "scale": asked.scale,
        "files_seconds": written,
        "ready_seconds": time.perf_counter() - started,
        "lines": {},
    }
    for name in asked.lines.split(","):
        line, least = LINES[name]
        least *= min(1.0, asked.scale)
        if race.left() < least:
            facts["lines"][name] = {"skipped": f"{race.left():.0f} s of the budget were left, it needs {least:.0f} s"}
        else:
            begun = time.perf_counter()
            try:
                facts["lines"][name] = line(race)
            except Exception as error:  # one line that fails must not cost the others
                facts["lines"][name] = {"failed": f"{type(error).__name__}: {error}"}
            facts["lines"][name]["wall"] = time.perf_counter() - begun
        print(name, json.dumps(facts["lines"][name])[:400], flush=True)
        (asked.output / "speed.json").write_text(json.dumps(facts, indent=1))
        write_page(facts, asked.output / "speed.md")


if __name__ == "__main__":
    main()
