"""Which rows of our own stand on the leaderboard beside the published ones?

    python benchmarks/board_rows.py [docs/results/data/training-cifar10.parquet ...] [--scores TABLES]

Reads the AUROC of every trained network (``training_table.py`` writes it) and writes the mean over seeds of every
detector on plain networks, and of every training with its own score and that of its published row, to the package's
``leaderboard/published/own/BENCHMARK.csv``; a file is called ``training-BENCHMARK``. Near sets and accuracy only: our
far sets are not the published ones. Networks are those of the best validation epoch; deviations are of the population,
as OpenOOD prints them, and stand there from three seeds on. A training that learnt from outliers names them, and is
tested on what they leave of the near sets; the board ranks it apart. Forms that are no method of their own (released
losses, first stages, another precision) have no row.

Detectors without three networks get the row of one, default parameters, from the scores that ``detectors_cifar.py``
left in TABLES: a single run, without a deviation. Without TABLES the single runs that are in the package stay.
"""

import argparse
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from detectors_cifar import accuracy, areas, path_of
from oodscope.detectors.registry import DETECTORS
from oodscope.leaderboard.published.own import own_folder
from oodscope.results.scoretable import ScoreTable
from oodscope.training.registry import create_recipe
from training_rows import RELEASED, TF32, Line, lines_of
from training_sets import HELD, LEARNT

ROOT = Path(__file__).parent.parent
DATA = ROOT / "docs" / "results" / "data"
NEAR = {"cifar10": {"cifar100", "tin"}, "cifar100": {"cifar10", "tin"}}
SEEDS = 3
COLUMNS = ("training", "detector", "seeds", "near", "near_sd", "accuracy", "accuracy_sd", "recipe", "outliers")
_ASIDE = {TF32, "CSI-first", "CSI-first-released", *RELEASED.values()} - {"CE"}


def scores_of(line: Line) -> set[str]:
    """The scores that a training has rows of: its published row's and its paper's; of plain networks all."""
    if line.method in _ASIDE:
        return set()
    if line.method == "CE":
        return set(DETECTORS)
    return {line.score, *create_recipe(line.recipe, **line.settings).detectors[:1]}


def words_of(line: Line, known: str) -> str:
    """How a network was trained, in words."""
    trained = "cross-entropy" if line.method == "CE" else line.method
    words = f"{trained}, {round(100 * line.share)} epochs"
    return words if line.after is None else f"{words} after {words_of(lines_of(known)[line.after], known)}"


def rows(frame: pd.DataFrame, known: str) -> pd.DataFrame:
    """A row for each training and each of its scores; a training with other near sets has none."""
    near = frame[(frame["kept"] == "best") & (frame["group"] == "near")]
    lines, found = lines_of(known), []
    for (method, detector), own in near.groupby(["method", "detector"]):
        line = lines.get(str(method))
        if line is None or detector not in scores_of(line):
            continue
        tested = NEAR[known] - {"tin"} | {HELD} if line.exposed else NEAR[known]
        by_seed = own.groupby("seed").agg(near=("auroc", "mean"), accuracy=("accuracy", "first"))
        if set(own["set"]) != tested or sorted(by_seed.index) != list(range(len(by_seed))):
            continue
        cells: dict[str, Any] = {"training": method, "detector": detector, "seeds": len(by_seed)}
        for name in ("near", "accuracy"):
            spread = f"{by_seed[name].std(ddof=0):.2f}" if len(by_seed) >= SEEDS else ""
            cells |= {name: f"{by_seed[name].mean():.2f}", f"{name}_sd": spread}
        found.append({**cells, "recipe": words_of(line, known), "outliers": LEARNT if line.exposed else ""})
    return pd.DataFrame(found, columns=list(COLUMNS))


def single_runs(tables: Path, known: str, done: Collection[str]) -> pd.DataFrame:
    """A row of one plain network for each detector that has none yet; other forms of a detector have none."""
    path = path_of(tables, known, "default")
    if not path.exists():
        return pd.DataFrame()
    scores = ScoreTable.load(path)
    share = f"{100 * accuracy(scores):.2f}"
    names = [name for name in scores.detectors if name not in done and name in DETECTORS]
    cells = [{"detector": name, "near": f"{areas(scores, name)['near']:.2f}", "accuracy": share} for name in names]
    words = words_of(lines_of(known)["CE"], known)
    return pd.DataFrame([{"training": "CE", "seeds": 1, "recipe": words, **each} for each in cells])


def kept_runs(path: Path, done: Collection[str]) -> pd.DataFrame:
    """The single runs of plain networks that the package has already, of detectors without another row."""
    if not path.exists():
        return pd.DataFrame()
    there = pd.read_csv(path, dtype=str, keep_default_na=False)
    return there[(there["training"] == "CE") & (there["seeds"] == "1") & ~there["detector"].isin(list(done))]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the rows of the files that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="*", default=sorted(DATA.glob("training-*.parquet")))
    parser.add_argument("--scores", type=Path, help="folder of detectors_cifar.py's tables")
    given = parser.parse_args(arguments)
    files = {path.stem.removeprefix("training-"): path for path in given.files}
    for known in NEAR:
        target = own_folder() / f"{known}.csv"
        table = rows(pd.read_parquet(files[known]), known) if known in files else pd.DataFrame(columns=list(COLUMNS))
        plain = set(table[table["training"] == "CE"]["detector"])
        single = kept_runs(target, plain) if given.scores is None else single_runs(given.scores, known, plain)
        table = pd.concat([table, single.reindex(columns=list(COLUMNS))], ignore_index=True).fillna("")
        if table.empty:
            continue
        table.to_csv(target, index=False, lineterminator="\n")
        print(f"{target.name}: {len(table)} rows, {int((table['outliers'] != '').sum())} of exposed networks")


if __name__ == "__main__":
    main()
