"""One pass over images: logits, features, and the columns that probes ask for."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oodscope.activations.probes.probe import Passes, Probe, Tap
from oodscope.data.imageset import ImageSet
from oodscope.execution.lookahead import ahead, threads
from oodscope.models.classifier.classifier import Classifier

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
    for batch in prepared(classifier, images, rows, batch_size):
        found = batch_columns(classifier, batch.to(classifier.device), plain=plain, probes=probes)
        for name, values in found.items():
            pieces.setdefault(name, []).append(values.cpu())
    return {name: torch.cat(parts).numpy() for name, parts in pieces.items()}


def batch_columns(
    classifier: Classifier, batch: Tensor, *, plain: bool, probes: Sequence[Probe], grad: bool = False
) -> dict[str, Tensor]:
    """The columns of one prepared batch, on the classifier's device.

    Parameters
    ----------
    plain : whether ``logits`` and ``features`` are wanted; if not, only the probes' columns are there.
    grad : record the plain pass and its taps, so that they can be differentiated with respect to ``batch``. What
        probes find in passes of their own is never recorded.
    """
    taps = [probe for probe in probes if isinstance(probe, Tap)]
    found = _plain_pass(classifier, batch, taps, grad) if plain or taps else {}
    if not plain:
        found = {tap.column: found[tap.column] for tap in taps}
    passes = Passes(classifier, batch)
    # probes take gradients even where the caller records none
    with torch.enable_grad():
        return found | {probe.column: probe(passes).detach() for probe in probes if probe not in taps}


def _plain_pass(classifier: Classifier, batch: Tensor, taps: Sequence[Tap], grad: bool) -> dict[str, Tensor]:
    with ExitStack() as stack:
        shown = {tap.column: stack.enter_context(tap.watching(classifier)) for tap in taps}
        outputs = classifier.forward(batch, grad=grad)
        found = {"logits": outputs.logits}
        if outputs.features is not None:
            found["features"] = outputs.features
        return found | {column: show() for column, show in shown.items()}


def prepared(classifier: Classifier, images: ImageSet, rows: Rows, batch_size: int) -> Iterator[Tensor]:
    """Batches of some rows, ready for the network.

    Each batch is shared out among threads that decode and preprocess, one image at a time, while the network
    works on the batch before; about one batch waits. What a batch holds does not depend on who prepared it.
    """
    # a transform that cannot be compared may also not bear two threads at once
    workers = 1 if classifier.uncached_reason else threads()
    share = -(-batch_size // workers)

    def load(piece: Rows) -> Tensor:
        return classifier.prepare(images.pictures(piece))

    batches = [_cut(batch, share) for batch in _cut(rows, batch_size)]
    every = (piece for batch in batches for piece in batch)
    with closing(ahead(every, load, depth=workers, workers=workers)) as pieces:
        for batch in batches:
            ready = [next(pieces) for _ in batch]
            # a single one is the batch, without a copy
            yield ready[0] if len(ready) == 1 else torch.cat(ready)


def _cut(rows: Rows, size: int) -> list[Rows]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]
