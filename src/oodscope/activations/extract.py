"""One pass over images: logits, features, and the columns that probes ask for."""

from collections import Counter, deque
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oodscope.activations.feeding import Feed, cut, open_feed
from oodscope.activations.probes.own import PixelProbe
from oodscope.activations.probes.probe import RECORDED, Passes, Probe, Tap
from oodscope.data.imageset import ImageSet
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.network import at_precision, evaluating, memory_layout, tried_kernels

Rows = NDArray[np.int64]

WORTH_TRYING = 4096
"""Images of a set in batches of one size from which on the kernels for it may be tried (``tried_kernels``)."""


@dataclass(frozen=True)
class Ask:
    """What is wanted of one block of images.

    Parameters
    ----------
    rows : of the set.
    plain : whether ``logits`` and ``features`` are.
    probes : whose columns are. Taps look on during the plain pass, which is made for them if nobody else wants it.
    """

    rows: Rows
    plain: bool
    probes: Sequence[Probe]

    @property
    def forwards(self) -> int:
        """Forward passes per image: the plain one, if nothing else serves it, and those that probes name."""
        extra = frozenset[str]().union(*(probe.forwards for probe in self.probes))
        watched = any(isinstance(probe, Tap) for probe in self.probes)
        return ((self.plain or watched) and RECORDED not in extra) + len(extra)


def run_network(
    classifier: Classifier, images: ImageSet, asks: Sequence[Ask], batch_size: int
) -> Generator[dict[str, NDArray[np.float32]], None, None]:
    """The columns of each block in turn, of one network; see ``run_networks``."""
    with closing(run_networks([classifier], images, [asks], batch_size)) as blocks:
        yield from (computed for (computed,) in blocks)


def run_networks(
    classifiers: Sequence[Classifier],
    images: ImageSet,
    asks: Sequence[Sequence[Ask]],
    batch_size: int,
    stream: Feed | None = None,
) -> Generator[list[dict[str, NDArray[np.float32]]], None, None]:
    """The columns of each block in turn, of each network, from one stream of batches.

    No batch holds images of two blocks. On CUDA the results of a block travel back while the networks work on the next.

    Parameters
    ----------
    classifiers : on one device, with one preprocessing.
    asks : what each wants; blocks and rows are the same for all.
    stream : what ``feed_of`` made for these networks, images and asks, where somebody begins it early.
    """
    cuts = [cut(ask.rows, batch_size) for ask in asks[0]]
    stream = stream or feed_of(classifiers[0], images, asks[0], batch_size)
    with closing(stream), ExitStack() as stack:
        fed = iter(stream)
        for classifier in classifiers:
            stack.enter_context(evaluating(classifier.model))
            if classifier.device.type == "cuda":
                # weights that lie otherwise than batches would be moved at every pass
                classifier.model.to(memory_format=memory_layout(classifier.device, classifier.precision))
        waiting: deque[list[list[_Host]]] = deque()
        behind = classifiers[0].device.type == "cuda"
        common = _repeated(cuts)
        for place, batches in enumerate(cuts):
            found: list[list[_Host]] = [[] for _ in classifiers]
            for batch in islice(fed, len(batches)):
                for hosts, classifier, wanted in zip(found, classifiers, asks):
                    placed = _placed(batch, classifier)
                    with tried_kernels(worthwhile=len(batch) in common):
                        columns = batch_columns(classifier, placed, wanted[place].plain, wanted[place].probes)
                    hosts.append(_Host(columns))
            waiting.append(found)
            if len(waiting) > behind:
                yield [_joined(hosts) for hosts in waiting.popleft()]
        while waiting:
            yield [_joined(hosts) for hosts in waiting.popleft()]


def _repeated(cuts: Sequence[Sequence[Rows]]) -> frozenset[int]:
    """Sizes of batches that come often enough for their kernels to be worth trying."""
    sizes = Counter(len(batch) for batches in cuts for batch in batches)
    return frozenset(size for size, times in sizes.items() if size * times >= WORTH_TRYING)


def feed_of(
    classifier: Classifier, images: ImageSet, asks: Sequence[Ask], batch_size: int, following: Feed | None = None
) -> Feed:
    """The batches of these blocks; see ``open_feed``."""
    return open_feed(classifier, images, [batch for ask in asks for batch in cut(ask.rows, batch_size)], following)


def _placed(batch: Tensor, classifier: Classifier) -> Tensor:
    layout = memory_layout(classifier.device, classifier.precision)
    # channels last is a word for images
    return batch.to(memory_format=layout) if batch.ndim == 4 else batch


class _Host:
    """Columns of one batch, on their way to the processor's memory."""

    def __init__(self, columns: dict[str, Tensor]) -> None:
        # into pinned memory, behind the kernels that compute them; the event says when they are there
        self.columns = {name: values.to("cpu", non_blocking=True) for name, values in columns.items()}
        self.event = None
        if any(values.is_cuda for values in columns.values()):
            # who waits for a blocking event leaves its core to those who decode
            self.event = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
            self.event.record()

    def arrived(self) -> dict[str, Tensor]:
        if self.event is not None:
            self.event.synchronize()
        return self.columns


def _joined(batches: Sequence[_Host]) -> dict[str, NDArray[np.float32]]:
    # by NumPy: torch joins with all its threads, each of which then stays awake for some 8 ms on a decoder's core
    arrived = [batch.arrived() for batch in batches]
    return {name: np.concatenate([part[name].numpy() for part in arrived]) for name in arrived[0]}


def batch_columns(
    classifier: Classifier, batch: Tensor, plain: bool, probes: Sequence[Probe], *, grad: bool = False
) -> dict[str, Tensor]:
    """The columns of one prepared batch, on the classifier's device.

    Where a probe records a pass for its gradients, that pass is the plain one too.

    Parameters
    ----------
    plain : whether ``logits`` and ``features`` are wanted; if not, only the probes' columns are there.
    grad : record the plain pass, its taps and what is computed from pixels, so that they can be differentiated with
        respect to ``batch``. What probes find in passes of their own is never recorded.
    """
    taps = [probe for probe in probes if isinstance(probe, Tap)]
    own = [probe for probe in probes if isinstance(probe, PixelProbe)]
    others = [probe for probe in probes if not isinstance(probe, Tap | PixelProbe)]
    passes = Passes(classifier, batch)
    with at_precision(classifier.device, classifier.precision):
        found: dict[str, Tensor] = {}
        if plain or taps:
            shared = not grad and _recorded(others)
            found = _plain_pass(classifier, batch, taps, grad, passes if shared else None)
        if not plain:
            found = {tap.column: found[tap.column] for tap in taps}
        with torch.set_grad_enabled(grad):
            found |= {probe.column: probe.of_prepared(classifier, batch) for probe in own}
        # probes take gradients even where the caller records none
        with torch.enable_grad():
            return found | {probe.column: probe(passes).detach() for probe in others}


def _recorded(probes: Iterable[Probe]) -> bool:
    """Whether some probe makes the recorded pass, whose outputs are then those of the plain one."""
    return any(RECORDED in probe.forwards for probe in probes)


def _plain_pass(
    classifier: Classifier, batch: Tensor, taps: Sequence[Tap], grad: bool, passes: Passes | None
) -> dict[str, Tensor]:
    with ExitStack() as stack:
        shown = {tap.column: stack.enter_context(tap.watching(classifier)) for tap in taps}
        if passes is None:
            outputs = classifier.forward(batch, grad=grad)
        else:
            _, outputs = passes.recorded
        found = {"logits": outputs.logits}
        if outputs.features is not None:
            found["features"] = outputs.features
        found |= {column: show() for column, show in shown.items()}
        return found if grad else {name: values.detach() for name, values in found.items()}
