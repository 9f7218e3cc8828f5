"""What an attack leaves behind: a score table and the record of the run."""

import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oodscope.base.files import plain_name
from oodscope.base.hashing import fingerprint
from oodscope.data.imageset import ImageSet
from oodscope.deploy.function_scorer import TensorScorer
from oodscope.deploy.scorer import Scorer
from oodscope.detectors.base import parameters_json
from oodscope.generation.variations.base import Variation
from oodscope.metrics.metric import Tuning
from oodscope.results.record import RunRecord, SetRecord, command_line, environment
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.attack.plan import Plan
from oodscope.runs.attack.run import CLEAN, PROTOCOL, unit_of_search
from oodscope.runs.attack.trace import AttackTrace
from oodscope.runs.evaluation.extraction import network_record

Named = tuple[str, str]


def score_table(
    traces: Sequence[AttackTrace],
    sets: Mapping[str, ImageSet],
    variations: Mapping[str, Variation],
    plan: Plan,
    runs: int,
    rows: NDArray[np.int64],
    benchmark: Named | None,
    tuning: Tuning = "default",
) -> ScoreTable:
    """Every score of an attack: one column per detector, found images in units named by their variation.

    Parameters
    ----------
    sets : by role: ``id_val``, ``id_test`` and ``far``, the outliers.
    rows : of the outliers: the source image of each chain.
    """
    outliers = sets["far"]
    repeats = [(name, number) for name in variations for number in range(plan.search_seeds)]
    parts = [_rows(sets[role], role, np.arange(len(sets[role])), "all") for role in ("id_val", "id_test")]
    parts.append(_rows(outliers, "far", rows, CLEAN))
    parts += [
        _rows(outliers, "far", rows, unit_of_search(name, number), variations[name].conditional)
        for name, number in repeats
    ]
    columns = {
        trace.attacked.name: np.concatenate(
            [
                *(trace.attacked.id_val, trace.attacked.id_test, trace.clean),
                *(trace.scores(name, number) for name, number in repeats),
            ]
        )
        for trace in traces
    }
    name, content = benchmark or _own_name(sets)
    stamp = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
    context = {
        "detectors": {trace.attacked.name: _described(trace, tuning) for trace in traces},
        "run": f"{plain_name(outliers.name, 'the name of the OOD set')}-attack-{stamp}",
        "benchmark": name,
        "benchmark_version": content,
        "model": _model(traces[0].attacked.scorer)[0],
        "seed": plan.seed,
        "attack": {
            "outliers": outliers.name,
            "variations": list(variations),
            "conditional": [name for name, each in variations.items() if each.conditional],
            "runs": runs,
            "chains": plan.chains,
            "budget": plan.budget,
            "energy": plan.energy,
            "search": plan.describe(),
            "sources": plan.sources,
            "search_seeds": plan.search_seeds,
            "linf_budget": plan.linf_budget,
        },
    }
    return ScoreTable(pd.concat(parts, ignore_index=True).assign(**columns), context)


def record(
    scores: ScoreTable,
    traces: Sequence[AttackTrace],
    sets: Mapping[str, ImageSet],
    skipped: Mapping[str, str],
    notes: Sequence[str],
    seconds: float,
) -> RunRecord:
    """What was run, on what, with what."""
    scorer = traces[0].attacked.scorer
    model, weights, transform, head = _model(scorer)
    searched = sum(result.seconds for trace in traces for result in trace.results.values())
    return RunRecord(
        id=scores.context.run,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        oodscope_version=version("oodscope"),
        command=command_line(),
        benchmark=scores.context.benchmark,
        benchmark_version=scores.context.benchmark_version,
        sets={
            each.name: SetRecord(role=role, n=len(each), fingerprint=each.fingerprint) for role, each in sets.items()
        },
        model=model,
        model_fingerprint=weights,
        transform=transform,
        head=head,
        **(network_record(scorer.classifier) if isinstance(scorer, Scorer) else {}),
        seed=scores.context.seed or 0,
        precision="float32",
        device=str(scorer.device),
        environment=environment(),
        protocols=[PROTOCOL],
        skipped=dict(skipped),
        notes=list(notes),
        costs={"seconds": seconds, "search_seconds": searched},
    )


def _rows(images: ImageSet, role: str, rows: np.ndarray[Any, Any], unit: str, conditional: bool = True) -> pd.DataFrame:
    """Descriptions of scored images; what a generator drew has no source image."""
    unknown = np.full(len(rows), -1, dtype=np.int64)
    names = images.take(rows).sample_ids() if conditional else [f"chain {place:05d}" for place in range(len(rows))]
    return pd.DataFrame(
        {
            "sample_id": names,
            "set": images.name,
            "role": role,
            "label": unknown if role == "far" else images.labels[rows],
            "own_class": images.labels[rows] if conditional else unknown,
            "prediction": unknown,
            "unit": unit,
        }
    )


def _described(trace: AttackTrace, tuning: Tuning) -> dict[str, Any]:
    scorer = trace.attacked.scorer
    own = scorer.detector if isinstance(scorer, Scorer) else None
    return {
        "name": trace.attacked.name if own is None else own.name,
        "version": None if own is None else own.version,
        "params": {} if own is None else parameters_json(own),
        "tuning": tuning,
        "fit_seconds": None,
        "microseconds_per_image": trace.attacked.microseconds_per_image,
        "peak_mib": None,
    }


def _model(scorer: TensorScorer) -> tuple[str, str, str, str]:
    """Name, fingerprint, preprocessing and head of the network, where the scorer has one."""
    if not isinstance(scorer, Scorer):
        return type(scorer).__name__, "", "pixels in [0, 1]", ""
    network = scorer.classifier
    return network.name, network.fingerprint, str(network.transform), network.describe()


def _own_name(sets: Mapping[str, ImageSet]) -> Named:
    content = fingerprint({role: images.fingerprint for role, images in sets.items()})
    return f"{sets['id_test'].name} against {sets['far'].name}", content[:12]
