"""The parts of an entry: what was judged, on what, with what. What nobody wrote down says so."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from oodscope.base.config import StrictModel
from oodscope.leaderboard.records.text import NOT_KNOWN, Digest, Line, Link, Name, Plain, Text
from oodscope.metrics.metric import Tuning

Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Printed = Annotated[str, StringConstraints(pattern=r"^-?[0-9]{1,9}(\.[0-9]{1,9})?$")]


class Part(StrictModel):
    """A part of an entry: closed to unknown keys, every number finite."""

    model_config = ConfigDict(allow_inf_nan=False, protected_namespaces=())


class Publication(Part):
    """Where the method was published."""

    title: Name
    venue: Line = ""
    year: int | None = Field(default=None, ge=1900, le=2200)
    link: Link = ""
    bibtex: Text = ""


class Reported(Part):
    """A number that somebody printed, with its source. It is shown beside ours and never takes its place.

    Parameters
    ----------
    protocol, metric, group, set : of the measurement that it speaks of; ``set="mean"`` for a group's mean.
    printed : the digits as they stand there, such as ``"88.03"``; their number says how far it was rounded.
    unit : ``percent`` or, for a value between 0 and 1 or a count, ``plain``.
    spread : the digits after a plus-minus sign, and what they mean.
    source : where it stands: paper, table, row.
    """

    protocol: Name
    metric: Name
    group: Line
    set: Name
    printed: Printed
    unit: Literal["percent", "plain"] = "percent"
    spread: Printed | None = None
    spread_meaning: Line = ""
    source: Name
    link: Link = ""

    @property
    def value(self) -> float:
        """The number as a measurement states it: a share, not percent."""
        return float(self.printed) / self._scale

    @property
    def rounding(self) -> float:
        """Half a unit of the last printed digit."""
        _, _, decimals = self.printed.partition(".")
        return 0.5 * 10.0 ** -len(decimals) / self._scale

    @property
    def _scale(self) -> float:
        return 100.0 if self.unit == "percent" else 1.0


class Claim(Part):
    """A number that the entry says its scores give. Verification computes it again and refuses another one."""

    protocol: Name
    metric: Name
    group: Line
    set: Name
    value: float


class SetUse(Part):
    """One image set as it was used.

    Parameters
    ----------
    n, list_hash : how many images, and the fingerprint of their names, labels and classes in order
        (``oodscope.leaderboard.records.folder``); known of every set that was scored.
    fingerprint : of the pixels, where they were at hand.
    filter : which images of the published set were left out, in words.
    exposure : how the network knew it before.
    """

    role: Name
    n: Count
    list_hash: Digest | Literal["not known"] = "not known"
    fingerprint: Line = NOT_KNOWN
    filter: Line = NOT_KNOWN
    exposure: Line = ""


class Preprocessing(Part):
    """How a file became the network's input."""

    decoder: Line = NOT_KNOWN
    resize_filter: Line = NOT_KNOWN
    resize: int | None = Field(default=None, gt=0)
    size: int | None = Field(default=None, gt=0)
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    description: Line = NOT_KNOWN


class BenchmarkUse(Part):
    """The benchmark, its version, and every set of it that was scored or learned from."""

    name: Name
    version: Name
    sets: dict[Name, SetUse] = {}
    preprocessing: Preprocessing = Preprocessing()

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


class ModelUse(Part):
    """The network.

    Parameters
    ----------
    weights_hash : fingerprint of weights, structure and head.
    id_accuracy : on ``id_test``; recomputed from the predictions.
    trained_on, pretrained_on : data that its weights have seen; ``None`` if not known.
    recipe : how it was trained.
    seed : of its training.
    words : digest of the class names and sentences of a network that classifies by words; empty for others.
    """

    name: Name = NOT_KNOWN
    weights_hash: Line = NOT_KNOWN
    architecture: Line = NOT_KNOWN
    head_path: Line = NOT_KNOWN
    id_accuracy: Share | None = None
    trained_on: tuple[Line, ...] | None = None
    pretrained_on: tuple[Line, ...] | None = None
    recipe: Line = NOT_KNOWN
    seed: int | None = None
    words: Line = ""


class Search(Part):
    """How parameters were chosen.

    Parameters
    ----------
    grid_size : combinations tried; 1 where none was searched.
    validation_hash : fingerprint of the validation sets, ID and OOD.
    validation_auroc : of the chosen combination.
    """

    tuning: Tuning = "default"
    grid_size: int | None = Field(default=None, ge=1)
    validation_hash: Line = NOT_KNOWN
    validation_auroc: Share | None = None


class DetectorUse(Part):
    """The detector: its name in the registry, or of an installed class, the form of its score, and all parameters.

    Parameters
    ----------
    id : its name in tables, such as ``knn(k=10)``.
    name : a registered name (``knn``, ``react+msp``) or ``python:PACKAGE.MODULE:CLASS``.
    version, score_form : which form of the score; a monotone change of it is another version.
    fit_split, fit_rows : what it learned from; empty where it learns from nothing.
    extra_forwards, extra_backwards : passes through the network per image beyond the plain one.
    """

    id: Name = NOT_KNOWN
    name: Name = NOT_KNOWN
    version: int | None = Field(default=None, ge=1)
    score_form: Line = NOT_KNOWN
    params: Plain = {}
    search: Search = Search()
    fit_split: Line = NOT_KNOWN
    fit_rows: Count | None = None
    extra_forwards: Count | None = None
    extra_backwards: Count | None = None
    fit_seconds: float | None = Field(default=None, ge=0)
    microseconds_per_image: float | None = Field(default=None, ge=0)
    peak_mib: float | None = Field(default=None, ge=0)


class Execution(Part):
    """The run behind the scores: seeds, precision, libraries, machine."""

    run: Name = NOT_KNOWN
    created: Line = NOT_KNOWN
    seed: int = Field(default=0, ge=0)
    precision: Line = NOT_KNOWN
    device: Line = NOT_KNOWN
    libraries: dict[Name, Line] = {}
    hardware: Line = NOT_KNOWN
    options: Plain = {}
    notes: tuple[Text, ...] = ()


class Threshold(Part):
    """One threshold of the rejection protocol, with the rate that it realised; all recomputed from the scores.

    Parameters
    ----------
    source : ``val_correct``, ``train_correct``, ...: the images that gamma is a quantile of.
    keep : percent of them that are kept.
    tied : share of that sample that equals gamma.
    false_rejection : of correct ``id_test`` images, as it came out.
    """

    source: Name
    keep: int = Field(gt=0, lt=100)
    gamma: float
    tied: Share
    false_rejection: Share | None = None


class SearchedVariation(Part):
    """One search for the worst outliers.

    Parameters
    ----------
    boundary : how a step ends that leaves the box.
    energy : the scale of differences; ``mu_sigma_source`` says whose scores it is made from.
    state_0 : where chains start.
    generator_hash : of the generator's weights; empty for variations of source images.
    parameters : names of the found coordinates, ``found`` their quantiles (5, 50 and 95 %) over chains.
    found_hash : of all found parameters, chain by chain.
    flags : why the search may have stopped too early.
    """

    variation: Name
    budget: Count
    chains: Count
    sampler: Plain = {}
    boundary: Line = NOT_KNOWN
    energy: Plain = {}
    mu_sigma_source: Line = NOT_KNOWN
    state_0: Line = NOT_KNOWN
    generator_hash: Line = ""
    parameters: tuple[Line, ...] = ()
    found: tuple[tuple[float, float, float], ...] = ()
    found_hash: Line = NOT_KNOWN
    flags: tuple[Line, ...] = ()


class AttackUse(Part):
    """The attack behind the scores of an entry of an attack.

    Parameters
    ----------
    search_seeds : searches of every variation, with seeds of their own; numbers are means over them.
    """

    outliers: Name
    runs: int = Field(ge=1)
    search_seeds: int = Field(default=1, ge=1, le=1000)
    searches: tuple[SearchedVariation, ...]
    conditional: tuple[Name, ...]

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        names = [each.variation for each in self.searches]
        if len(set(names)) < len(names) or {"clean", "any"} & set(names):
            raise ValueError("every variation is searched once, and none is called clean or any")
        if strangers := set(self.conditional) - set(names):
            raise ValueError(f"{min(strangers)!r} is conditional, but was not searched")
        return self


class ScoresFile(Part):
    """The scores that belong to the entry; a file that differs is refused."""

    sha256: Digest
    rows: int = Field(gt=0)
