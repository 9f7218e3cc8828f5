"""Which rows of our own stand on the leaderboard beside the published ones?

    python benchmarks/board_rows.py [docs/results/data/training-cifar10.parquet]

Reads the AUROC of every trained network (``training_table.py`` writes it) and writes the mean and the deviation over
seeds of every training and detector, networks of the best validation epoch, to the package's
``leaderboard/published/own/cifar10.csv``. Near sets and accuracy only: our far sets are not the published ones.
Deviations are those of the population, as OpenOOD prints them.
"""

import argparse
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "src" / "oodscope" / "leaderboard" / "published" / "own" / "cifar10.csv"
NEAR = {"cifar100", "tin"}
SEEDS = 3


def rows(frame: pd.DataFrame) -> pd.DataFrame:
    """A row for each training with all seeds and each of its detectors."""
    near = frame[(frame["kept"] == "best") & (frame["group"] == "near")]
    if set(near["set"]) != NEAR:
        raise SystemExit(f"near sets are {sorted(set(near['set']))}, not {sorted(NEAR)}")
    by_seed = near.groupby(["method", "detector", "seed"], as_index=False).agg(
        near=("auroc", "mean"), accuracy=("accuracy", "first")
    )
    found = []
    for (method, detector), own in by_seed.groupby(["method", "detector"]):
        if sorted(own["seed"]) == list(range(SEEDS)):
            cells = {"training": method, "detector": detector, "seeds": SEEDS}
            for name in ("near", "accuracy"):
                cells |= {name: f"{own[name].mean():.2f}", f"{name}_sd": f"{own[name].std(ddof=0):.2f}"}
            found.append(cells)
    return pd.DataFrame(found)


def main() -> None:
    """Write the rows of the file that is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "file", type=Path, nargs="?", default=ROOT / "docs" / "results" / "data" / "training-cifar10.parquet"
    )
    table = rows(pd.read_parquet(parser.parse_args().file))
    TARGET.parent.mkdir(exist_ok=True)
    table.to_csv(TARGET, index=False, lineterminator="\n")
    print(f"{TARGET.relative_to(ROOT)}: {len(table)} rows")


if __name__ == "__main__":
    main()
