"""Remaking: a generated set once more, from its recipe, and in what it differs."""

from pathlib import Path
from typing import Any

from oodscope.base.config import parse
from oodscope.base.errors import DataError
from oodscope.data.generated.record import RECIPE, GeneratedRecord, read_generated
from oodscope.data.imageset import ImageSet
from oodscope.generation.generated.making import make_set
from oodscope.generation.generated.plan import SetPlan


def plan_of(folder: Path | str) -> SetPlan:
    """What was asked of the set in ``folder``."""
    return parse(SetPlan, read_generated(folder).recipe.get("plan"), f"{Path(folder) / RECIPE}: plan")


def remake_set(source: Path | str, id_train: ImageSet, id_val: ImageSet, folder: Path | str, **options: Any) -> str:
    """Make the set of ``source`` again in ``folder``; in words what differs, empty if every image is the same.

    On the same device, with the same versions, every byte is. On another one members of the ensemble end with other
    weights, and the set is another draw of the same recipe.

    Parameters
    ----------
    source : folder of the set that is made again.
    id_train, id_val : the images that it was made from; others are refused.
    options : as for ``make_set``.
    """
    theirs = read_generated(source)
    given = {"id_train": id_train, "id_val": id_val, "redrawn": options.get("redrawn") or id_val}
    for role, images in given.items():
        told = theirs.recipe.get(role)
        if told is not None and images.fingerprint != told["fingerprint"]:
            known = f"{told['name']}, {told['images']} images"
            raise DataError(f"{Path(source) / RECIPE}: made from other images as {role} ({known}); give those")
    return difference(theirs, make_set(plan_of(source), id_train, id_val, folder, **options).record)


def difference(theirs: GeneratedRecord, ours: GeneratedRecord) -> str:
    """In what one set differs from another, as far as the recipes tell."""
    known = {each.digest for each in theirs.files}
    other = sum(each.digest not in known for each in ours.files)
    if theirs.files == ours.files:
        return ""
    keys = [key for key in ours.recipe if ours.recipe[key] != theirs.recipe.get(key)]
    return f"{other} of {len(ours.files)} images differ; the recipes differ in {', '.join(keys) or 'nothing'}"
