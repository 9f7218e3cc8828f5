"""One pass over images: logits, features, and the columns that probes ask for."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oodscope.activations.probe import Probe
from oodscope.data import ImageSet
from oodscope.models import Classifier

T = TypeVar("T")
Rows = NDArray[np.int64]


def run_network(
    classifier: Classifier,
    images: ImageSet,
    rows: Rows,
    *,
    plain: bool,
    probes: Sequence[Probe],
    batch_size: int,
) -> dict[str, NDArray[np.float32]]:
    """The columns of some rows of a set: ``logits`` and ``features`` if ``plain``, and one per probe."""
    pieces: dict[str, list[Tensor]] = {}
    batches = [rows[start : start + batch_size] for start in range(0, len(rows), batch_size)]
    for batch in ahead(batches, lambda chosen: classifier.prepare(images.images(chosen))):
        batch = batch.to(classifier.device)
        if plain:
            outputs = classifier.forward(batch)
            pieces.setdefault("logits", []).append(outputs.logits.cpu())
            if outputs.features is not None:
                pieces.setdefault("features", []).append(outputs.features.cpu())
        for probe in probes:
            pieces.setdefault(probe.column, []).append(probe(classifier, batch).detach().cpu())
    return {name: torch.cat(parts).numpy() for name, parts in pieces.items()}


def ahead(items: Iterable[Rows], load: Callable[[Rows], T]) -> Iterator[T]:
    """Load the next item in a thread while the caller works on this one."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        waiting: Future[T] | None = None
        for item in items:
            coming = pool.submit(load, item)
            if waiting is not None:
                yield waiting.result()
            waiting = coming
        if waiting is not None:
            yield waiting.result()
