"""OpenOOD's six public boards: every row as an entry of tier ``reported``, beside the paper's own table."""

import csv
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from oodscope.base.catalog import catalog
from oodscope.leaderboard.published.table import PublishedMethod, PublishedTable, published_tables
from oodscope.leaderboard.records.entry import Entry, Track
from oodscope.leaderboard.records.records import BenchmarkUse, DetectorUse, ModelUse, Publication, Reported, Search
from oodscope.leaderboard.records.standing import Standing
from oodscope.metrics.metric import MEAN, Tuning

BOARDS = {
    "cifar10": ("cifar10", "standard"),
    "cifar100": ("cifar100", "standard"),
    "imagenet200_ood": ("imagenet200", "standard"),
    "imagenet1k_ood": ("imagenet1k", "standard"),
    "imagenet200_fsood": ("imagenet200", "full_spectrum"),
    "imagenet1k_fsood": ("imagenet1k", "full_spectrum"),
}
"""File, benchmark and protocol of each board."""

PREFIX = "openood-boards"
_VERSION, _DATE = "openood-1.5", "2025-07-19T00:00:00+00:00"
_CITED, _LINK = "OpenOOD's public board of 2025-07-19", "https://zjysteven.github.io/OpenOOD/"
_COLUMNS = {"near": "Near-OOD_AUROC", "far": "Far-OOD_AUROC", "accuracy": "ID_Accuracy"}
_DETECTORS = {
    "GEN": "gen",
    "Relation": "relation",
    "SCALE": "scale",
    "NAC": "nac",
    "fDBD": "fdbd",
    "i-ODIN": "iodin",
    "AdaSCALE-A": "adascale_a",
    "AdaSCALE-L": "adascale_l",
    "NCI": "nci",
    "NNGuide": "nnguide",
    "MDS++": "mahalanobis_pp",
    "RMDS++": "rmds_pp",
    "WeiPer+KLD": "weiper",
}
"""Post-processors of the boards that the paper's table does not have, by their names in the registry."""

Row = Mapping[str, str]


@cache
def board_rows() -> tuple[tuple[str, Row], ...]:
    """Every row of every board with the name of its file."""
    folder = files(__package__) / "openood_boards"
    return tuple(
        (name, row)
        for name in BOARDS
        for row in csv.DictReader((folder / f"{name}.csv").read_text(encoding="utf-8").splitlines())
    )


@cache
def board_standings() -> tuple[Standing, ...]:
    """A standing of tier ``reported`` for each row that the paper's own table does not state already.

    A row that both state with different numbers is shown and flagged as disputed.
    """
    (table,) = [each for each in published_tables() if each.name == "openood-v1.5"]
    found = (_standing(table, name, number, row) for number, (name, row) in enumerate(board_rows()))
    return tuple(standing for standing in found if standing is not None)


def stated_in_paper(table: PublishedTable, board: str, row: Row) -> list[float] | None:
    """The near AUROC (and its spread) that the paper prints for a row of a board; None where it has no such row."""
    benchmark, protocol = BOARDS[board]
    method = _printed(table, row)
    where = table.benchmarks[benchmark]
    same_network = where.architecture.replace("-", "") == row["Arch"]
    if protocol != table.protocol or method is None or not same_network or benchmark not in method.results:
        return None
    return method.results[benchmark][table.columns.index("near")]


def _standing(table: PublishedTable, board: str, number: int, row: Row) -> Standing | None:
    printed = stated_in_paper(table, board, row)
    near = _digits(row["Near-OOD_AUROC"])
    if printed is not None and near and abs(printed[0] - float(near[0])) < 0.005:
        return None
    flags: tuple[str, ...] = ()
    if printed is not None:
        flags = (f"disputed: the paper prints {printed[0]:.2f} near AUROC for this row, the board {near[0] or 'none'}",)
    entry = _entry(table, board, number, row)
    return Standing(entry, "reported", entry.reported_measurements(), flags=flags, curated=True)


def _entry(table: PublishedTable, board: str, number: int, row: Row) -> Entry:
    benchmark, protocol = BOARDS[board]
    name = method_of(table, row)
    known, detector = _printed(table, row), _detector(table, row)
    named: dict[str, Any] = {"name": detector, "id": detector} if detector else {}
    words = f"{row['Training']} {row['Postprocessor']} {row['Arch']}".lower()
    trained = "cross-entropy" if row["Training"] == "CrossEntropy" else row["Training"]
    details, network = row["Additional_Description"], re.sub(r"^ResNet(?=\d)", "ResNet-", row["Arch"])
    return Entry(
        schema_version=1,
        id=f"{PREFIX}-{board.replace('_', '-')}-{number}-{re.sub('[^a-z0-9]', '', words)}"[:80],
        method=name,
        submitted=_DATE,
        track=_track(row),
        authors=tuple(known.paper.authors) if known else (),
        paper=_publication(known, detector if row["Training"] == "CrossEntropy" else ""),
        benchmark=BenchmarkUse(name=benchmark, version=_VERSION),
        protocols={protocol: 1},
        model=ModelUse(
            name=f"OpenOOD {table.benchmarks[benchmark].title} {network} {trained}, {details}".rstrip(", "),
            architecture=network,
            recipe=f"{trained}, {details}".rstrip(", "),
        ),
        detector=DetectorUse(**named, search=Search(tuning=_tuning(table, row))),
        reported=tuple(_reported(board, protocol, row)),
        notes=(f"Reported, not recomputed: {_CITED}, row {row['Training']} with {row['Postprocessor']}.",),
    )


def method_of(table: PublishedTable, row: Row) -> str:
    """The method's name: that of the paper's table where it is there, else training and post-processor."""
    known = _printed(table, row)
    if known is not None:
        return known.method
    training, post = row["Training"], row["Postprocessor"]
    if training == "CrossEntropy":
        return post
    return training if post in training.split(" + ") else f"{training} + {post}"


def _printed(table: PublishedTable, row: Row) -> PublishedMethod | None:
    name = row["Postprocessor"] if row["Training"] == "CrossEntropy" else row["Training"]
    return next((method for method in table.methods if method.printed == name), None)


def _detector(table: PublishedTable, row: Row) -> str:
    post = row["Postprocessor"]
    known = next((method.detector for method in table.methods if method.printed == post), "")
    return known or _DETECTORS.get(post, "")


def _publication(known: PublishedMethod | None, detector: str) -> Publication | None:
    if known is not None:
        paper = known.paper
        return Publication(title=paper.title, venue=paper.venue, year=paper.year, bibtex=paper.bibtex())
    entry = catalog("detectors").get(detector)
    if entry is None or not entry.get("paper_title"):
        return None
    venue = entry["paper"].rsplit(", ", 1)[-1]
    year = re.search(r"\b(20\d\d)$", venue)
    return Publication(title=entry["paper_title"], venue=venue, year=int(year[1]) if year else None)


def _track(row: Row) -> Track:
    if row["Outlier_Data"] == "Yes":
        return "outlier-data"
    return "post-hoc" if row["Training"] == "CrossEntropy" else "training"


def _tuning(table: PublishedTable, row: Row) -> Tuning:
    """As in the paper's table; where that has no such row, a detector with a grid was searched on OOD validation."""
    known = _printed(table, row)
    if known is not None:
        return known.tuning
    return "ood_val" if catalog("detectors").get(_detector(table, row), {}).get("grid") else "default"


def _reported(board: str, protocol: str, row: Row) -> Iterator[Reported]:
    for group, column in _COLUMNS.items():
        value, spread = _digits(row[column])
        if not value:
            continue
        place: dict[str, Any] = {"metric": "auroc", "group": group, "set": MEAN}
        if group == "accuracy":
            place = {"metric": "accuracy", "group": "id", "set": "id_test"}
        if spread:
            place |= {"spread": spread, "spread_meaning": "standard deviation over training runs"}
        source = f"{_CITED}, {board}, row {row['Training']} with {row['Postprocessor']}"
        yield Reported(protocol=protocol, printed=value, source=source, link=_LINK, **place)


def _digits(cell: str) -> tuple[str, str]:
    """``88.03 ± 0.25`` as its two numbers; empty where there is none."""
    found = re.fullmatch(r"\s*(-?\d+(?:\.\d+)?)\s*(?:±\s*(\d+(?:\.\d+)?))?\s*", cell)
    return (found[1], found[2] or "") if found else ("", "")
