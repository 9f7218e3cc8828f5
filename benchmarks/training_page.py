"""Write the page of trained methods: ours beside the published rows, and which findings of the paper hold.

    OODSCOPE_DATA=path/to/packs python benchmarks/training_page.py TABLE docs/results/training-cifar10.md
        [--id cifar100] [--scores FOLDER] [--earlier TABLE]

``TABLE`` holds the rows of ``training_table.py`` (its ``table.csv``, or the same as Parquet), ``FOLDER`` its scores;
``--earlier`` adds networks that ``TABLE`` does not have. The published rows are those of ``openood_boards`` in the
folder of the packs. The spread of a published value is that of its three seeds as a sample (printed population standard
deviation times the root of 1.5), pooled over the trainings that are reproduced here; those of the rest of the board,
some of which carry defects in their losses, stand beside it as a check. A cell *differs* if it lies farther than noise
allows (t test, Holm over the cells); it is *equivalent* if both one-sided tests at 5 % place it within one point. How
findings are decided is said in ``training_findings.py``.
"""

import argparse
import os
from collections.abc import Sequence
from datetime import date
from functools import cache
from math import sqrt
from pathlib import Path

import pandas as pd
from scipy.stats import t

from oodscope.base.files import write_text
from oodscope.metrics.comparison.multiplicity import holm
from training_findings import ALPHA, FAILS, HOLDS, OPEN, against_plain, falls, pooled, read_networks
from training_rows import FINDINGS, RELEASED, SPECTRUM, TF32, THREE, Line, lines_of

SEEDS, MARGIN, BAR = len(THREE), 1.0, 0.8
NUMBERS = ("near", "accuracy")


def board(folder: Path, known: str) -> pd.DataFrame:
    """The published rows: training, score, and mean and standard deviation of near AUROC and accuracy."""
    rows = pd.read_csv(folder / "openood_boards" / f"{known}.csv")
    rows = rows[rows["Arch"] == "ResNet18"].copy()
    for short, name in (("near", "Near-OOD_AUROC"), ("accuracy", "ID_Accuracy")):
        parts = rows[name].astype(str).str.extract(r"([\d.]+)(?: ± ([\d.]+))?")
        rows[short], rows[f"{short}_sd"] = parts[0].astype(float), parts[1].astype(float) * sqrt(1.5)
    return rows


REPRODUCED = {line.published[0] for line in lines_of("cifar10").values() if line.compared and line.published}
"""The trainings whose published rows can be made again here."""


def spread_of(rows: pd.DataFrame, name: str, every: bool = False) -> tuple[float, int]:
    """The published standard deviation over seeds, pooled over trainings (each once), and its degrees of freedom.

    Parameters
    ----------
    every : pool over all trainings of the board that learn from no outliers, not only those reproduced here.
    """
    plain = rows[rows["Outlier_Data"] == "No"].dropna(subset=[f"{name}_sd"])
    chosen = plain if every else plain[plain["Training"].isin(REPRODUCED)]
    spreads = chosen.groupby("Training")[f"{name}_sd"].first()
    return float(sqrt((spreads**2).mean())), (SEEDS - 1) * len(spreads)


def published_row(rows: pd.DataFrame, line: Line) -> pd.Series | None:
    """The row of the board that a line is compared with."""
    if line.published is None:
        return None
    training, score = line.published
    found = rows[(rows["Training"] == training) & (rows["Postprocessor"] == score)]
    return None if found.empty else found.iloc[0]


def ours(table: pd.DataFrame, known: str, group: str = "near", score: str | None = None) -> pd.DataFrame:
    """AUROC of a method's published score and accuracy of each network, for the best validation epoch.

    ``score`` takes one score for all methods.
    """
    own = table["method"].map({name: line.score for name, line in lines_of(known).items()}).fillna("msp")
    own = own if score is None else score
    chosen = table[(table["kept"] == "best") & (table["detector"] == own) & (table["group"] == group)]
    return chosen.groupby(["method", "seed"]).agg(near=("auroc", "mean"), accuracy=("accuracy", "first")).reset_index()


def cells(networks: pd.DataFrame, rows: pd.DataFrame, known: str, every: bool = False) -> list[dict[str, object]]:
    """A comparison for each method that has all seeds and a published row, and each number; see ``spread_of``."""
    found: list[dict[str, object]] = []
    for method, line in lines_of(known).items():
        own, theirs = networks[networks["method"] == method], published_row(rows, line)
        if not line.compared or len(own) < SEEDS or theirs is None:
            continue
        for name in NUMBERS:
            spread, df = spread_of(rows, name, every)
            error = spread * sqrt(2 / SEEDS)
            difference = float(own[name].mean() - theirs[name])
            found.append(
                {
                    "method": method,
                    "number": name,
                    "ours": own[name].mean(),
                    "sd": own[name].std(),
                    "published": theirs[name],
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
    word = equal if cell["equivalent"] else OPEN
    if cell["differs"]:
        word = "differs" + (f", and is {equal}" if cell["equivalent"] else "")
    return word + (", own seeds vary more than twice as much as published" if cell["wide"] else "")


def compared_section(networks: pd.DataFrame, rows: pd.DataFrame, known: str) -> list[str]:
    """The cells as a table, and whether the bar is reached."""
    compared, check = cells(networks, rows, known), cells(networks, rows, known, every=True)
    lines = ["| method | number | ours | sd | published | difference | verdict |", "|---|---|---|---|---|---|---|"]
    for cell in compared:
        shown = [f"{float(str(cell[key])):.2f}" for key in ("ours", "sd", "published", "difference")]
        lines.append(f"| {cell['method']} | {cell['number']} | {' | '.join(shown)} | {verdict(cell)} |")
    lines.append("")
    wanted = [line.method for line in lines_of(known).values() if line.compared]
    for name in NUMBERS:
        part = [cell for cell in compared if cell["number"] == name]
        equal = [cell for cell in part if cell["equivalent"]]
        differ = [str(cell["method"]) for cell in part if cell["differs"]]
        if len(part) < len(wanted):
            bar = f"{len(wanted) - len(part)} of {len(wanted)} methods are not yet run with three seeds: bar open"
        else:
            reached = len(equal) >= BAR * len(part)
            bar = f"the bar of four fifths is {'reached' if reached else 'not reached'}"
        words = f"{len(equal)} of {len(part)} methods are equivalent within 1.0 point; {bar}"
        lines.append(f"- {name}: {words}; differ: {', '.join(differ) or 'none'}.")
        (spread, df), (wide, freedom) = spread_of(rows, name), spread_of(rows, name, every=True)
        others = sum(bool(cell["equivalent"]) for cell in check if cell["number"] == name)
        lines.append(
            f"  Published seeds vary by {spread:.2f} (sample sd, {df} degrees of freedom); pooled over every training "
            f"of the board by {wide:.2f} ({freedom}), with which {others} of {len(part)} would be equivalent."
        )
    return lines


def single_section(networks: pd.DataFrame, rows: pd.DataFrame, known: str, exposed: bool) -> list[str]:
    """The methods that get no verdict, beside what was published; those that learn from outliers apart."""
    lines = [
        "| method | networks | near | accuracy | published near | published accuracy |",
        "|---|---|---|---|---|---|",
    ]
    for method, line in lines_of(known).items():
        if line.compared or line.exposed != exposed or method == TF32:
            continue
        own, theirs = networks[networks["method"] == method], published_row(rows, line)
        numbers = [f"{own[name].mean():.2f}" if len(own) else "not yet run" for name in NUMBERS]
        numbers += ["–" if theirs is None or pd.isna(theirs[name]) else f"{theirs[name]:.2f}" for name in NUMBERS]
        lines.append(f"| {method} | {len(own)} | {' | '.join(numbers)} |")
    return lines


def finding_section(networks: pd.DataFrame, known: str, scores: Path | None) -> list[str]:
    """A row for each finding, and how many hold for other seeds."""

    @cache
    def read(method: str) -> list[object]:
        return read_networks(scores, method, lines_of(known)[method].score) if scores else []

    lines, words = ["| kind | finding | ours, points | images | classes | seeds |", "|---|---|---|---|---|---|"], []
    for kind, method, sign in FINDINGS[known]:
        finding = f"{method} {'above' if sign > 0 else 'below'} CE"
        row = against_plain(networks, method, sign, read)
        lines.append(f"| {kind} | {finding} | {' | '.join(row or ('not yet run', '', '', ''))} |")
        words.append((finding, row[-1] if row else "not yet run"))
    return [*lines, "", counted(words)]


def released_section(table: pd.DataFrame, known: str, scores: Path | None) -> list[str]:
    """The correct loss of a method beside the released one, by the score of the method."""
    lines = [
        "## A correct loss beside the released one",
        "",
        "The published rows of these methods were made with losses that are not those of their papers. Near AUROC by",
        "the method's own score; the difference is correct less released, and whether correct stands above, for other",
        "images, OOD classes and seeds as below. The released loss of VOS trains cross-entropy alone.",
        "",
        "| method | networks of each | correct | released | difference | images | classes | seeds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for method, other in RELEASED.items():
        score = lines_of(known)[method].score
        networks = ours(table, known, score=score)
        pair = [networks[networks["method"] == name]["near"] for name in (method, other)]

        @cache
        def read(name: str, score: str = score) -> list[object]:
            return read_networks(scores, name, score) if scores else []

        row = against_plain(networks, method, 1, read, other)
        numbers = [f"{each.mean():.2f}" if len(each) else "not yet run" for each in pair]
        counts = f"{len(pair[0])}, {len(pair[1])}"
        lines.append(f"| {method} | {counts} | {' | '.join([*numbers, *(row or ('', '', '', ''))])} |")
    return [*lines, ""]


def scored_lines(table: pd.DataFrame) -> list[str]:
    """Methods of which only some detectors were scored, or kept."""
    best = table[table["kept"] == "best"]
    found = best.groupby("method")["detector"].agg(lambda names: sorted(set(names)))
    most = max(map(len, found), default=0)
    return [
        f"- Of {method} there are scores of {', '.join(names)} only."
        for method, names in found.items()
        if len(names) < most / 2
    ]


def start_lines(table: pd.DataFrame) -> list[str]:
    """Which networks went on from weights that were given, in place of a network of cross-entropy of this table."""
    if "start" not in table:
        return []
    given = table[table["start"].fillna("") != ""].drop_duplicates(["method", "seed"])
    named = given["method"] + " " + given["seed"].astype(str)
    return [
        f"- {', '.join(names)} went on from `{start}`, a network of cross-entropy of the same recipe that was trained "
        "before; their seeds differ in the fine-tuning alone."
        for start, names in named.groupby(given["start"])
    ]


def counted(words: Sequence[tuple[str, str]]) -> str:
    """How many findings hold, do not, or cannot be said, for other seeds."""
    groups = {
        "hold": [name for name, word in words if word == HOLDS],
        "do not hold": [name for name, word in words if word == FAILS],
        "cannot be said": [name for name, word in words if word.startswith(OPEN)],
        "are not yet run": [name for name, word in words if word == "not yet run"],
    }
    parts = [f"{len(names)} {word} ({', '.join(names)})" for word, names in groups.items() if names]
    return f"Of {len(words)} findings, for other seeds of both recipes: {'; '.join(parts)}."


def spectrum_section(table: pd.DataFrame, known: str, scores: Path | None) -> list[str]:
    """What covariate shift does to each method, and which findings on it hold."""
    if "fs-near" not in set(table["group"]):
        before = ": the rows of this page were scored before corrupted images were part of the table"
        return [f"Not yet run{'' if table.empty else before}."]

    @cache
    def read(method: str, spectrum: bool = True) -> list[object]:
        return read_networks(scores, method, lines_of(known)[method].score, spectrum) if scores else []

    full = ours(table, known, "fs-near")
    both = ours(table, known).merge(full[["method", "seed", "near"]].rename(columns={"near": "full"}))
    shifted = table.groupby(["method", "seed"])["csid_accuracy"].first()
    heads = (
        "| method | networks | near | near, full spectrum | accuracy | accuracy, corrupted | lower: images | classes "
    )
    lines, words = [f"{heads}| seeds |", "|---|---|---|---|---|---|---|---|---|"], []
    for method in [name for name in lines_of(known) if name in set(both["method"])]:
        own = both[both["method"] == method]
        accuracies = (own["accuracy"].mean(), shifted[method][own["seed"]].mean())
        shown = " | ".join(f"{each:.2f}" for each in (own["near"].mean(), own["full"].mean(), *accuracies))
        row = falls(both, method, read)
        lines.append(f"| {method} | {len(own)} | {shown} | {' | '.join(row[1:])} |")
        words.append((f"{method} lower under full spectrum", row[-1]))
    lines += [
        "",
        "The paper's full-spectrum rows are of ImageNet-1K: every near AUROC is lower, and augmentations stand",
    ]
    lines += ["above cross-entropy. Whether that direction shows here:", ""]
    lines += ["| finding, full spectrum | ours, points | images | classes | seeds |", "|---|---|---|---|---|"]
    for method, sign in SPECTRUM:
        if method not in lines_of(known):
            continue
        finding, row = f"{method} above CE", against_plain(full, method, sign, read)
        lines.append(f"| {finding} | {' | '.join(row or ('not yet run', '', '', ''))} |")
        words.append((finding, row[-1] if row else "not yet run"))
    without = sorted(
        set(map(tuple, ours(table, known)[["method", "seed"]].to_numpy())) - set(zip(both.method, both.seed))
    )
    lines += ["", counted(words)]
    if without:
        lines.append(f"Not yet scored with corrupted images: {', '.join(f'{m} {s}' for m, s in without)}.")
    return lines


def precisions(networks: pd.DataFrame) -> str:
    """Cross-entropy in TF32 against bf16, three seeds each: whether the two are equal within seeds."""
    pair = [networks[networks["method"] == name] for name in (TF32, "CE")]
    if any(len(each) < SEEDS for each in pair):
        return (
            "- bf16 autocast with TF32 in place of float32. The paired run that compares both is not yet made: "
            f"`training_table.py --methods CE,{TF32}`."
        )
    words, differences, chances, bounds = [], [], [], []
    for name in NUMBERS:
        variance, freedom = pooled(networks, name)
        error = sqrt(variance * 2 / SEEDS)
        differences.append(float(pair[1][name].mean() - pair[0][name].mean()))
        chances.append(2 * float(t.sf(abs(differences[-1]) / error, freedom)) if error else float(differences[-1] == 0))
        bounds.append(abs(differences[-1]) + float(t.isf(ALPHA, freedom)) * error)
    for name, difference, p, bound in zip(NUMBERS, differences, holm(chances), bounds):
        word = "differs" if p <= ALPHA else "equal within seeds" if bound < MARGIN else OPEN
        words.append(f"{name} {difference:+.2f} (p = {p:.2f}): {word}")
    return f"- bf16 autocast in place of float32. Against TF32, three seeds each: {'; '.join(words)}."


def answer(networks: pd.DataFrame, rows: pd.DataFrame, known: str) -> str:
    """One line for the top of the page."""
    if networks.empty:
        return "no network of this table is trained yet; every row is named below."
    wanted = sum(line.compared for line in lines_of(known).values())
    parts = []
    for name in NUMBERS:
        own = [cell for cell in cells(networks, rows, known) if cell["number"] == name]
        equal, differ = (sum(bool(cell[key]) for cell in own) for key in ("equivalent", "differs"))
        parts.append(
            f"{name}: {equal} of {len(own)} methods with three seeds are equivalent within 1.0 point, {differ} differ"
        )
    return f"{'; '.join(parts)}; {wanted} methods are to be compared."


def opening(known: str, measured: str, answered: str, begun: bool) -> list[str]:
    """Question, answer, command and date; ``begun`` says whether any network is there."""
    title = known.upper().replace("CIFAR", "CIFAR-")
    kept = f" --earlier docs/results/data/training-{known}.parquet" if begun else ""
    return [
        f"# Trained methods on {title}",
        "",
        "**Question.** Do networks trained here by OpenOOD's recipes have the published near-OOD AUROC and accuracy?",
        "",
        f"**Answer.** {answered}",
        "",
        f"**Command.** `OODSCOPE_DATA=path/to/packs python benchmarks/training_table.py --id {known} --output FOLDER",
        f"--minutes 9.5{kept}` on one NVIDIA H200,",
        "again and again (it goes on where it stopped), then",
        f"`python benchmarks/training_page.py FOLDER/{known}/table.csv docs/results/training-{known}.md --id {known}",
        f"--scores FOLDER/{known}/scores{kept}`.",
        *([f"Rows of every detector and set: `data/training-{known}.parquet`."] if begun else []),
        "",
        f"**Date.** {measured if begun else 'nothing is measured yet'}",
        "",
        "Percent; mean over the seeds 0, 1, 2, fixed in advance, and their standard deviation; epoch of the best",
        "validation accuracy. The population is seeds of one recipe, on these images and classes; the score is the one",
        "of the published row.",
        "",
    ]


def other_methods(networks: pd.DataFrame, rows: pd.DataFrame, known: str) -> list[str]:
    """The sections of methods without a verdict."""
    few = [line for line in lines_of(known).values() if not line.compared and line.method != TF32]
    lines = [
        "## Methods with one seed",
        "",
        "One seed says nothing of a method: no verdict.",
        *(["PixMix mixes with fractals drawn here, not with the authors' set."] if known == "cifar10" else []),
        "",
        *single_section(networks, rows, known, exposed=False),
        "",
    ]
    if any(line.exposed for line in few):
        lines += [
            "Networks that learnt from outliers, apart from all others. The outliers are half of the classes of the",
            "Tiny ImageNet test set, which is tested on the other half (`tin_held_100`); the published networks learnt",
            "from TIN-597, which is not here.",
            "",
            *single_section(networks, rows, known, exposed=True),
            "",
        ]
    return lines


def page(table: pd.DataFrame, rows: pd.DataFrame, known: str, scores: Path | None, measured: str) -> str:
    """The page as Markdown."""
    networks = ours(table, known)
    seeds = networks.groupby("method")["seed"].agg(list)
    missing = [f"{m} {s}" for m, line in lines_of(known).items() for s in line.seeds if s not in seeds.get(m, [])]
    every = [f"| {one.method} | {one.seed} | {one.near:.2f} | {one.accuracy:.2f} |" for one in networks.itertuples()]
    lines = [
        *opening(known, measured, answer(networks, rows, known), not networks.empty),
        *compared_section(networks, rows, known),
        "",
        *other_methods(networks, rows, known),
        *(released_section(table, known, scores) if known == "cifar10" else []),
        "## Every network",
        "",
        "| method | seed | near AUROC | accuracy |",
        "|---|---|---|---|",
        *every,
        "",
        "## Findings of the paper on training and augmentation",
        "",
        "The paper's near AUROC of each method stands above or below that of cross-entropy with MSP. Whether ours",
        "does, for other images of the same classes and networks, for other OOD classes, and for other seeds of both",
        "recipes (each at 5 %, by itself):",
        "",
        *finding_section(networks, known, scores),
        "",
        "## Full spectrum",
        "",
        "Corrupted copies of the ID test images (each under one of the fifteen corruptions of CIFAR-C at one of five",
        "severities, drawn here) count as ID.",
        "",
        *spectrum_section(table, known, scores),
        "",
        "## What differs from the paper",
        "",
        *([precisions(networks)] if TF32 in lines_of(known) else []),
        "- Tiny ImageNet is its validation set, resized by us. Far sets are not the published ones and not compared.",
        *start_lines(table),
        *scored_lines(table),
        f"- Not yet run: {', '.join(missing) or 'nothing'}.",
    ]
    return "\n".join(lines) + "\n"


def read_tables(path: Path, earlier: Path | None) -> pd.DataFrame:
    """The rows of a table, and those of networks that only an earlier one has."""
    tables = [
        pd.read_parquet(each) if each.suffix == ".parquet" else pd.read_csv(each) for each in (path, earlier) if each
    ]
    keys = [set(zip(each["method"], each["seed"])) for each in tables]
    rest = [pair not in keys[0] for pair in zip(tables[-1]["method"], tables[-1]["seed"])]
    return tables[0] if earlier is None else pd.concat([tables[0], tables[1][rest]], ignore_index=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--id", choices=list(FINDINGS), default="cifar10")
    parser.add_argument("--scores", type=Path, help="folder of score tables, for images and classes")
    parser.add_argument("--earlier", type=Path, help="table of networks that were made before")
    parser.add_argument("--measured", default=str(date.today()), help="date of the measurements")
    options = parser.parse_args(arguments)
    rows = board(Path(os.environ["OODSCOPE_DATA"]), options.id)
    table = read_tables(options.table, options.earlier)
    write_text(options.output, page(table, rows, options.id, options.scores, options.measured))


if __name__ == "__main__":
    main()
