"""Do the detectors of 2024 to 2026 beat the best older ones on CIFAR ResNet-18, on the same activations?

    python benchmarks/newest_against_best.py FOLDER OUTPUT.json [--benchmarks cifar10 cifar100]
    python benchmarks/newest_against_best.py FOLDER OUTPUT.json --write docs/results/newest.md --machine "..."

FOLDER is what ``cifar_activations.py`` wrote. Every detector that needs logits, features and the
head only, under three tracks (default, searched on shuffled tiles of id_val, searched on Tiny ImageNet's validation
part); the best new one is compared with the best older one for three populations. A benchmark whose activations are
not whole is named as not yet run.
"""

import argparse
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import oodscope as oods
from oodscope.detectors.registry import DETECTORS, create_detector
from oodscope.runs.evaluation.run import Result
from published import published

NEWER = 2024
TRACKS = {"default": None, "id_only": "id_jigsaw", "ood_val": "ood_val"}
"""The sets that each track searches on."""
NEAR = {"cifar10": ("cifar100", "tin"), "cifar100": ("cifar10", "tin")}
BENCHMARKS = tuple(NEAR)


def year(name: str) -> int:
    """Of the paper of a detector, from its venue: "ICML 2022", or the number of a preprint."""
    venue = create_detector(name).paper.venue
    if preprint := re.search(r"arXiv (\d\d)\d\d\.", venue):
        return 2000 + int(preprint.group(1))
    stated = re.findall(r"20\d\d", venue)
    return int(stated[-1]) if stated else 0


def is_unverified(name: str) -> bool:
    """Whether the form of a detector is known from an abstract only."""
    return create_detector(name).unverified_form


def load(folder: Path, label: str) -> dict[str, np.ndarray]:
    """One set, its labels those of its own classes."""
    with np.load(folder / f"{label}.npz") as arrays:
        return {"logits": arrays["logits"], "features": arrays["features"], "labels": arrays["own"]}


def missing(folder: Path, name: str) -> list[str]:
    """Sets of a benchmark that are not extracted yet."""
    wanted = ("id_train", "id_val", "id_test", *NEAR[name], "svhn", "ood_val", "id_jigsaw", "head")
    return [label for label in wanted if not (folder / name / f"{label}.npz").is_file()]


def evaluated(folder: Path, name: str, track: str, detectors: list[str]) -> Result:
    """One benchmark under one track."""
    place, searched = folder / name, TRACKS[track]
    with np.load(place / "head.npz") as head:
        weight, bias = head["weight"], head["bias"]
    sets: dict[str, Any] = {role: load(place, role) for role in ("id_train", "id_val", "id_test")}
    return oods.evaluate_activations(
        **sets,
        near={label: load(place, label) for label in NEAR[name]},
        far={"svhn": load(place, "svhn")},
        ood_val=None if searched is None else load(place, searched),
        detectors=detectors,
        name=name,
        model="ResNet-18",
        head=(weight, bias),
        tune="default" if searched is None else "ood_val",
        intervals="none",
    )


def applicable() -> tuple[list[str], list[str]]:
    """Detectors that read logits, features and the head only; and the others, which need images."""
    made = {name: create_detector(name) for name in DETECTORS}
    needs = oods.Needs
    inside = needs.MAPS | needs.MEMBERS | needs.NEGATIVES | needs.OUTPUTS | needs.GRADIENTS
    plain = [name for name, each in made.items() if not each.probes and not each.needs & inside]
    return plain, [name for name in made if name not in plain]


def judge(folder: Path, name: str, tracks: list[str]) -> dict[str, Any]:
    """Near and far AUROC of every detector under these tracks, and what can be said of the best two."""
    plain, others = applicable()
    found: dict[str, Any] = {"about": json.loads((folder / name / "about.json").read_text()), "not_run": others}
    found["tracks"] = {}
    for track in tracks:
        result = evaluated(folder, name, track, plain)
        rows = result.measurements.filter(metric="auroc", set="mean")
        table: dict[str, dict[str, Any]] = {each: {} for each in result.scores.detectors}
        for row in rows:
            table[row.detector][row.group] = 100 * row.value
        for each, context in result.scores.context.detectors.items():
            table[each] |= {"params": dict(context.params), "passes": 1}
        found["tracks"][track] = table
        found[f"statements_{track}"] = statements(result)
        print(f"{name} {track}: {len(table)} detectors", flush=True)
    return found


def statements(result: Result) -> list[str]:
    """Each new detector of published form against the best older one, for other images and for other classes."""
    near = {row.detector: row.value for row in result.measurements.filter(metric="auroc", set="mean", group="near")}
    older = [name for name in near if year(name) < NEWER]
    newer = [name for name in near if year(name) >= NEWER and not is_unverified(name)]
    best_old = max(older, key=lambda each: near[each])
    best_new = max(newer, key=lambda each: near[each])
    rows = oods.compare(result, detectors=[best_new, best_old])
    lines = [str(row) for row in rows if row.group == "near" and row.set == "mean"]
    return [*lines, "For other networks of this recipe: cannot say; one network was evaluated."]


def page(found: dict[str, Any], machine: str) -> str:
    """The results page; every sentence is made from the numbers."""
    parts = [
        "# Newest against best, on CIFAR ResNet-18\n",
        "**Question.** Do detectors published since 2024 beat the best older ones on the same activations?\n",
        "**Command.** `python benchmarks/cifar_activations.py FOLDER`, then `python benchmarks/newest_against_best.py "
        "FOLDER newest.json` and `--write`\n",
        f"**Machine.** {machine}\n",
        f"**Date.** {datetime.now(UTC):%Y-%m-%d}\n",
        "Mean AUROC in percent over the near sets, and against SVHN. One forward pass per image for every row. "
        "`default`: parameters as published; `id_only`: searched on shuffled tiles of id_val; `ood_val`: searched on "
        "Tiny ImageNet's validation part. The three tracks are never ranked together.\n",
    ]
    return "\n".join(parts) + "".join(section(name, found.get(name)) for name in BENCHMARKS)


def section(name: str, found: dict[str, Any] | None) -> str:
    """One benchmark."""
    if found is None:
        return f"\n## {name}\n\nNot yet run: every row. `cifar_activations.py` goes on where it stopped.\n"
    sizes = ", ".join(f"{label} {each['n']:,}" for label, each in found["about"]["sizes"].items())
    lines = [
        f"\n## {name} (accuracy on id_test {100 * found['about']['accuracy']:.2f})\n",
        f"Population: one network; images: {sizes}.\n",
    ]
    for track in TRACKS:
        said = " ".join(found.get(f"statements_{track}", ["Not yet run: the same command goes on where it stopped."]))
        lines += [f"**{track}.** {said}\n"]
    verified = [each for each in found["tracks"]["default"] if not is_unverified(each)]
    unverified = [each for each in found["tracks"]["default"] if is_unverified(each)]
    lines += table(name, found, verified)
    lines += ["\nUnverified forms (equations from abstracts; no claim about the papers' methods):\n"]
    lines += table(name, found, unverified)
    lines += [f"\nNot run here, because they need images and the network: {', '.join(found['not_run'])}.\n"]
    return "\n".join(lines) + "\n"


def table(name: str, found: dict[str, Any], detectors: list[str]) -> list[str]:
    """Rows by the near value of the default track."""
    tracks, printed = found["tracks"], published(name)
    heads = ["detector", "year", "passes"] + [
        f"{group} {track}" for group in ("near", "far") for track in TRACKS if track in tracks
    ]
    lines = ["| " + " | ".join([*heads, "published near"]) + " |", "|" + "---|" * (len(heads) + 1)]
    for each in sorted(detectors, key=lambda detector: -tracks["default"][detector]["near"]):
        shown = [(group, tracks[track][each]) for group in ("near", "far") for track in TRACKS if track in tracks]
        values = [f"{row[group]:.2f}" for group, row in shown]
        cells = [each, str(year(each)), str(tracks["default"][each]["passes"]), *values]
        lines.append("| " + " | ".join([*cells, f"{printed[each]:.2f}" if each in printed else ""]) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--benchmarks", nargs="*", default=list(BENCHMARKS))
    parser.add_argument("--tracks", nargs="*", default=list(TRACKS))
    parser.add_argument("--write", type=Path)
    parser.add_argument("--machine", default="2 cores, CPU")
    options = parser.parse_args()
    if options.write is not None:
        options.write.write_text(page(json.loads(options.output.read_text()), options.machine))
        return
    found = json.loads(options.output.read_text()) if options.output.is_file() else {}
    for name in options.benchmarks:
        if lacking := missing(options.folder, name):
            print(f"{name}: not yet extracted: {', '.join(lacking)}")
            continue
        done = found.get(name, {}).get("tracks", {})
        for track in [each for each in options.tracks if each not in done]:
            new = judge(options.folder, name, [track])
            new["tracks"] |= found.get(name, {}).get("tracks", {})
            found[name] = {**found.get(name, {}), **new}
            options.output.write_text(json.dumps(found, indent=1, default=str))


if __name__ == "__main__":
    main()
