"""``run.json``: the file that makes a folder a finished run; it says the kind, and is written last."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oodscope.base.boundedjson import bounded_json
from oodscope.base.config import parse
from oodscope.base.errors import DataError, StorageError
from oodscope.base.files import file_sha256, plain_name, write_text
from oodscope.results.record import RunRecord

RECORD = "run.json"
SCHEMA = 2
"""Of ``run.json``; it counts up when files of older versions can no longer be read."""

_KEYS = {"kind", "schema", "record", "sha256", "about"}


@dataclass(frozen=True)
class RunFile:
    """What ``run.json`` says.

    Parameters
    ----------
    kind : the kind of run, a name in the registry ``RUNS``.
    files : checksum of each file that belongs to the run.
    about : what a kind keeps here beside its record; plain JSON values.
    """

    kind: str
    record: RunRecord
    files: Mapping[str, str]
    about: Mapping[str, Any]


def refuse_overwriting(folder: Path) -> None:
    """A folder that holds a finished run is left as it is."""
    if (folder / RECORD).exists():
        raise StorageError(f"{folder} holds a result, and results are never overwritten; choose another folder")


def write_runfile(
    folder: Path, kind: str, record: RunRecord, files: Iterable[str] = (), about: Mapping[str, Any] | None = None
) -> Path:
    """Finish a folder: ``run.json`` with the record and the checksums of files that lie there already.

    It comes last, so a folder whose writing was interrupted, or of which a part was copied, does not pass for a run.
    """
    content = {
        "kind": kind,
        "schema": SCHEMA,
        "record": record.model_dump(mode="json"),
        "sha256": {name: file_sha256(folder / name) for name in files},
        "about": dict(about or {}),
    }
    write_text(folder / RECORD, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return folder


def read_runfile(folder: Path) -> RunFile:
    """Read ``run.json`` and compare the files of the run with their checksums."""
    path = folder / RECORD
    try:
        content = bounded_json(path.read_text(encoding="utf-8"), str(path))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise DataError(f"{folder}: no finished result here ({RECORD} is missing)") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not valid JSON: {error}") from error
    if set(content) != _KEYS or not isinstance(content["sha256"], dict) or not isinstance(content["about"], dict):
        raise DataError(f"{path}: not the record of a result, or one of an older version; run it again")
    if content["schema"] != SCHEMA:
        raise DataError(f"{path}: schema {content['schema']}, this version reads {SCHEMA}; run it again")
    record = parse(RunRecord, content["record"], str(path))
    for name, digest in content["sha256"].items():
        plain_name(name, f"{path}: the file")
        if not (folder / name).is_file():
            raise DataError(f"{folder}: {name} is missing")
        if file_sha256(folder / name) != digest:
            raise DataError(f"{folder / name}: not the file saved with this result (checksum differs)")
    return RunFile(content["kind"], record, content["sha256"], content["about"])


def expect_kind(file: RunFile, folder: Path, *kinds: str) -> RunFile:
    """The same, if it is of one of these kinds."""
    if file.kind not in kinds:
        raise DataError(f"{folder}: a run of kind {file.kind!r}, where one of kind {kinds[0]!r} is needed")
    return file
