"""From a run to the parts of an entry: everything that the run stored, and "not known" where it did not."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from oodscope.base.errors import OodscopeError
from oodscope.base.hashing import fingerprint
from oodscope.detectors.registry import DETECTORS
from oodscope.leaderboard.records.folder import table_lists
from oodscope.leaderboard.records.text import LINE, NOT_KNOWN, one_line
from oodscope.leaderboard.verify.about import About
from oodscope.metrics.catalog import KEEPS, SOURCES
from oodscope.protocols.registry import headline_metrics
from oodscope.results.measurement import Measurements
from oodscope.results.record import RunRecord
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.attack.run import SearchedPair

Part = dict[str, Any]


def describe_benchmark(record: RunRecord, scores: ScoreTable, about: About) -> Part:
    """Sets, lists and preprocessing."""
    lists = table_lists(scores)
    sets: dict[str, Part] = {}
    for name, known in record.sets.items():
        role, n, hashed = lists.get(name, (known.role, known.n, NOT_KNOWN))
        unread = f"{known.unreadable} unreadable images left out" if known.unreadable else "none left out on reading"
        read = NOT_KNOWN if known.unreadable is None else unread
        sets[name] = {
            "role": role,
            "n": n,
            "list_hash": hashed,
            "fingerprint": known.fingerprint,
            "filter": about.filters.get(name, read),
            "exposure": known.exposure,
        }
    preprocessing: Part = {"description": shortened(record.transform)}
    if (settings := record.preprocess) is not None:
        preprocessing |= {name: settings[name] for name in ("size", "resize", "mean", "std")}
        version = record.environment.get("pillow", NOT_KNOWN)
        preprocessing |= {
            "resize_filter": f"Pillow {settings['interpolation']}, antialiased",
            "decoder": f"Pillow {version}, converted to RGB or grey",
        }
    return {
        "name": record.benchmark,
        "version": record.benchmark_version,
        "sets": sets,
        "preprocessing": preprocessing,
    }


def describe_model(record: RunRecord, scores: ScoreTable, about: About) -> Part:
    """The network and what it has seen."""
    test = scores.frame[(scores.frame["role"] == "id_test").to_numpy()]
    right = (test["label"] == test["prediction"]).to_numpy()
    known = all(scores.classified(name) for name in scores.sets("id_test"))
    return {
        "name": record.model,
        "weights_hash": record.model_fingerprint or NOT_KNOWN,
        "architecture": record.architecture or NOT_KNOWN,
        "head_path": record.head_path or NOT_KNOWN,
        "id_accuracy": float(right.mean()) if known and len(test) else None,
        "trained_on": about.trained_on or record.trained_on or None,
        "pretrained_on": about.pretrained_on or record.pretrained_on or None,
        "recipe": scores.context.recipe or NOT_KNOWN,
        "seed": about.training_seed,
        "words": record.words,
    }


def describe_detector(record: RunRecord, scores: ScoreTable, detector: str, about: About) -> Part:
    """The detector, its parameters, how they were chosen and what it learned from."""
    known = scores.context.detectors[detector]
    learned = known.learned_from
    part: Part = {
        "id": detector,
        "name": known.name,
        "version": known.version,
        "score_form": about.score_form or _score_form(known.name, known.version),
        "params": known.params,
        "search": {
            "tuning": known.tuning,
            "grid_size": known.grid_size,
            "validation_hash": _validation_hash(record, known.tuning),
            "validation_auroc": known.validation_auroc,
        },
    }
    if learned is not None:
        part |= {"fit_split": ", ".join(learned) or "none", "fit_rows": max(learned.values(), default=0)}
    costs = ("extra_forwards", "extra_backwards", "fit_seconds", "microseconds_per_image", "peak_mib")
    return part | {name: getattr(known, name) for name in costs}


def describe_execution(record: RunRecord, scores: ScoreTable) -> Part:
    """Seeds, precision, libraries, machine."""
    environment = {name: str(value) for name, value in record.environment.items()}
    hardware = f"{environment.pop('processors', '?')} processors, {environment.pop('platform', NOT_KNOWN)}"
    options: dict[str, Any] = dict(scores.context.protocols)
    if scores.context.training_rows is not None:
        options["training_rows"] = scores.context.training_rows
    return {
        "run": record.id,
        "created": record.created,
        "seed": record.seed,
        "precision": record.precision,
        "device": record.device,
        "libraries": {"oodscope": record.oodscope_version, **environment},
        "hardware": hardware,
        "options": options,
        # what speaks against a search stands with the search
        "notes": [shortened(each) for each in record.notes if not each.startswith("unreliable:")],
    }


def describe_thresholds(measurements: Measurements, detector: str) -> Iterator[Part]:
    """Gamma, tie mass and realised false rejection of every threshold of the rejection protocol."""
    judged = next((row.protocol for row in measurements.filter(group="threshold")), "")
    rows = {
        (row.metric, row.set): row.value
        for row in measurements.filter(protocol=judged, detector=detector)
        if row.group in ("threshold", "input_shift")
    }
    tests = [row.set for row in measurements.filter(protocol=judged, metric="accuracy") if row.group == "id"]
    for source in SOURCES:
        for keep in KEEPS:
            place = f"id_{source.split('_')[0]}"
            if (f"threshold{keep}_{source}", place) in rows:
                yield {
                    "source": source,
                    "keep": keep,
                    "gamma": rows[f"threshold{keep}_{source}", place],
                    "tied": rows[f"tied{keep}_{source}", place],
                    "false_rejection": next((rows.get((f"frr{keep}_{source}", name)) for name in tests), None),
                }


def describe_search(pair: SearchedPair, attack: Mapping[str, Any]) -> Part:
    """One search of an attack, with quantiles of what it found; ``attack`` is what the run records of all of them."""
    settings, conditional = pair.settings, pair.variation in attack["conditional"]
    found: Any = np.quantile(pair.found, (0.05, 0.5, 0.95), axis=0).T if pair.found.size else ()
    sampler, energy = settings.get("sampler") or {}, settings.get("energy") or {}
    return {
        "variation": pair.variation,
        "budget": max(settings.get("budgets", [0])),
        "chains": settings["chains"],
        "sampler": sampler,
        "boundary": ", ".join(_boundaries(sampler)) or "the sampler's own",
        "energy": energy,
        "mu_sigma_source": _reference(attack.get("energy")) if energy else NOT_KNOWN,
        "state_0": "the source image unchanged" if conditional else "drawn from the generator's domain, by the seed",
        "generator_hash": str((settings.get("variation") or {}).get("weights", "")),
        "parameters": list(pair.parameters),
        "found": [[float(value) for value in row] for row in found],
        "found_hash": fingerprint("found", np.ascontiguousarray(pair.found)),
        "flags": [shortened(flag) for flag in pair.flags],
    }


def _boundaries(sampler: Mapping[str, Any]) -> list[str]:
    """Of a sampler, or of those members of a portfolio that have one; each named once."""
    members = sampler.get("members", [sampler])
    return list(dict.fromkeys(str(each["boundary"]) for each in members if "boundary" in each))


def _reference(energy: str | None) -> str:
    return "scores of id_val and of the source images" if energy == "canonical" else "scores of id_val"


def describe_claims(measurements: Measurements, detector: str, protocols: Collection[str]) -> Iterator[Part]:
    """The headline numbers of these protocols and their views, and the accuracies, in full precision."""
    for row in measurements:
        if row.protocol.partition(":")[0] not in protocols:
            continue
        headline = row.detector == detector and row.metric in headline_metrics(row.protocol)
        if headline or row.metric == "accuracy":
            names = ("protocol", "metric", "group", "set", "value")
            yield {name: getattr(row, name) for name in names}


def shortened(text: str) -> str:
    """One line of at most so many characters as a record takes."""
    line = one_line(text)
    return line if len(line) <= LINE else line[: LINE - 3] + "..."


def _score_form(name: str, version: int | None) -> str:
    """The first sentence of the class, with the version of its form."""
    try:
        words = (DETECTORS.get(name.partition("+")[0]).__doc__ or "").strip().split("\n\n")[0]
    except OodscopeError:
        return NOT_KNOWN
    return shortened(f"{name}, version {version or 1}: {words} Larger is more OOD.")


def _validation_hash(record: RunRecord, tuning: str) -> str:
    if tuning == "default":
        return "none"
    roles = ("id_val", "ood_val") if tuning == "ood_val" else ("id_val",)
    known = {each.role: each.fingerprint for each in record.sets.values() if each.role in roles}
    return fingerprint("validation", tuning, known) if set(known) == set(roles) else NOT_KNOWN
