"""What can be wrong with a declared job, found before torch is imported or any image is read.

A misspelt name should end a command at once. What needs more than names is refused by the ``check`` of the job itself,
before data are opened too.
"""

import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, get_args

from oodscope.base.catalog import catalog, plugins
from oodscope.base.config import parse_declared
from oodscope.base.errors import OodscopeError, StorageError, UnknownNameError, UsageError
from oodscope.base.own_code import PREFIX, find_own
from oodscope.base.place import is_url
from oodscope.jobs.sets import CalibrationSets, OwnSets
from oodscope.metrics.metric import Tuning


def check_declared(declared: Mapping[str, Any], where: str) -> None:
    """Names of detectors, protocols, recipes, tuning tracks, roles and devices, and whether results can be written.

    A device other than ``auto`` and ``cpu`` costs the import of torch, which alone knows it.

    Parameters
    ----------
    declared : the keys of a job, as YAML or a command line has them; what is not there, or of another type, is left to
        the job itself.
    where : what messages begin with.
    """
    plan, fit = declared.get("plan"), declared.get("fit")
    entries = [declared.get("detectors"), plan.get("detectors") if isinstance(plan, Mapping) else None]
    if isinstance(fit, Mapping) and isinstance(fit.get("detector"), str):
        entries.append([fit["detector"]])
    for given in entries if "scores" not in declared else ():
        # the detectors of a score file are its columns
        _check_detectors(_names(given), streams="stream" in declared)
    _check_names("protocol", _names(declared.get("protocols")), loaded="oodscope.protocols.registry")
    several = declared.get("models", declared.get("encoders"))
    models = [declared.get("model"), *(several if isinstance(several, list) else [])]
    trainings = [declared.get("train"), *(each.get("train") for each in models if isinstance(each, Mapping))]
    _check_names("recipe", (name for each in trainings for name in _recipes(each)), loaded="oodscope.training.registry")
    tune = declared.get("tune")
    if isinstance(tune, str) and tune not in get_args(Tuning):
        raise UnknownNameError("tuning track", tune, get_args(Tuning), f"Known: {', '.join(get_args(Tuning))}")
    if isinstance(declared.get("benchmark"), Mapping):
        parse_declared(OwnSets if fit is None else CalibrationSets, declared["benchmark"], f"{where}: benchmark")
    device = declared.get("device")
    if isinstance(device, str) and device not in ("auto", "cpu"):
        from oodscope.models.classifier.network import choose_device

        choose_device(device)
    named = declared.get("output")
    if isinstance(named, str) and (fit is not None or not is_url(named)):
        check_writable(Path(named) if fit is None else Path(named).parent)


def check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be made or written to; nothing is made here."""
    if re.match(r"\w{2,}:/", str(folder)):
        raise StorageError(f"cannot write to {folder}: a URL is no folder; name a folder here (output)")
    there = _nearest(folder)
    if not there.is_dir():
        raise StorageError(f"cannot write to {folder}: {there} is a file; choose another folder (output)")
    try:
        # permissions are not all: a file system may be read-only, or no place for files at all
        with TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise StorageError(f"cannot write to {folder}: {error.strerror}; choose another folder (output)") from error


def check_writable_file(path: Path, example: str) -> None:
    """Refuse a file that cannot be written; ``example`` is a name that could be."""
    if _nearest(path) == path.absolute() and path.is_dir():
        raise OodscopeError(f"{path} is a folder; name the file to write, such as {example}")
    check_writable(path.parent)


def _nearest(path: Path) -> Path:
    """The last part of a path that is there; a path that no file system could hold is refused."""
    there = path.absolute()
    try:
        while not there.exists() and there != there.parent:
            there = there.parent
        longest = os.pathconf(there, "PC_NAME_MAX") if hasattr(os, "pathconf") else 255
        names = [os.fsencode(part) for part in path.absolute().relative_to(there).parts]
    except OSError as error:
        raise StorageError(f"cannot write to {path}: {error.strerror}; choose another name (output)") from error
    except UnicodeError as error:
        raise StorageError(f"cannot write to {str(path)!r}: not all of it is text; choose another name") from error
    if any(b"\0" in name for name in names):
        raise StorageError(f"cannot write to {str(path)!r}: a name holds no null character (output)")
    if any(len(name) > longest for name in names):
        raise StorageError(
            f"cannot write to {path}: a name in it is too long ({longest} bytes at most); choose another"
        )
    return there


def _names(given: Any) -> Iterable[str]:
    """The names in ``[a, {b: {parameter: value}}]``."""
    if not isinstance(given, list | tuple):
        return
    for entry in given:
        # whatever else stands there is refused by the job itself, with its key
        yield from [entry] if isinstance(entry, str) else map(str, entry) if isinstance(entry, Mapping) else []


def _recipes(given: Any) -> Iterable[str]:
    """The names in ``{recipe: NAME, ...}``, a name alone, or a chain of them."""
    for each in given if isinstance(given, list | tuple) else [given]:
        name = each.get("recipe") if isinstance(each, Mapping) else each
        if isinstance(name, str):
            yield name


def check_metric(name: str) -> None:
    """Refuse a metric that nobody knows, before a run is opened for it."""
    if not plugins("protocols"):  # a protocol of another package brings metrics of its own, known when it is opened
        _check_names("metric", [name], loaded="oodscope.metrics.catalog")


def _check_names(kind: str, names: Iterable[str], *, loaded: str, also: Iterable[str] = ()) -> None:
    """Refuse an unknown name of one kind; ``also`` are names that are known here.

    Parameters
    ----------
    loaded : the module of its registry. Who has registered a name in code has imported it; for others the catalogue is
        enough, which costs no import.
    """
    registry = getattr(sys.modules.get(loaded), f"{kind.upper()}S", None)
    known = list(registry) if registry is not None else [*catalog(f"{kind}s"), *plugins(f"{kind}s")]
    known = [*known, *also]
    for name in names:
        if name not in known:
            raise UnknownNameError(kind, name, known, f"See: oodscope list {kind}s")


def _check_detectors(names: Iterable[str], streams: bool) -> None:
    """Refuse unknown detectors; those that learn from a stream are known in ``streams`` alone."""
    learning = {*catalog("stream_detectors"), *plugins("stream_detectors")}
    given = list(names)
    if not streams and (found := [name for name in given if name in learning]):
        raise UsageError(f"{found[0]} learns from the images before; its numbers belong to a schedule: oodscope stream")
    parts = [part.strip() for name in given for part in name.split("+")]
    for part in parts:
        if part.startswith(PREFIX):
            find_own(part, "class")
    ours = [part for part in parts if part and not part.startswith(PREFIX)]
    _check_names("detector", ours, loaded="oodscope.detectors.registry", also=learning if streams else ())
    if not all(parts):
        raise UsageError("an empty name stands among the detectors")
