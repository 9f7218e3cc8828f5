"""Small true entries: scores of 90 images, their record, and the archives in which they are handed in."""

import io
import json
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

from oodscope.leaderboard.records.entry import Entry
from oodscope.leaderboard.records.folder import table_lists, write_entry
from oodscope.leaderboard.records.records import BenchmarkUse, DetectorUse, ModelUse, ScoresFile, SetUse
from oodscope.results.scoretable import ScoreTable

SETS = {"id_test": ("id_test", 0.0), "letters": ("near", 1.0), "noise": ("far", 2.5)}


def make_scores(detector: str, seed: int, n: int = 30) -> ScoreTable:
    rng = np.random.default_rng(seed)
    frames = [
        pd.DataFrame(
            {
                "sample_id": [f"{name}/{row:03d}.png" for row in range(n)],
                "set": name,
                "role": role,
                "label": np.arange(n) % 3 if role == "id_test" else np.full(n, -1),
                "own_class": np.arange(n) % 3,
                "prediction": np.arange(n) % 3,
                "unit": "all",
                detector: shift + rng.normal(size=n),
            }
        )
        for name, (role, shift) in SETS.items()
    ]
    return ScoreTable(pd.concat(frames, ignore_index=True), {"detectors": {detector: {"name": detector, "params": {}}}})


def make_entry(board: Path, id: str, seed: int = 0, method: str | None = None) -> Path:
    """Write an entry whose numbers can be recomputed; its folder."""
    scores = make_scores("mine", seed)
    sets = {name: SetUse(role=role, n=n, list_hash=hashed) for name, (role, n, hashed) in table_lists(scores).items()}
    entry = Entry(
        schema_version=1,
        id=id,
        method=method or f"Method {seed}",
        submitted="2026-03-01T12:00:00+00:00",
        track="post-hoc",
        benchmark=BenchmarkUse(name="small", version="1", sets=sets),
        protocols={"standard": 1},
        model=ModelUse(name="net"),
        detector=DetectorUse(id="mine", name="mine"),
        scores=ScoresFile(sha256="0" * 64, rows=len(scores)),
    )
    return write_entry(board, entry, scores)


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def zipped(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def tarred(files: dict[str, bytes], *odd: tarfile.TarInfo) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for member in odd:
            archive.addfile(member)
    return stream.getvalue()


def form(fields: list[tuple[str, bytes]], boundary: str = "limit") -> bytes:
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="../../evil"\r\n\r\n'.encode()
        + content
        + b"\r\n"
        for name, content in fields
    ]
    return b"".join(parts) + f"--{boundary}--\r\n".encode()


def upload(folder: Path, id: str, seed: int = 0) -> bytes:
    """A zip of a new entry."""
    return zipped(files_of(make_entry(folder, id, seed)))


def changed(files: dict[str, bytes], **changes) -> dict[str, bytes]:
    """The same with other fields in ``entry.json``."""
    record = json.loads(files["entry.json"]) | changes
    return files | {"entry.json": json.dumps(record).encode()}
