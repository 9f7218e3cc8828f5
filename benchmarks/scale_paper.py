"""ImageNet-21k and a leaderboard of 1,000 models on paper: bytes, minutes and the bottleneck, from measured figures."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GPUS = (1, 8, 64)
MEASURED = {"float32": "resnet50", "TF32": "resnet50_tf32", "bf16": "resnet50_bf16"}
"""Rows of speed.json, by precision."""

CORES = 16
"""Per GPU, as on the machine that was measured."""

DECODED = 293.0
"""Images a second and core: JPEGs of 500x375 to 224 px (loader-speed.md)."""

PICTURE = 224 * 224 * 3
"""Bytes of a packed image."""

READ = 3.0e9
"""Bytes a second of one NVMe disk: an assumption, not a measurement."""

TRAIN, TRAIN_21K, EVALUATED = 1_281_167, 14_197_122, 1_420_000
WIDTH, CLASSES_21K = 2048, 21_841
MODELS, TOGETHER = 1000, 8
TESTS = EVALUATED - TRAIN


@dataclass(frozen=True)
class Work:
    """One job on paper.

    Parameters
    ----------
    forwards : images through networks.
    decodes : images that are decoded for them.
    packed : whether they are read from a pack instead.
    stored : bytes of activations that stay.
    """

    name: str
    forwards: float
    decodes: float
    stored: float
    packed: bool = False

    def seconds(self, gpus: int, rate: float) -> tuple[float, str]:
        """How long it takes, and what it waits for."""
        feeding = self.decodes * PICTURE / (READ * gpus) if self.packed else self.decodes / (DECODED * CORES * gpus)
        computing = self.forwards / (rate * gpus)
        name = "reading packs" if self.packed else "decoding"
        return (feeding, name) if feeding > computing else (computing, "the networks")


def duration(seconds: float) -> str:
    """In the unit that a person would use."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} d"


def size(amount: float) -> str:
    """Bytes, in powers of a thousand."""
    return f"{amount / 1e12:.2f} TB" if amount >= 1e12 else f"{amount / 1e9:.1f} GB"


def works() -> list[Work]:
    """What is asked for; features as float16, logits from the head."""
    features = 2 * WIDTH
    return [
        Work("ImageNet-1K train, one ResNet-50", TRAIN, TRAIN, TRAIN * features),
        Work("ImageNet-21k train, one ResNet-50", TRAIN_21K, TRAIN_21K, TRAIN_21K * features),
        Work(
            f"{MODELS:,} models, each decoding for itself",
            MODELS * EVALUATED,
            MODELS * EVALUATED,
            MODELS * EVALUATED * features,
        ),
        Work(
            f"{MODELS:,} models, eight to a decoded stream",
            MODELS * EVALUATED,
            MODELS * EVALUATED / TOGETHER,
            MODELS * TESTS * features,
        ),
        Work(
            f"{MODELS:,} models from a pack",
            MODELS * EVALUATED,
            MODELS * EVALUATED,
            MODELS * TESTS * features,
            packed=True,
        ),
    ]


def paper_section(data: Path) -> Iterator[str]:
    """The section of the page."""
    lines = json.loads((data / "speed.json").read_text())["lines"]
    rates = {precision: float(lines[line]["rate"]) for precision, line in MEASURED.items()}
    yield "## ImageNet size on paper"
    yield ""
    yield (
        "Arithmetic from measured rates; nobody has run it. ResNet-50 at 224 px on one H200, through the whole "
        f"extraction ([speed](speed.md)): "
        f"{', '.join(f'{rate:,.0f} images a second in {name}' for name, rate in rates.items())}. "
        f"Decoding of JPEGs of 500x375: {DECODED:.0f} images a second and core ([loader](loader-speed.md)), "
        f"{CORES} cores per GPU, so {DECODED * CORES:,.0f} a second. Packs are read at {READ / 1e9:.0f} GB a second "
        "and GPU, which is assumed. Start-up (20 s a worker) and fits are not counted. Features are stored as float16, "
        "logits come from the head; of 1,000 models that share a stream or a pack only test sets stay."
    )
    for precision, rate in rates.items():
        yield ""
        yield (
            f"| {precision} | images through networks | decoded or read | activations | 1 GPU | 8 GPUs | 64 GPUs "
            f"| waits for |"
        )
        yield "|---|---|---|---|---|---|---|---|"
        for work in works():
            times = [work.seconds(count, rate) for count in GPUS]
            cells = " | ".join(duration(seconds) for seconds, _ in times)
            counts = f"{work.forwards:,.0f} | {work.decodes:,.0f} | {size(work.stored)}"
            yield f"| {work.name} | {counts} | {cells} | {times[0][1]} |"
    yield ""
    stored, derived = TRAIN_21K * CLASSES_21K * 4, TRAIN_21K * WIDTH * 2
    yield (
        f"- Logits of ImageNet-21k would be {size(stored)} as float32; the features that they follow from are "
        f"{size(derived)}. Above 4,096 classes logits always come from the head."
    )
    packs = {"ImageNet-1K train": TRAIN, "ImageNet-21k train": TRAIN_21K, "all sets of a leaderboard": EVALUATED}
    yield f"- Packs at 224 px: {', '.join(f'{name} {size(count * PICTURE)}' for name, count in packs.items())}."
    hours = [work.decodes / DECODED / 3600 for work in works()[2:4]]
    yield (
        f"- Decoding for {MODELS:,} models takes {hours[0]:,.0f} core-hours if each decodes for itself and "
        f"{hours[1]:,.0f} if "
        f"{TOGETHER} share a stream, as networks of a study do that come with weights."
    )
