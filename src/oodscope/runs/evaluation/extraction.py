"""Extraction: where the activations of an evaluation come from, and what is known of the network behind them."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe
from oodscope.activations.store.store import ActivationStore
from oodscope.data.benchmark import Benchmark
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.data.similarity.duplicates import find_duplicates
from oodscope.detectors.base import Capabilities, Detector
from oodscope.detectors.capabilities import capabilities_of
from oodscope.execution.progress import SILENT, Progress
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.zoo.zero_shot import ZeroShot
from oodscope.results.gallery import Gallery
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.evaluation.alarms import accuracy_alarms, answers_of, better_normalisation
from oodscope.runs.evaluation.exposure import find_exposure
from oodscope.runs.evaluation.picturing import picture_hardest


class Extraction(ABC):
    """The one thing that differs between evaluations of images and of arrays; all that follows is the same code.

    Parameters
    ----------
    name : of the network.
    device : where detectors are fitted and score.
    """

    name: str
    device: torch.device

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Of the network's weights and structure; empty where nobody knows them."""

    @abstractmethod
    def extract(self, images: ImageSet, probes: Iterable[Probe]) -> Activations:
        """Logits, features and labels of a set, and the columns of these probes."""

    def extract_sets(self, asked: Sequence[tuple[ImageSet, Iterable[Probe]]]) -> list[Activations]:
        """The activations of several sets, each with probes of its own, in order."""
        return [self.extract(images, probes) for images, probes in asked]

    @abstractmethod
    def capabilities(self, detectors: Sequence[Detector], benchmark: Benchmark) -> Capabilities:
        """What these detectors may ask for."""

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """What the record of a run says of the network: ``transform``, ``head``, ``precision``, ..."""

    def exposure(self, benchmark: Benchmark) -> dict[str, str]:
        """What is known of each set that the network has met before."""
        return {}

    def notes(self, benchmark: Benchmark) -> list[str]:
        """What a reader of the record should know of the data."""
        return []

    def alarms(self, benchmark: Benchmark, scores: ScoreTable) -> list[str]:
        """What makes the numbers doubtful before anybody reads them."""
        return accuracy_alarms(answers_of(scores, benchmark))

    def notes_afterwards(self) -> list[str]:
        """What a reader should know of the activations, once all of them are there."""
        return []

    def gallery(self, benchmark: Benchmark, scores: ScoreTable) -> Gallery | None:
        """Pictures of the hardest images, where there are images."""
        return None

    @property
    def hint(self) -> str:
        """What may help where a detector does not apply."""
        return ""

    @property
    def forwarded(self) -> int:
        """How many images went through the network so far."""
        return 0


TRIED = (
    "cuDNN tried its kernels (torch.backends.cudnn.benchmark): which is fastest may differ from process to process, "
    "and with it the last bits of activations"
)
"""What the record says where the user let it."""


class FromNetwork(Extraction):
    """Images through a classifier; what was extracted before is read from the store.

    Parameters
    ----------
    store : where activations are kept; by default in the cache.
    batch_size : images per forward pass.
    """

    def __init__(
        self,
        classifier: Classifier,
        store: ActivationStore | None = None,
        batch_size: int = 256,
        progress: Progress = SILENT,
    ) -> None:
        self.classifier, self.store = classifier, store or ActivationStore()
        self.name, self.device = classifier.name, classifier.device
        self._batch_size, self._progress, self._before = batch_size, progress, self.store.forwarded
        self._credited = 0
        self._tried = 0  # images that alarms sent through the network once more
        self.devices: set[str] = set()
        """Kinds of device that computed the activations, as far as is known."""

    @property
    def fingerprint(self) -> str:
        return self.classifier.fingerprint

    def extract(self, images: ImageSet, probes: Iterable[Probe]) -> Activations:
        (found,) = self.extract_sets([(images, probes)])
        return found

    def extract_sets(self, asked: Sequence[tuple[ImageSet, Iterable[Probe]]]) -> list[Activations]:
        unique = [(images, tuple(dict.fromkeys(probes))) for images, probes in asked]
        found = self.store.extract_sets(self.classifier, unique, batch_size=self._batch_size, progress=self._progress)
        self.devices = self.devices.union(*(each.made_on for each in found))
        return [each.embedded() for each in found] if self.classifier.embedding else found

    def capabilities(self, detectors: Sequence[Detector], benchmark: Benchmark) -> Capabilities:
        held_out = benchmark.id_val is not None
        return capabilities_of(detectors, self.classifier, train=benchmark.id_train is not None, held_out=held_out)

    def record(self) -> dict[str, Any]:
        return {
            "transform": str(self.classifier.transform),
            "head": self.classifier.describe(),
            "precision": self.classifier.precision,
            **network_record(self.classifier),
        }

    def exposure(self, benchmark: Benchmark) -> dict[str, str]:
        return find_exposure(self.classifier, benchmark)

    def notes(self, benchmark: Benchmark) -> list[str]:
        unreadable = [
            f"{len(images.skipped)} unreadable image{'s' * (len(images.skipped) > 1)} of {images.name} left out: "
            + ", ".join(images.skipped[:5])
            + (", ..." if len(images.skipped) > 5 else "")
            for _, images in benchmark.members()
            if images.skipped
        ]
        return [*unreadable, *find_duplicates(benchmark).notes()]

    def alarms(self, benchmark: Benchmark, scores: ScoreTable) -> list[str]:
        answers = answers_of(scores, benchmark)
        if answers is None:
            return []
        better, passes = better_normalisation(self.classifier, benchmark.id_test, answers)
        self._tried += passes
        return accuracy_alarms(answers) if better is None else [better]

    def notes_afterwards(self) -> list[str]:
        tried = [TRIED] if self.device.type == "cuda" and torch.backends.cudnn.benchmark else []
        if len(self.devices) < 2:
            return tried
        return [
            *tried,
            f"activations were computed on {len(self.devices)} kinds of device ({', '.join(sorted(self.devices))}): "
            "they agree to rounding, not to the bit. With a fresh cache (OODSCOPE_CACHE) one device computes all",
        ]

    def gallery(self, benchmark: Benchmark, scores: ScoreTable) -> Gallery | None:
        return picture_hardest(benchmark, scores)

    @property
    def hint(self) -> str:
        return self.classifier.head_reason or ""

    @property
    def forwarded(self) -> int:
        return self.store.forwarded - self._before + self._tried + self._credited

    def credit(self, forwarded: int, devices: Iterable[str]) -> None:
        """Count what others sent through the network for this evaluation, and on which devices."""
        self._credited += forwarded
        self.devices |= set(devices)


def network_record(classifier: Classifier) -> dict[str, Any]:
    """Preprocessing as settings, architecture, head, and what the weights are known to have seen."""
    transform = classifier.transform
    return {
        "preprocess": transform.model_dump(mode="json") if isinstance(transform, Preprocess) else None,
        "architecture": type(classifier.model).__name__,
        "head_path": classifier.head_path or "",
        "parameters": sum(each.numel() for each in classifier.model.parameters()),
        "words": classifier.model.digest if isinstance(classifier.model, ZeroShot) else "",
        "trained_on": [each.name if isinstance(each, ImageSet) else each for each in classifier.trained_on],
        "pretrained_on": list(classifier.pretrained_on),
    }
