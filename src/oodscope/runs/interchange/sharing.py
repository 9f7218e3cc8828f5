"""Evaluations in the formats in which others collect results.

**Hugging Face evaluation results** (hub documentation "eval-results", read in 2026-11): a YAML list for
``.eval_results/NAME.yaml`` of a model's repository. An entry has ``dataset`` (``id`` required, ``task_id``,
``revision``), ``value`` (required), ``date`` (ISO 8601, with the time), ``source`` (``url``, ``name``) and ``notes``.
The dataset must be one that is registered there.

**Every Eval Ever** (schema 0.2.1; instances ``instance_level_eval_0.2.1``): a JSON object for one model, a result per
detector, set and metric with its interval, and a JSON line per image. Written for language models: an image is a single
turn whose input is its name, whose reference is ``ID`` or ``OOD``, and whose score is the detector's.
"""

import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from oodscope.base.errors import DataError
from oodscope.base.files import write_text
from oodscope.metrics.catalog import METRICS
from oodscope.results.measurement import Measurement
from oodscope.runs.evaluation.run import Result

EVERY_EVAL_EVER = "0.2.1"
INSTANCE_LEVEL = "instance_level_eval_0.2.1"


def huggingface_entries(result: Result, dataset: str, *, metric: str = "auroc", url: str = "") -> list[dict[str, Any]]:
    """One entry per detector and set: the value in percent, its interval in the notes."""
    entries = []
    for row in _rows(result, metric):
        notes = f"{row.detector} ({row.tuning} parameters), {METRICS[metric].label} on {row.set} ({row.group})"
        if row.low is not None and row.high is not None and row.level is not None:
            notes += f", {100 * row.level:g} % interval {100 * row.low:.2f} to {100 * row.high:.2f}"
        task = f"{row.group}_{row.set}_{row.detector}_{metric}".replace(" ", "_")
        entry: dict[str, Any] = {
            "dataset": {"id": dataset, "task_id": task},
            "value": round(100 * row.value, 4),
            "date": result.record.created,
            "notes": f"{notes}; oodscope {result.record.oodscope_version}, run {result.record.id}",
        }
        entries.append(entry | ({"source": {"url": url, "name": "oodscope"}} if url else {}))
    return entries


def write_huggingface(result: Result, path: Path, dataset: str, *, metric: str = "auroc", url: str = "") -> None:
    """Write the YAML file; ``dataset`` is the id of the registered benchmark, such as ``owner/name``."""
    if dataset.count("/") != 1 or not all(dataset.split("/")):
        raise DataError(f"a dataset of the hub is called OWNER/NAME; it is {dataset!r}")
    write_text(path, yaml.safe_dump(huggingface_entries(result, dataset, metric=metric, url=url), sort_keys=False))


def every_eval_ever(result: Result, *, organization: str, metrics: tuple[str, ...] = ("auroc",)) -> dict[str, Any]:
    """The aggregate record, without the reference to its instances."""
    record, now = result.record, f"{time.time():.0f}"
    results = [_eee_result(result, row) for metric in metrics for row in _rows(result, metric)]
    return {
        "schema_version": EVERY_EVAL_EVER,
        "evaluation_id": f"{record.benchmark}/{record.model.replace('/', '_')}/{now}",
        "evaluation_timestamp": record.created,
        "retrieved_timestamp": now,
        "source_metadata": {
            "source_name": f"oodscope run {record.id}",
            "source_type": "evaluation_run",
            "source_organization_name": organization,
            "evaluator_relationship": "third_party",
        },
        "eval_library": {"name": "oodscope", "version": record.oodscope_version},
        "model_info": {"name": record.model, "id": record.model},
        "evaluation_results": results,
    }


def write_every_eval_ever(result: Result, path: Path, *, organization: str, instances: bool = True) -> list[Path]:
    """Write the record and, beside it, the line per image (``NAME_samples.jsonl``)."""
    content, files = every_eval_ever(result, organization=organization), [path]
    if instances:
        beside = path.with_name(f"{path.stem}_samples.jsonl")
        lines = [json.dumps(line) for line in _instances(result, content["evaluation_id"])]
        text = "\n".join(lines) + "\n"
        write_text(beside, text)
        content["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": beside.name,
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(text.encode()).hexdigest(),
            "total_rows": len(lines),
        }
        files.append(beside)
    write_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n")
    return files


def _rows(result: Result, metric: str) -> list[Measurement]:
    if metric not in METRICS:
        raise DataError(f"unknown metric {metric!r}; see: oodscope list metrics")
    rows = [row for row in result.measurements if row.metric == metric and row.detector]
    if not rows:
        raise DataError(f"run {result.record.id} has no {metric}")
    return rows


def _eee_result(result: Result, row: Measurement) -> dict[str, Any]:
    metric = METRICS[row.metric]
    details: dict[str, Any] = {"score": row.value}
    if row.low is not None and row.high is not None:
        interval = {"lower": row.low, "upper": row.high, "method": row.interval}
        details["uncertainty"] = {
            "confidence_interval": interval | ({} if row.level is None else {"confidence_level": row.level})
        }
    return {
        "evaluation_name": f"{row.protocol}/{row.group}/{row.set}/{row.detector}/{row.metric}",
        "source_data": {
            "dataset_name": f"{row.benchmark}: {row.set}",
            "source_type": "other",
            "additional_details": {"benchmark_version": row.benchmark_version, "group": row.group},
        },
        "evaluation_timestamp": result.record.created,
        "metric_config": {
            "evaluation_description": metric.description,
            "lower_is_better": not metric.higher_is_better,
            "score_type": "continuous",
            "min_score": 0.0,
            "max_score": 1.0,
        },
        "score_details": details,
    }


def _instances(result: Result, evaluation: str) -> Iterator[dict[str, Any]]:
    """A line per image and detector.

    The format asks for right or wrong, which a score without a threshold is not: the median of the ID test scores is
    the threshold here, and the line says so.
    """
    scores = result.scores
    judged = scores.frame[scores.frame["role"].isin(["id_test", "near", "far"]).to_numpy()]
    for detector in scores.detectors:
        middle = float(judged.loc[(judged["role"] == "id_test").to_numpy(), detector].median())
        for sample, name, role, score in zip(judged["sample_id"], judged["set"], judged["role"], judged[detector]):
            truth = "ID" if role == "id_test" else "OOD"
            said = "OOD" if score > middle else "ID"
            yield {
                "schema_version": INSTANCE_LEVEL,
                "evaluation_id": evaluation,
                "model_id": result.record.model,
                "evaluation_name": f"{name}/{detector}",
                "sample_id": f"{name}/{sample}",
                "interaction_type": "single_turn",
                "input": {"raw": f"{name}/{sample}", "reference": [truth]},
                "output": {"raw": [repr(float(score))]},
                "messages": None,
                "answer_attribution": [
                    {
                        "turn_idx": 0,
                        "source": "output.raw",
                        "extracted_value": said,
                        "extraction_method": "above the median of the ID test scores",
                        "is_terminal": True,
                    }
                ],
                "evaluation": {"score": float(score), "is_correct": said == truth},
                "metadata": {"role": str(role), "detector": detector},
            }
