"""RunRecord: what was run, on what, with what; enough to repeat it or to see why it differs."""

import os
import platform
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import ConfigDict, Field, field_validator

from oodscope.base.config import StrictModel
from oodscope.base.hashing import fingerprint

if TYPE_CHECKING:
    from oodscope.results.measurement import Measurements

_PACKAGES = ("torch", "torchvision", "numpy", "scipy", "scikit-learn", "pillow")


def environment() -> dict[str, str | int]:
    """Versions of Python and of the libraries that compute, the platform, and the number of processors."""
    return {
        "python": platform.python_version(),
        **dict(_installed()),
        "platform": platform.platform(),
        "processors": os.cpu_count() or 1,
    }


def _installed() -> Iterator[tuple[str, str]]:
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):  # CPU-only builds of torch often come without torchvision
            yield package, version(package)


ALARM = "alarm: "
"""How a note begins that makes the numbers of a run doubtful."""


def command_line() -> str:
    """The command that this process was started with, for a reader who wants to repeat it; empty in other programs."""
    program = Path(sys.argv[0]) if sys.argv else Path()
    ours = program.stem == "oodscope" or (program.name == "__main__.py" and program.parent.name == "oodscope")
    return shlex.join(["oodscope", *sys.argv[1:]]) if ours else ""


class SetRecord(StrictModel):
    """One image set as it was used: its role, size, a fingerprint of its content, how the network knew it, and how many
    images were left out because they could not be read (``None`` if nobody counted)."""

    role: str
    n: int = Field(ge=0)
    fingerprint: str
    exposure: str = ""
    unreadable: int | None = Field(default=None, ge=0)


class RunRecord(StrictModel):
    """The record of one run.

    Parameters
    ----------
    id : unique among all runs; every measurement of the run carries it.
    created : when, in UTC, as ISO 8601 (``2026-01-31T12:00:00+00:00``).
    sets : each image set by name.
    transform, head : descriptions for people of the preprocessing and of the classifier's last layer.
    preprocess : the preprocessing as settings; ``None`` for anybody's callable.
    architecture, head_path : class of the network, and the name of the head inside it; empty if not known.
    parameters : how many numbers the network has learnt; ``None`` if not known.
    words : digest of the class names and sentences behind a head made of words, of ``text_head``; empty for others.
    trained_on, pretrained_on : what its weights are known to have seen.
    environment : versions of Python and libraries, the platform, the number of processors.
    skipped : detectors that did not apply, each with the reason.
    notes : what a reader should know, such as duplicate or unreadable images.
    costs : seconds, passes, memory; free keys.
    labels : what a study says of the model beside its name, such as its family (see ``StudyModel``); free keys.
    forward_images : how many images went through the network; ``None`` if nobody counted.
    command : the command line that made it; empty for a run of the Python interface.
    parts : ids of the runs that this one was made of, such as the evaluations of a study of models.

    A run may have no benchmark, no model and no protocol (an audit has no model, a training no benchmark): what does
    not apply stays empty.
    """

    model_config = ConfigDict(strict=True, protected_namespaces=())  # fields here may begin with "model_"

    id: str = Field(min_length=1)
    created: str
    oodscope_version: str
    benchmark: str = ""
    benchmark_version: str = ""
    sets: dict[str, SetRecord] = Field(default_factory=dict)
    model: str = ""
    model_fingerprint: str = ""
    transform: str = ""
    head: str = ""
    preprocess: dict[str, Any] | None = None
    architecture: str = ""
    head_path: str = ""
    parameters: int | None = None
    words: str = ""
    trained_on: list[str] = Field(default_factory=list)
    pretrained_on: list[str] = Field(default_factory=list)
    seed: int = 0
    precision: str = ""
    device: str = ""
    environment: dict[str, str | int] = Field(default_factory=dict)
    protocols: list[str] = Field(default_factory=list)
    skipped: dict[str, str] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)
    costs: dict[str, Any] = Field(default_factory=dict)
    labels: dict[str, Any] = Field(default_factory=dict)
    forward_images: int | None = None
    command: str = ""
    parts: list[str] = Field(default_factory=list)

    @field_validator("created")
    @classmethod
    def _in_utc(cls, value: str) -> str:
        if datetime.fromisoformat(value).utcoffset() != timedelta(0):
            raise ValueError("must be in UTC, such as 2026-01-31T12:00:00+00:00")
        return value


def joint_record(
    kind: str, members: Sequence[Any], names: Sequence[str], rows: "Measurements", *, protocols: Sequence[str]
) -> RunRecord:
    """The record of a run that shows the measurements of other runs; ``parts`` names those.

    Parameters
    ----------
    kind : of the run; its id begins with it.
    members : what the run says of each of its models, as JSON; the rest of the id is their fingerprint.
    names : of the models.
    rows : the measurements of all.
    """
    return RunRecord(
        id=f"{kind}-{fingerprint(members, rows.distinct('run'))[:12]}",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        oodscope_version=version("oodscope"),
        benchmark=", ".join(rows.distinct("benchmark")),
        benchmark_version=", ".join(rows.distinct("benchmark_version")),
        model=", ".join(names),
        environment=environment(),
        protocols=list(protocols),
        parts=rows.distinct("run"),
    )


class Recorded(Protocol):
    """What a store keeps of a run: its record and its measurements."""

    @property
    def record(self) -> RunRecord: ...

    @property
    def measurements(self) -> "Measurements": ...
