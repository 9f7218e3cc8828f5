"""Which rows of our own stand on the leaderboard beside the published ones?

    python benchmarks/board_rows.py [docs/results/data/training-cifar10.parquet ...] [--scores TABLES]

Reads the AUROC of every trained network (``training_table.py`` writes it) and writes the mean and the deviation over
seeds of every detector on plain networks, and of every training with its own score, to the package's
``leaderboard/published/own/BENCHMARK.csv``; a file is called ``training-BENCHMARK``. Near sets and accuracy only: our
far sets are not the published ones.
Networks are those of the best validation epoch; deviations are of the population, as OpenOOD prints them. Detectors
without three networks get the row of one, default parameters, from the scores that ``detectors_cifar.py`` left in
TABLES: a single run, without a deviation.
"""

import argparse
from collections.abc import Collection
from pathlib import Path

import pandas as pd

from detectors_cifar import accuracy, areas, path_of
from oodscope.detectors.registry import DETECTORS
from oodscope.leaderboard.published.own import own_folder
from oodscope.results.scoretable import ScoreTable
from training_rows import lines_of

ROOT = Path(__file__).parent.parent
DATA = ROOT / "docs" / "results" / "data"
NEAR = {"cifar10": {"cifar100", "tin"}, "cifar100": {"cifar10", "tin"}}
SEEDS = 3
COLUMNS = ("training", "detector", "seeds", "near", "near_sd", "accuracy", "accuracy_sd")


def rows(frame: pd.DataFrame, known: str) -> pd.DataFrame:
    """A row for each training with all seeds and each of its detectors; a training with other near sets has none.

    A network trained by a method of its own is one row, with the score that its paper uses.
    """
    near = frame[(frame["kept"] == "best") & (frame["group"] == "near")]
    own_score = {name: line.score for name, line in lines_of(known).items()}
    found = []
    for (method, detector), own in near.groupby(["method", "detector"]):
        if set(own["set"]) != NEAR[known] or (method != "CE" and own_score.get(method) != detector):
            continue
        by_seed = own.groupby("seed").agg(near=("auroc", "mean"), accuracy=("accuracy", "first"))
        if sorted(by_seed.index) == list(range(SEEDS)):
            cells = {"training": method, "detector": detector, "seeds": SEEDS}
            for name in ("near", "accuracy"):
                cells |= {name: f"{by_seed[name].mean():.2f}", f"{name}_sd": f"{by_seed[name].std(ddof=0):.2f}"}
            found.append(cells)
    return pd.DataFrame(found)


def single_runs(tables: Path, known: str, done: Collection[str]) -> pd.DataFrame:
    """A row of one plain network for each detector that has none yet; other forms of a detector have none."""
    path = path_of(tables, known, "default")
    if not path.exists():
        return pd.DataFrame()
    scores = ScoreTable.load(path)
    share = f"{100 * accuracy(scores):.2f}"
    names = [name for name in scores.detectors if name not in done and name in DETECTORS]
    cells = [{"detector": name, "near": f"{areas(scores, name)['near']:.2f}", "accuracy": share} for name in names]
    return pd.DataFrame([{"training": "CE", "seeds": 1, **each} for each in cells])


def main() -> None:
    """Write the rows of the files that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="*", default=sorted(DATA.glob("training-*.parquet")))
    parser.add_argument("--scores", type=Path, help="folder of detectors_cifar.py's tables")
    given = parser.parse_args()
    files = {path.stem.removeprefix("training-"): path for path in given.files}
    for known in NEAR:
        table = rows(pd.read_parquet(files[known]), known) if known in files else pd.DataFrame(columns=COLUMNS)
        if given.scores is not None:
            plain = set(table[table["training"] == "CE"]["detector"])
            table = pd.concat([table, single_runs(given.scores, known, plain)], ignore_index=True)[list(COLUMNS)]
        if table.empty:
            continue
        target = own_folder() / f"{known}.csv"
        table.to_csv(target, index=False, lineterminator="\n")
        print(f"{target.relative_to(ROOT)}: {len(table)} rows")


if __name__ == "__main__":
    main()
