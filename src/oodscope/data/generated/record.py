"""GeneratedRecord: what ``recipe.json`` of a generated set says."""

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from oodscope.base.config import StrictModel, parse
from oodscope.base.errors import DataError, OodscopeError
from oodscope.base.hashing import fingerprint
from oodscope.data.imageset import UNLABELLED

FORMAT = 1
RECIPE = "recipe.json"
FOLDER = "images"


class GeneratedFile(StrictModel):
    """One image.

    Parameters
    ----------
    file : its name under ``images``.
    label : the class that it was made from.
    row : the image that it was made from, counted in the set that the recipe names; None where it was not one.
    information : mutual information of the ensemble that chose it, in nats.
    digest : BLAKE2b of the file's bytes, in hexadecimal.
    """

    file: str = Field(pattern=r"^\d+\.png$")
    label: int = Field(default=UNLABELLED, ge=UNLABELLED)
    row: int | None = Field(default=None, ge=0)
    information: float | None = None
    digest: str = Field(pattern=r"^[0-9a-f]{32}$")


class GeneratedRecord(StrictModel):
    """The images of a generated set and how they were made.

    Parameters
    ----------
    kind : ``near`` looks like the training images and means something else; ``shifted`` is the other way round;
        ``attacked`` are outliers that a search varied until a detector took them for in-distribution.
    class_names : of the in-distribution images; a label says which class an image was made from.
    recipe : all that decides the images: method, seeds, λ, window, fingerprints of sets and networks, versions.
    files : one entry per image, in order.
    seal : fingerprint of everything above, so that a changed recipe is noticed like a changed image.
    """

    format: int = Field(default=FORMAT, ge=1)
    kind: Literal["near", "shifted", "attacked"]
    class_names: tuple[str, ...] = ()
    recipe: dict[str, Any]
    files: tuple[GeneratedFile, ...] = Field(min_length=1)
    seal: str = ""

    def sealed(self) -> "GeneratedRecord":
        """The same with the seal that belongs to it."""
        return self.model_copy(update={"seal": fingerprint(self.model_dump(mode="json", exclude={"seal"}))})


def read_generated(folder: Path | str) -> GeneratedRecord:
    """The recipe of the set in ``folder``; one that was changed, cut off or is of another kind is refused."""
    path = Path(folder) / RECIPE
    try:
        declared = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}; a generated set needs its recipe") from error
    except ValueError as error:
        raise DataError(f"{path}: damaged: not valid JSON; generate the set again") from error
    if isinstance(declared, dict) and isinstance(declared.get("format"), int) and declared["format"] > FORMAT:
        raise DataError(f"{path}: written by a newer oodscope (format {declared['format']}, this one reads {FORMAT})")
    try:
        record = parse(GeneratedRecord, declared, str(path))
    except OodscopeError as error:
        raise DataError(f"{error}; not the recipe of a generated set, or changed since it was written") from error
    if record.seal != record.sealed().seal:
        raise DataError(f"{path}: changed since the set was written; restore it, or generate the set again")
    return record
