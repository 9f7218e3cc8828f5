"""What is fuzzed: for every kind of file and request its reader, and damage at random, the same for the same seed."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory, mkdtemp

import numpy as np
import pandas as pd
import torch
from starlette.requests import Request

from oodscope.base.config import read_yaml
from oodscope.base.errors import OodscopeError
from oodscope.data.images.filedigests import Statuses, _keep, _known
from oodscope.data.loading import read_manifest
from oodscope.deploy.artefact import _FILE, load
from oodscope.generation.search.result import SearchResult
from oodscope.jobs.checking import check_declared
from oodscope.jobs.job import read_job
from oodscope.leaderboard.records.boundedscores import read_bounded_scores
from oodscope.leaderboard.records.folder import read_entry
from oodscope.results import scorefile
from oodscope.runs.crossval.journal import Journal
from oodscope.serve.answers import RefusedError
from oodscope.serve.checking import check
from oodscope.serve.receiving import Limits, receive
from tests.hostile.declared import BENCHMARK, JOB
from tests.hostile.good import _network, good
from tests.hostile.mutating import altered, as_json, as_yaml, damaged
from tests.serve.world import files_of, form, make_entry, tarred, zipped

IDENTITY = {"seed": 1, "detectors": ["msp"], "pairs": [["a", "b"]]}
CELLS = [{"detector": "msp", "metric": "auroc", "value": 0.5}]


def job(folder: Path, random: Random) -> None:
    path = folder / "job.yaml"
    path.write_bytes(as_yaml(JOB, random))
    declared = read_yaml(path)
    if isinstance(declared, dict):
        check_declared(declared, str(path))
    read_job(path)


def benchmark(folder: Path, random: Random) -> None:
    (folder / "own.yaml").write_bytes(as_yaml(BENCHMARK, random))
    read_manifest(folder / "own.yaml")


@cache
def _entry() -> dict[str, bytes]:
    return files_of(make_entry(Path(mkdtemp()), "mine", 5))


def entry(folder: Path, random: Random) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "entry.json").write_bytes(as_json(json.loads(_entry()["entry.json"]), random))
    (folder / "mine" / "scores.parquet").write_bytes(_entry()["scores.parquet"])
    read_entry(folder / "mine")


def crossval_journal(folder: Path, random: Random) -> str:
    journal = Journal(folder, IDENTITY)
    journal.write("unit", CELLS, pd.DataFrame({"msp": [0.5, 1.0]}))
    path = folder / random.choice(("plan.json", "cells/unit.json"))
    path.write_bytes(damaged(path.read_bytes(), random))
    cells = Journal(folder, IDENTITY).read("unit")
    assert cells in (None, CELLS)
    return "healed" if cells is None else "taken"


@cache
def _search() -> SearchResult:
    rows = {name: torch.arange(4.0) for name in ("scores", "searched", "acceptance", "improved_at")}
    return SearchResult(
        **rows,
        points=torch.zeros(4, 2),
        last=torch.zeros(4, 2),
        clean=None,
        at_budget=torch.zeros(2, 4),
        evaluations=4,
        seconds=0.5,
        blocks=(0,),
        description={"seed": 1},
        notes=("a",),
    )


def search_journal(folder: Path, random: Random) -> None:
    path = folder / "block-00000.safetensors"
    _search().save(path)
    path.write_bytes(damaged(path.read_bytes(), random))
    SearchResult.load(path)


def parquet(folder: Path, random: Random) -> None:
    path = folder / "scores.parquet"
    path.write_bytes(damaged(_entry()["scores.parquet"], random))
    reading: Callable[[], object] = random.choice(
        (lambda: read_bounded_scores(path, "mine"), lambda: scorefile.read(path))
    )
    reading()


def artefact(folder: Path, random: Random) -> None:
    path = folder / "bad.oodscope"
    if random.random() < 0.5:
        path.write_bytes(damaged((good() / "good.oodscope").read_bytes(), random))
    else:
        record, tensors = _FILE.read(good() / "good.oodscope")
        for name in random.sample(sorted(tensors), random.choice((0, 0, 1))):
            tensors[name] = random.choice(
                (torch.zeros(0), torch.full((3, 3), float("nan")), torch.zeros(1, dtype=torch.int8))
            )
        _FILE.write(path, json.dumps(altered(record, random), default=str, ensure_ascii=True), tensors)
    load(path, model=_network(), device="cpu")


def http(folder: Path, random: Random) -> None:
    kinds = {"application/zip": zipped(_entry()), "application/gzip": tarred(_entry())}
    fields = [("scores", _entry()["scores.parquet"]), ("entry", as_json(json.loads(_entry()["entry.json"]), random))]
    kinds["multipart/form-data; boundary=limit"] = form(fields)
    kind, body = random.choice(list(kinds.items()))
    body = damaged(body, random) if random.random() < 0.8 else body
    kind = damaged(kind.encode(), random).decode("latin-1") if random.random() < 0.1 else kind
    for name in ("received", "ready", "board"):
        (folder / name).mkdir()
    pieces = [body[start : start + 999] for start in range(0, len(body), 999)]

    async def next_piece() -> dict:
        return {"type": "http.request", "body": pieces.pop(0) if pieces else b"", "more_body": bool(pieces)}

    head = [
        (b"content-type", kind.encode("latin-1")),
        (b"content-length", random.choice((b"", b"5", b"\xb2", b"9" * 30))),
    ]
    request = Request({"type": "http", "method": "POST", "path": "/", "headers": head}, next_piece)
    asyncio.run(receive(request, folder / "received", Limits(size=300_000, upload_seconds=60)))
    check(folder / "received", folder / "ready", folder / "board", 1_000_000)


def digest_cache(folder: Path, random: Random) -> str:
    statuses = Statuses(np.arange(1, 6), np.arange(11, 16))
    digests = np.arange(1, 81, dtype=np.uint8).reshape(5, 16)
    kept = folder / "manifest.parquet"
    _keep(kept, list("abcde"), statuses, digests)
    kept.write_bytes(damaged(kept.read_bytes(), random))
    found = _known(kept, statuses)
    assert all((row == 0).all() or (row == true).all() for row, true in zip(found, digests, strict=True)), found
    return "healed" if (found == 0).all() else "taken"


Target = Callable[[Path, Random], str | None]
TARGETS: tuple[Target, ...] = (
    job,
    benchmark,
    entry,
    crossval_journal,
    search_journal,
    parquet,
    artefact,
    http,
    digest_cache,
)


def fuzz(target: Target, seed: int) -> str:
    """Read what one seed makes: ``taken`` as it is, ``healed`` or ``refused``; whatever else happens is raised."""
    with TemporaryDirectory() as name:
        try:
            return target(Path(name), Random(seed)) or "taken"
        except OodscopeError as error:
            assert "\n" not in str(error), f"seed {seed}: more than a line: {error}"
            return "refused"
        except RefusedError as error:
            assert 400 <= error.status < 500, f"seed {seed}: status {error.status}"
            return "refused"
        except Exception as error:
            error.add_note(f"{target.__name__}, seed {seed}")
            raise


def fuzz_all(target: Target, seeds: Iterable[int]) -> Counter[str]:
    """How many cases ended how; the first that is no error for users is raised, and names its seed."""
    return Counter(fuzz(target, seed) for seed in seeds)
