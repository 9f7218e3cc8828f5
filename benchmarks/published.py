"""The one source of published numbers for every page that compares with them.

OpenOOD v1.5's own table comes with the package; its public boards (July 2025) add what was reported since. Boards are
read from ``openood_boards`` in the folder of packs, rows of plain cross-entropy training only; where both have a row
they agree to the printed digit, which ``published`` checks.
"""

import csv
import os
from pathlib import Path

from oodscope.leaderboard.published.table import published_tables

PRINTED = {
    "OpenMax": "openmax", "MSP": "msp", "TempScale": "temp_scaling", "ODIN": "odin", "MDS": "mds",
    "MDSEns": "mds_ensemble", "RMDS": "rmds",
    "Gram": "gram", "EBO": "ebo", "OpenGAN": "opengan", "GradNorm": "gradnorm", "ReAct": "react",
    "MLS": "mls", "KLM": "klm", "VIM": "vim", "KNN": "knn", "DICE": "dice", "RankFeat": "rankfeat", "ASH": "ash",
    "SHE": "she", "GEN": "gen", "Relation": "relation", "SCALE": "scale", "NAC": "nac", "fDBD": "fdbd",
    "WeiPer+KLD": "weiper", "i-ODIN": "iodin", "AdaSCALE-A": "adascale_a", "AdaSCALE-L": "adascale_l", "NCI": "nci",
    "CombOOD": "combood",
}  # fmt: skip
"""Detectors by the names of the boards."""

COLUMNS = {"near": "Near-OOD_AUROC", "far": "Far-OOD_AUROC"}


def published(benchmark: str, column: str = "near", boards: Path | None = None) -> dict[str, float]:
    """AUROC in percent by our name of the detector, for networks trained by cross-entropy (ResNet-18 on CIFAR)."""
    (table,) = published_tables()
    place = table.columns.index(column)
    values: dict[str, float] = {}
    for method in table.methods:
        if method.track == "post-hoc" and method.detector and benchmark in method.results:
            number = method.results[benchmark][place]
            if number is not None:
                values[method.detector] = number[0]
    for name, value in _board(benchmark, column, boards).items():
        if name in values and abs(values[name] - value) > 0.005:
            raise SystemExit(f"{benchmark}: {name} is {values[name]} in the packaged table and {value} on the board")
        values[name] = value
    return values


def _board(benchmark: str, column: str, boards: Path | None) -> dict[str, float]:
    folder = boards or Path(os.environ.get("OODSCOPE_DATA", ".")) / "openood_boards"
    file = folder / f"{benchmark}.csv"
    if not file.is_file():
        return {}
    with file.open(encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["Training"] == "CrossEntropy"]
    return {
        PRINTED[row["Postprocessor"]]: float(row[COLUMNS[column]].partition("±")[0])
        for row in rows
        if row["Postprocessor"] in PRINTED
    }
