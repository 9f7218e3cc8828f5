"""Evaluate arrays: whatever was computed in front of a detector, by any framework, for any kind of data."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe
from oodscope.base.errors import DataError, OodscopeError
from oodscope.base.hashing import fingerprint
from oodscope.data.benchmark import Benchmark, Role
from oodscope.data.images.base import ImageSource
from oodscope.data.imageset import UNLABELLED, ImageSet
from oodscope.detectors.base import Capabilities, Detector
from oodscope.execution.progress import SILENT, Progress
from oodscope.metrics.interval import Intervals, check_intervals
from oodscope.metrics.metric import Tuning
from oodscope.models.classifier.anatomy import normalised
from oodscope.models.classifier.head import Head
from oodscope.models.classifier.network import choose_device
from oodscope.protocols.registry import Asked, read_protocols
from oodscope.runs.evaluation.arrayset import KEYS, PLAIN, ArraySet, ArraySource, read_array_set
from oodscope.runs.evaluation.extraction import Extraction
from oodscope.runs.evaluation.pipeline import ALL, AskedDetectors, check_tuning, evaluate_extraction
from oodscope.runs.evaluation.run import Result

NOTE = "evaluated from arrays: the fingerprint of a set is a hash of its arrays, and no image was read"


def evaluate_activations(
    *,
    id_test: ArraySource,
    id_train: ArraySource | None = None,
    id_val: ArraySource | None = None,
    near: Mapping[str, ArraySource] | None = None,
    far: Mapping[str, ArraySource] | None = None,
    csid: Mapping[str, ArraySource] | None = None,
    ood_val: ArraySource | None = None,
    detectors: AskedDetectors = ALL,
    protocols: Asked | Iterable[Asked] = ("standard",),
    name: str = "arrays",
    model: str = "arrays",
    head: Head | tuple[ArrayLike | Tensor, ArrayLike | Tensor | None] | None = None,
    classes: Sequence[str] = (),
    tune: Tuning = "default",
    seed: int = 0,
    intervals: Intervals = "full",
    recipe: str = "",
    device: str = "cpu",
    progress: Progress = SILENT,
) -> Result:
    """Evaluate detectors on logits and features that were computed elsewhere.

    The same result as from ``evaluate``: where the arrays are those that ``evaluate`` extracts, every number is equal
    to the last bit::

        result = oods.evaluate_activations(
            id_train={"logits": train_logits, "features": train_features, "labels": train_labels},
            id_test="test.npz", near={"letters": "letters.npz"}, detectors=["msp", "knn"],
        )
        print(result.table())

    Parameters
    ----------
    id_test, id_train, id_val, ood_val : each an ``Activations``, a mapping of arrays (NumPy or torch), or the path of
        an ``.npz`` or ``.safetensors`` file, with some of the keys ``logits`` [N, C], ``features`` [N, D], ``labels``
        [N], ``prediction`` [N] (the arg-max of the logits unless given), ``sample_id`` [N] (the number of the row
        unless given), and ``weight`` [C, D] and ``bias`` [C] of the head. Labels of OOD sets are classes of their own.
    near, far, csid : test sets by name; see ``Benchmark``.
    detectors : names, objects, or ``"all"``: those that the arrays allow, the others listed with the reason. One that
        needs images (probes, feature maps, gradients) is an error if it is named.
    protocols, tune, seed, intervals, recipe, progress : see ``evaluate``. ``tune="id_only"`` needs images.
    name, model : how tables call the data and the network.
    head : weight [C, D] and bias [C] (or ``None``) of the last linear layer, for detectors that need it.
    classes : names of the ID classes in the order of the logits; numbers unless given.
    device : where detectors compute.

    Examples
    --------
    >>> draw = np.random.default_rng(0)
    >>> known, letters = {"logits": draw.normal(size=(60, 3))}, {"logits": 0.1 * draw.normal(size=(40, 3))}
    >>> found = oods.evaluate_activations(id_test=known, near={"letters": letters}, detectors=["msp"])
    >>> found.table().rows[0].name
    'msp'
    """
    asked = read_protocols(protocols)
    check_tuning(tune)
    check_intervals(intervals)
    if tune == "id_only":
        raise OodscopeError("tune='id_only' makes outliers from images, and there are only arrays: use tune='ood_val'")
    single: dict[Role, ArraySource | None] = {"id_train": id_train, "id_val": id_val, "id_test": id_test}
    groups: dict[Role, Mapping[str, ArraySource] | None] = {"near": near, "far": far, "csid": csid}
    extraction, benchmark = open_arrays(
        {**single, "ood_val": ood_val}, groups, name=name, model=model, head=head, classes=classes, device=device
    )
    return evaluate_extraction(
        extraction,
        benchmark,
        detectors,
        asked,
        tune=tune,
        seed=seed,
        recipe=recipe,
        intervals=intervals,
        progress=progress,
    )


def open_arrays(
    single: Mapping[Role, ArraySource | None],
    groups: Mapping[Role, Mapping[str, ArraySource] | None],
    *,
    name: str,
    model: str,
    head: Head | tuple[ArrayLike | Tensor, ArrayLike | Tensor | None] | None = None,
    classes: Sequence[str] = (),
    device: str = "cpu",
) -> tuple["FromArrays", Benchmark]:
    """Arrays as what a run is made of: where activations come from, and the benchmark that they are of.

    Parameters
    ----------
    single, groups : sets by role; see ``evaluate_activations``, also for the others.
    """
    sets = list(_read_all(single, groups))
    last_layer = _common_head(sets, head)
    class_names = tuple(classes) or tuple(str(number) for number in range(_class_count(sets, last_layer)))
    filled = [(role, each.checked(role, last_layer, class_names)) for role, each in sets]
    extraction = FromArrays(model, [each for _, each in filled], last_layer, choose_device(device))
    return extraction, _benchmark(name, filled, class_names)


class ArrayRows(ImageSource):
    """The rows of a set of arrays in the place of its images: they have names and a hash, and no pixels."""

    def __init__(self, arrays: ArraySet) -> None:
        self.arrays = arrays

    def __len__(self) -> int:
        return len(self.arrays.activations)

    def read(self, index: int) -> NDArray[np.uint8]:
        raise DataError(f"set {self.arrays.name!r} holds arrays, and no image can be read from it")

    def name(self, index: int) -> str:
        return self.arrays.sample_ids[index]

    def _digest_all(self) -> list[bytes]:
        return [f"{self.arrays.fingerprint}:{index}".encode() for index in range(len(self))]


class ArrayBenchmark(Benchmark):
    """A benchmark of arrays: ID sets may come without labels, where neither a detector nor a protocol needs them."""

    def _check_id_labels(self, role: Role, images: ImageSet) -> None:
        missing = int((images.labels == UNLABELLED).sum())
        if 0 < missing < len(images):
            raise DataError(f"set {images.name!r}: labels are -1 in {missing} of {len(images)} rows; label all or none")


class FromArrays(Extraction):
    """Activations that are already there."""

    def __init__(self, name: str, sets: Sequence[ArraySet], head: Head | None, device: torch.device) -> None:
        self.name, self.device = name, device
        self._sets, self._head = sets, head

    @property
    def fingerprint(self) -> str:
        return ""

    def extract(self, images: ImageSet, probes: Iterable[Probe]) -> Activations:
        source = images.source
        assert isinstance(source, ArrayRows), "the benchmark was made of arrays"
        whole = source.arrays.activations
        if len(images) == len(whole) and bool((np.diff(images.rows) == 1).all()):
            return whole
        return whole.take(images.rows)

    def capabilities(self, detectors: Sequence[Detector], benchmark: Benchmark) -> Capabilities:
        parts = [each.activations for each in self._sets]
        features = all("features" in part for part in parts)
        learned = [images for images in (benchmark.id_train, benchmark.id_val) if images is not None]
        return Capabilities(
            head=self._head is not None,
            train=benchmark.id_train is not None,
            held_out=benchmark.id_val is not None,
            signed=features and any(len(part.negative_rows("features")) > 0 for part in parts),
            logits=all("logits" in part for part in parts),
            features=features,
            images=False,
            log_probabilities=all("logits" in part and normalised(part.logits) for part in parts),
            labels=all((images.labels != UNLABELLED).all() for images in learned),
        )

    def record(self) -> dict[str, Any]:
        kinds = {str(each.activations[key].dtype) for each in self._sets for key in each.given if key in PLAIN}
        return {
            "transform": "not known: arrays were given",
            "head": "none given" if self._head is None else repr(self._head),
            "precision": ", ".join(sorted(kind.removeprefix("torch.") for kind in kinds)),
        }

    def notes(self, benchmark: Benchmark) -> list[str]:
        return [NOTE]


def _read_all(
    single: Mapping[Role, ArraySource | None], groups: Mapping[Role, Mapping[str, ArraySource] | None]
) -> Iterator[tuple[Role, ArraySet]]:
    for role, given in single.items():
        if given is not None:
            yield role, read_array_set(role, given)
    for role, members in groups.items():
        for name, given in _by_name(role, members).items():
            yield role, read_array_set(name, given)


def _by_name(role: Role, members: Any) -> Mapping[str, ArraySource]:
    if members is None:
        return {}
    if not isinstance(members, Mapping) or isinstance(members, Activations) or any(key in KEYS for key in members):
        raise DataError(f"{role} takes sets by name: {role}={{'letters': ...}}")
    return members


def _common_head(
    sets: Sequence[tuple[Role, ArraySet]], given: Head | tuple[ArrayLike | Tensor, ArrayLike | Tensor | None] | None
) -> Head | None:
    """The head that was given, or that the sets hold; two that differ are an error."""
    heads = {each.name: each.activations.head for _, each in sets if each.activations.head is not None}
    if isinstance(given, Head):
        heads = {"head": given, **heads}
    elif given is not None:
        if not isinstance(given, (tuple, list)) or len(given) != 2:
            raise DataError("head is a pair: head=(weight, bias), with bias=None for a layer without one")
        weight, bias = (None if part is None else torch.as_tensor(part, dtype=torch.float32) for part in given)
        if weight is None:
            raise DataError("head: the weight is None; pass head=(weight, bias)")
        heads = {"head": Head(weight, bias), **heads}
    first = next(iter(heads), None)
    for name, other in heads.items():
        if first is not None and not (
            torch.equal(heads[first].weight, other.weight) and torch.equal(heads[first].bias, other.bias)
        ):
            raise DataError(f"set {name!r}: weight or bias differ from those of {first!r}; one network has one head")
    return None if first is None else heads[first]


def _class_count(sets: Sequence[tuple[Role, ArraySet]], head: Head | None) -> int:
    known = [each.activations for role, each in sets if role in ("id_train", "id_test")]
    if head is not None:
        return head.num_classes
    widths = [part.shape("logits")[1] for part in known if "logits" in part]
    return widths[0] if widths else max(part.num_classes for part in known)


def _benchmark(name: str, sets: Sequence[tuple[Role, ArraySet]], class_names: tuple[str, ...]) -> Benchmark:
    """The version is a hash of names, roles and labels, not of the arrays: two networks are judged on one benchmark."""
    opened: dict[Role, list[ImageSet]] = {}
    for role, each in sets:
        labels = each.activations.labels.cpu().numpy() if "labels" in each.activations else None
        names = () if role in ("near", "far", "ood_val") else class_names
        opened.setdefault(role, []).append(ImageSet(each.name, ArrayRows(each), labels, names))
    groups = {role: tuple(opened.get(role, ())) for role in ("near", "far", "csid")}
    single = {role: members[0] for role, members in opened.items() if role not in groups}
    members = [(role, images) for role, several in opened.items() for images in several]
    held = [[role, images.name, images.sample_ids(), images.labels.tolist()] for role, images in members]
    made = ArrayBenchmark(name=name, version="", **single, **groups)  # type: ignore[arg-type]  # roles are field names
    return replace(made, version=fingerprint(held)[:12])
