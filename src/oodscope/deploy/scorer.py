"""Scorer: images in, scores out. What is deployed, and what an attack attacks."""

import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.extract import batch_columns
from oodscope.base.errors import DetectorError, ModelError
from oodscope.base.hashing import fingerprint
from oodscope.data.images.given import Given, GivenImages
from oodscope.detectors.base import Detector, Needs
from oodscope.detectors.capabilities import capabilities_of
from oodscope.detectors.saving import pack
from oodscope.execution.lookahead import ahead
from oodscope.execution.progress import SILENT, Progress
from oodscope.metrics.rejection.conformal import Calibration
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.pixels import PixelScale, pixel_scale
from oodscope.models.zoo.origin import ModelOrigin


class Prediction(NamedTuple):
    """What a scorer says of one image.

    Parameters
    ----------
    class_name, class_index : of the largest logit.
    score : larger = more OOD.
    p_value : share of images, among the calibration images and this one, that look at least as OOD.
    accepted : whether the score stays at or below the threshold. Both are None without a calibration.
    """

    class_name: str
    class_index: int
    score: float
    p_value: float | None
    accepted: bool | None


class Scorer:
    """A classifier, a fitted detector and, once calibrated, a threshold.

    The threshold bounds false alarms on in-distribution images like the calibration images. It promises nothing about
    how many outliers are caught, nor about images whose conditions have shifted. ``oodscope.fit_scorer`` makes one
    whose calibration images were not fitted to.

    Parameters
    ----------
    classifier : with its preprocessing.
    detector : fitted to this classifier's activations.
    calibration : scores of held-out in-distribution images and the threshold drawn through them.
    class_names : one per logit; numbers unless given.
    origin : which architecture of the zoo the network is; without it, a saved scorer is loaded with ``model=``.
    provenance : when, from which images and with which versions it was made; kept in the file.

    Examples
    --------
    >>> scorer = oods.fit_scorer(clf, "msp", bench.id_val)
    >>> scorer.predict(bench.id_test.take([0]))[0].accepted
    True
    """

    def __init__(
        self,
        classifier: Classifier,
        detector: Detector,
        *,
        calibration: Calibration | None = None,
        class_names: tuple[str, ...] = (),
        origin: ModelOrigin | None = None,
        provenance: dict[str, Any] | None = None,
    ) -> None:
        if detector.learns and not detector.fitted:
            raise DetectorError(f"{detector.name}: not fitted. Call fit(train, val) first, or use fit_scorer")
        if classifier.embedding:
            raise ModelError(f"{classifier.name} ends in an embedding and predicts no class: give it a head (--probe)")
        check_applies(detector, classifier)
        if class_names and len(class_names) != classifier.num_classes:
            raise DetectorError(f"{len(class_names)} class names for {classifier.num_classes} classes")
        self.classifier = classifier
        self.detector = detector.to(classifier.device)
        self.calibration = calibration
        self.class_names = tuple(class_names) or tuple(str(number) for number in range(classifier.num_classes))
        self.origin = origin
        self.provenance = dict(provenance or {})
        self._probes = detector.probes
        self._head = None if classifier.head is None else classifier.head.to(classifier.device)

    def __repr__(self) -> str:
        calibrated = f"threshold {self.calibration.threshold:.6g}" if self.calibration else "not calibrated"
        return f"Scorer({self.classifier.name!r}, {self.detector.id}, {calibrated})"

    @property
    def device(self) -> torch.device:
        """Where images are judged."""
        return self.classifier.device

    @property
    def name(self) -> str:
        """How results call it."""
        return f"{self.classifier.name}/{self.detector.id}"

    @property
    def fingerprint(self) -> str:
        """Of the network, its preprocessing and the fitted detector: equal only if the scores are."""
        record, tensors = pack(self.detector)
        arrays = [part for key in sorted(tensors) for part in (key, tensors[key].numpy())]
        described = json.dumps({**record, "version": self.detector.version}, sort_keys=True)
        return fingerprint(self.classifier.fingerprint, self.classifier.transform_key, described, *arrays)

    @cached_property
    def pixels(self) -> PixelScale:
        """What preprocessing does to pixels of images that have the network's input size."""
        return pixel_scale(self.classifier)

    def score(
        self, images: GivenImages | Tensor, *, batch_size: int = 256, progress: Progress = SILENT
    ) -> NDArray[np.float64]:
        """One score per image, larger = more OOD.

        Parameters
        ----------
        images : uint8 arrays, Pillow pictures, paths, an ``ImageSet``, one of these or a list; or a float tensor
            ``[N, C, H, W]`` of pixels in [0, 1] that has the network's input size.
        """
        total, done = images.shape[0] if isinstance(images, Tensor) else len(Given(images)), 0
        scores = np.zeros(total)
        with progress.stage("score images", total) as advance:
            for batch in self._batches(images, batch_size):
                part = self._checked(self.judge(batch)[1], done)
                scores[done : done + len(part)] = part
                done += len(part)
                advance(len(part))
        return scores

    def predict(self, images: GivenImages | Tensor, *, batch_size: int = 256) -> list[Prediction]:
        """Class, score, p-value and verdict of each image; ``images`` as for ``score``."""
        return [each for batch in self._batches(images, batch_size) for each in self._predictions(batch)]

    def score_tensor(self, images: Tensor) -> Tensor:
        """Scores of pixels in [0, 1], ``[N, C, H, W]`` of the network's input size: float64, on the scorer's device.

        The device is not asked for anything on the way. If ``images`` record gradients and the score has one, it
        flows back to them (``differentiable``). Exactly the passes that the detector needs are made.
        """
        grad = images.requires_grad and torch.is_grad_enabled()
        if grad and not all(probe.differentiable for probe in self._probes):
            raise DetectorError(f"{self.detector.name}: makes passes of its own, through which no gradient flows")
        plain = bool(self.detector.needs & (Needs.LOGITS | Needs.FEATURES | Needs.HEAD))
        return self._score_prepared(self.pixels(images.to(self.device)), plain, grad)[1]

    @property
    def differentiable(self) -> bool:
        """Whether ``score_tensor`` has a gradient with respect to the images, tried on noise."""
        shape = (2, len(self.pixels.scale), *self.pixels.size)
        images = torch.rand(shape, generator=torch.Generator().manual_seed(0)).to(self.device).requires_grad_()
        try:
            with torch.enable_grad():
                (gradient,) = torch.autograd.grad(self.score_tensor(images).sum(), images)
        except (DetectorError, RuntimeError):
            return False
        return bool(torch.isfinite(gradient).all() and gradient.any())

    def save(self, path: Path | str, *, include_weights: bool = False) -> None:
        """Write one ``.oodscope`` file; see ``oodscope.load``.

        Parameters
        ----------
        include_weights : keep the network's weights in it, so that the file stands alone.
        """
        from oodscope.deploy.artefact import save_scorer

        save_scorer(self, Path(path), include_weights)

    def _batches(self, images: GivenImages | Tensor, batch_size: int) -> Iterator[Tensor]:
        """Prepared batches on the device, the next one read while this one is judged."""
        if isinstance(images, Tensor):
            for part in torch.split(images.detach(), batch_size):
                yield self.pixels(part.to(self.device))
            return
        given = Given(images)
        rows = np.arange(len(given))
        parts = [rows[start : start + batch_size] for start in range(0, len(rows), batch_size)]
        for prepared in ahead(parts, lambda part: self.classifier.prepare(given.read(part.tolist())), workers=1):
            yield prepared.to(self.device)

    def _predictions(self, prepared: Tensor) -> Iterator[Prediction]:
        logits, found = self.judge(prepared)
        scores, winners = self._checked(found, 0), logits.argmax(dim=1).tolist()
        p_values: list[Any] = [None] * len(scores)
        accepted: list[Any] = [None] * len(scores)
        if self.calibration is not None:
            p_values = self.calibration.p_values(scores).tolist()
            accepted = self.calibration.accepts(scores).tolist()
        for winner, score, p_value, verdict in zip(winners, scores.tolist(), p_values, accepted):
            yield Prediction(self.class_names[winner], winner, score, p_value, verdict)

    def judge(self, prepared: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and scores of a batch that is prepared for the network, on the device."""
        with torch.no_grad():
            columns, scores = self._score_prepared(prepared, plain=True, grad=False)
        return columns["logits"], scores

    def _score_prepared(self, prepared: Tensor, plain: bool, grad: bool) -> tuple[dict[str, Tensor], Tensor]:
        columns = batch_columns(self.classifier, prepared, plain=plain, probes=self._probes, grad=grad)
        if plain:
            columns["prediction"] = columns["logits"].argmax(dim=1)
        return columns, self.detector.score_batch(Activations.of_batch(columns, self._head))

    def _checked(self, scores: Tensor, first: int) -> NDArray[np.float64]:
        values = scores.cpu().numpy().astype(np.float64)
        broken = np.flatnonzero(~np.isfinite(values))
        if len(broken):
            raise DetectorError(f"{self.detector.name}: the score of image {first + broken[0]} is NaN or infinite")
        return values


def check_applies(detector: Detector, classifier: Classifier) -> None:
    """Refuse a detector that this classifier does not allow, in words."""
    capabilities = capabilities_of([detector], classifier, train=True, held_out=True)
    if reason := detector.unmet_requirement(capabilities):
        raise DetectorError(f"{detector.id}: {reason}. {classifier.head_reason or ''}".strip())
