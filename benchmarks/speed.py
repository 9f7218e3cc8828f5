"""How fast is an evaluation from files, on this machine: the race that docs/results/speed.md reports.

    python benchmarks/speed.py --output OUT [--sample imagenet1k_sample_224.npz] [--lines cold,warm]
                               [--budget-seconds 420] [--scale 1.0] [--device auto]

Writes the race's files (``race_files.py``), then times line by line, imports and the first touch of the device
excluded. It goes on where earlier calls on such a machine stopped (``OUT/speed.json``, else
docs/results/data/speed.json): lines that they measured are kept, unless ``--lines`` names them. After each line
``OUT/speed.json`` and ``OUT/speed.md`` hold what is known so far and name what is not; a line for which the budget is
too small is skipped and says so. pytorch-ood takes part if it is installed (``pip install -e '.[benchmarks]'``).
``--scale 0.01 --device cpu`` rehearses everything with one file in a hundred.
"""

import argparse
import contextlib
import importlib
import json
import os
import pkgutil
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from speed_watch import GpuBusy, Stages  # beside this file

TWENTY = ["msp", "mls", "ebo", "odin", "gen", "temp_scaling", "klm", "knn", "mds", "rmds"]
TWENTY += ["vim", "residual", "react", "ash", "scale", "dice", "she", "fdbd", "nci", "nnguide"]
SEVEN = ["msp", "mls", "ebo", "odin", "mds", "knn", "vim"]
KNOWN = Path(__file__).parents[1] / "docs" / "results" / "data" / "speed.json"


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
    batch: int = 256
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
        for piece in batch.split(256):
            model.train()(piece.to(device))
        features = torch.cat([model.eval()(piece.to(device)) for piece in batch.split(256)])
        centre = features.mean(dim=0)
        means = torch.stack([features[labels.to(device) == each].mean(dim=0) for each in range(len(bench.class_names))])
        weight = 4 * (means - centre) / (means - centre).norm(dim=1, keepdim=True).square()
        head.weight.copy_(weight)
        head.bias.copy_(-weight @ centre)
    model.fc = head
    return model


def import_all() -> None:
    """Import what an evaluation imports when it first needs it: imports are not counted."""
    for package in ("activations", "detectors", "metrics", "protocols", "results", "runs.evaluation"):
        whole = importlib.import_module(f"oodscope.{package}")
        for module in pkgutil.walk_packages(whole.__path__, f"{whole.__name__}."):
            with contextlib.suppress(ImportError):  # of an extra that is not installed, and so not needed
                importlib.import_module(module.name)


def evaluate(race: Race, detectors: list[str], tune: str, cache: str, precision: str = "float32") -> dict[str, Any]:
    """One evaluation from files, with a cache of its own or one that an earlier line filled."""
    import oodscope as oods

    os.environ["OODSCOPE_CACHE"] = str(race.work / cache)
    import_all()
    watch = Stages()
    with GpuBusy(race.device) as busy:
        started = time.perf_counter()
        with watch.stage("open", 1):
            bench = oods.load_benchmark(race.files / "bench.yaml")
        clf = oods.Classifier(race.notes["model"], device=race.device, name="resnet18", precision=precision)
        result = oods.evaluate(
            clf, bench, detectors, tune=tune, batch_size=race.batch, progress=watch, intervals="full"
        )
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
        "batch": race.batch,
    }


def cold(race: Race) -> dict[str, Any]:
    return evaluate(race, TWENTY, "ood_val", "twenty")


def warm(race: Race) -> dict[str, Any]:
    if not (race.work / "twenty").exists():  # the cold line was measured by an earlier call, whose cache is gone
        cold(race)
    return evaluate(race, TWENTY, "ood_val", "twenty")


def msp(race: Race, precision: str = "float32") -> dict[str, Any]:
    return evaluate(race, ["msp"], "default", f"msp-{precision}", precision)


def msp_tf32(race: Race) -> dict[str, Any]:
    return msp(race, "tf32")


def seven(race: Race, precision: str = "float32") -> dict[str, Any]:
    return evaluate(race, SEVEN, "default", f"seven-{precision}", precision)


def seven_tried(race: Race) -> dict[str, Any]:
    """Where the user lets cuDNN try its kernels, by PyTorch's own switch."""
    import torch

    torch.backends.cudnn.benchmark = True
    try:
        return evaluate(race, SEVEN, "default", "seven-tried")
    finally:
        torch.backends.cudnn.benchmark = False


def seven_tf32(race: Race) -> dict[str, Any]:
    return seven(race, "tf32")


def peer(race: Race) -> dict[str, Any]:
    from speed_peer import run_seven

    return run_seven(race.files / "bench.yaml", race.notes["model"], race.device, 256)


def png32(race: Race) -> dict[str, Any]:
    import oodscope as oods

    bench = oods.load_benchmark(race.files / "bench.yaml")
    return extraction(race, bench.id_train, bench.transform, race.notes["model"], "float32", 20.0)


def jpeg256(race: Race) -> dict[str, Any]:
    """The race's largest JPEGs, each under three names: one pass over them alone would be over in two seconds."""
    import oodscope as oods
    from oodscope.data.images.files import FileSource

    bench = oods.load_benchmark(race.files / "bench.yaml")
    images, folder = bench.far[-1], race.work / "jpeg256"
    if not folder.exists():
        folder.mkdir()
        for row in range(len(images)):
            for copy in range(3):
                (folder / f"{row:05}-{copy}.jpg").hardlink_to(images.source.encoded(int(images.rows[row])))
    named = oods.ImageSet("jpeg256", FileSource(folder, sorted(path.name for path in folder.iterdir())))
    return extraction(race, named, bench.transform, race.notes["model"], "float32", 20.0)


def probe(race: Race) -> dict[str, Any]:
    """The bare network by layout, batch, tried or guessed kernels, and graph, in true float32."""
    import speed_probe

    if race.scale < 1:
        return {"ways": speed_probe.probe(race.device, 0.0, (2, 4))}
    ways = speed_probe.probe(race.device, 0.3)
    for kind, found in speed_probe.guessed(race.device, 0.3).items():
        ways[kind] |= found
    return {"ways": ways}


def chosen_batch(facts: dict[str, Any]) -> int:
    """The batch that the probe found faster in extraction's own layout; 256 where nobody probed."""
    ways = facts["lines"].get("probe", {}).get("ways", {}).get("plain", {})
    rates = {size: ways.get(f"planes, batches of {size}, tried kernels", 0.0) for size in (256, 1024)}
    return 1024 if rates[1024] > 1.02 * rates[256] else 256


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


def layouts(race: Race) -> dict[str, Any]:
    """The bare network in every precision, both layouts of its memory, and two sizes of a batch."""
    import torch

    import oodscope as oods
    from speed_rates import bare_rate

    transform = oods.load_benchmark(race.files / "bench.yaml").transform
    rates: dict[str, dict[str, float]] = {}
    for precision in ("float32", "tf32", "bf16"):
        clf = oods.Classifier(race.notes["model"], transform, device=race.device, precision=precision)
        for name, layout in (("planes", torch.contiguous_format), ("channels last", torch.channels_last)):
            for batch in (256, 1024) if race.scale >= 1 else (8,):
                rate = bare_rate(clf, transform, batch, 1.0 * min(1.0, race.scale), layout)
                rates.setdefault(precision, {})[f"{name}, batches of {batch}"] = rate
    return {"rates": rates}


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
    bare = bare_rate(clf, transform, race.batch, 3.0 * min(1.0, race.scale * 20))
    files = [str(images.source.encoded(int(row))) for row in images.rows]
    alone = decode_rate(files[: int(20_000 * min(1.0, 10 * race.scale))], transform)
    expected = min(bare, alone)
    rows = np.arange(min(len(images), max(race.batch, int(most * expected))))
    with worker_session(), tempfile.TemporaryDirectory(dir=race.work) as folder:
        pool = session_workers(start=True)
        warm_up = oods.ImageSet("first", images.source, rows=images.rows[rows[: 16 * 4 * 256]])
        oods.ActivationStore(f"{folder}/first").extract(clf, warm_up, batch_size=race.batch)
        part = images.take(rows)
        assert part.source.key
        with GpuBusy(race.device) as busy:
            started = time.perf_counter()
            oods.ActivationStore(f"{folder}/timed").extract(clf, part, batch_size=race.batch)
            seconds = time.perf_counter() - started
        start_seconds = None if pool is None else pool.start_seconds
        workers = None if pool is None else {"count": pool.count, "used": pool.limit, "gain": pool.gain}
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
        "workers": workers,
        "batch": race.batch,
    }


LINES: dict[str, tuple[Callable[[Race], dict[str, Any]], float]] = {
    "probe": (probe, 60.0),
    "cold": (cold, 20.0),
    "warm": (warm, 10.0),
    "msp": (msp, 15.0),
    "seven": (seven, 20.0),
    "seven_tried": (seven_tried, 30.0),
    "png32": (png32, 15.0),
    "jpeg256": (jpeg256, 25.0),
    "resnet50": (resnet50, 45.0),
    "layouts": (layouts, 20.0),
    "tf32": (tf32, 30.0),
    "msp_tf32": (msp_tf32, 15.0),
    "seven_tf32": (seven_tf32, 20.0),
    "peer": (peer, 100.0),
    "resnet50_tf32": (resnet50_tf32, 30.0),
    "resnet50_bf16": (resnet50_bf16, 25.0),
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
    parser.add_argument("--lines", default="", help="measure these, known or not; by default all that are not known")
    parser.add_argument("--known", type=Path, default=KNOWN, help="what earlier calls measured")
    asked = parser.parse_args()
    unknown = [name for name in filter(None, asked.lines.split(",")) if name not in LINES]
    if unknown:
        parser.error(f"unknown line {unknown[0]!r}; there are {', '.join(LINES)}")
    started = time.perf_counter()
    asked.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        work = asked.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        run(asked, work, started)


def known_facts(known: Path, output: Path, where: str, scale: float) -> dict[str, Any]:
    """What earlier calls measured on a machine like this one, at this scale; nothing of other machines is mixed in."""
    for place in (output / "speed.json", known):
        if place.exists():
            facts: dict[str, Any] = json.loads(place.read_text())
            if (facts["machine"], facts["scale"]) == (where, scale):
                return facts
    return {"machine": where, "scale": scale, "lines": {}}


def measured(line: dict[str, Any] | None) -> bool:
    """Whether there is a figure, of the code as it is: ``outdated`` says what changed since."""
    return line is not None and not {"skipped", "failed", "outdated"} & set(line)


def run(asked: argparse.Namespace, work: Path, started: float) -> None:
    """Measure line after line; after each, the files hold what is known."""
    from oodscope.models.classifier.network import choose_device
    from speed_page import write_page

    device = str(choose_device(asked.device))
    facts = known_facts(asked.known, asked.output, machine(device), asked.scale)
    wanted = (
        asked.lines.split(",") if asked.lines else [name for name in LINES if not measured(facts["lines"].get(name))]
    )
    files = work / "race"
    if wanted and not (files / "bench.yaml").exists():
        subprocess.run([sys.executable, str(asked.race_files), str(files), str(asked.scale)], check=True)
        facts["files_seconds"] = time.perf_counter() - started
    facts["command"] = "python benchmarks/speed.py --output OUT --sample SAMPLE"
    facts["date"] = f"{datetime.now(UTC):%Y-%m-%d}"
    race = Race(files, work, device, asked.scale, asked.sample, started, asked.budget_seconds)
    for name in wanted:
        race.batch = chosen_batch(facts)
        facts["lines"][name] = timed(name, race)
        print(name, json.dumps(facts["lines"][name])[:400], flush=True)
        (asked.output / "speed.json").write_text(json.dumps(facts, indent=1))
        write_page(facts, asked.output / "speed.md")


def timed(name: str, race: Race) -> dict[str, Any]:
    """One line, or why there is none."""
    line, least = LINES[name]
    least *= min(1.0, race.scale)
    if race.left() < least:
        return {"skipped": f"{race.left():.0f} s of the budget were left, it needs {least:.0f} s"}
    if "model" not in race.notes:
        import torch

        torch.zeros(1, device=race.device)
        race.notes["model"] = prepare(race)
    begun = time.perf_counter()
    try:
        found = line(race)
    except Exception as error:  # one line that fails must not cost the others
        found = {"failed": f"{type(error).__name__}: {error}"}
    return {**found, "wall": time.perf_counter() - begun, "date": f"{datetime.now(UTC):%Y-%m-%d}"}


if __name__ == "__main__":
    main()
