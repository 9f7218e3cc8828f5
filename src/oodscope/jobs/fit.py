"""FitJob: a detector to deploy as a configuration, and its execution up to the saved file."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from pydantic import Field

from oodscope.base.config import StrictModel
from oodscope.base.errors import OodscopeError, UsageError
from oodscope.base.files import file_sha256
from oodscope.base.hashing import fingerprint
from oodscope.data.imageset import UNLABELLED, ImageSet
from oodscope.data.loading import load_benchmark
from oodscope.data.preprocess import Preprocess
from oodscope.deploy.artefact import load
from oodscope.deploy.fit import fit_scorer
from oodscope.deploy.scorer import Scorer
from oodscope.detectors.registry import requested_detector
from oodscope.detectors.saving import pack
from oodscope.execution.progress import Progress
from oodscope.jobs.checking import check_writable_file
from oodscope.jobs.model import ModelData, ModelSpec, build_classifier, class_order
from oodscope.jobs.opening import open_one
from oodscope.jobs.sets import CalibrationSets
from oodscope.jobs.task import Task
from oodscope.metrics.rejection.conformal import Kind
from oodscope.report.page.page import write_report
from oodscope.results.record import RunRecord, SetRecord, command_line, environment
from oodscope.runs.fit.run import Fit, FittedDetector


class FitSettings(StrictModel):
    """Every key has the meaning of the option of ``oodscope fit`` with its name."""

    detector: str = "knn"
    target_fpr: float = Field(default=0.05, gt=0, lt=1)
    guarantee: Kind = "conformal"
    confidence: float = Field(default=0.95, gt=0, lt=1)
    include_weights: bool = False


class FitJob(Task):
    """One detector to deploy: the keys of an evaluation that say for what, and how under ``fit``.

    Parameters
    ----------
    benchmark : its ``id_train`` fits, its ``id_val`` calibrates; or the places of images that do.
    output : the ``.oodscope`` file to write; the run goes to a folder beside it (``knn-fit`` for ``knn.oodscope``).
    """

    benchmark: str | CalibrationSets  # type: ignore[assignment]  # calibration images in the place of test images
    fit: FitSettings = FitSettings()
    output: str = "detector.oodscope"

    def check(self) -> None:
        super().check()
        requested_detector(self.fit.detector)
        if self.model.train is not None and not self.fit.include_weights:
            raise UsageError("fit: a network trained here has no weights file; keep its weights: --include-weights")

    def _check_output(self) -> None:
        check_writable_file(Path(self.output), "knn.oodscope")


def execute_fit(job: FitJob, progress: Progress) -> tuple[Fit, Path]:
    """The fit as a run, and the folder that it was saved to, beside the file of the scorer."""
    job.check()
    train, calibration, transform = _images(job, progress)
    labelled = [each for each in (train, calibration) if each is not None and (each.labels != UNLABELLED).all()]
    # calibration images choose no weights of a network, or the promise would not hold: no id_val here
    data = ModelData(labelled[0].class_names if labelled else (), train, transform=transform)
    built = build_classifier(job.model, data, device=job.device, progress=progress)
    given = job.benchmark.transform if isinstance(job.benchmark, CalibrationSets) else None
    if given is not None and built.classifier.transform not in (None, given):
        raise UsageError(f"fit: {built.classifier.name} brings its own preprocessing; remove --transform")
    scorer = fit_scorer(
        built.classifier.with_default_transform(transform),
        job.fit.detector,
        calibration,
        train,
        target=job.fit.target_fpr,
        guarantee=job.fit.guarantee,
        confidence=job.fit.confidence,
        origin=built.origin,
        batch_size=job.batch_size,
        progress=progress,
    )
    path = Path(job.output)
    scorer.save(path, include_weights=job.fit.include_weights)
    fit = _run(job, scorer, path, {"id_train": train, "calibration": calibration})
    folder = fit.save(path.with_name(f"{path.stem}-fit"))
    write_report(fit, folder / "report.html")
    return fit, folder


def _run(job: FitJob, scorer: Scorer, path: Path, sets: Mapping[str, ImageSet | None]) -> Fit:
    assert scorer.calibration is not None, "fitting calibrates"
    classifier, packed = scorer.classifier, pack(scorer.detector)[0]
    created = datetime.now(UTC).isoformat(timespec="seconds")
    record = RunRecord(
        id=f"fit-{fingerprint(scorer.fingerprint, scorer.calibration.scores, created)[:12]}",
        created=created,
        oodscope_version=version("oodscope"),
        command=command_line(),
        benchmark=job.benchmark if isinstance(job.benchmark, str) else "",
        sets={
            role: SetRecord(role=role, n=len(images), fingerprint=images.fingerprint)
            for role, images in sets.items()
            if images is not None
        },
        model=classifier.name,
        model_fingerprint=classifier.fingerprint,
        transform=str(classifier.transform),
        head=str(classifier.head_path or ""),
        trained_on=[each if isinstance(each, str) else each.name for each in classifier.trained_on],
        pretrained_on=list(classifier.pretrained_on),
        seed=job.seed,
        device=str(classifier.device),
        environment=environment(),
    )
    detector = FittedDetector(
        id=scorer.detector.id,
        version=scorer.detector.version,
        params=packed["params"],
        threshold=scorer.calibration.threshold,
        guarantee=scorer.calibration.guarantee,
        file=str(path),
        sha256=file_sha256(path),
    )
    return Fit(record, detector, scorer.calibration, scorer)


def load_fitted(path: Path, model: str, weights: Sequence[str], device: str, *, allow_download: bool = False) -> Scorer:
    """The scorer in a file.

    Parameters
    ----------
    model : the function that makes its network, where that is the user's own (``python:MODULE:FUNCTION``); any other
        network the file names itself. Code is never run because a file says so.
    weights : of its network, where the file does not hold them.
    allow_download : whether the file may have published weights fetched.
    """
    if not model:
        return load(path, weights=weights, device=device, allow_download=allow_download)
    spec = ModelSpec(architecture=model)
    if not spec.own_code:
        raise UsageError(f"{path} names its network itself; --model is for your own: python:MODULE:FUNCTION")
    return load(path, model=build_classifier(spec, ModelData(), device=device).classifier, device=device)


def _images(job: FitJob, progress: Progress) -> tuple[ImageSet | None, ImageSet, Preprocess | None]:
    """Training images, calibration images, and the preprocessing for networks that bring none."""
    if isinstance(job.benchmark, CalibrationSets):
        sets: dict[str, ImageSet | None] = {
            role: None if place is None else _open(job, role, place, progress)
            for role, place in (("id_train", job.benchmark.id_train), ("id_cal", job.benchmark.id_cal))
        }
        train, calibration, transform = sets["id_train"], sets["id_cal"], job.benchmark.transform
    else:
        opened = load_benchmark(
            job.benchmark,
            root=job.root,
            images_per_class=job.images_per_class,
            skip_unreadable=job.skip_unreadable,
            progress=progress,
        )
        if opened.id_val is None:
            raise OodscopeError(f"benchmark {opened.name!r} has no id_val to calibrate on")
        train, calibration, transform = opened.id_train, opened.id_val, opened.transform
    assert calibration is not None, "its place is required"
    names = (train or calibration).class_names
    order = class_order(names, job.model, job.classes)
    if order is not None:
        train = None if train is None else train.in_classes(order)
        calibration = calibration.in_classes(order)
    return train, calibration, transform


def _open(job: FitJob, role: str, place: str, progress: Progress) -> ImageSet:
    root = None if job.root is None else Path(job.root)
    return open_one(place, root, progress, name=role, skip_unreadable=job.skip_unreadable)
