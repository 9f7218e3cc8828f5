"""Write a generated set: images first, recipe last."""

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
from oodscope.data.generated.record import FOLDER, RECIPE, GeneratedFile, GeneratedRecord
from oodscope.data.imageset import UNLABELLED


def write_generated(
    folder: Path | str,
    images: NDArray[np.uint8],
    labels: ArrayLike | None,
    recipe: Mapping[str, Any],
    *,
    kind: Literal["near", "shifted"],
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
            # not atomic, for speed: until the recipe is there, this is no set
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
