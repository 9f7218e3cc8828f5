"""Boards made up for tests: every tier, track and tuning track, seeds, flags, errata, printed numbers."""

import random

from oodscope.leaderboard.records.board import Board, Erratum
from oodscope.leaderboard.records.entry import Entry
from oodscope.leaderboard.records.records import (
    BenchmarkUse,
    DetectorUse,
    ModelUse,
    Publication,
    Reported,
    ScoresFile,
    Search,
)
from oodscope.leaderboard.records.standing import Difference, Standing
from oodscope.results.measurement import Measurement, Measurements

SETS = {"near": ("cifar100", "tin"), "far": ("mnist", "svhn", "texture", "places365")}
METRICS = ("auroc", "fpr95_id_positive")
TIERS = ("re-executed", "retrained", "recomputed", "reported")
TRACKS = ("post-hoc", "training", "outlier-data", "vision-language", "transductive")
TUNINGS = ("default", "ood_val", "id_only")
ARCHITECTURES = ("ResNet-18", "ResNet-50", "ViT-B/16", "WRN-28-10")


def make_entry(id="alpha", **changes) -> Entry:
    """A whole record; ``changes`` are given as fields."""
    fields = {
        "schema_version": 1,
        "id": id,
        "method": "Alpha",
        "submitted": "2026-03-01T12:00:00+00:00",
        "track": "post-hoc",
        "authors": ("Ada Lovelace", "Emmy Noether"),
        "paper": Publication(
            title="On Alpha", venue="ICML", year=2025, link="https://example.org/alpha", bibtex="@article{alpha}"
        ),
        "code": "https://example.org/code",
        "benchmark": BenchmarkUse(name="cifar10", version="openood-1.5"),
        "protocols": {"standard": 1},
        "model": ModelUse(name="cifar10 ResNet-18", architecture="ResNet-18", recipe="cross-entropy"),
        "detector": DetectorUse(id="alpha", name="alpha", params={"k": 5}),
        "scores": ScoresFile(sha256="0" * 64, rows=10),
    }
    return Entry(**fields | changes)


def make_measurements(entry: Entry, rng: random.Random, level=0.85, protocols=("standard",)) -> Measurements:
    """Random values around ``level``, a group's mean exactly the mean of its sets."""
    shared = {
        "run": entry.id,
        "benchmark": entry.benchmark.name,
        "benchmark_version": entry.benchmark.version,
        "model": entry.model.name,
        "tuning": entry.tuning,
        "n_id": 9000,
    }
    rows = []
    for protocol in protocols:
        for metric in METRICS:
            for group, sets in SETS.items():
                middle = level if metric == "auroc" else 1 - level
                values = [min(0.99, max(0.01, rng.gauss(middle, 0.03))) for _ in sets]
                for name, value in [*zip(sets, values), ("mean", sum(values) / len(values))]:
                    place = {"protocol": protocol, "metric": metric, "group": group, "set": name}
                    half = rng.uniform(0.002, 0.008)
                    rows.append(
                        Measurement(
                            **shared,
                            **place,
                            detector=entry.detector.id,
                            value=value,
                            low=value - half,
                            high=value + half,
                            interval="delong",
                            level=0.95,
                            n_ood=7000,
                        )
                    )
        accuracy = {"protocol": protocol, "metric": "accuracy", "group": "id", "set": "id_test"}
        rows.append(Measurement(**shared, **accuracy, value=0.95 + rng.uniform(-0.01, 0.01), low=0.94, high=0.96))
    return Measurements(rows)


def make_standing(n: int, rng: random.Random, **changes) -> Standing:
    """The n-th standing of a large board."""
    tier = TIERS[n % 3]
    entry = make_entry(
        f"entry-{n:04d}",
        method=f"Method {n // 2}",
        track=TRACKS[rng.choice((0, 0, 0, 0, 1, 1, 2, 3, 4))],
        detector=DetectorUse(id=f"m{n}", name=f"m{n}", search=Search(tuning=rng.choice(TUNINGS[:2]))),
        model=ModelUse(name=f"net {n % 7}", architecture=ARCHITECTURES[n % 4], recipe="cross-entropy", seed=n),
        **changes,
    )
    flags = ("exposure: the network has met 12 images of svhn",) if n % 9 == 4 else ()
    numbers = make_measurements(entry, rng, rng.uniform(0.7, 0.93))
    return Standing(entry, tier, numbers, flags=flags)


def make_board(n=24, seed=0) -> Board:
    """A board with a bit of everything."""
    rng = random.Random(seed)
    standings = [make_standing(k, rng) for k in range(n)]
    first = make_entry("knn-r18", method="knn", protocols={"standard": 1, "full_spectrum": 1})
    numbers = make_measurements(first, rng, 0.91, ("standard", "full_spectrum"))
    near = numbers.filter(protocol="standard", metric="auroc", group="near", set="mean")[0]
    printed = Reported(
        protocol="standard",
        metric="auroc",
        group="near",
        set="mean",
        printed="95.00",
        source="Table 7",
        spread="0.30",
        spread_meaning="over runs",
    )
    difference = Difference(
        "standard", "auroc", "near", "mean", 0.95, near.value, near.low, near.high, True, source="Table 7"
    )
    first = first.model_copy(update={"reported": (printed,)})
    standings.append(
        Standing(first, "re-executed", numbers, (difference,), ("unreliable: two columns of scores are equal",))
    )
    old = make_entry("knn-r18-old", method="KNN")
    standings.append(
        Standing(
            old, "recomputed", make_measurements(old, rng, 0.6), superseded_by="knn-r18", reason="wrong preprocessing"
        )
    )
    paper = make_entry("knn-printed", method="KNN", scores=None, reported=(printed,))
    standings.append(Standing(paper, "reported", paper.reported_measurements(), curated=True))
    for seed_number in range(3):
        entry = make_entry(
            f"logitnorm-{seed_number}",
            method="LogitNorm",
            track="training",
            group="logitnorm",
            model=ModelUse(name="LogitNorm R18", architecture="ResNet-18", recipe="logitnorm", seed=seed_number),
        )
        standings.append(Standing(entry, "retrained", make_measurements(entry, rng, 0.9)))
    errata = (Erratum("knn-r18-old", "knn-r18", "wrong preprocessing", "2026-05-02T00:00:00+00:00"),)
    return Board(tuple(standings), errata)
