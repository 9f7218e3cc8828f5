"""Deployment: what ``oodscope fit`` was asked for, and the road from it to a scorer."""

from typing import Any

import yaml

from oodscope.base.config import StrictModel, parse
from oodscope.base.errors import OodscopeError
from oodscope.data.images.folders import open_folder
from oodscope.data.images.readability import usable
from oodscope.data.imageset import UNLABELLED, ImageSet
from oodscope.data.loading import load_benchmark
from oodscope.data.preprocess import Preprocess
from oodscope.deploy.fit import fit_scorer
from oodscope.deploy.scorer import Scorer
from oodscope.detectors.registry import create_detector
from oodscope.execution.progress import Progress
from oodscope.jobs.model import PRETRAINED, ModelSpec, name_of
from oodscope.metrics.rejection.conformal import Kind
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.zoo.origin import ModelOrigin


class Deployment(StrictModel):
    """Every key has the meaning of the option of ``oodscope fit`` with its name."""

    model: ModelSpec
    detector: str
    id_train: str | None
    id_cal: str | None
    benchmark: str | None
    transform: Preprocess | None
    target_fpr: float
    guarantee: Kind
    confidence: float
    skip_unreadable: bool
    batch_size: int
    device: str

    @classmethod
    def read(cls, declared: dict[str, Any]) -> "Deployment":
        """From the options; a transform is YAML."""
        if declared["transform"] is not None:
            try:
                declared = declared | {"transform": yaml.safe_load(declared["transform"])}
            except yaml.YAMLError as error:
                raise OodscopeError("fit: --transform is not valid YAML; for example '{size: 32}'") from error
        return parse(cls, declared, "fit")

    def fit(self, progress: Progress) -> Scorer:
        """The calibrated scorer."""
        detector = create_detector(self.detector)
        train, calibration, transform = self._images(progress)
        classes = next((len(each.class_names) for each in (train, calibration) if each and _labelled(each)), None)
        origin = ModelOrigin(
            architecture=self.model.architecture,
            pretrained=self.model.files == [PRETRAINED],
            members=max(1, len(self.model.files)),
        )
        network, own = origin.build(classes, self.model.files)
        classifier = Classifier(network, self.transform or own, device=self.device, name=name_of(self.model))
        if self.transform is not None and origin.pretrained:
            raise OodscopeError("fit: pretrained weights bring their own preprocessing; leave --transform away")
        return fit_scorer(
            classifier.with_default_transform(transform),
            detector,
            calibration,
            train,
            target=self.target_fpr,
            guarantee=self.guarantee,
            confidence=self.confidence,
            origin=origin,
            batch_size=self.batch_size,
            progress=progress,
        )

    def _images(self, progress: Progress) -> tuple[ImageSet | None, ImageSet, Preprocess | None]:
        """Training images, calibration images, and the preprocessing that a benchmark offers."""
        if (self.benchmark is None) == (self.id_cal is None):
            raise OodscopeError("fit: give --id-cal (and --id-train) or --benchmark, and not both")
        if self.benchmark is None:
            train = None if self.id_train is None else self._open("id_train", self.id_train)
            return train, self._open("id_cal", str(self.id_cal)), None
        if self.id_train is not None:
            raise OodscopeError("fit: --benchmark brings its own id_train; leave --id-train away")
        opened = load_benchmark(self.benchmark, skip_unreadable=self.skip_unreadable, progress=progress)
        if opened.id_val is None:
            raise OodscopeError(f"benchmark {opened.name!r} has no id_val to calibrate on")
        return opened.id_train, opened.id_val, opened.transform

    def _open(self, name: str, folder: str) -> ImageSet:
        return usable(open_folder(name, folder), skip_unreadable=self.skip_unreadable)


def _labelled(images: ImageSet) -> bool:
    return bool((images.labels != UNLABELLED).all())
