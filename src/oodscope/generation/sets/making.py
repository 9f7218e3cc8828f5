"""Making a generated set: ensemble, pool, mutual information, window, choice, files; in this order."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import __version__ as pillow_version
from safetensors.torch import save_file

from oodscope.base.config import parse
from oodscope.base.errors import DataError
from oodscope.base.files import atomic_path, slug
from oodscope.data.generated.files import check_free, write_generated
from oodscope.data.generated.record import RECIPE, GeneratedRecord, read_generated
from oodscope.data.imageset import UNLABELLED, ImageSet
from oodscope.execution.progress import SILENT, Progress
from oodscope.generation.distances.semantic import EnsembleInformation
from oodscope.generation.sets.ensemble import train_ensemble
from oodscope.generation.sets.plan import SetPlan
from oodscope.generation.sets.pool import Place, Pool, fill_pool, frame_of, read_pool
from oodscope.generation.sets.selecting import Selected, select_near, select_shifted
from oodscope.metrics.generated.information import Window
from oodscope.models.classifier.classifier import Classifier
from oodscope.training.loop.finished import versions

MAKERS = "makers"
"""Folder of a set with the networks that chose its images."""


@dataclass(frozen=True)
class MadeSet:
    """A set on disk, and the ensemble that chose it, which must not judge it."""

    record: GeneratedRecord
    ensemble: tuple[Classifier, ...]


def make_set(
    plan: SetPlan,
    id_train: ImageSet,
    id_val: ImageSet,
    folder: Path | str,
    *,
    work: Path | str,
    redrawn: ImageSet | None = None,
    device: str = "auto",
    progress: Progress = SILENT,
) -> MadeSet:
    """Make the set of a plan and write it.

    On one device and with the same versions, the same plan gives the same images to the byte. Killed, the same call
    goes on where it was: trained networks, generators and searches are kept in ``work``.

    Parameters
    ----------
    id_train : labelled images: the ensemble and the generators learn from them.
    id_val : images that nothing learns from: what the ensemble's mutual information is like on known images.
    redrawn : images that shifted ones are made from; by default ``id_val``. Networks under test must not know them.
    folder : of the set; it must not hold one.
    work : for everything that is trained on the way; another set of the same images shares it.

    Examples
    --------
    >>> small = {"architectures": ["small_cnn"] * 2, "ensemble": {"epochs": 1, "warmup_epochs": 0}}
    >>> plan = oods.SetPlan(count=4, pool=12, window=(0, 9), class_share=1, **small)
    >>> made = oods.make_set(plan, bench.id_train, bench.id_val, folder / "near", work=folder, device="cpu")
    >>> len(made.record.files)
    4
    """
    check_free(folder)
    if (id_train.labels == UNLABELLED).any():
        raise DataError(f"set {id_train.name!r} has images without a class; an ensemble needs classes to learn")
    frame, seed = frame_of(id_train), plan.ensemble.seed
    seeds = [seed + number for number in range(len(plan.architectures))]
    members = train_ensemble(
        plan.architectures,
        id_train,
        None,
        plan.ensemble,
        seeds,
        preprocess=frame,
        folder=Path(work) / "ensemble",
        device=device,
        progress=progress,
    )
    semantic = EnsembleInformation(members)
    source = redrawn or id_val
    filled = fill_pool(plan, id_train, source, Place(frame, semantic, Path(work), device, progress))
    selected = _select(plan, filled.pool, read_pool(id_val, frame), semantic)
    recipe = {
        "method": plan.method,
        "plan": plan.model_dump(mode="json"),
        "id_train": _described(id_train),
        "id_val": _described(id_val),
        **({"redrawn": _described(source)} if plan.kind == "shifted" else {}),
        "frame": frame.model_dump(mode="json"),
        "ensemble": semantic.fingerprints,
        **filled.origin,
        "window": [selected.window.low, selected.window.high],
        "pool": {"images": len(filled.pool), "kept": selected.kept, "chosen": len(selected.pool)},
        "class seen by the ensemble": selected.class_seen,
        "dropped by class": selected.dropped,
        "classes with few images": _few(plan, selected, id_train),
        "histograms": selected.histograms(),
        "device": str(semantic.device.type),
        "versions": {**versions(), "pillow": pillow_version},
    }
    _save_makers(members, plan, id_train, Path(folder))
    record = write_generated(
        folder,
        np.ascontiguousarray(selected.pool.pixels.permute(0, 2, 3, 1).numpy()),
        selected.pool.labels.numpy(),
        recipe,
        kind=plan.kind,
        class_names=id_train.class_names,
        information=selected.information,
        rows=selected.pool.rows.numpy(),
    )
    return MadeSet(record, tuple(members))


def _save_makers(members: Sequence[Classifier], plan: SetPlan, id_train: ImageSet, folder: Path) -> None:
    """Keep the networks that chose the set beside it: who judges it must be shown not to be one of them."""
    for number, (member, architecture) in enumerate(zip(members, plan.architectures)):
        tensors = {key: value.detach().cpu().contiguous().clone() for key, value in member.model.state_dict().items()}
        path = folder / MAKERS / f"{number:02d}-{slug(architecture)}.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as temporary:
            save_file(tensors, temporary, metadata={"architecture": architecture, "name": member.name})


def _select(plan: SetPlan, pool: Pool, val: Pool, semantic: EnsembleInformation) -> Selected:
    if plan.kind == "shifted":
        return select_shifted(pool, val, semantic, plan.count, seed=plan.seed, keep_all=plan.keep_all)
    window = None if plan.window is None else Window(*plan.window)
    return select_near(pool, val, semantic, plan.count, seed=plan.seed, window=window, class_share=plan.class_share)


def _few(plan: SetPlan, selected: Selected, id_train: ImageSet) -> dict[str, int]:
    """Classes with fewer images than the plan wants of each; as many as an equal share of the set at most."""
    names = id_train.class_names
    wanted, counts = min(plan.least_per_class, plan.count // max(1, len(names))), selected.per_class()
    return {name: counts.get(label, 0) for label, name in enumerate(names) if counts.get(label, 0) < wanted}


def _described(images: ImageSet) -> dict[str, Any]:
    return {"name": images.name, "images": len(images), "fingerprint": images.fingerprint}


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
        recorded = theirs.recipe.get(role)
        if recorded is not None and images.fingerprint != recorded["fingerprint"]:
            known = f"{recorded['name']}, {recorded['images']} images"
            raise DataError(f"{Path(source) / RECIPE}: made from other images as {role} ({known}); give those")
    return difference(theirs, make_set(plan_of(source), id_train, id_val, folder, **options).record)


def difference(theirs: GeneratedRecord, ours: GeneratedRecord) -> str:
    """In what one set differs from another, as far as the recipes say."""
    known = {each.digest for each in theirs.files}
    other = sum(each.digest not in known for each in ours.files)
    if theirs.files == ours.files:
        return ""
    keys = [key for key in ours.recipe if ours.recipe[key] != theirs.recipe.get(key)]
    return f"{other} of {len(ours.files)} images differ; the recipes differ in {', '.join(keys) or 'nothing'}"
