"""How fast JPEG files become batches: the loader beside a plain Pillow loop, on one core.

OODSCOPE_DATA=FOLDER taskset -c 0 python benchmarks/loader_speed.py

FOLDER holds the pack ``imagenet1k_sample_224.npz``. Its images are enlarged to 500 x 375 and saved as JPEG of quality
90 in a temporary folder; the cache lies there too. Runs take turns, and the fastest of each counts.
"""

import io
import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from PIL import Image
from torch import nn

from oodscope.activations.feeding import cut, feed
from oodscope.activations.store.store import ActivationStore
from oodscope.data.images.files import FileSource
from oodscope.data.images.folders import open_folder
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.execution.lookahead import threads
from oodscope.execution.memory import PeakMemory
from oodscope.models.classifier.classifier import Classifier

TRANSFORM = Preprocess(size=224, resize=256, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
COUNT, SIZE, BATCH, TURNS = 1000, (500, 375), 64, 4


class Look(nn.Module):
    """The cheapest network there is, so that loading is what is measured."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(3, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen: torch.Tensor = self.head(x[:, :, ::16, ::16].mean(dim=(2, 3)))
        return seen


def write_files(folder: Path) -> None:
    with np.load(Path(os.environ["OODSCOPE_DATA"]) / "imagenet1k_sample_224.npz", allow_pickle=False) as pack:
        blob, offsets = pack["blob"].tobytes(), pack["offsets"]
    folder.mkdir()
    for row in range(COUNT):
        with Image.open(io.BytesIO(blob[offsets[row] : offsets[row + 1]])) as stored:
            stored.convert("RGB").resize(SIZE, Image.Resampling.BICUBIC).save(folder / f"{row:04}.jpg", quality=90)


def plain_loop(images: ImageSet) -> None:
    """What anybody would write: open, convert, resize, crop, array."""
    for path in images.source.paths:  # type: ignore[attr-defined]
        with Image.open(images.source.root / path) as file:  # type: ignore[attr-defined]
            picture = file.convert("RGB")
        short = min(picture.size)
        width, height = (int(256 * edge / short) for edge in picture.size)
        picture = picture.resize((width, height), Image.Resampling.BILINEAR)
        left, top = (round((edge - 224) / 2) for edge in picture.size)
        np.asarray(picture.crop((left, top, left + 224, top + 224)))


def loader(images: ImageSet, classifier: Classifier) -> None:
    for _ in feed(classifier, images, cut(np.arange(len(images)), BATCH)):
        pass


def processor_seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Wall-clock seconds, and seconds that this process really had the processor."""
    started, used = perf_counter(), sum(os.times()[:2])
    work()
    return perf_counter() - started, sum(os.times()[:2]) - used


def main() -> None:
    torch.set_num_threads(1)
    classifier = Classifier(Look(), TRANSFORM, device="cpu")
    assert classifier.num_classes == 10
    with tempfile.TemporaryDirectory() as home:
        os.environ["OODSCOPE_CACHE"] = f"{home}/cache"
        files = Path(home) / "jpeg"
        write_files(files)
        speed(open_folder("jpeg", files), classifier)
        runs(files, ActivationStore(Path(home) / "store").root, classifier)
        memory(files, classifier)


def speed(images: ImageSet, classifier: Classifier) -> None:
    contestants = (partial(plain_loop, images), partial(loader, images, classifier))
    turns = [[processor_seconds(work) for work in contestants] for _ in range(TURNS)]
    wall, processor = np.array(turns).min(axis=0).T
    print(
        f"{COUNT:,} JPEG files of {SIZE[0]}x{SIZE[1]}, quality 90, to 224 px; {threads()} thread(s); best of {TURNS}\n"
    )
    print("| | images/s, wall clock | images per second of processor time |")
    print("|---|---|---|")
    for name, seconds, used in zip(("Pillow loop, to uint8 arrays", "loader, to normalised batches"), wall, processor):
        print(f"| {name} | {COUNT / seconds:.0f} | {COUNT / used:.0f} |")
    print(f"| loader / Pillow | {wall[0] / wall[1]:.2f} | {processor[0] / processor[1]:.2f} |\n")


def runs(files: Path, store: Path, classifier: Classifier) -> None:
    print("| run of `ActivationStore.extract` | seconds of processor time | images through the network |")
    print("|---|---|---|")
    for name in ("first", "second"):
        kept = ActivationStore(store)
        _, used = processor_seconds(partial(kept.extract, classifier, open_folder("jpeg", files)))
        print(f"| {name} | {used:.2f} | {kept.forwarded:,} |")
    print()


def memory(files: Path, classifier: Classifier) -> None:
    """The files once, and four times over: what a loader keeps of one image it keeps of the next."""
    paths = [file.name for file in sorted(files.iterdir())]
    print("| images | peak memory of the loader, MiB |")
    print("|---|---|")
    for times in (1, 4):
        images = ImageSet("jpeg", FileSource(files, paths * times))
        with PeakMemory("cpu") as peak:
            loader(images, classifier)
        print(f"| {len(images):,} | {peak.mib:.1f} |")


if __name__ == "__main__":
    main()
