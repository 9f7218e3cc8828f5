"""StreamDetector: a score that depends on the images before; its track is ``transductive``, ranked apart."""

import inspect
from abc import abstractmethod
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError, UsageError, did_you_mean
from oodscope.base.registry import Registry
from oodscope.detectors.base import Detector
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.registry import DETECTORS, create_detector

Mode = Literal["causal", "batch"]
"""``causal``: a score depends on earlier images alone, so that it does not matter, beyond rounding, how the stream is
cut into batches. ``batch``: on the images of its own batch too, as the released code of most such methods has it."""

Described = tuple[Tensor, ...]
"""What is known of some images whatever the stream: tensors with one row per image."""


class StreamDetector(Detector):
    """A detector with a memory: ``start`` empties it, ``observe`` takes the next images and scores them, in order.

    ``score`` starts anew and observes everything once, so its result depends on the order of the rows. A subclass gives
    ``_begin``, ``_describe``, ``_judge`` and ``_remember``; the base keeps to the mode. A number of such a detector
    belongs to the schedule of its stream: ``oodscope stream`` measures it over many.
    """

    mode: str

    def start(self) -> None:
        """Forget the stream; what was fitted stays."""
        if self.learns and not self.fitted:
            raise DetectorError(f"{self.name}: not fitted. Call fit(train, val) first")
        if self.mode not in get_args(Mode):
            raise DetectorError(f"{self.name}: mode must be causal or batch, not {self.mode!r}")
        self._begin()

    def observe(self, activations: Activations) -> Tensor:
        """Scores of the next images of the stream, larger = more OOD."""
        return self.observe_described(self.describe(activations))

    def describe(self, activations: Activations) -> Described:
        """What does not depend on the stream: whoever streams the same images many times asks for it once."""
        self._check(activations)
        parts = [self._describe(chunk) for chunk in activations.chunks(device=self.device, only=self.columns)]
        return tuple(torch.cat(column) for column in zip(*parts))

    def observe_described(self, images: Described) -> Tensor:
        """``observe`` of images that were described before."""
        if self.mode == "batch":
            self._remember(*images)
            return precise(self._judge(*images))
        scores = []
        for number in range(len(images[0])):
            one = tuple(part[number : number + 1] for part in images)
            scores.append(self._judge(*one))
            self._remember(*one)
        return precise(torch.cat(scores))

    def score(self, activations: Activations) -> Tensor:
        self.start()
        return super().score(activations)

    def _score(self, batch: Activations) -> Tensor:
        return self.observe(batch)

    @property
    def columns(self) -> tuple[str, ...]:
        """What it reads of every image."""
        return tuple(self._columns())

    @abstractmethod
    def _begin(self) -> None:
        """Empty the memory."""

    @abstractmethod
    def _describe(self, batch: Activations) -> Described:
        """What does not depend on the stream, such as unit features and a number for each image."""

    @abstractmethod
    def _judge(self, *images: Tensor) -> Tensor:
        """Scores of what ``_describe`` returned, against the memory as it is."""

    @abstractmethod
    def _remember(self, *images: Tensor) -> None:
        """Take images into the memory, in order."""


STREAM_DETECTORS: Registry[StreamDetector] = Registry("stream_detector", StreamDetector)  # type: ignore[type-abstract]
"""Apart from the other detectors: an evaluation of independent images cannot ask for one by accident."""


def create_entry(name: str, **params: Any) -> Detector:
    """What may take part in a stream: a stream detector by its name, or any other detector as a constant baseline."""
    if name not in STREAM_DETECTORS:
        if name not in DETECTORS and "+" not in name:
            near = did_you_mean(name, [*STREAM_DETECTORS, *DETECTORS])
            raise UsageError(f"unknown detector {name!r}.{near} See: oodscope list stream_detectors")
        return create_detector(name, **params)
    cls = STREAM_DETECTORS.get(name)
    known = list(inspect.signature(cls).parameters)
    for key in params:
        if key not in known:
            hint = did_you_mean(key, known) or f" It has: {', '.join(known)}"
            raise UsageError(f"{name}: no parameter {key!r}.{hint}")
    return cls(**params)
