"""Does an attack find the same against a detector that says s, σ(s) or exp(s)? AUROC is the same for all three.

    python benchmarks/attack_forms.py --data docs/results/data/attack-forms.json [--chains 60] [--budget 200]
    python benchmarks/attack_forms.py --data docs/results/data/attack-forms.json \\
        --cells docs/results/data/evg-cells.jsonl --write docs/results/attack-forms.md

Benchmark glyphs, a small network trained here by the demo's recipe, four real detectors, outliers ``near_letters``
under affine and color. Scores are shifted and scaled by ID validation before σ and exp, so that float32 can hold them.
Two attacks: the default (portfolio, canonical scores) and the paper's (Metropolis-Hastings at T = 1, standardised).
What was measured is kept in --data and not measured again. The same on CIFAR-10 is the stage ``forms`` of
``evg_study.py``, whose cells the page shows beside it.
"""

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import oodscope as oods
from evg_cells import ENDS, read
from evg_cells import Found as Cell
from evg_samplers_page import forms_answer, forms_table
from oodscope.base.files import write_text
from oodscope.deploy.function_scorer import FunctionScorer, TensorScorer
from oodscope.models.zoo.zoo import create_model
from oodscope.runs.evaluation.scoring import fit_scorers

DETECTORS = ("msp", "ebo", "knn", "vim")
VARIATIONS = ("affine", "color")
FORMS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "s": lambda scores: scores,
    "σ(s)": torch.sigmoid,
    "exp(s)": torch.exp,
}
ATTACKS = {
    "default": {"sampler": "portfolio", "energy": "canonical"},
    "paper's": {"sampler": "paper", "energy": "standardised"},
}
BAR = 0.01
"""Points of AUROC, as a share, that a change of the score may make."""

OLD_SEARCHES = (
    "These searches were made before those by gradients, which the default attack has among others, had a gradient at "
    "the ends of a range in every torch: the default rows may be lower today."
)

Found = dict[tuple[str, str, str, str], float]
"""AUROC by attack, detector, variation and form."""


def formed(name: str, scorer: TensorScorer, id_val: oods.ImageSet) -> dict[str, TensorScorer]:
    """One detector in every form."""
    clean = np.asarray(scorer.score(id_val))
    mean, scale = float(clean.mean()), max(float(clean.std()), 1e-12)

    def of(change: Callable[[Tensor], Tensor]) -> TensorScorer:
        return FunctionScorer(lambda images: change((scorer.score_tensor(images).double() - mean) / scale))

    return {f"{name} {form}": of(change) for form, change in FORMS.items()}


def train_network(bench: oods.Benchmark, epochs: int) -> oods.Classifier:
    """The demo's network."""

    def small_cnn() -> nn.Module:
        return create_model("small_cnn", num_classes=len(bench.class_names))[0]

    shared = {"batch_size": 64, "weight_decay": 1e-3, "warmup_epochs": 1, "augment": {"pad": 0, "flip": False}}
    recipe = oods.create_recipe("cross_entropy", epochs=epochs, **shared)
    done = oods.train(small_cnn, recipe, bench.id_train, bench.transform, folder=Path(tempfile.mkdtemp()), device="cpu")
    return oods.Classifier(done.model, bench.transform, device="cpu", name="glyphs")


def measure(bench: oods.Benchmark, network: oods.Classifier, chains: int, budget: int) -> Found:
    """Attack every detector in every form, both ways."""
    scorers, found = fit_scorers(network, bench, DETECTORS), {}
    (outliers,) = (each for each in bench.near if each.name == "near_letters")
    for name, scorer in scorers.items():
        forms = formed(name, scorer, bench.id_val)
        for way, settings in ATTACKS.items():
            done = oods.attack(
                forms, bench.id_val, bench.id_test, outliers, VARIATIONS, chains=chains, budget=budget, **settings
            )  # fmt: skip
            for row in done.measurements.filter(protocol="attack", metric="auroc"):
                if row.group in VARIATIONS:
                    found[way, name, row.group, row.detector.removeprefix(f"{name} ")] = row.value
        print(
            f"{name}: { ({key: round(100 * value, 2) for key, value in found.items() if key[1] == name}) }", flush=True
        )
    return found


def ranges(found: Found, way: str) -> dict[tuple[str, str], float]:
    """What a change of the score changes, by detector and variation."""
    keys = dict.fromkeys((detector, variation) for one, detector, variation, _ in found if one == way)
    values = {key: [found[way, *key, form] for form in FORMS] for key in keys}
    return {key: max(each) - min(each) for key, each in values.items()}


def answer(found: Found) -> str:
    """Generated from the ranges."""
    ours, theirs = ranges(found, "default"), ranges(found, "paper's")
    below = sum(width < BAR for width in ours.values())
    word = "holds" if below == len(ours) else "does not hold"
    return (
        f"On glyphs less than 1 point under the default attack: {word}, {below} of {len(ours)} cases (four detectors "
        f"of one small network, two variations, one search seed), at most {100 * max(ours.values()):.2f} points; under "
        f"the paper's attack at most {100 * max(theirs.values()):.2f}."
    )


def page(kept: dict[str, Any], cells: Sequence[Cell]) -> str:
    """The page, every sentence from the numbers.

    Parameters
    ----------
    kept : what ``measured`` has made.
    cells : of ``evg_study.py``; those of the stage ``forms`` count.
    """
    found: Found = {tuple(key): value for key, value in kept["found"]}  # type: ignore[misc]
    lines = ["# The same detector in three forms", ""]
    lines += [
        "**Question.** AUROC does not change when a score s becomes σ(s) or exp(s). Does an attack find the same?"
    ]
    lines += ["", f"**Answer.** {answer(found)} {forms_answer(cells)}", ""]
    settings = f"--chains {kept['chains']} --budget {kept['budget']} --epochs {kept['epochs']}"
    lines += [
        f"**Command.** `python benchmarks/attack_forms.py {settings} --data DATA --cells CELLS --write "
        "docs/results/attack-forms.md` (DATA: `data/attack-forms.json`, CELLS: `data/evg-cells.jsonl`)",
        "",
        f"**Machine.** {kept['machine']}, {kept['seconds']:,.0f} s of processor time for glyphs. **Date.** "
        f"{kept['date']}.",
        "",
        "AUROC in percent. Searches of the three forms have the same random numbers, so what differs is what the "
        "search was told.",
        "",
        "## Glyphs",
        "",
        f"{kept['chains']} chains of {kept['budget']} evaluations, outliers near_letters; scores shifted and scaled by "
        "ID validation, in float64.",
        "",
        "| attack | detector | variation | s | σ(s) | exp(s) | range |",
        "| --- | --- | --- |" + " ---: |" * 4,
    ]
    for way in ATTACKS:
        for (detector, variation), width in ranges(found, way).items():
            shown = " | ".join(f"{100 * found[way, detector, variation, form]:.2f}" for form in FORMS)
            lines.append(f"| {way} | {detector} | {variation} | {shown} | {100 * width:.2f} |")
    if not kept.get(ENDS, False):
        lines += ["", f"{OLD_SEARCHES} Remove DATA and repeat the command to make them again."]
    return "\n".join([*lines, "", "## CIFAR-10, outliers SVHN", "", *forms_table(cells)]) + "\n"


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Everything that the page tells of glyphs."""
    began = time.process_time()
    fewer = {} if options.images_per_class is None else {"images_per_class": options.images_per_class}
    bench = oods.load_benchmark("glyphs", **fewer)
    found = measure(bench, train_network(bench, options.epochs), options.chains, options.budget)
    return {
        **{key: getattr(options, key) for key in ("chains", "budget", "epochs")},
        "machine": f"{platform.machine()} processor",
        "seconds": time.process_time() - began,
        "date": str(date.today()),
        "torch": torch.__version__,
        ENDS: True,
        "found": [[list(key), value] for key, value in found.items()],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="what was measured; made if it is not there")
    parser.add_argument("--cells", type=Path, help="cells of evg_study.py, for CIFAR-10")
    parser.add_argument("--write", type=Path, help="where the page goes; printed unless given")
    parser.add_argument("--chains", type=int, default=60)
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--images-per-class", type=int, default=None)
    options = parser.parse_args()
    if not options.data.exists():
        write_text(options.data, json.dumps(measured(options), indent=1) + "\n")
    cells = [] if options.cells is None else read(options.cells)
    text = page(json.loads(options.data.read_text(encoding="utf-8")), cells)
    print(text) if options.write is None else write_text(options.write, text)


if __name__ == "__main__":
    main()
