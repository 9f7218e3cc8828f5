"""Detector: a small estimator that turns activations into scores, larger = more OOD."""

import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Flag, StrEnum, auto
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe
from oodscope.base.errors import DetectorError, OodscopeError
from oodscope.base.own_code import raised
from oodscope.base.paper import Paper
from oodscope.detectors.estimator import Estimator, clone
from oodscope.detectors.math.numbers import precise


@dataclass(frozen=True)
class Capabilities:
    """What a classifier and a benchmark provide.

    It is known before anything is extracted, so that a detector that cannot run is named at once.

    Parameters
    ----------
    head : whether features and a linear head were found.
    train : whether there are in-distribution training images.
    held_out : whether there are in-distribution validation images.
    signed : whether features may be negative.
    stages : how many resolutions of feature maps the network has.
    members : how many networks vote; 0 for a single network.
    negatives : how many negative labels a vision-language network compares with.
    patches : whether it shows what its patches are compared with words by.
    outputs : names of what the network returns beside its logits.
    logits : whether logits are known.
    features : whether features are known; as ``head`` unless given.
    images : whether there are images, through which a network can be asked for more than its activations.
    labels : whether the in-distribution images to learn from have labels.
    dropouts : how many layers of the network drop values out.
    bounded : whether bounds on its outputs can be proven.
    log_probabilities : whether logits are log-probabilities, as those of an ensemble are: their log-sum-exp is 0.
    image_shape : channels, height and width of what the classifier sees; empty where its preprocessing does more than
        scale and shift pixels, None where nobody asked.
    """

    head: bool
    train: bool
    held_out: bool
    signed: bool = False
    stages: int = 0
    members: int = 0
    negatives: int = 0
    patches: bool = False
    outputs: tuple[str, ...] = ()
    logits: bool = True
    features: bool | None = None
    images: bool = True
    labels: bool = True
    dropouts: int = 0
    bounded: bool = False
    log_probabilities: bool = False
    image_shape: tuple[int, ...] | None = None


class Needs(Flag):
    """What a detector must be given.

    ``LOGITS``, ``FEATURES`` and the ``HEAD`` concern every image; so do ``GRADIENTS`` with respect to the image,
    feature ``MAPS``, the ``MEMBERS`` of an ensemble, ``NEGATIVES`` (labels that name no class), ``PATCHES`` (of a
    vision transformer that knows words), ``OUTPUTS`` (what the network was trained to return beside its logits),
    ``DROPOUT`` layers, proven ``BOUNDS`` and changed ``COPIES`` of the image, which come through probes. ``IMAGES`` are
    the pixels, for a detector with a network of its own. ``TRAIN`` (training images), ``HELD_OUT`` (validation images,
    or training images where there are no others) and ``LABELS`` concern fitting.

    Examples
    --------
    >>> oods.create_detector("knn").needs == oods.Needs.FEATURES | oods.Needs.TRAIN
    True
    """

    LOGITS = auto()
    FEATURES = auto()
    HEAD = auto()
    GRADIENTS = auto()
    MAPS = auto()
    MEMBERS = auto()
    NEGATIVES = auto()
    PATCHES = auto()
    OUTPUTS = auto()
    DROPOUT = auto()
    BOUNDS = auto()
    COPIES = auto()
    IMAGES = auto()
    TRAIN = auto()
    HELD_OUT = auto()
    LABELS = auto()


class Cost(StrEnum):
    """What a detector's price depends on, in rising order.

    ``logits``: a function of the logits. ``head``: products with the head. ``moments``: class means and a
    D x D matrix. ``bank``: training rows that it remembers and compares with. ``training``: gradient descent
    or expectation-maximisation at fitting time. ``passes``: more passes through the network for every image.
    """

    LOGITS = "logits"
    HEAD = "head"
    MOMENTS = "moments"
    BANK = "bank"
    TRAINING = "training"
    PASSES = "passes"


class Detector(Estimator, ABC):
    """Base of all detectors: subclasses give ``_score``, and ``_fit`` if they learn from data.

    The base does once what every detector needs: it checks ``needs``, reads activations in chunks, moves
    them to the device, refuses NaN by name and row, and forgets what was fitted when a parameter changes.

    What ``_fit`` learns goes into attributes that end in an underscore: tensors, or plain JSON values.

    Class attributes
    ----------------
    name : the registry name.
    needs : what must be there.
    optional : what it reads where it is there, and can do without.
    cost : what its price depends on.
    signed_features_ok : whether its idea survives features below zero; if not, they are refused.
    log_probabilities_ok : whether its idea survives logits that are normalised; a free energy of them is 0 everywhere.
    grid : values worth searching, by parameter.
    outputs : names of what the network must return beside its logits.
    unverified_form : whether the equation comes from the abstract of a paper, so that details may differ from it.
    version : of the score's form. A monotone change of a score leaves every ranking alone, but changes what a
        search for its worst outliers finds; so the form is fixed, and a new one is a new version.

    Examples
    --------
    >>> class Range(oods.Detector):
    ...     name, needs = "range", oods.Needs.LOGITS
    ...     def _score(self, batch): return batch.logits.amin(1) - batch.logits.amax(1)
    >>> oods.evaluate(clf, bench, [Range()]).scores.detectors
    ['range']
    """

    name: ClassVar[str]
    paper: ClassVar[Paper]
    needs: ClassVar[Needs]
    optional: ClassVar[Needs] = Needs(0)
    cost: ClassVar[Cost]
    signed_features_ok: ClassVar[bool] = True
    log_probabilities_ok: ClassVar[bool] = True
    grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    outputs: ClassVar[tuple[str, ...]] = ()
    unverified_form: ClassVar[bool] = False
    version: ClassVar[int] = 1

    def fit(
        self,
        train: Activations | None = None,
        val: Activations | None = None,
        *,
        ood_val: Activations | None = None,
    ) -> Self:
        """Learn from in-distribution activations.

        Parameters
        ----------
        train : training images of the classifier, with labels.
        val : held-out in-distribution images, for detectors that take thresholds from them; training images
            stand in where there are none.
        ood_val : validation outliers, for the few detectors that learn from some.
        """
        self._forget()
        if not self.learns:
            return self
        known = [part for part in ((train, val) if Needs.TRAIN in self.needs else (val or train,)) if part is not None]
        if not known or (Needs.TRAIN in self.needs and train is None):
            raise DetectorError(f"{self.name}: needs in-distribution training activations to fit")
        for part in known:
            self._check(part, fitting=part is known[0])
        if ood_val is not None:
            self._check(ood_val)
        with self._blamed("_fit"):
            self._fit(known[0], known[-1], ood_val)
        if not self.fitted:
            learnt = ", ".join(sorted(set(vars(self)) - set(self.parameter_names()) - {"_device"})) or "none"
            raise DetectorError(
                f"{self.name}: _fit left no attribute that ends in '_', for what was fitted (others: {learnt})"
            )
        return self

    def score(self, activations: Activations) -> Tensor:
        """One score per row, larger = more OOD, float64 on the detector's device."""
        if self.learns and not self.fitted:
            raise DetectorError(f"{self.name}: not fitted. Call fit(train, val) first")
        self._check(activations)
        scores = activations.per_row(self._scored, device=self.device, only=(*self._columns(), "prediction"))
        self._refuse_rows((~torch.isfinite(scores)).nonzero().flatten(), len(scores), "scores")
        return scores

    def score_batch(self, batch: Activations) -> Tensor:
        """Scores of one batch that lies on the detector's device, as it is: unchecked, in one piece.

        Nothing asks the device what it found, and gradients flow as far as the score has any.
        """
        return precise(self._score(batch))

    def _scored(self, chunk: Activations) -> Tensor:
        with self._blamed("_score"):
            scores: Any = self._score(chunk)
        if not isinstance(scores, Tensor):
            kind = type(scores).__name__
            raise DetectorError(f"{self.name}: _score returned a {kind}; it must return a tensor, one score per row")
        return precise(scores)

    @contextmanager
    def _blamed(self, method: str) -> Iterator[None]:
        """Turn what a detector of somebody else raises into one line that names it; ours are our own to mend."""
        try:
            yield
        except OodscopeError:
            raise
        except Exception as error:
            if type(self).__module__.partition(".")[0] == __name__.partition(".")[0]:
                raise
            raise DetectorError(f"{self.name}: its {method} raised {raised(error, __file__)}") from error

    def to(self, device: torch.device | str) -> Self:
        """Move what was fitted, and all coming work, to ``device``."""
        self._device = torch.device(device)
        for key, value in self._state().items():
            if isinstance(value, Tensor):
                setattr(self, key, value.to(self._device))
        return self

    @property
    def device(self) -> torch.device:
        return getattr(self, "_device", torch.device("cpu"))

    @property
    def learns(self) -> bool:
        """Whether it must be fitted."""
        return bool(self.needs & (Needs.TRAIN | Needs.HELD_OUT))

    @property
    def fitted(self) -> bool:
        """Whether ``fit`` has left anything behind."""
        return bool(self._state())

    @property
    def id(self) -> str:
        """Name in tables: the registry name, with the parameters that differ from their defaults."""
        declared = inspect.signature(type(self)).parameters
        recorded = self.recorded_params()  # an id stands in what others read, so it has no path of this machine
        given = [key for key, value in self.get_params(deep=False).items() if value != declared[key].default]
        own = {key: recorded[key] for key in given}
        return f"{self.name}({', '.join(f'{key}={value}' for key, value in own.items())})" if own else self.name

    @property
    def networks(self) -> dict[str, str]:
        """The paths of networks of its own, by the name of their parameter."""
        return {}

    def recorded_params(self) -> dict[str, Any]:
        """The parameters as records keep them."""
        return self.get_params(deep=False)

    @property
    def identity(self) -> str:
        """What decides its scores beside the data it is fitted to: equal ids may stand for other files."""
        return self.id

    @property
    def probes(self) -> tuple[Probe, ...]:
        """Columns that must be extracted for this detector beyond logits and features."""
        return ()

    def unmet_requirement(self, capabilities: Capabilities) -> str | None:
        """Why this detector cannot be used with what there is; None if it can."""
        needs = self.needs
        if not capabilities.images and (self.probes or needs & _INSIDE):
            return "needs images and the network, and only activations were given"
        if Needs.LOGITS in needs and not capabilities.logits:
            return "needs logits, and none were given"
        if needs & (Needs.FEATURES | Needs.HEAD) and not (capabilities.head or capabilities.features):
            return "needs the features before a linear head, and none was found"
        if Needs.FEATURES in needs and capabilities.features is False:
            return "needs features, and none were given"
        if Needs.HEAD in needs and not capabilities.head:
            return "needs the weight and bias of a linear head: pass head=(weight, bias)"
        if capabilities.signed and not self.signed_features_ok:
            return "needs features of zero or more (as after a ReLU), and this network's may be negative"
        if capabilities.log_probabilities and not self.log_probabilities_ok:
            return "needs logits with a scale, and these are log-probabilities, whose log-sum-exp is 0 for every image"
        if Needs.MAPS in needs and not capabilities.stages:
            return "needs feature maps (channels x height x width), and this network has none"
        if Needs.MEMBERS in needs and not capabilities.members:
            return "needs several networks that vote: judge an Ensemble"
        if Needs.NEGATIVES in needs and not capabilities.negatives:
            return "needs negative labels: judge a network that classifies by words (open_clip) and name some"
        if Needs.PATCHES in needs and not capabilities.patches:
            return "needs the patches of a network that classifies by words (a vision transformer of open_clip)"
        if Needs.DROPOUT in needs and not capabilities.dropouts:
            return "needs a network with dropout layers, and this one has none"
        if Needs.BOUNDS in needs and not capabilities.bounded:
            return "needs a network with proven bounds (plain_cnn_32 trained by good), and this one has none"
        if missing := [name for name in self.outputs if name not in capabilities.outputs]:
            return f"needs a network trained to return {missing[0]!r} beside its logits"
        if Needs.TRAIN in needs and not capabilities.train:
            return "needs in-distribution training images (id_train)"
        if Needs.HELD_OUT in needs and not (capabilities.train or capabilities.held_out):
            return "needs in-distribution images to learn from (id_val or id_train)"
        if Needs.LABELS in needs and not capabilities.labels:
            return "needs the labels of the in-distribution images that it learns from"
        return None

    def search_space(self, train: Activations) -> list[dict[str, Any]]:
        """Every combination of the grid that makes sense for these activations."""
        return [dict(zip(self.grid, values)) for values in product(*self.grid.values())]

    def score_grid(
        self,
        candidates: Sequence[Mapping[str, Any]],
        train: Activations,
        val: Activations,
        judged: Sequence[Activations],
    ) -> Iterator[list[Tensor]]:
        """For each candidate, the scores of each of the ``judged`` activations.

        A detector whose candidates share most of the work overrides this.
        """
        for candidate in candidates:
            trial = clone(self).set_params(**candidate).to(self.device).fit(train, val)
            yield [trial.score(activations) for activations in judged]

    def save(self, path: Path | str) -> None:
        """Write parameters and fitted state to one safetensors file."""
        from oodscope.detectors.saving import save_detector

        save_detector(self, Path(path))

    @abstractmethod
    def _score(self, batch: Activations) -> Tensor:
        """Scores of one chunk, ``[rows]``."""

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        """Learn the attributes that end in an underscore; ``val`` is ``train`` where nothing was held out."""
        raise NotImplementedError(f"{type(self).__name__} must be fitted but does not define _fit")

    def _state(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key.endswith("_") and not key.startswith("_")}

    def _forget(self) -> None:
        for key in self._state():
            delattr(self, key)

    def __setattr__(self, key: str, value: Any) -> None:
        if key in self.parameter_names():
            self._forget()
        super().__setattr__(key, value)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        parameters = ", ".join(f"{key}={value!r}" for key, value in self.get_params(deep=False).items())
        unfitted = self.learns and not self.fitted
        return f"{type(self).__name__}({parameters}){' [not fitted]' if unfitted else ''}"

    def _check(self, activations: Activations, fitting: bool = False) -> None:
        columns = self._columns()
        for column in columns:
            if column not in activations:
                raise DetectorError(f"{self.name}: needs {column}, which these activations do not hold")
        if Needs.HEAD in self.needs and activations.head is None:
            raise DetectorError(f"{self.name}: needs the head's weight and bias; pass weight= and bias=")
        if fitting and Needs.LABELS in self.needs:
            self._check_labels(activations)
        for column in columns:
            self._refuse_rows(activations.broken_rows(column), len(activations), column)
        if not self.signed_features_ok and len(negative := activations.negative_rows("features")):
            raise DetectorError(
                f"{self.name}: needs features of zero or more, as after a ReLU; {len(negative)} of "
                f"{len(activations)} rows have some below (row {int(negative[0])} first)"
            )

    def _columns(self) -> list[str]:
        """What it reads of every image."""
        columns = [column for flag, column in _COLUMNS.items() if flag in self.needs]
        return columns + [probe.column for probe in self.probes]

    def _check_labels(self, train: Activations) -> None:
        if "labels" not in train:
            raise DetectorError(f"{self.name}: fitting needs the labels of the images")
        wrong = (train.labels < 0) | (train.labels >= train.num_classes)
        if wrong.any():
            row = int(wrong.nonzero()[0])
            raise DetectorError(
                f"{self.name}: label {int(train.labels[row])} of row {row} is out of range 0..{train.num_classes - 1}"
            )

    def _refuse_rows(self, bad: Tensor, total: int, what: str) -> None:
        if len(bad):
            shown = ", ".join(str(row) for row in bad[:5].tolist()) + (", ..." if len(bad) > 5 else "")
            raise DetectorError(f"{self.name}: {what} are NaN or infinite in {len(bad)} of {total} rows ({shown})")


_INSIDE = (
    Needs.GRADIENTS
    | Needs.MAPS
    | Needs.MEMBERS
    | Needs.NEGATIVES
    | Needs.PATCHES
    | Needs.DROPOUT
    | Needs.BOUNDS
    | Needs.COPIES
)
_COLUMNS = {Needs.LOGITS: "logits", Needs.FEATURES: "features"}


def parameters_json(detector: Detector) -> dict[str, Any]:
    """The parameters as plain JSON, a nested detector as its name and parameters."""
    values = detector.recorded_params()
    plain: dict[str, Any] = json.loads(json.dumps(values, default=_nested))
    return plain


def _nested(value: Any) -> Any:
    if isinstance(value, Detector):
        return {"detector": value.name, "params": parameters_json(value)}
    raise TypeError(f"parameter of type {type(value).__name__} cannot be recorded")
