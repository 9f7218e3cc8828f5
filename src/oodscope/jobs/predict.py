"""Image files judged by a fitted detector, one row each."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from oodscope.base.errors import OodscopeError
from oodscope.data.images.decoding import EXTENSIONS, UnreadableImageError, decode
from oodscope.deploy.scorer import Scorer
from oodscope.execution.progress import Progress

Rows: TypeAlias = Iterator[dict[str, Any]]
FIELDS = ("path", "class_name", "class_index", "score", "p_value", "accepted", "error")


def judge_files(scorer: Scorer, paths: Sequence[Path], batch_size: int, progress: Progress) -> Rows:
    """One row of ``FIELDS`` per file, in order; where ``error`` is set, the rest is None."""
    files = list(_expand(paths))
    if not files:
        raise OodscopeError(f"no image found (looked for {', '.join(sorted(EXTENSIONS))})")
    with progress.stage("predict", len(files)) as advance:
        for start in range(0, len(files), batch_size):
            batch = files[start : start + batch_size]
            read = {file: _read(file) for file in batch}
            good = [file for file in batch if not isinstance(read[file], str)]
            judged = dict(zip(good, scorer.predict([read[file] for file in good])))
            for file in batch:
                row: dict[str, Any] = dict.fromkeys(FIELDS)
                row["path"] = str(file)
                yield row | (judged[file]._asdict() if file in judged else {"error": read[file]})
            advance(len(batch))


def _expand(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from (file for file in sorted(path.rglob("*")) if file.suffix.lower() in EXTENSIONS)
        else:
            yield path


def _read(file: Path) -> Any:
    """Its pixels, or in words why there are none."""
    try:
        return np.asarray(decode(file, str(file)))
    except UnreadableImageError as error:
        return str(error).removeprefix(f"unreadable image {file}: ")
