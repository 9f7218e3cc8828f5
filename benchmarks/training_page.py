"""Write the page of trained methods: ours beside the published rows, and which findings of the paper hold.

    OODSCOPE_DATA=path/to/packs python benchmarks/training_page.py TABLE docs/results/training-cifar10.md
        [--id cifar100] [--scores FOLDER]

``TABLE`` holds the rows of ``training_table.py`` (its ``table.csv``, or the same as Parquet), ``FOLDER`` its scores;
the published rows are those of ``openood_boards`` in the folder of the packs. The spread of a published value is that
of its three seeds as a sample (printed population standard deviation times the root of 1.5), pooled over all
trainings of the board. A cell *differs* if it lies farther than noise allows (t test, Holm over the cells); it is
*equivalent* if both one-sided tests at 5 % place it within one point. A finding compares two trainings, for other
images of the same classes and networks (paired placements), for other OOD classes (placements by class), and for
other seeds of both recipes (variance between seeds pooled over our trainings, and between classes where there are
scores).
"""

import argparse
import os
from datetime import date
from math import sqrt
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import norm, t

from oodscope.base.files import write_text
from oodscope.metrics.comparison.multiplicity import holm

SEEDS, MARGIN, ALPHA = 3, 1.0, 0.05
PUBLISHED = {
    "CE": ("CrossEntropy", "MSP", "msp"),
    "LogitNorm": ("LogitNorm", "MSP", "msp"),
    "T2FNorm": ("T2FNorm", "T2FNorm", "msp"),
    "Cutout": ("Cutout", "MSP", "msp"),
    "RandAugment": ("RandAugment", "MSP", "msp"),
    "ConfBranch": ("ConfBranch", "ConfBranch", "conf_branch"),
    "ARPL": ("ARPL", "ARPL", "msp"),
    "RegMixup": ("RegMixup", "MSP", "msp"),
    "AugMix": ("AugMix", "MSP", "msp"),
    "RotPred": ("RotPred", "RotPred", "rotpred"),
}
"""Training and score of the row of the board, and our name of the score."""
ORDER = {
    "cifar10": dict.fromkeys(PUBLISHED, SEEDS),
    "cifar100": {"CE": SEEDS, **dict.fromkeys(("LogitNorm", "T2FNorm", "RotPred", "Cutout", "RegMixup"), 1)},
}
"""The networks that the table is to have."""

FINDINGS = {
    "cifar10": [
        ("training for OOD detection", "LogitNorm", 1),
        ("training for OOD detection", "T2FNorm", 1),
        ("training for OOD detection", "RotPred", 1),
        ("training for OOD detection", "ConfBranch", 1),
        ("training for OOD detection", "ARPL", -1),
        ("augmentation", "Cutout", 1),
        ("augmentation", "RandAugment", 1),
        ("augmentation", "AugMix", 1),
        ("augmentation", "RegMixup", -1),
    ],
    "cifar100": [
        ("training for OOD detection", "LogitNorm", -1),
        ("training for OOD detection", "T2FNorm", -1),
        ("training for OOD detection", "RotPred", -1),
        ("augmentation", "Cutout", -1),
        ("augmentation", "RegMixup", 1),
    ],
}
"""What the paper's table says of the near AUROC of a method against cross-entropy with MSP: above (1) or below (-1)."""


def board(folder: Path, known: str) -> pd.DataFrame:
    """The published rows: training, score, and mean and standard deviation of near AUROC and accuracy."""
    rows = pd.read_csv(folder / "openood_boards" / f"{known}.csv")
    rows = rows[(rows["Arch"] == "ResNet18") & (rows["Outlier_Data"] == "No")]
    for short, name in (("near", "Near-OOD_AUROC"), ("accuracy", "ID_Accuracy")):
        parts = rows[name].astype(str).str.extract(r"([\d.]+)(?: ± ([\d.]+))?")
        rows[short], rows[f"{short}_sd"] = parts[0].astype(float), parts[1].astype(float) * sqrt(1.5)
    return rows


def pooled(rows: pd.DataFrame, name: str) -> tuple[float, int]:
    """The standard deviation over seeds, pooled over trainings (each once), and its degrees of freedom."""
    spreads = rows.dropna(subset=[f"{name}_sd"]).groupby("Training")[f"{name}_sd"].first()
    return float(sqrt((spreads**2).mean())), (SEEDS - 1) * len(spreads)


def ours(table: pd.DataFrame, group: str = "near") -> pd.DataFrame:
    """AUROC of a method's published score and accuracy of each network, for the best validation epoch."""
    own = table["method"].map({name: score for name, (_, _, score) in PUBLISHED.items()}).fillna("msp")
    chosen = table[(table["kept"] == "best") & (table["detector"] == own) & (table["group"] == group)]
    return chosen.groupby(["method", "seed"]).agg(near=("auroc", "mean"), accuracy=("accuracy", "first")).reset_index()


def cells(networks: pd.DataFrame, rows: pd.DataFrame) -> list[dict[str, object]]:
    """A comparison for each method that has all seeds and a published row, and each number."""
    found: list[dict[str, object]] = []
    for method, (training, score, _) in PUBLISHED.items():
        own = networks[networks["method"] == method]
        theirs = rows[(rows["Training"] == training) & (rows["Postprocessor"] == score)]
        if len(own) < SEEDS or theirs.empty:
            continue
        for name in ("near", "accuracy"):
            spread, df = pooled(rows, name)
            error = spread * sqrt(2 / SEEDS)
            difference = float(own[name].mean() - theirs[name].iloc[0])
            found.append(
                {
                    "method": method,
                    "number": name,
                    "ours": own[name].mean(),
                    "sd": own[name].std(),
                    "published": theirs[name].iloc[0],
                    "difference": difference,
                    "p": 2 * float(t.sf(abs(difference) / error, df)),
                    "equivalent": abs(difference) + float(t.isf(ALPHA, df)) * error < MARGIN,
                    "wide": own[name].std() > 2 * spread,
                }
            )
    for each, p in zip(found, holm([float(str(each["p"])) for each in found])):
        each["differs"] = bool(p <= ALPHA)
    return found


def verdict(cell: dict[str, object]) -> str:
    """What the numbers of one cell say."""
    equal = "equivalent within 1.0"
    word = equal if cell["equivalent"] else "cannot say"
    if cell["differs"]:
        word = "differs" + (f", and is {equal}" if cell["equivalent"] else "")
    return word + (", own seeds vary more than twice as much as published" if cell["wide"] else "")


def judged(difference: float, error: float, df: float, sign: int) -> str:
    """Whether a difference has the sign that the paper gives it, beyond noise."""
    if not np.isfinite(error) or error <= 0:
        return "cannot say"
    p = 2 * (norm.sf(abs(difference) / error) if df == np.inf else t.sf(abs(difference) / error, df))
    if p > ALPHA:
        return "cannot say"
    return "holds" if np.sign(difference) == sign else "does not hold"


def placements(frame: pd.DataFrame, detector: str) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Of each near set: what every OOD image and every ID image adds to the AUROC, and the OOD classes."""
    part = frame[frame["kept"] == "best"]
    known = part.loc[part["role"] == "id_test", detector].to_numpy()
    found = {}
    for name, outliers in part[part["role"] == "near"].groupby("set"):
        scores = outliers[detector].to_numpy()

        def below(values: np.ndarray, others: np.ndarray) -> np.ndarray:
            order = np.sort(others)
            left, right = (np.searchsorted(order, values, side=side) for side in ("left", "right"))
            return (left + right) / (2 * len(order))

        found[str(name)] = (below(scores, known), 1 - below(known, scores), outliers["label"].to_numpy())
    return found


def paired(scores: Path, method: str) -> tuple[float, float, float, int] | None:
    """Difference from cross-entropy in points; its errors for other images and other classes; degrees of freedom."""
    means = []
    for name in (method, "CE"):
        files = sorted(scores.glob(f"{name}-[0-9].parquet"))
        if not files:
            return None
        each = [placements(pd.read_parquet(file), PUBLISHED[name][2]) for file in files]
        means.append({key: [np.mean([one[key][n] for one in each], axis=0) for n in range(3)] for key in each[0]})
    ood, classes, known, value, count = 0.0, 0.0, 0.0, 0.0, 0
    shared = []
    for key, (d10, d01, labels) in means[0].items():
        own, other = d10 - means[1][key][0], d01 - means[1][key][1]
        by_class = pd.Series(own).groupby(labels).mean()
        value += own.mean() / len(means[0])
        ood += own.var(ddof=1) / len(own) / len(means[0]) ** 2
        classes += by_class.var(ddof=1) / len(by_class) / len(means[0]) ** 2
        count += len(by_class) - 1
        shared.append(other)
    known = np.mean(shared, axis=0).var(ddof=1) / len(shared[0])
    return 100 * value, 100 * sqrt(ood + known), 100 * sqrt(classes + known), count


def findings(networks: pd.DataFrame, known: str, scores: Path | None) -> list[str]:
    """A row for each finding: the difference and what may be said of it for images, classes and seeds."""
    spreads = networks.groupby("method")["near"].agg(["var", "count"])
    spreads = spreads[spreads["count"] > 1]
    df = int((spreads["count"] - 1).sum())
    variance = float((spreads["var"] * (spreads["count"] - 1)).sum() / df) if df else float("nan")
    lines = []
    for kind, method, sign in FINDINGS[known]:
        own, plain = (networks[networks["method"] == name]["near"] for name in (method, "CE"))
        word = "above" if sign > 0 else "below"
        if own.empty or plain.empty:
            lines.append(f"| {kind} | {method} {word} CE | not yet run | | | |")
            continue
        difference = float(own.mean() - plain.mean())
        images = classes = "no scores given"
        between, freedom = 0.0, 0
        if scores and (found := paired(scores, method)):
            images = judged(found[0], found[1], np.inf, sign)
            classes = judged(found[0], found[2], found[3], sign)
            between, freedom = found[2] ** 2, found[3]
        seeds = "cannot say: one seed"
        if min(len(own), len(plain)) > 1 and df:
            luck = variance * (1 / len(own) + 1 / len(plain))
            total = between + luck
            effective = total**2 / (luck**2 / df + (between**2 / freedom if freedom else 0.0))
            seeds = judged(difference, sqrt(total), effective, sign)
        lines.append(f"| {kind} | {method} {word} CE | {difference:+.2f} | {images} | {classes} | {seeds} |")
    return lines


def spectrum(table: pd.DataFrame) -> list[str]:
    """What covariate shift does to each method, where the table has corrupted images."""
    if "fs-near" not in set(table["group"]):
        return ["Not yet run: the rows of this page were scored before corrupted images were part of the table."]
    lines = [
        "| method | networks | near | near, full spectrum | accuracy | accuracy, corrupted |",
        "|---|---|---|---|---|---|",
    ]
    shifted = table.groupby(["method", "seed"])["csid_accuracy"].first()
    plain, full = ours(table), ours(table, "fs-near")
    falls = []
    for method in plain["method"].unique():
        one, two = (each[each["method"] == method] for each in (plain, full))
        numbers = [one["near"].mean(), two["near"].mean(), one["accuracy"].mean(), shifted[method].mean()]
        falls.append(numbers[0] - numbers[1])
        lines.append(f"| {method} | {len(one)} | {' | '.join(f'{each:.2f}' for each in numbers)} |")
    many = sum(fall > 0 for fall in falls)
    lines += ["", f"Near AUROC is lower with corrupted ID images for {many} of {len(falls)} methods, by "]
    lines[-1] += f"{np.mean(falls):.2f} points on average; the population is these networks and images."
    return lines


def precisions(table: pd.DataFrame) -> str:
    """Cross-entropy in TF32 against bf16, three seeds each."""
    networks = ours(table)
    pair = [networks[networks["method"] == name] for name in ("CE-tf32", "CE-bf16")]
    if any(len(each) < SEEDS for each in pair):
        return (
            "- bf16 autocast with TF32 in place of float32. The paired run that compares both is not yet made: "
            "`training_table.py --methods CE-tf32,CE-bf16`."
        )
    words = []
    for name in ("near", "accuracy"):
        first, second = (each[name].to_numpy() for each in pair)
        spread = sqrt((first.var(ddof=1) + second.var(ddof=1)) / 2)
        difference, error = float(second.mean() - first.mean()), spread * sqrt(2 / SEEDS)
        p = 2 * float(t.sf(abs(difference) / error, 2 * (SEEDS - 1)))
        words.append(f"{name} {difference:+.2f} (p = {p:.2f})")
    return f"- bf16 autocast in place of float32. Against TF32, three seeds each: {', '.join(words)}."


def page(table: pd.DataFrame, rows: pd.DataFrame, known: str, scores: Path | None, measured: str) -> str:
    """The page as Markdown."""
    networks = ours(table)
    compared = cells(networks, rows)
    seeds = networks.groupby("method")["seed"].agg(list)
    missing = [f"{m} {s}" for m, n in ORDER[known].items() for s in range(n) if s not in seeds.get(m, [])]
    title = known.upper().replace("CIFAR", "CIFAR-")
    lines = [
        f"# Trained methods on {title}",
        "",
        "**Question.** Do networks trained here by OpenOOD's recipes have the published near-OOD AUROC and accuracy?",
        "",
        f"**Command.** `python benchmarks/training_table.py --id {known} --output FOLDER --cheap` on one NVIDIA H200",
        "(it goes on where it stopped), then `python benchmarks/training_page.py TABLE "
        f"docs/results/training-{known}.md`.",
        f"Rows of every detector and set: `data/training-{known}.parquet`.",
        "",
        f"**Date.** {measured}",
        "",
        "Percent; mean over the seeds 0, 1, 2, fixed in advance, and their standard deviation; epoch of the best",
        "validation accuracy. The population is seeds of one recipe, on these images and classes; the score is the one",
        "of the published row.",
        "",
        "| method | number | ours | sd | published | difference | verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    for cell in compared:
        shown = [f"{float(str(cell[key])):.2f}" for key in ("ours", "sd", "published", "difference")]
        lines.append(f"| {cell['method']} | {cell['number']} | {' | '.join(shown)} | {verdict(cell)} |")
    equal = sum(bool(cell["equivalent"]) for cell in compared)
    counts = f"{equal} of {len(compared)} cells are equivalent within 1.0 point, "
    lines += ["", f"{counts}{sum(bool(cell['differs']) for cell in compared)} differ."]
    lines += ["", "## Every network", "", "| method | seed | near AUROC | accuracy |", "|---|---|---|---|"]
    for each in networks.itertuples():
        lines.append(f"| {each.method} | {each.seed} | {each.near:.2f} | {each.accuracy:.2f} |")
    lines += [
        "",
        "## Findings of the paper on training and augmentation",
        "",
        "The paper's near AUROC of each method stands above or below that of cross-entropy with MSP. Whether ours",
        "does, for other images of the same classes and networks, for other OOD classes, and for other seeds of both",
        "recipes (each at 5 %, by itself):",
        "",
        "| kind | finding | ours, points | images | classes | seeds |",
        "|---|---|---|---|---|---|",
        *findings(networks, known, scores),
        "",
        "## Full spectrum",
        "",
        *spectrum(table),
        "",
        "## What differs from the paper",
        "",
        precisions(table),
        "- Tiny ImageNet is its validation set, resized by us. Far sets are not the published ones and not compared.",
        f"- Not yet run: {', '.join(missing) or 'nothing'}.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--id", choices=list(ORDER), default="cifar10")
    parser.add_argument("--scores", type=Path, help="folder of score tables, for images and classes")
    parser.add_argument("--measured", default=str(date.today()), help="date of the measurements")
    options = parser.parse_args()
    read = pd.read_parquet if options.table.suffix == ".parquet" else pd.read_csv
    rows = board(Path(os.environ["OODSCOPE_DATA"]), options.id)
    write_text(options.output, page(read(options.table), rows, options.id, options.scores, options.measured))


if __name__ == "__main__":
    main()
