"""How long opening takes when everything is known: a column of 8 GB, and the files of a set of ImageNet's size.

    python benchmarks/opening_speed.py [--files 1280000] [--gigabytes 8]

The column's shards are sparse files with honest heads (their checksums are not those of zeros: opening reads heads
only, and the first row that is read must be refused). The files are hard links of one another in 1,000 folders.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from oodscope.activations.store.shards import DamagedError, ShardedColumn, pack
from oodscope.base.place import LocalPlace
from oodscope.data.images.files import FileSource

ROWS, WIDTH = 16_384, 2_048


def open_column(folder: Path, gigabytes: float) -> None:
    count = round(gigabytes * 1e9 / (4 * ROWS * WIDTH))
    (folder / "x").mkdir()
    for number in range(count):
        rows = np.arange(number * ROWS, (number + 1) * ROWS)
        head = pack("x", f"shard-{number:05}", rows, np.ones((ROWS, WIDTH), np.float32), {})
        cut = len(head) - 4 * ROWS * WIDTH
        with (folder / "x" / f"shard-{number:05}.safetensors").open("wb") as stream:
            stream.write(head[:cut])
            stream.truncate(len(head))
    started, used = time.perf_counter(), time.process_time()
    column = ShardedColumn(LocalPlace(folder), "x", "x", count * ROWS)
    seconds, processor = time.perf_counter() - started, time.process_time() - used
    try:
        column[0:1]
    except DamagedError:
        refused = "refused"
    else:
        refused = "SERVED"
    size = column.nbytes / 1e9
    print(f"| a column of {size:.1f} GB in {count} shards | {seconds:.3f} | {processor:.3f} | ≤ 0.2 |")
    print(f"\nA row that is not what its head says was {refused}.\n")


def open_files(folder: Path, count: int) -> None:
    first = folder / "0.png"
    first.write_bytes(b"a picture")
    paths = []
    for number in range(count):
        if number % (count // 1000 or 1) == 0:
            place = folder / f"{number:07}"
            place.mkdir()
        path = place / f"{number:07}.png"
        # a file system allows so many links to one file
        if number % 30_000 == 29_999:
            first = path
            first.write_bytes(number.to_bytes(8, "big"))
        else:
            path.hardlink_to(first)
        paths.append(f"{place.name}/{path.name}")
    for name in ("first", "known"):
        started, used = time.perf_counter(), time.process_time()
        source = FileSource(folder, paths)
        source.require_all()
        assert len(source.key) == 64
        seconds, processor = time.perf_counter() - started, time.process_time() - used
        bar = "≤ 5" if name == "known" else ""
        print(f"| {count:,} files, {name} | {seconds:.1f} | {processor:.1f} | {bar} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1_280_000)
    parser.add_argument("--gigabytes", type=float, default=8.0)
    asked = parser.parse_args()
    print("| opened | s | s of processor time | bar |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as home:
        os.environ["OODSCOPE_CACHE"] = f"{home}/cache"
        for part in ("column", "files"):
            (Path(home) / part).mkdir()
        open_column(Path(home) / "column", asked.gigabytes)
        if asked.files:
            open_files(Path(home) / "files", asked.files)


if __name__ == "__main__":
    main()
