"""Rows that oodscope measured on networks it trained itself, beside the published ones."""

import csv
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from oodscope.base.catalog import catalog
from oodscope.document.methods import method_name
from oodscope.leaderboard.published.table import PublishedTable, published_tables
from oodscope.leaderboard.records.entry import Entry, Track
from oodscope.leaderboard.records.records import BenchmarkUse, DetectorUse, ModelUse, Publication, Reported, Search
from oodscope.leaderboard.records.standing import Standing
from oodscope.metrics.metric import MEAN

PREFIX = "oodscope-own"
_VERSION, _DATE = "openood-1.5", "2026-11-16T00:00:00+00:00"
_SOURCE = "oodscope, docs/results/training-cifar10.md"
_FLAG = "own networks: near sets and accuracy only; the far sets that were at hand are not the published ones"

Row = Mapping[str, str]


@cache
def own_rows() -> tuple[Row, ...]:
    """Every row: training, detector, seeds, near AUROC and accuracy in percent, population deviations over seeds."""
    text = (files(__package__) / "own" / "cifar10.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


@cache
def own_standings() -> tuple[Standing, ...]:
    """A standing of tier ``reported`` for each row: its scores are not in the package, so nobody can check it there."""
    (table,) = [each for each in published_tables() if each.name == "openood-v1.5"]
    return tuple(_standing(table, row) for row in own_rows())


def _standing(table: PublishedTable, row: Row) -> Standing:
    plain = row["training"] == "CE"
    trained = "cross-entropy" if plain else row["training"]
    track: Track = "post-hoc" if plain else "training"
    known = next((method for method in table.methods if method.detector == row["detector"]), None)
    post = known.method if known else method_name(row["detector"])
    entry = Entry(
        schema_version=1,
        id=f"{PREFIX}-cifar10-{row['training']}-{row['detector']}".lower().replace("_", ""),
        method=post if plain else f"{trained} + {post}",
        submitted=_DATE,
        track=track,
        paper=_publication(row["detector"]) if plain else None,
        benchmark=BenchmarkUse(name="cifar10", version=_VERSION),
        protocols={"standard": 1},
        model=ModelUse(
            name=f"oodscope CIFAR-10 ResNet-18 {trained}", architecture="ResNet-18", recipe=f"{trained}, 100 epochs"
        ),
        detector=DetectorUse(name=row["detector"], id=row["detector"], search=Search(tuning="default")),
        reported=tuple(_reported(row)),
        notes=(f"Measured by oodscope on {row['seeds']} networks (seeds 0 to {int(row['seeds']) - 1}): {_SOURCE}.",),
    )
    return Standing(entry, "reported", entry.reported_measurements(), flags=(_FLAG,), curated=True)


def _publication(detector: str) -> Publication | None:
    known = catalog("detectors").get(detector, {})
    if not known.get("paper_title"):
        return None
    return Publication(title=known["paper_title"], venue=known["paper"].rsplit(", ", 1)[-1])


def _reported(row: Row) -> Iterator[Reported]:
    places: dict[str, dict[str, Any]] = {
        "near": {"metric": "auroc", "group": "near", "set": MEAN},
        "accuracy": {"metric": "accuracy", "group": "id", "set": "id_test"},
    }
    for column, place in places.items():
        spread = {"spread": row[f"{column}_sd"], "spread_meaning": "standard deviation over training runs"}
        own = spread if int(row["seeds"]) > 1 else {}
        yield Reported(protocol="standard", printed=row[column], source=f"{_SOURCE}, {row['training']}", **place, **own)
