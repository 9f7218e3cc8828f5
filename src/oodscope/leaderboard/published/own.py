"""Rows that oodscope measured on networks it trained itself, beside the published ones.

``own/BENCHMARK.csv`` holds means and deviations over seeds (``benchmarks/board_rows.py``): nobody can check them with
the package alone, so they are of tier ``reported``. ``own/BENCHMARK.jsonl`` holds entries that were handed in and run
again (``benchmarks/board_networks.py``): each line has the entry, the receipt of its re-execution and the numbers that
its scores gave, and keeps the tier that the board gave it. A method of which there are such entries has no other row.
"""

import csv
import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from oodscope.base.catalog import catalog
from oodscope.base.config import parse
from oodscope.document.methods import method_name
from oodscope.leaderboard.published.table import PublishedMethod, published_tables
from oodscope.leaderboard.records.entry import Entry, Track
from oodscope.leaderboard.records.keeping import Receipt
from oodscope.leaderboard.records.records import BenchmarkUse, DetectorUse, ModelUse, Publication, Reported, Search
from oodscope.leaderboard.records.standing import Standing
from oodscope.metrics.metric import MEAN
from oodscope.results.measurement import Measurement, Measurements

PREFIX = "oodscope-own"
_VERSION, _DATE = "openood-1.5", "2026-11-16T00:00:00+00:00"
_TITLES = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
_FLAG = "own networks: near sets and accuracy only; the far sets that were at hand are not the published ones"
_EXPOSED = (
    "learned from half of the classes of Tiny ImageNet and tested on the other half: not the published outliers "
    "and not the published near sets"
)
_CHECKED = "own networks: run again by the makers of this package, who keep scores and activations; near sets only"

Row = Mapping[str, str]


def own_folder() -> Path:
    """Where the package keeps the rows."""
    return Path(str(files(__package__))) / "own"


@cache
def own_rows() -> tuple[Row, ...]:
    """Every row: training, detector, seeds, near AUROC and accuracy in percent, population deviations over seeds.

    ``recipe`` says in words how the networks were trained, ``outliers`` what they learned from beside ID images.
    """
    return tuple(
        {"benchmark": path.stem, **row}
        for path in sorted(own_folder().glob("*.csv"))
        for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    )


@cache
def own_standings() -> tuple[Standing, ...]:
    """The entries that were run again, and a standing of tier ``reported`` for each other row."""
    checked = tuple(_checked())
    known = {(each.entry.benchmark.name, each.entry.detector.name) for each in checked}
    rows = [row for row in own_rows() if row["training"] != "CE" or (row["benchmark"], row["detector"]) not in known]
    return (*checked, *map(own_standing, rows))


def identity(detector: str) -> tuple[str, Publication | None]:
    """The name and the paper of a detector as the published tables have them, else as the registry does."""
    known = _known(detector)
    return known.method if known else method_name(detector), _publication(known, detector)


def _checked() -> Iterator[Standing]:
    for path in sorted(own_folder().glob("*.jsonl")):
        for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            where, content = f"{path.name}, line {number}", json.loads(text)
            entry, receipt = parse(Entry, content["entry"], where), parse(Receipt, content["receipt"], where)
            rows = Measurements(Measurement(**row) for row in content["measurements"])
            flags, covered = (_CHECKED,), receipt.covered
            yield Standing(entry, content["tier"], rows, flags=flags, covered=covered, curated=True)


def _known(detector: str) -> PublishedMethod | None:
    (table,) = [each for each in published_tables() if each.name == "openood-v1.5"]
    return next((method for method in table.methods if method.detector == detector), None)


def own_standing(row: Row) -> Standing:
    """A row as a standing of tier ``reported``."""
    plain = row["training"] == "CE"
    trained = "cross-entropy" if plain else row["training"]
    outliers = row.get("outliers", "")
    track: Track = "outlier-data" if outliers else "post-hoc" if plain else "training"
    known, title = _known(row["detector"]), _TITLES[row["benchmark"]]
    post = known.method if known else method_name(row["detector"])
    entry = Entry(
        schema_version=1,
        id=f"{PREFIX}-{row['benchmark']}-{row['training']}-{row['detector']}".lower().replace("_", ""),
        method=post if plain else trained,
        submitted=_DATE,
        track=track,
        paper=_publication(known, row["detector"]) if plain else None,
        benchmark=BenchmarkUse(name=row["benchmark"], version=_VERSION),
        protocols={"standard": 1},
        model=ModelUse(
            name=f"oodscope {title} ResNet-18 {trained}",
            architecture="ResNet-18",
            recipe=row.get("recipe") or f"{trained}, 100 epochs",
        ),
        detector=DetectorUse(name=row["detector"], id=row["detector"], search=Search(tuning="default")),
        reported=tuple(_reported(row)),
        notes=(_measured(row),),
    )
    flags = (_FLAG, _EXPOSED) if outliers else (_FLAG,)
    return Standing(entry, "reported", entry.reported_measurements(), flags=flags, curated=True)


def _measured(row: Row) -> str:
    runs = int(row["seeds"])
    networks = f"{runs} networks (seeds 0 to {runs - 1})" if runs > 1 else "one network, so that its noise is not known"
    return f"Measured by oodscope on {networks}: {_source(row)}."


def _source(row: Row) -> str:
    single = row["training"] == "CE" and int(row["seeds"]) == 1
    page = "detectors-cifar" if single else f"training-{row['benchmark']}"
    return f"oodscope, docs/results/{page}.md"


def _publication(known: PublishedMethod | None, detector: str) -> Publication | None:
    """The paper of a detector: as the published table cites it, else as the registry does."""
    if known is not None:
        paper = known.paper
        return Publication(title=paper.title, venue=paper.venue, year=paper.year, bibtex=paper.bibtex())
    entry = catalog("detectors").get(detector, {})
    if not entry.get("paper_title"):
        return None
    return Publication(title=entry["paper_title"], venue=entry["paper"].rsplit(", ", 1)[-1])


def _reported(row: Row) -> Iterator[Reported]:
    places: dict[str, dict[str, Any]] = {
        "near": {"metric": "auroc", "group": "near", "set": MEAN},
        "accuracy": {"metric": "accuracy", "group": "id", "set": "id_test"},
    }
    for column, place in places.items():
        spread: dict[str, Any] = {
            "spread": row[f"{column}_sd"],
            "spread_meaning": "standard deviation over training runs",
        }
        own = spread if row[f"{column}_sd"] else {}
        yield Reported(
            protocol="standard", printed=row[column], source=f"{_source(row)}, {row['training']}", **place, **own
        )
