"""One pass over images: logits, features, and the columns that probes ask for."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oodscope.activations.passes import Passes
from oodscope.activations.probe import Probe, Tap
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
    """The columns of some rows of a set: ``logits`` and ``features`` if ``plain``, and one per probe.

    Taps look on during the plain pass, which is made for them if nobody else wants it.
    """
    pieces: dict[str, list[Tensor]] = {}
    taps = [probe for probe in probes if isinstance(probe, Tap)]
    batches = [rows[start : start + batch_size] for start in range(0, len(rows), batch_size)]
    for batch in ahead(batches, lambda chosen: classifier.prepare(images.images(chosen))):
        passes = Passes(classifier, batch.to(classifier.device))
        found = _plain_pass(passes, taps) if plain or taps else {}
        if not plain:
            found = {tap.column: found[tap.column] for tap in taps}
        found |= {probe.column: probe(passes).detach() for probe in probes if probe not in taps}
        for name, values in found.items():
            pieces.setdefault(name, []).append(values.cpu())
    return {name: torch.cat(parts).numpy() for name, parts in pieces.items()}


def _plain_pass(passes: Passes, taps: Sequence[Tap]) -> dict[str, Tensor]:
    with ExitStack() as stack:
        shown = {tap.column: stack.enter_context(tap.watching(passes.classifier)) for tap in taps}
        outputs = passes.classifier.forward(passes.images)
        found = {"logits": outputs.logits}
        if outputs.features is not None:
            found["features"] = outputs.features
        return found | {column: show() for column, show in shown.items()}


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
