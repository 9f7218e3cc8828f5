"""Open a generated set; its files must be those that its recipe names, to the byte."""

import hashlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from oodscope.base.errors import DataError, StorageError
from oodscope.base.files import storage_errors, write_text
from oodscope.data.generated.record import FOLDER, RECIPE, GeneratedFile, GeneratedRecord, read_generated
from oodscope.data.images.files import FileSource
from oodscope.data.images.sourcespec import SourceSpec
from oodscope.data.imageset import UNLABELLED, ImageSet
from oodscope.execution.progress import SILENT, Progress


def write_generated(
    folder: Path | str,
    images: NDArray[np.uint8],
    labels: ArrayLike | None,
    recipe: Mapping[str, Any],
    *,
    kind: Literal["near", "shifted", "attacked"],
    class_names: Sequence[str] = (),
    information: ArrayLike | None = None,
    rows: ArrayLike | None = None,
) -> GeneratedRecord:
    """Write images as PNG and, last of all, ``recipe.json`` with the digest of each: where it is, the set is whole.

    Parameters
    ----------
    folder : of the set; it must not hold another one.
    images : uint8 ``[N, H, W, C]`` with one or three channels.
    labels : the class that each image was made from; None where there is none.
    recipe : all that decides the images, as JSON.
    kind, class_names : see ``GeneratedRecord``.
    information : mutual information of each image, if it was measured.
    rows : the image that each was made from; below 0 where it was not one.
    """
    folder = Path(folder)
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] not in (1, 3) or not len(images):
        raise DataError(f"a generated set needs uint8 images [N, H, W, 1 or 3], not {images.dtype} {images.shape}")
    own = np.full(len(images), UNLABELLED) if labels is None else np.asarray(labels)
    if own.shape != (len(images),) or own.max() >= max(len(class_names), UNLABELLED + 1):
        raise DataError(f"{len(images)} images need {len(images)} labels below {len(class_names)}, the class names")
    check_free(folder)
    made_from = np.full(len(images), -1) if rows is None else np.asarray(rows)
    measured = [None] * len(images) if information is None else np.asarray(information, dtype=np.float64).tolist()
    width = max(5, len(str(len(images) - 1)))
    files = []
    with storage_errors(folder / FOLDER):
        (folder / FOLDER).mkdir(parents=True, exist_ok=True)
        for number, (image, label, row, nats) in enumerate(zip(images, own, made_from, measured, strict=True)):
            content, name = _png(image), f"{number:0{width}d}.png"
            # not atomic, for speed: until the recipe is there, this is not a set
            (folder / FOLDER / name).write_bytes(content)
            known = {"label": int(label), "row": int(row) if row >= 0 else None, "information": nats}
            files.append(GeneratedFile(file=name, digest=digest_of(content), **known))
    record = GeneratedRecord(
        kind=kind, class_names=tuple(class_names), recipe=dict(recipe), files=tuple(files)
    ).sealed()
    write_text(folder / RECIPE, record.model_dump_json(indent=1) + "\n")
    return record


def check_free(folder: Path | str) -> None:
    """Refuse a folder that holds a set, or images that no recipe names: nothing is overwritten."""
    folder = Path(folder)
    if (folder / RECIPE).exists():
        raise StorageError(f"{folder} holds a generated set already; delete it or choose another folder")
    if (folder / FOLDER).is_dir() and any((folder / FOLDER).iterdir()):
        raise StorageError(f"{folder / FOLDER} is not empty; delete it or choose another folder")


def digest_of(content: bytes) -> str:
    """The digest that a recipe records: the one by which sources of files know images."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _png(image: NDArray[np.uint8]) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image).save(stream, "PNG")
    return stream.getvalue()


class GeneratedSource(FileSource):
    """Image files whose digests were compared with a recipe when they were opened."""

    def __init__(self, root: Path, paths: Sequence[str], known: Sequence[str]) -> None:
        super().__init__(root, paths)
        self.known = list(known)

    def keeping(self, rows: Sequence[int]) -> "GeneratedSource":
        return GeneratedSource(self.root, [self.paths[row] for row in rows], [self.known[row] for row in rows])

    def _digest_all(self) -> list[bytes]:
        return [bytes.fromhex(each) for each in self.known]


def is_generated(folder: Path | str) -> bool:
    """Whether a folder holds a generated set, sound or not."""
    return (Path(folder) / RECIPE).is_file() and (Path(folder) / FOLDER).is_dir()


def open_generated(folder: Path | str, name: str | None = None) -> ImageSet:
    """The images of a generated set, in order; a missing, changed or additional file stops it, by name.

    Every file is read and compared with the recipe, because images that are not those of the recipe would be judged
    under its name.

    Parameters
    ----------
    folder : that ``oodscope generate`` or ``write_generated`` wrote.
    name : of the set; by default that of the folder.
    """
    folder = Path(folder)
    record = read_generated(folder)
    present = {path.name for path in (folder / FOLDER).iterdir()} if (folder / FOLDER).is_dir() else set()
    for each in record.files:
        path = folder / FOLDER / each.file
        if each.file not in present:
            raise DataError(f"{path}: missing, but {RECIPE} names it; restore it, or generate the set again")
        if digest_of(path.read_bytes()) != each.digest:
            raise DataError(f"{path}: not the image that {RECIPE} names; restore it, or generate the set again")
    if extra := sorted(present - {each.file for each in record.files}):
        raise DataError(f"{folder / FOLDER / extra[0]}: not in {RECIPE}; remove it ({len(extra)} such files)")
    source = GeneratedSource(folder / FOLDER, [each.file for each in record.files], [f.digest for f in record.files])
    labels = [each.label for each in record.files]
    unlabelled = all(label == UNLABELLED for label in labels)
    return ImageSet(name or folder.resolve().name, source, None if unlabelled else labels, record.class_names)


class GeneratedSpec(SourceSpec):
    """A generated set in a benchmark's YAML: the folder that ``oodscope generate`` wrote."""

    source: Literal["generated"]
    path: str

    def open(self, name: str, root: Path, progress: Progress = SILENT) -> ImageSet:
        return open_generated(root / self.path, name)
