"""Do two checkouts of this project compute the same numbers, to the bit?

    python benchmarks/same_digits.py record CHECKOUT OUT
    python benchmarks/same_digits.py compare OUT_A OUT_B [--markdown FILE]

``record`` runs the command line of a checkout (``python -m oodscope`` with ``CHECKOUT/src`` on the path) with one
thread in a fresh folder, with a cache and a home of its own, and keeps what the commands wrote: scores, measurements,
found images, cells, pixels, weights. ``compare`` compares two such records value by value. Nothing of the package is
imported, so that modules and names may move; a file that was renamed needs one more pattern in ``ARTEFACTS``.
"""

import argparse
import csv
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from PIL import Image
from safetensors.numpy import load_file

Values = dict[str, NDArray[Any]]
"""An artefact: columns of a table, arrays of a file or leaves of a JSON value, by name."""

TABLE, ARRAYS, LEAVES = "table", "arrays", "leaves"
SUFFIXES = {TABLE: ".parquet", ARRAYS: ".npz", LEAVES: ".json"}


@dataclass(frozen=True)
class Step:
    """One command.

    Parameters
    ----------
    name : of the step and of the folder that it writes to.
    command : arguments of ``python -m oodscope``; ``{name}`` is a path found by the patterns of ``PLACES``.
    printed : file that keeps what the command printed, if that is compared.
    statuses : exit statuses that are expected.
    since : options that leave out what 0.1 did not do, each with a file of the checkouts that have it.
    """

    name: str
    command: str
    printed: str = ""
    statuses: tuple[int, ...] = (0,)
    since: Mapping[str, str] = field(default_factory=dict)

    def command_of(self, checkout: Path) -> str:
        """The command in a checkout."""
        options = [option for option, file in self.since.items() if (checkout / file).exists()]
        return " ".join([self.command, *options])


@dataclass(frozen=True)
class Artefact:
    """One thing that is compared.

    Parameters
    ----------
    name : the same in every version of the project.
    patterns : where it may lie in the folder of a run; the first pattern that finds something counts. What ``*`` stands
        for names the parts of an artefact of several files, where it differs between them.
    kind : how it is kept: ``table``, ``arrays`` or ``leaves``.
    metadata : take the JSON values in the schema of a Parquet file and not its columns.
    within : the keys before the leaves that count, and what stands for them; where a file has none such, all count.
    """

    name: str
    patterns: tuple[str, ...]
    kind: str
    metadata: bool = False
    within: tuple[str, str] = ("", "")


NETWORK = "--model small_cnn --weights {weights} --device cpu"
PAIR = "--ensemble small_cnn,small_cnn --epochs 2 --count 40 --pool 120 --device cpu"
STEPS = (
    Step("demo", "demo --output demo", since={"--no-training": "src/oodscope/cli/demo/demo.py"}),
    Step("judged", "run judged.yaml --output judged"),
    Step("tuned", "run tuned.yaml --output tuned"),
    Step(
        "attack-mh",
        f"attack {NETWORK} --benchmark glyphs --on digits --variations affine+color,corruption,linf,blend "
        "--detectors msp,rmds --budget 12 --chains 24 --runs 2 --output attack-mh",
    ),
    Step(
        "attack-tempering",
        f"attack {NETWORK} --benchmark glyphs --on near_letters --variations affine,color --detectors ebo,knn "
        "--sampler tempering --energy rank_probit --boundary clamp --budget 20 --chains 24 --runs 2 "
        "--output attack-tempering",
    ),
    Step(
        "crossval-frozen",
        f"crossval {NETWORK} --benchmark glyphs --images-per-class 20 --backbone frozen --folds 3 --repetitions 1 "
        "--truth 1 --epochs 3 --detectors msp,knn,vim,gen --output crossval-frozen",
    ),
    Step(
        "crossval-full",
        "crossval --model small_cnn --device cpu --benchmark glyphs --images-per-class 20 --backbone full --folds 2 "
        "--repetitions 1 --epochs 2 --detectors msp,knn --output crossval-full",
    ),
    Step("gan", "generate gan --on glyphs:id_val --output gan --steps 4 --batch-size 16 --width 8 --device cpu"),
    Step(
        "latent",
        f"generate near --id glyphs:id_val --method latent --generator {{generator}} --budget 6 --window 0,3 {PAIR} "
        "--work latent-work --output latent",
    ),
    # a translator of one step (or three) counts as collapsed: the command refuses it with status 1 after it was kept.
    # Its weights and drawings are compared; a set of shifted images would need a longer training (5 s a step).
    Step(
        "shifted",
        f"generate shifted --id glyphs:id_val --steps 1 {PAIR} --work shifted-work --output shifted",
        statuses=(0, 1),
    ),
    Step("fit", f"fit {NETWORK} --benchmark glyphs --detector knn --include-weights --output fit/knn.oodscope"),
    Step("predict", "predict fit/knn.oodscope {pictures} --csv --device cpu", printed="predict/verdicts.csv"),
    Step("compare", "compare {run} --json", printed="compare/pairs.json"),
)
PLACES = {
    "weights": ("cache/training/*/model.safetensors",),
    "generator": ("gan/generator.safetensors",),
    "run": ("demo/glyphs-*/",),
    "pictures": ("demo/generated/recombined-*/images/",),
}
"""Where commands find what earlier ones wrote. A pattern that ends in a slash names a folder."""

JOBS = {
    "judged.yaml": """\
benchmark: glyphs
images_per_class: 40
model: {{architecture: small_cnn, weights: {weights}}}
detectors: all
{protocols}
device: cpu
""",
    "tuned.yaml": """\
benchmark: glyphs
images_per_class: 40
model: {{architecture: small_cnn, weights: {weights}}}
detectors: [knn, react, odin, gen]
tune: ood_val
device: cpu
""",
}
"""Job files, written before the command that names them."""

OPTIONS = "{threshold_split: true, costs: {false_rejection: 1.0, false_acceptance: 3.0}}"
PROTOCOLS = {
    "src/oodscope/protocols/registry.py": f"protocols: [standard, full_spectrum, {{human_centric: {OPTIONS}}}]",
    "src/oodscope": f"protocols: [standard, full_spectrum, human_centric]\nhuman_centric: {OPTIONS}",
}
"""How a job names the options of a protocol, by a file that only some versions have; the first found counts."""

RENAMED = {f"tpr5_{side}_positive": f"tpr5_{side}_positive_interpolated" for side in ("id", "ood")}
"""Metrics of cross-validation that 0.1 called as those of evaluations, which are others."""


_RECORD = ("record/", "record/")
"""``run.json`` of later versions holds more than the record."""


def _run_of(name: str, *folders: str) -> tuple[Artefact, ...]:
    """The files of one result: scores of every image, and every number measured."""
    scores = tuple(f"{each}/scores.parquet" for each in folders)
    return (
        Artefact(f"{name}/scores", scores, TABLE),
        Artefact(f"{name}/scores-metadata", scores, LEAVES, metadata=True),
        Artefact(f"{name}/measurements", tuple(f"{each}/measurements.parquet" for each in folders), TABLE),
        Artefact(f"{name}/record", tuple(f"{each}/run.json" for each in folders), LEAVES, within=_RECORD),
    )


def _attack_of(name: str, folder: str) -> tuple[Artefact, ...]:
    """The files of one attack: its result, what every chain found, and the images."""
    return (
        *_run_of(name, folder),
        Artefact(f"{name}/chains", (f"{folder}/searches/*/*/block-*.safetensors",), ARRAYS),
        Artefact(f"{name}/id-scores", (f"{folder}/searches/*/id_scores.safetensors",), ARRAYS),
        Artefact(f"{name}/found", (f"{folder}/attack/[0-9]*.safetensors",), ARRAYS),
        Artefact(f"{name}/searches", (f"{folder}/attack.json",), LEAVES),
    )


def _crossval_of(name: str) -> tuple[Artefact, ...]:
    """The files of one cross-validation: the table, and the cells of every fold and hold-out."""
    return (
        Artefact(f"{name}/table", (f"{name}/crossval.parquet",), TABLE),
        Artefact(f"{name}/cells", (f"{name}/cells/*.json",), LEAVES),
        Artefact(f"{name}/tests", (f"{name}/tables/*/*.csv",), LEAVES),
    )


ARTEFACTS = (
    Artefact("demo/weights", PLACES["weights"], ARRAYS),
    Artefact("demo/training", ("cache/training/*/training.json",), LEAVES),
    *_run_of("demo", "demo/glyphs-*"),
    Artefact("demo/gallery", ("demo/glyphs-*/gallery.safetensors",), ARRAYS),
    *_attack_of("demo/attack", "demo/attacks/*"),
    Artefact("demo/attack/landscape", ("demo/attacks/*/attack/landscape.safetensors",), ARRAYS),
    Artefact("demo/generated/pixels", ("demo/generated/recombined-*/images/*.png",), ARRAYS),
    Artefact("demo/generated/recipe", ("demo/generated/recombined-*/recipe.json",), LEAVES),
    Artefact(
        "demo/generated/sanity",
        ("demo/generated/judged-*/generated.json", "demo/generated/judged-*/run.json"),
        LEAVES,
        within=("about/", ""),
    ),
    Artefact("demo/generated/samples", ("demo/generated/judged-*/samples.safetensors",), ARRAYS),
    *_run_of("demo/generated", "demo/generated/judged-*/glyphs*"),
    *_run_of("judged", "judged/glyphs-*"),
    *_run_of("tuned", "tuned/glyphs-*"),
    *_attack_of("attack-mh", "attack-mh/attacks/*"),
    *_attack_of("attack-tempering", "attack-tempering/attacks/*"),
    *_crossval_of("crossval-frozen"),
    *_crossval_of("crossval-full"),
    Artefact("gan/weights", ("gan/generator.safetensors",), ARRAYS),
    Artefact("gan/pixels", ("gan/samples.png",), ARRAYS),
    Artefact("latent/pixels", ("latent/images/*.png",), ARRAYS),
    Artefact("latent/recipe", ("latent/recipe.json",), LEAVES),
    Artefact("shifted/weights", ("shifted-work/shifted-*/generator.safetensors",), ARRAYS),
    Artefact("shifted/pixels", ("shifted-work/shifted-*/samples.png",), ARRAYS),
    Artefact("predict/verdicts", ("predict/verdicts.csv",), TABLE),
    Artefact("compare/pairs", ("compare/pairs.json",), LEAVES),
)

DROPPED = frozenset(
    (
        *("run", "runs", "id", "created", "oodscope_version", "versions", "environment"),  # differ between equal runs
        *("seconds", "costs", "fit_seconds", "microseconds_per_image", "peak_mib"),  # what it cost
        *("path", "file", "sha256"),  # places, and digests of files that hold the id of a run
        *("architecture", "head"),  # name a Python class
        *("plan",),  # a digest of settings and of names
    )
)
"""Columns and JSON keys that are not compared, with all below them."""

ENVIRONMENT = {
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"),
    "PYTHONHASHSEED": "0",
    "CUDA_VISIBLE_DEVICES": "",
    "TZ": "UTC",
    "PYTHONDONTWRITEBYTECODE": "1",
}


def environment_of(checkout: Path, room: Path) -> dict[str, str]:
    """Variables of every command: one thread, no device, and a home and a cache that are empty at the start."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("OODSCOPE_", "XDG_", "PYTHON"))}
    places = {"HOME": room / "home", "XDG_CACHE_HOME": room / "home" / ".cache", "OODSCOPE_CACHE": room / "cache"}
    (room / "home").mkdir()
    return {**own, **ENVIRONMENT, "PYTHONPATH": str(checkout / "src"), **{k: str(v) for k, v in places.items()}}


def check_import(checkout: Path, room: Path, environment: Mapping[str, str]) -> None:
    """Stop unless ``import oodscope`` takes the package of the checkout."""
    command = [sys.executable, "-c", "import oodscope; print(oodscope.__file__)"]
    done = subprocess.run(command, cwd=room, env=dict(environment), capture_output=True, text=True)
    found = done.stdout.strip().splitlines()
    if done.returncode or not found:
        raise SystemExit(f"{checkout}: the package cannot be imported: {_last_line(done.stderr)}")
    if not Path(found[-1]).resolve().is_relative_to(checkout / "src"):
        raise SystemExit(f"{checkout}: another package is imported: {found[-1]}")


def find(room: Path, patterns: tuple[str, ...]) -> tuple[str, list[Path]]:
    """The first pattern that finds something, and what it finds, in order."""
    for pattern in patterns:
        if found := sorted(room.glob(pattern)):
            return pattern, found
    return "", []


def filled(text: str, room: Path) -> str:
    """A command or job file with the paths that it names, relative to the folder of the run."""
    places = {}
    for name in set(re.findall(r"(?<!\{)\{(\w+)\}", text)):
        _, found = find(room, PLACES[name])
        if len(found) != 1:
            raise SystemExit(f"{name}: {len(found)} files match {' or '.join(PLACES[name])}, and one is needed")
        places[name] = found[0].relative_to(room).as_posix()
    return text.format(**places)


def execute(step: Step, checkout: Path, room: Path, environment: Mapping[str, str], protocols: str) -> float:
    """Run one command; the seconds that it took."""
    for name, content in JOBS.items():
        if name in step.command:
            text = content.replace("{protocols}", protocols.replace("{", "{{").replace("}", "}}"))
            (room / name).write_text(filled(text, room), encoding="utf-8")
    for folder in ("fit", Path(step.printed).parent):
        (room / folder).mkdir(exist_ok=True)
    command = [sys.executable, "-m", "oodscope", *filled(step.command_of(checkout), room).split()]
    start = time.perf_counter()
    done = subprocess.run(command, cwd=room, env=dict(environment), capture_output=True, text=True)
    if done.returncode not in step.statuses:
        raise SystemExit(f"step {step.name} ended with status {done.returncode}: {_last_line(done.stderr)}")
    if step.printed:
        (room / step.printed).write_text(done.stdout, encoding="utf-8")
    return time.perf_counter() - start


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def kept(name: str) -> bool:
    """Whether a column, or a leaf with keys joined by slashes, is compared."""
    return not DROPPED & set(name.split("/"))


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf of a JSON value with the keys that lead to it."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in items:
            yield from leaves(each, f"{name}/{key}" if name else str(key))
    else:
        yield name, "null" if value is None else value


def read_leaves(path: Path, metadata: bool) -> dict[str, Any]:
    """Leaves of a JSON file, of the metadata of a Parquet file, or of a CSV file (row and column lead to a text)."""
    if metadata:
        stored = pq.read_schema(path).metadata or {}
        return dict(leaves([json.loads(text) for key, text in sorted(stored.items()) if key != b"pandas"]))
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".csv":
        return dict(leaves(list(csv.DictReader(text.splitlines()))))
    # a record of a cross-validation has a checksum before the JSON value
    return dict(leaves(json.loads(re.sub(r"\A[0-9a-f]{8} (?=\{)", "", text))))


def read_table(path: Path) -> Values:
    """Columns of a Parquet or CSV file; what is missing is NaN, or "null" in a text."""
    if path.suffix == ".csv":
        rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
        return {name: _column([row[name] for row in rows]) for name in (rows[0] if rows else ())}
    table = pq.read_table(path)
    return {name: _plain(table.column(name)) for name in table.column_names}


def _plain(column: pa.ChunkedArray) -> NDArray[Any]:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return np.array(["null" if text is None else text for text in column.to_pylist()], dtype=str)
    return np.asarray(column.to_numpy())


def _column(texts: list[str]) -> NDArray[Any]:
    try:
        return np.array([float(text) for text in texts])
    except ValueError:
        return np.array(texts, dtype=str)


def read_arrays(path: Path) -> Values:
    """Tensors of a file, or the pixels of an image."""
    if path.suffix == ".png":
        with Image.open(path) as image:
            return {"pixels": np.asarray(image)}
    return dict(load_file(path))


def read_artefact(artefact: Artefact, room: Path) -> Values:
    """What an artefact holds, normalised; of several files, names begin with what tells the files apart."""
    pattern, found = find(room, artefact.patterns)
    values: Values = {}
    for path, prefix in zip(found, _prefixes(pattern, [each.relative_to(room).as_posix() for each in found])):
        content: Mapping[str, Any]
        if artefact.kind == LEAVES:
            found_leaves = _part(read_leaves(path, artefact.metadata), *artefact.within)
            content = {k: np.asarray(v) for k, v in found_leaves.items()}
        else:
            content = read_table(path) if artefact.kind == TABLE else read_arrays(path)
        values |= {f"{prefix}{name}": _without(array, room) for name, array in content.items() if kept(name)}
    return values


def _part(content: dict[str, Any], before: str, instead: str) -> dict[str, Any]:
    """The leaves whose keys begin with ``before``, which becomes ``instead``; all where there are none such."""
    part = {f"{instead}{key.removeprefix(before)}": value for key, value in content.items() if key.startswith(before)}
    return part or content


def _prefixes(pattern: str, paths: list[str]) -> list[str]:
    """What the wildcards of a pattern stand for in each path, where that is not the same in all of them."""
    # a set of characters belongs to the star that follows it: [0-9]*
    expression = re.compile(re.sub(r"(?:\\\[.*?\\\])?\\\*", "([^/]*)", re.escape(pattern)))
    matched = [match.groups() if (match := expression.fullmatch(path)) else (path,) for path in paths]
    telling = [number for number, parts in enumerate(zip(*matched)) if len(set(parts)) > 1]
    return ["".join(f"{parts[number]}/" for number in telling) for parts in matched]


def _without(array: NDArray[Any], room: Path) -> NDArray[Any]:
    """The same with the folder of the run taken out of texts."""
    return np.char.replace(array, f"{room}/", "") if array.dtype.kind == "U" else array


def digest(values: Values) -> str:
    """SHA-256 of names, types, shapes and bytes."""
    found = hashlib.sha256()
    for name in sorted(values):
        array = np.ascontiguousarray(values[name])
        content = "\0".join(array.ravel().tolist()).encode() if array.dtype.kind == "U" else array.tobytes()
        kind = "U" if array.dtype.kind == "U" else str(array.dtype)
        found.update(f"{name}\0{kind}\0{array.shape}\0".encode() + content)
    return found.hexdigest()


def write_values(values: Values, kind: str, path: Path) -> None:
    """Keep an artefact in one file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == TABLE:
        pq.write_table(
            pa.table(
                {
                    name: pa.array(array.tolist(), pa.string()) if array.dtype.kind == "U" else array
                    for name, array in values.items()
                }
            ),
            path,
        )
    elif kind == ARRAYS:
        with path.open("wb") as stream:
            np.savez_compressed(stream, **values)
    else:
        text = json.dumps({name: array.item() for name, array in values.items()}, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")


def read_values(kind: str, path: Path) -> Values:
    """Read what ``write_values`` wrote."""
    if kind == TABLE:
        return read_table(path)
    if kind == ARRAYS:
        with np.load(path, allow_pickle=False) as stored:
            return dict(stored)
    return {name: np.asarray(value) for name, value in json.loads(path.read_text(encoding="utf-8")).items()}


def record(checkout: Path, out: Path) -> None:
    """Run every step with the code of a checkout, and keep every artefact."""
    if not (checkout / "src" / "oodscope").is_dir():
        raise SystemExit(f"{checkout} is no checkout of the project: there is no src/oodscope")
    if out.exists() and any(out.iterdir()):
        raise SystemExit(f"{out} is not empty; choose another folder")
    room, taken, digests = Path(tempfile.mkdtemp(prefix="same-digits-")).resolve(), {}, {}
    try:
        environment = environment_of(checkout, room)
        check_import(checkout, room, environment)
        protocols = next(text for file, text in PROTOCOLS.items() if (checkout / file).exists())
        for step in STEPS:
            taken[step.name] = execute(step, checkout, room, environment, protocols)
            print(f"{step.name:20} {taken[step.name]:6.1f} s", flush=True)
        for artefact in ARTEFACTS:
            if not find(room, artefact.patterns)[1]:
                # the comparison says that only one record has it; the rest of a long run is not lost
                print(f"artefact {artefact.name}: no file matches {' or '.join(artefact.patterns)}")
                continue
            values = read_artefact(artefact, room)
            write_values(values, artefact.kind, out / f"{artefact.name}{SUFFIXES[artefact.kind]}")
            size = sum(array.size for array in values.values())
            digests[artefact.name] = {"kind": artefact.kind, "sha256": digest(values), "values": size}
    finally:
        shutil.rmtree(room, ignore_errors=True)
    about = {"commit": commit_of(checkout), "machine": machine(), "seconds": taken}
    for name, content in (("digests", digests), ("about", about)):
        (out / f"{name}.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    total = sum(each["values"] for each in digests.values())
    print(f"{len(digests)} artefacts, {total:,} values, {sum(taken.values()):.0f} s")


def commit_of(checkout: Path) -> str:
    """The commit of a checkout, marked if files were changed; empty if it is none of git."""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--tags"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout.strip()


def machine() -> str:
    """Processor, cores and versions, without names of hosts."""
    cpus = Path("/proc/cpuinfo")
    text = cpus.read_text(encoding="utf-8") if cpus.exists() else ""
    model = re.search(r"model name\s*: (.+)", text)
    named = model[1].strip() if model else platform.machine()
    libraries = ", ".join(f"{name} {version(name)}" for name in ("torch", "numpy", "pillow"))
    return f"{os.cpu_count()} cores, {named}, one thread; Python {platform.python_version()}, {libraries}"


def renamed(values: Values) -> Values:
    """The same with metrics of cross-validation under the names that they have now, in names and in texts."""
    pattern = re.compile(rf"({'|'.join(RENAMED)})(?!_)")

    def now(text: str) -> str:
        return pattern.sub(lambda found: RENAMED[found[1]], text)

    def texts(array: NDArray[Any]) -> NDArray[Any]:
        return np.array([now(text) for text in array.ravel()], dtype=str).reshape(array.shape)

    return {now(name): texts(array) if array.dtype.kind == "U" else array for name, array in values.items()}


@dataclass(frozen=True)
class Verdict:
    """What the comparison of one artefact found.

    Parameters
    ----------
    values : in columns that both have.
    differing : how many of them are not equal to the bit.
    largest : the largest absolute difference of numbers.
    changed : columns with such values, or of another type or length.
    alone : columns that only one of both has, and how many rows.
    """

    name: str
    values: int
    differing: int
    largest: float
    changed: tuple[str, ...]
    alone: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """Whether both hold the same columns with the same bits."""
        return not self.changed and not self.alone

    def row(self) -> list[str]:
        """For a table."""
        told = "yes" if self.equal else f"no: {self.differing:,} differ" if self.changed else "no"
        return [self.name, f"{self.values:,}", told, f"{self.largest:.3g}", _few(self.changed), _few(self.alone)]


def _few(names: tuple[str, ...], most: int = 4) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def unequal(first: NDArray[Any], second: NDArray[Any]) -> tuple[int, float]:
    """How many values of two arrays differ in any bit, and the largest absolute difference."""
    texts = first.dtype.kind == "U" and second.dtype.kind == "U"
    if first.shape != second.shape or (first.dtype != second.dtype and not texts):
        return max(first.size, second.size), float("nan")
    if texts:
        return _unequal_texts(first[first != second].tolist(), second[first != second].tolist())
    bits = [np.ascontiguousarray(each).reshape(-1, 1).view(np.uint8) for each in (first, second)]
    differing = int((bits[0] != bits[1]).any(axis=1).sum()) if first.size else 0
    if not differing:
        return 0, 0.0
    with np.errstate(invalid="ignore"):
        apart = np.abs(first.astype(np.float64) - second.astype(np.float64))
    return differing, float("nan") if np.isnan(apart).all() else float(np.nanmax(apart))


def _unequal_texts(first: list[str], second: list[str]) -> tuple[int, float]:
    """The same of texts that differ; where they are numbers, as in a CSV file, with their distance."""
    try:
        distances = [abs(float(one) - float(other)) for one, other in zip(first, second)]
    except ValueError:
        distances = []
    return len(first), max(distances, default=0.0)


def in_order(values: Values, names: list[str]) -> Values:
    """The rows of a table, sorted by texts; rows of equal texts stay in their order."""
    if not names:
        return values
    order = np.lexsort([values[name] for name in reversed(names)])
    return {name: array[order] for name, array in values.items()}


def in_both(first: Values, second: Values, names: list[str]) -> tuple[Values, Values, int]:
    """The rows of two tables whose texts stand in both, as often as in both, and how many others there are."""
    keys = [list(zip(*(values[name].tolist() for name in names))) for values in (first, second)]
    shared = Counter(keys[0]) & Counter(keys[1])
    if not names or shared.total() == len(keys[0]) == len(keys[1]):
        return first, second, 0
    parts = []
    for values, rows in zip((first, second), keys):
        left, kept_rows = shared.copy(), []
        for number, key in enumerate(rows):
            if left[key] > 0:
                left[key] -= 1
                kept_rows.append(number)
        parts.append({name: array[kept_rows] for name, array in values.items()})
    return parts[0], parts[1], len(keys[0]) + len(keys[1]) - 2 * shared.total()


def compare_values(name: str, kind: str, first: Values, second: Values) -> Verdict:
    """Compare the columns that both have, to the bit; of a table the rows that both have."""
    both = [each for each in first if each in second]
    alone = sorted(first.keys() ^ second.keys())
    if kind == TABLE:
        texts = [each for each in both if first[each].dtype.kind == "U" and second[each].dtype.kind == "U"]
        first, second, rows = in_both(first, second, texts)
        alone += [f"{rows:,} rows"] * bool(rows)
        first, second = in_order(first, texts), in_order(second, texts)
    found = {each: unequal(first[each], second[each]) for each in both}
    sizes = [max(first[each].size, second[each].size) for each in both]
    distances = [distance for count, distance in found.values() if count]
    return Verdict(
        name=name,
        values=sum(sizes),
        differing=sum(count for count, _ in found.values()),
        largest=max(distances, key=lambda each: float("inf") if np.isnan(each) else each, default=0.0),
        changed=tuple(each for each, (count, _) in found.items() if count),
        alone=tuple(alone),
    )


def compare(first: Path, second: Path) -> list[Verdict]:
    """Compare every artefact of two records; one that only one has is not equal."""
    listed = [read_json(folder / "digests.json") for folder in (first, second)]
    verdicts = []
    for name in dict.fromkeys([*listed[0], *listed[1]]):
        if name not in listed[0] or name not in listed[1]:
            verdicts.append(Verdict(name, 0, 0, 0.0, (), ("the whole artefact",)))
            continue
        kind = listed[0][name]["kind"]
        read = [read_values(kind, folder / f"{name}{SUFFIXES[kind]}") for folder in (first, second)]
        for folder, values, told in zip((first, second), read, listed):
            if digest(values) != told[name]["sha256"]:
                raise SystemExit(f"{folder}: artefact {name} is not what was recorded (digest differs)")
        if name.startswith("crossval"):
            read = [renamed(values) for values in read]
        verdicts.append(compare_values(name, kind, *read))
    return verdicts


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object of a record."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path.parent} is no record of this script: {path.name} cannot be read ({error})") from error
    return content


def conclusion(verdicts: list[Verdict]) -> str:
    """What the numbers say, in one sentence."""
    total = sum(each.values for each in verdicts)
    unlike = [each for each in verdicts if not each.equal]
    if not unlike:
        return f"All {total:,} values of {len(verdicts)} artefacts are equal to the bit."
    differing = sum(each.differing for each in unlike)
    largest = max((each.largest for each in unlike if not np.isnan(each.largest)), default=0.0)
    names = _few(tuple(each.name for each in unlike))
    return (
        f"{len(unlike)} of {len(verdicts)} artefacts differ ({names}): {differing:,} of {total:,} values are not equal "
        f"to the bit, and the largest absolute difference is {largest:.3g}."
    )


HEADINGS = ["artefact", "values", "equal", "largest difference", "columns that differ", "columns or rows of only one"]


def plain_table(verdicts: list[Verdict]) -> str:
    """For a terminal."""
    rows = [HEADINGS, *(each.row() for each in verdicts)]
    widths = [max(len(row[number]) for row in rows) for number in range(len(HEADINGS))]
    return "\n".join("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in rows)


def markdown_rows(rows: list[list[str]]) -> list[str]:
    """A table; the first row is its head."""
    lines = ["| " + " | ".join(text.replace("|", "\\|") for text in row) + " |" for row in rows]
    return [lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]


def page(verdicts: list[Verdict], first: Path, second: Path) -> str:
    """The page of results."""
    about = [read_json(folder / "about.json") for folder in (first, second)]
    commits = [each["commit"] or "no commit" for each in about]
    machines = list(dict.fromkeys(each["machine"] for each in about))
    steps = [
        [each.name, f"`{each.command}`", *(f"{told['seconds'].get(each.name, float('nan')):.0f}" for told in about)]
        for each in STEPS
    ]
    lines = [
        "# Are the numbers of two checkouts the same, to the bit?",
        "",
        f"**Question.** Do the checkouts A ({commits[0]}) and B ({commits[1]}) compute the same scores, measurements, "
        "found images, cells, pixels and weights?",
        "",
        f"**Answer.** {conclusion(verdicts)}",
        "",
        "**Command.** `python benchmarks/same_digits.py record CHECKOUT OUT` for each checkout, then "
        "`python benchmarks/same_digits.py compare OUT_A OUT_B --markdown FILE`",
        "",
        *(f"**Machine{' ' + 'AB'[n] if len(machines) > 1 else ''}.** {each}\n" for n, each in enumerate(machines)),
        f"**Date.** {datetime.now(UTC):%Y-%m-%d}",
        "",
        *markdown_rows([HEADINGS, *(each.row() for each in verdicts)]),
        "",
        f"Not compared, wherever they stand: {', '.join(f'`{name}`' for name in sorted(DROPPED))}.",
        "",
        "What was run, each with `python -m oodscope`, in one empty folder per checkout:",
        "",
        *markdown_rows([["step", "command", "seconds A", "seconds B"], *steps]),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Compare the numbers of two checkouts to the bit.")
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="run everything with the code of a checkout, and keep the numbers")
    recording.add_argument("checkout", type=Path)
    recording.add_argument("out", type=Path)
    comparing = commands.add_parser("compare", help="compare two records; the status is 1 if anything differs")
    comparing.add_argument("first", type=Path)
    comparing.add_argument("second", type=Path)
    comparing.add_argument("--markdown", type=Path, help="write the page of results to this file")
    given = parser.parse_args()
    if given.command == "record":
        record(given.checkout.resolve(), given.out)
        return 0
    verdicts = compare(given.first, given.second)
    print(plain_table(verdicts))
    print(conclusion(verdicts))
    if given.markdown:
        given.markdown.write_text(page(verdicts, given.first, given.second), encoding="utf-8")
    return int(not all(each.equal for each in verdicts))


if __name__ == "__main__":
    sys.exit(main())
