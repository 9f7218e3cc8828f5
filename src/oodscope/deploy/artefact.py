"""A scorer in one file: safetensors for the numbers, JSON for the rest; never a pickle."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn

from oodscope.base.config import StrictModel, parse
from oodscope.base.errors import DetectorError, ModelError, UsageError
from oodscope.data.preprocess import Preprocess
from oodscope.deploy.scorer import Scorer
from oodscope.detectors.saving import pack, unpack
from oodscope.metrics.rejection.conformal import Calibration, Guarantee
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.discovery import deviation, uninformative
from oodscope.models.classifier.fingerprint import weights_fingerprint
from oodscope.models.classifier.head import Head
from oodscope.models.classifier.network import first_line
from oodscope.models.classifier.noise import noise_images
from oodscope.models.classifier.sealed import SealedFile
from oodscope.models.classifier.storable import as_preprocess
from oodscope.models.zoo.offline import FETCHING, NoDownloadError, no_downloads
from oodscope.models.zoo.origin import ModelOrigin
from oodscope.training.network import TrainedOrigin

FORMAT = 1
_FILE = SealedFile(
    key="oodscope_scorer",
    format=FORMAT,
    kind="a readable .oodscope file",
    writer="`oodscope fit` or Scorer.save",
    advice="",
    remedy="fit again",
)
_SIDE = 64
SAME = 0.01
"""How far logits of noise may be off, of their spread: another device's rounding stays below, another network above."""


class ClassifierRecord(StrictModel):
    """How to make the classifier again, and how to know that it is the same.

    Parameters
    ----------
    origin : its architecture; None for a network of one's own, which must be brought along.
    fingerprint : of the weights.
    head : the head's name in the network; None if there is none, or if it lies in the file as numbers.
    transform : None where it comes with published weights that are fetched anew.
    """

    name: str
    origin: TrainedOrigin | ModelOrigin | None
    fingerprint: str
    head: str | None
    transform: Preprocess | None
    class_names: tuple[str, ...]


class DetectorRecord(StrictModel):
    """A detector as ``pack`` describes it, with the version of its score's form."""

    detector: str
    version: int
    params: dict[str, Any]
    values: dict[str, Any]


class ScorerRecord(StrictModel):
    """The JSON part of the file."""

    format: int = Field(ge=1)
    classifier: ClassifierRecord
    detector: DetectorRecord
    threshold: float | None
    guarantee: Guarantee | None
    provenance: dict[str, Any]


def save_scorer(scorer: Scorer, path: Path, include_weights: bool) -> None:
    """Write ``scorer`` whole or not at all."""
    classifier, calibration = scorer.classifier, scorer.calibration
    packed, tensors = pack(scorer.detector)
    tensors = {f"detector.{key}": value for key, value in tensors.items()}
    tensors["proof.logits"] = _noise_logits(classifier)
    if calibration is not None:
        tensors["calibration.scores"] = torch.from_numpy(calibration.scores)
    if classifier.head is not None and classifier.head_path is None:
        tensors |= {"head.weight": classifier.head.weight, "head.bias": classifier.head.bias}
    if include_weights:
        tensors |= {f"weights.{key}": value.detach() for key, value in classifier.model.state_dict().items()}
    fetched = scorer.origin is not None and scorer.origin.pretrained and not include_weights
    record = ScorerRecord(
        format=FORMAT,
        classifier=ClassifierRecord(
            name=classifier.name,
            origin=scorer.origin,
            fingerprint=weights_fingerprint(classifier.model),
            head=classifier.head_path,
            transform=None if fetched else as_preprocess(classifier),
            class_names=scorer.class_names,
        ),
        detector=DetectorRecord(version=scorer.detector.version, **packed),
        threshold=None if calibration is None else calibration.threshold,
        guarantee=None if calibration is None else calibration.guarantee,
        provenance=scorer.provenance,
    )
    text = record.model_dump_json()
    # tied weights share memory, which the format refuses
    tensors = {key: value.cpu().contiguous().clone() for key, value in tensors.items()}
    _FILE.write(path, text, tensors)


def load(
    path: Path | str,
    *,
    model: nn.Module | Classifier | None = None,
    weights: str | Path | Sequence[str | Path] = (),
    device: str = "auto",
    allow_download: bool = False,
) -> Scorer:
    """The scorer that ``Scorer.save`` wrote, ready to predict.

    A file may come from anybody: it is parsed like one, and nothing is fetched because it says so.

    Parameters
    ----------
    model : the network (or a ``Classifier``), where it is one of your own.
    weights : the checkpoint it was fitted with, where the file does not hold the weights. Another one is refused.
    device : ``"auto"`` is CUDA if there is one, else MPS, else the CPU.
    allow_download : whether published weights that the file names may be fetched, where they are not in the cache.

    Examples
    --------
    >>> scorer.save(folder / "msp.oodscope", include_weights=True)
    >>> oods.load(folder / "msp.oodscope", model=model, device="cpu").detector.name
    'msp'
    """
    record, tensors = _read(Path(path))
    try:
        with nullcontext() if allow_download else no_downloads():
            return _assembled(record, tensors, Path(path), model, weights, device)
    except (NoDownloadError, ModelError) as error:
        if allow_download or not isinstance(error.__cause__ if isinstance(error, ModelError) else error, FETCHING):
            raise
        raise DetectorError(
            f"{path}: needs files that are not here ({first_line(error)}); allow a download with --allow-download "
            "(allow_download= in Python), or give --weights"
        ) from error
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise DetectorError(
            f"{path}: its parts do not fit together ({type(error).__name__}: {first_line(error)}); damaged, or not "
            "written by `oodscope fit`"
        ) from error


def _assembled(
    record: ScorerRecord,
    tensors: dict[str, Tensor],
    path: Path,
    model: nn.Module | Classifier | None,
    weights: str | Path | Sequence[str | Path],
    device: str,
) -> Scorer:
    classifier = _classifier(record.classifier, tensors, path, model, weights, device)
    packed = record.detector.model_dump(exclude={"version"})
    with _of_the_file(path):
        detector = unpack(packed, _section(tensors, "detector."))
    if detector.version != record.detector.version:
        raise DetectorError(
            f"{path}: holds version {record.detector.version} of {detector.name}, here is version {detector.version}, "
            "whose scores differ; fit it again"
        )
    calibration = None
    if record.guarantee is not None and record.threshold is not None:
        calibration = Calibration(tensors["calibration.scores"].numpy(), record.threshold, record.guarantee)
    return Scorer(
        classifier,
        detector,
        calibration=calibration,
        class_names=record.classifier.class_names,
        origin=record.classifier.origin,
        provenance=record.provenance,
    )


def _read(path: Path) -> tuple[ScorerRecord, dict[str, Tensor]]:
    declared, tensors = _FILE.read(path)
    return parse(ScorerRecord, declared, str(path)), tensors


def _classifier(
    record: ClassifierRecord,
    tensors: dict[str, Tensor],
    path: Path,
    model: nn.Module | Classifier | None,
    weights: str | Path | Sequence[str | Path],
    device: str,
) -> Classifier:
    given = _section(tensors, "head.")
    head = Head(given["weight"], given["bias"]) if given else record.head
    if isinstance(model, Classifier):
        if kept := _section(tensors, "weights."):
            model.model.load_state_dict(kept)
        classifier = model.with_default_transform(record.transform)
    else:
        module, transform = _network(record, tensors, path, model, weights, device)
        classifier = Classifier(module, transform or record.transform, head=head, device=device, name=record.name)
    if weights_fingerprint(classifier.model) != record.fingerprint:
        raise DetectorError(f"{path}: the weights are not those it was fitted with ({record.name}); find that file")
    expected = tensors["proof.logits"]
    if not uninformative(expected) and (off := deviation(_noise_logits(classifier), expected)) > SAME:
        raise DetectorError(
            f"{path}: the network does not answer as it did when this was saved (logits of noise are off by {off:.2g} "
            "of their spread): another preprocessing, other code, or another version of its library"
        )
    return classifier


def _network(
    record: ClassifierRecord,
    tensors: dict[str, Tensor],
    path: Path,
    model: nn.Module | None,
    weights: str | Path | Sequence[str | Path],
    device: str,
) -> tuple[nn.Module, Any]:
    kept, classes = _section(tensors, "weights."), len(record.class_names)
    words: dict[str, Any] = {"class_names": record.class_names, "device": device}
    if model is not None:
        if kept:
            model.load_state_dict(kept)
        return model, None
    if record.origin is None:
        raise UsageError(
            f"{path}: made for a network of your own ({record.name}); name it: --model python:MODULE:FUNCTION "
            "(model= in Python)"
        )
    files = [weights] if isinstance(weights, (str, Path)) else list(weights)
    if not (kept or files or record.origin.pretrained):
        raise UsageError(
            f"{path}: needs the weights of {record.origin.architecture} that it was fitted with: give --weights FILE "
            "(weights= in Python), or fit with --include-weights"
        )
    with _of_the_file(path):
        if kept:
            return record.origin.model_copy(update={"pretrained": False}).build(classes, kept, **words)
        return record.origin.build(classes, files, **words)


@contextmanager
def _of_the_file(path: Path) -> Iterator[None]:
    """An unknown name or parameter is the file's fault here, not that of whoever opens it."""
    try:
        yield
    except UsageError as error:
        raise DetectorError(f"{path}: {error}") from error


def _noise_logits(classifier: Classifier) -> Tensor:
    return classifier.forward(classifier.prepare(noise_images(_SIDE, 3))).logits.cpu()


def _section(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
