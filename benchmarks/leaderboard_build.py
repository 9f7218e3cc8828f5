"""How long a leaderboard of many entries takes: to verify every number from the scores, and to build its site.

python benchmarks/leaderboard_build.py [ENTRIES] [FOLDER]

Entries are made up but whole: written by the package's own writer, each with a score file of seven sets. They share
the images, differ in method, network, track and tuning, and receipts make two thirds of them re-executed.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd

from oodscope import __version__
from oodscope.leaderboard.records.entry import Entry
from oodscope.leaderboard.records.folder import read_entry, score_context, table_lists, write_entry
from oodscope.leaderboard.records.keeping import Receipt, write_receipt
from oodscope.leaderboard.records.records import BenchmarkUse, DetectorUse, ModelUse, Publication, Search, SetUse
from oodscope.leaderboard.site.render import write_site
from oodscope.leaderboard.verify.remembered import RememberedExaminer
from oodscope.leaderboard.verify.verifying import verify_each
from oodscope.results.scoretable import ScoreTable

SETS = {
    "id_test": ("id_test", 400),
    "cifar100": ("near", 300),
    "tin": ("near", 300),
    "mnist": ("far", 200),
    "svhn": ("far", 200),
    "texture": ("far", 200),
    "places365": ("far", 200),
}
TRACKS = ("post-hoc", "post-hoc", "post-hoc", "training", "training", "outlier-data")
ARCHITECTURES = ("ResNet-18", "ResNet-50", "ViT-B/16", "WRN-28-10")


def images() -> pd.DataFrame:
    """The images that every entry is judged on, and what the network says of them."""
    rng = np.random.default_rng(0)
    frames = []
    for name, (role, n) in SETS.items():
        own = rng.integers(10, size=n)
        label = own if role == "id_test" else np.full(n, -1)
        guess = np.where(rng.random(n) < 0.95, own, (own + 1) % 10)
        names = [f"{name}/{row:05d}.png" for row in range(n)]
        fixed = {"sample_id": names, "set": name, "role": role, "unit": "all"}
        frames.append(pd.DataFrame(fixed | {"label": label, "own_class": own, "prediction": guess}))
    return pd.concat(frames, ignore_index=True)


def entries(count: int) -> Iterator[tuple[Entry, ScoreTable]]:
    """Made-up entries, each with its own scores of the same images."""
    frame = images()
    outlier = (frame["role"] != "id_test").to_numpy()
    far = (frame["role"] == "far").to_numpy()
    for n in range(count):
        rng = np.random.default_rng(n + 1)
        detector = f"made_up_{n}"
        strength = rng.uniform(0.8, 2.2)
        scores = rng.normal(size=len(frame)) + strength * outlier + 0.5 * far
        entry = Entry(
            schema_version=1,
            id=f"entry-{n:05d}",
            method=f"Method {n // 2}",
            submitted="2026-11-15T00:00:00+00:00",
            track=TRACKS[n % len(TRACKS)],
            authors=("First Author", "Second Author"),
            paper=Publication(title=f"On Method {n // 2}", venue="Venue", year=2026, bibtex=f"@misc{{method{n // 2}}}"),
            benchmark=BenchmarkUse(name="cifar10", version="openood-1.5"),
            protocols={"standard": 1},
            model=ModelUse(name=f"network {n % 11}", architecture=ARCHITECTURES[n % 4], recipe="cross-entropy"),
            detector=DetectorUse(
                id=detector, name=detector, search=Search(tuning="ood_val" if n % 5 == 4 else "default")
            ),
            scores={"sha256": "0" * 64, "rows": len(frame)},
        )
        table = ScoreTable(frame.assign(**{detector: scores}), score_context(entry))
        sets = {name: SetUse(role=r, n=k, list_hash=h) for name, (r, k, h) in table_lists(table).items()}
        yield entry.model_copy(update={"benchmark": entry.benchmark.model_copy(update={"sets": sets})}), table


def receipt(entry: Entry) -> Receipt:
    """What running the entry again would have left."""
    assert entry.scores is not None
    return Receipt(
        entry=entry.id,
        scores=entry.scores.sha256,
        activations="0" * 64,
        weights_hash="not known",
        detector=entry.detector.name,
        detector_version=1,
        in_order=0.0,
        repeated=0.0,
        shuffled=0.0,
        one_by_one=0.0,
        one_by_one_rows=10,
        tolerance=1e-4,
        verdict="re-executed",
        created="2026-11-15T00:00:00+00:00",
        oodscope_version=__version__,
    )


def main(count: int, folder: Path) -> None:
    start = perf_counter()
    for n, (entry, table) in enumerate(entries(count)):
        written = read_entry(write_entry(folder / "board", entry, table))
        if n % 3:
            write_receipt(folder / "board", receipt(written))
    made = perf_counter()
    examiner = RememberedExaminer(folder / "examined")
    found = verify_each(folder / "board", examiner)
    verified = perf_counter()
    again = verify_each(folder / "board", examiner)
    remembered = perf_counter()
    assert again.board.standings == found.board.standings
    site = write_site(again.board, folder / "site", scores=folder / "board")
    built = perf_counter()
    files = [path for path in site.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files) / 2**20
    print(f"{count} entries, {len(images())} images each, {len(found.refused)} refused")
    print(f"write the entries          {made - start:8.1f} s")
    print(f"verify, nothing remembered {verified - made:8.1f} s, {1000 * (verified - made) / count:.0f} ms per entry")
    print(f"verify, all remembered     {remembered - verified:8.1f} s")
    print(f"build the site             {built - remembered:8.1f} s, {len(files)} files, {size:.1f} MiB")
    print(f"load average at the end    {os.getloadavg()[0]:8.1f}")


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    if len(sys.argv) > 2:
        main(number, Path(sys.argv[2]))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            main(number, Path(scratch))
