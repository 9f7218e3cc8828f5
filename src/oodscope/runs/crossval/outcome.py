"""What a cross-validation hands back, put together from its finished draws."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import pandas as pd

from oodscope.base.errors import DataError
from oodscope.base.hashing import fingerprint
from oodscope.detectors.base import parameters_json
from oodscope.results.record import RunRecord, SetRecord, command_line, environment
from oodscope.runs.crossval.details import FoldDetails
from oodscope.runs.crossval.draws import Pair, distinct_sets
from oodscope.runs.crossval.journal import Cells
from oodscope.runs.crossval.leaks import find_pair_exposure
from oodscope.runs.crossval.plan import CrossValidationPlan, FoldDetector
from oodscope.runs.crossval.run import PROTOCOL, CrossValidationTable
from oodscope.runs.crossval.trainer import Trainer
from oodscope.runs.crossval.units import Unit


def table_of(finished: Mapping[Unit, Cells], metadata: Mapping[str, Any]) -> CrossValidationTable:
    """One row per unit, cell and metric."""
    if not finished:
        raise DataError("no draw was finished, so there is nothing to show; allow more time and call again")
    rows = [
        {
            "kind": unit.draw.kind,
            "repetition": unit.draw.repetition,
            "fold": unit.draw.fold,
            "id_draw": unit.draw.id_draw,
            "ood_draw": unit.draw.ood_draw,
            "training_seed": unit.draw.training_seed,
            **{key: cell[key] for key in ("training", "pair", "detector", "n_id", "n_ood")},
            "metric": metric,
            "value": value,
        }
        for unit, cells in finished.items()
        for cell in cells
        for metric, value in cell["metrics"].items()
    ]
    return CrossValidationTable(pd.DataFrame(rows), metadata, _details(finished))


def _details(finished: Mapping[Unit, Cells]) -> FoldDetails:
    """Accuracies of networks, and AUROCs of classes, of every draw."""
    networks: dict[tuple[Any, ...], dict[str, Any]] = {}
    classes = []
    for unit, cells in finished.items():
        draw = {"kind": unit.draw.kind, "repetition": unit.draw.repetition, "fold": unit.draw.fold}
        for cell in cells:
            place = draw | {"training": cell["training"], "pair": cell["pair"]}
            networks[tuple(place.values())] = place | {"id_accuracy": cell["id_accuracy"], "n_id": cell["n_id"]}
            classes += [
                place | {"detector": cell["detector"], "ood_class": number, "auroc": value, "n_ood": size}
                for number, value, size in cell["classes"]
            ]
    return FoldDetails.of_rows(networks.values(), classes)


def record_of(
    plan: CrossValidationPlan, pairs: Sequence[Pair], trainer: Trainer, notes: list[str], costs: dict[str, Any]
) -> RunRecord:
    """What was run, on what, with what."""
    network = trainer.begins_from()
    roles: dict[str, list[str]] = {}
    for pair in pairs:
        for role, images in (("id", pair.id_set), ("ood", pair.ood_set)):
            roles.setdefault(images.name, []).append(role)
    sets = {images.name: images for images in distinct_sets(pairs)}
    held = [[name, images.fingerprint] for name, images in sets.items()]
    now = datetime.now(UTC)
    return RunRecord(
        id=f"crossval-{now:%Y%m%d-%H%M%S}-{fingerprint(plan.model_dump(mode='json'), held)[:6]}",
        created=now.isoformat(timespec="seconds"),
        oodscope_version=version("oodscope"),
        command=command_line(),
        benchmark=", ".join(pair.name for pair in pairs),
        benchmark_version=fingerprint(held)[:12],
        sets={
            name: SetRecord(role="+".join(dict.fromkeys(roles[name])), n=len(images), fingerprint=images.fingerprint)
            for name, images in sets.items()
        },
        model=str(trainer.describe()["model"]),
        model_fingerprint="" if network is None else network.fingerprint,
        transform=str(trainer.describe()["transform"]),
        head=str(trainer.describe()["recipe"]),
        seed=plan.seed,
        precision="float32" if network is None else network.precision,
        device=str(trainer.device),
        environment=environment(),
        protocols=[PROTOCOL],
        notes=notes,
        costs=costs,
    )


def metadata_of(
    plan: CrossValidationPlan,
    pairs: Sequence[Pair],
    trainer: Trainer,
    detectors: Sequence[FoldDetector],
    leaks: list[str],
    notes: list[str],
) -> dict[str, Any]:
    """What a reader of the table must know; ``leak`` and ``exposure`` are empty where nothing is known."""
    network = trainer.begins_from()
    return {
        "plan": plan.model_dump(mode="json"),
        "trainer": trainer.describe(),
        "detectors": {
            each.id: {"name": each.detector.name, "params": parameters_json(each.detector)} for each in detectors
        },
        "leak": leaks,
        "notes": notes,
        "exposure": {} if network is None else find_pair_exposure(network, pairs),
        "sets": {
            images.name: {"images": len(images), "classes": len(images.class_names)} for images in distinct_sets(pairs)
        },
    }
