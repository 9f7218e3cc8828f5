"""How long opening takes when everything is known, and how often a new file is read from the disk.

    python benchmarks/opening_speed.py [--files 1280000] [--gigabytes 8] [--results docs/results]

The column's shards are sparse files with honest heads (their checksums are not those of zeros: opening reads heads
only, and the first row that is read must be refused). The files are empty, in folders of a thousand; all are removed
afterwards. docs/results/opening-speed.md holds what came out.
"""

import argparse
import hashlib
import os
import platform
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from PIL import Image

from oodscope.activations.activations import Activations
from oodscope.activations.moments import REDUCED, Moments, join_moments
from oodscope.activations.store.shards import DamagedError, ShardedColumn, column_folder, pack
from oodscope.base.hashing import fingerprint
from oodscope.base.place import LocalPlace
from oodscope.data.images.decoding import _content, decode
from oodscope.data.images.filedigests import DIGEST, Statuses, hash_file, write_manifest
from oodscope.data.images.files import FileSource

ROWS, WIDTH = 16_384, 2_048
PICTURES, NEW = 400, 20_000
HERE = Path(__file__).parents[1]

RACE, RACE_SIDE, RACE_CORES = 214_660, 32, 16
"""Files of the race of speed.md, the side in pixels that its network sees, and the cores of its machine."""

LARGE, LARGE_SIDE = 1_281_167, 224
"""The same of ImageNet's training images."""

DAMAGED = (
    "`pytest -m soak tests/activations/test_store.py` spoils a published file 200 times and opens the store again, "
    "once with columns verified when they are opened and once when rows are read: 400 of 400 damages were computed "
    "anew or refused by name, none was served (2026-11-18, 12 s of processor time)."
)
"""What the long form of the test showed."""


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    wall: float
    processor: float
    bar: float | None = None

    @property
    def cells(self) -> str:
        bar = "" if self.bar is None else f"≤ {self.bar:g}"
        return f"| {self.what} | {self.wall:.3f} | {self.processor:.3f} | {bar} |"


def timed(what: str, work: Callable[[], object], bar: float | None = None) -> Row:
    """Wall and processor seconds of some work."""
    started, used = time.perf_counter(), time.process_time()
    work()
    return Row(what, time.perf_counter() - started, time.process_time() - used, bar)


def open_column(folder: Path, gigabytes: float) -> tuple[Row, bool]:
    """Open a large column; whether a row that is not what its head says was refused."""
    count = round(gigabytes * 1e9 / (4 * ROWS * WIDTH))
    (folder / "x").mkdir()
    values = np.ones((ROWS, WIDTH), np.float32)
    for number in range(count):
        rows = np.arange(number * ROWS, (number + 1) * ROWS)
        head = pack("x", f"shard-{number:05}", rows, values, {})
        with (folder / "x" / f"shard-{number:05}.safetensors").open("wb") as stream:
            stream.write(head[: len(head) - 4 * ROWS * WIDTH])
            stream.truncate(len(head))
    opened: list[ShardedColumn] = []
    row = timed(
        f"a column of {count * 4 * ROWS * WIDTH / 1e9:.1f} GB in {count} shards",
        lambda: opened.append(ShardedColumn(LocalPlace(folder), "x", "x", count * ROWS)),
        0.2,
    )
    try:
        opened[0][0:1]
    except DamagedError:
        return row, True
    return row, False


def moments(folder: Path, rows: int = 50_000, width: int = 512, classes: int = 10) -> list[Row]:
    """Class means and scatter of a stored column: computed and published, then read by who opens it next."""
    rng = np.random.default_rng(0)
    home = fingerprint("made up")
    labels = rng.integers(0, classes, rows)

    def opened() -> Activations:
        column = ShardedColumn(LocalPlace(folder), column_folder(home, "features"), f"{home}/features", rows)
        return Activations(features=column, labels=labels)

    column = ShardedColumn(LocalPlace(folder), column_folder(home, "features"), f"{home}/features", rows)
    for start in range(0, rows, REDUCED):
        own = np.arange(start, min(start + REDUCED, rows))
        column.publish(own, rng.normal(size=(len(own), width)).astype(np.float32), {}, REDUCED)
    what = f"moments of a stored column of {rows:,} x {width}"
    gathered = join_moments([opened().moments_within(shard) for shard in opened().shards()])  # verifies the rows
    found: list[Moments] = []
    computed = timed(f"{what}, computed and published", lambda: found.append(opened().moments()))
    read = timed(f"{what}, published before", lambda: found.append(opened().moments()))
    assert all(np.array_equal(each.packed(), gathered.packed()) for each in found)
    return [computed, read]


def open_files(folder: Path, count: int, new: int) -> list[Row]:
    """Open a set whose files are known, and one whose files are new.

    All files are empty, so their digest is the same: the manifest that the first opening would have written is
    written here, and a million files need not be hashed to see how long they take when they are known.
    """
    paths = []
    for number in range(count):
        place = f"{number // 1000:05}"
        if number % 1000 == 0:
            (folder / place).mkdir()
        paths.append(f"{place}/{number:07}.png")
        os.close(os.open(folder / paths[-1], os.O_CREAT | os.O_WRONLY))

    def opened(some: list[str]) -> str:
        source = FileSource(folder, some)
        source.require_all()
        return source.key

    first = timed(f"{new:,} files, new", lambda: opened(paths[:new]))
    digest = np.frombuffer(hash_file(str(folder / paths[0])), np.uint8)
    write_manifest(folder, paths, Statuses.read(folder, paths), np.tile(digest, (count, 1)))
    keys = []
    row = timed(f"{count:,} files, known", lambda: keys.append(opened(paths)), 5.0)
    assert keys == [fingerprint(digest.tobytes() * count)]
    return [first, row, timed(f"{count:,} files, nothing but the system's answer for each", lambda: ask(folder, paths))]


def ask(folder: Path, paths: list[str]) -> None:
    """The floor: one bare question per file, whose answers are thrown away. Less cannot find a changed file."""
    handle = os.open(folder, os.O_RDONLY)
    for path in paths:
        os.stat(path, dir_fd=handle)
    os.close(handle)


def disk_reads(folder: Path) -> float | None:
    """How many times over new files are read from the disk while they are hashed, then decoded."""
    counter = Path("/proc/self/io")
    if not counter.exists():
        return None
    rng = np.random.default_rng(0)
    paths = [f"{number:04}.png" for number in range(PICTURES)]
    for path in paths:
        Image.fromarray(rng.integers(0, 256, (96, 96, 3), dtype=np.uint8)).save(folder / path)
        handle = os.open(folder / path, os.O_RDONLY)
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)

    def read() -> int:
        lines = dict(line.split(": ") for line in counter.read_text().splitlines())
        return int(lines["read_bytes"])

    before = read()
    source = FileSource(folder, paths)
    assert source.key
    hashed = read() - before
    for number in range(len(paths)):
        source.picture(number)
    pages = sum(-(-(folder / path).stat().st_size // 4096) * 4096 for path in paths)
    return (read() - before) / pages if hashed else None


Costs = dict[str, tuple[float, float, float]]
"""By kind of file, microseconds of processor time per file: hashed, decoded, and both from one read."""


def hashing(folder: Path) -> Costs:
    """What new files cost whose bytes lie in the system's memory: the least of three rounds."""
    rng = np.random.default_rng(0)
    found = {}
    for what, side, ending in (("PNG of 32 pixels", 32, "png"), ("JPEG of 256 pixels", 256, "jpg")):
        rough = rng.integers(0, 256, (PICTURES, side // 8, side // 8, 3), dtype=np.uint8)
        paths = [f"{side}-{number:04}.{ending}" for number in range(PICTURES)]
        for path, pixels in zip(paths, rough):
            grain = rng.normal(0, 12, (side, side, 3))
            smooth = np.asarray(Image.fromarray(pixels).resize((side, side), Image.Resampling.BICUBIC), dtype=float)
            Image.fromarray((smooth + grain).clip(0, 255).astype(np.uint8)).save(folder / path)
        ways: list[Callable[[], object]] = [
            lambda paths=paths: [hash_file(str(folder / path)) for path in paths],
            lambda paths=paths: [decode(folder / path, path) for path in paths],
            lambda paths=paths: [in_one_pass(folder / path) for path in paths],
        ]
        least = [min(timed("", way).processor for _ in range(3)) / PICTURES * 1e6 for way in ways]
        found[what] = (least[0], least[1], least[2])
    return found


def in_one_pass(path: Path) -> tuple[bytes, Image.Image]:
    """What a single pass would do with a new file: read it once, hash and decode the same bytes."""
    content = _content(path)
    return hashlib.blake2b(content.getbuffer(), digest_size=DIGEST).digest(), decode(content, str(path))


def one_pass(costs: Costs) -> str:
    """What hashing while decoding would save, and what it would hold meanwhile, in one sentence."""
    saved = {what: hashed + decoded - both for what, (hashed, decoded, both) in costs.items()}
    shares = ", ".join(
        f"{saving:.0f} µs of {sum(costs[what][:2]):.0f} ({saving / sum(costs[what][:2]):.0%}; {what})"
        for what, saving in saved.items()
    )
    most = max(*saved.values(), 0.0) * 1e-6 * RACE
    return (
        f"One read for both would save {shares} per new file: at most {most:.1f} s of processor time of the "
        f"{RACE:,} files of the race, {most / RACE_CORES:.2f} s of wall time on its {RACE_CORES} cores. Until the "
        f"check has seen every file, its pixels would have to wait: {RACE * RACE_SIDE**2 * 3 / 1e9:.1f} GB there, "
        f"{LARGE * LARGE_SIDE**2 * 3 / 1e9:.0f} GB for ImageNet's training images at {LARGE_SIDE} pixels."
    )


def answer(rows: list[Row]) -> str:
    """How many bars the processor time keeps."""
    barred = [row for row in rows if row.bar is not None]
    kept = [row for row in barred if row.processor <= (row.bar or 0.0)]
    costs = ", ".join(f"{row.what} {row.processor:.2f} s" for row in barred)
    return f"{len(kept)} of {len(barred)} bars are kept, in processor time: {costs}. No byte of what is known is read."


def page(rows: list[Row], refused: bool, reads: float | None, load: float, costs: Costs) -> str:
    """The results page, every sentence from the numbers."""
    said = [
        f"{row.what}: {row.processor:.2f} s of processor time, "
        f"{'within' if row.processor <= row.bar else 'above'} the {row.bar:g} s asked for"
        + ("" if row.wall <= row.bar else f" (wall time {row.wall:.1f} s at a load of {load:.1f} on this machine)")
        for row in rows
        if row.bar is not None
    ]
    computed, read = (next((row for row in rows if word in row.what), None) for word in ("computed and", "published b"))
    if computed is not None and read is not None:
        saved = computed.processor - read.processor
        said.append(
            f"A process that finds {computed.what.rpartition(',')[0]} published reads them in {read.processor:.3f} s "
            f"of processor time, {f'{saved:.3f} s less' if saved > 0 else 'no less'} than computing them takes; they "
            "have the same bits"
        )
    known, floor = (next((row for row in rows if word in row.what), None) for word in ("known", "nothing but"))
    if known is not None and floor is not None:
        said.append(
            f"A file that changed in place changes neither its folder's time nor its count, so each must be asked for; "
            f"that alone takes {floor.processor:.2f} s, and opening {known.processor / floor.processor:.2f} times that"
        )
    disk = (
        "Whether files are read twice from the disk was not measured: the system does not say."
        if reads is None
        else f"New files are hashed, then decoded: of each byte {reads:.2f} were read from the disk, "
        f"{'the second look is served from memory' if reads < 1.5 else 'so files are read twice'}."
    )
    return "\n".join(
        [
            "# What opening costs",
            "",
            "**Question.** Does opening a stored column or a set of files cost a pass over what is known?",
            "",
            f"**Answer.** {answer(rows)}",
            "",
            "**Command.** `python benchmarks/opening_speed.py`",
            "",
            f"**Machine.** {len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}, load before "
            f"{load:.1f}. **Date.** {datetime.now(UTC):%Y-%m-%d}",
            "",
            "| opened | s, wall | s of processor time | bar |",
            "|---|---|---|---|",
            *(row.cells for row in rows),
            "",
            *(f"- {sentence}." for sentence in said),
            f"- A row that is not what its head says was {'refused' if refused else 'SERVED'}.",
            f"- {disk}",
            *(["- Not yet run: 1,280,000 known files."] if not any("1,280,000" in row.what for row in rows) else []),
            f"- {DAMAGED}",
            "",
            "## Why files are hashed first, and decoded afterwards",
            "",
            "| kind of file | hashed, µs of processor time | decoded, µs | both from one read, µs |",
            "|---|---|---|---|",
            *(
                f"| {what} | {hashed:.0f} | {decoded:.0f} | {both:.0f} |"
                for what, (hashed, decoded, both) in costs.items()
            ),
            "",
            one_pass(costs),
            "",
            "Digests are needed before the first image is decoded, by three who ask: the check that no validation "
            "image is a test image, which must stop a run before its work and not after it; the store, whose address "
            "they are, which says whether an image must be decoded at all, and under which shards are published while "
            "the network works, so that a killed run goes on; and the seal of a record. The bytes "
            "are hashed in any case, so a single pass would save no more than the second look at each file, once in "
            "its life, and would pay for it with pixels that wait and with work thrown away where the check or the "
            "store says no. So the order stays.",
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1_280_000)
    parser.add_argument("--gigabytes", type=float, default=8.0)
    parser.add_argument("--results", type=Path, default=HERE / "docs" / "results")
    asked = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as home:
        os.environ["OODSCOPE_CACHE"] = f"{home}/cache"
        for part in ("column", "files", "pictures", "moments"):
            (Path(home) / part).mkdir()
        reads = disk_reads(Path(home) / "pictures")
        column, refused = open_column(Path(home) / "column", asked.gigabytes)
        costs = hashing(Path(home) / "pictures")
        reduced = moments(Path(home) / "moments")
        rows = [column, *reduced, *open_files(Path(home) / "files", asked.files, min(asked.files, NEW))]
    written = page(rows, refused, reads, load, costs)
    (asked.results / "opening-speed.md").write_text(written, encoding="utf-8")
    print(written)


if __name__ == "__main__":
    main()
