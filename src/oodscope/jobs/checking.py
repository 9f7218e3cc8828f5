"""What can be wrong with a declared job, found before torch is imported or any image is read.

A misspelt name should end a command at once. What needs more than names is refused by the ``check`` of the job itself,
before data are opened too.
"""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, get_args

from oodscope.base.catalog import catalog, plugins
from oodscope.base.config import parse
from oodscope.base.errors import OodscopeError, StorageError, UnknownNameError
from oodscope.base.own_code import PREFIX, find_own
from oodscope.jobs.sets import CalibrationSets, OwnSets
from oodscope.metrics.metric import Tuning


def check_declared(declared: Mapping[str, Any], where: str) -> None:
    """Names of detectors, protocols, tuning tracks, roles and devices, and whether results can be written.

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
        _check_detectors(_names(given))
    _check_protocols(_names(declared.get("protocols")))
    tune = declared.get("tune")
    if isinstance(tune, str) and tune not in get_args(Tuning):
        raise UnknownNameError("tuning track", tune, get_args(Tuning), f"Known: {', '.join(get_args(Tuning))}")
    if isinstance(declared.get("benchmark"), Mapping):
        parse(OwnSets if fit is None else CalibrationSets, declared["benchmark"], f"{where}: benchmark")
    device = declared.get("device")
    if isinstance(device, str) and device not in ("auto", "cpu"):
        from oodscope.models.classifier.network import choose_device

        choose_device(device)
    if isinstance(declared.get("output"), str):
        output = Path(declared["output"])
        check_writable(output if fit is None else output.parent)


def check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be made or written to; nothing is made here."""
    there = folder.absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise StorageError(f"cannot write to {folder}: {there} is a file; choose another folder (output)")
    try:
        # permissions are not all: a file system may be read-only, or no place for files at all
        with TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise StorageError(f"cannot write to {folder}: {error.strerror}; choose another folder (output)") from error


def _names(given: Any) -> Iterable[str]:
    """The names in ``[a, {b: {parameter: value}}]``."""
    if not isinstance(given, list | tuple):
        return
    for entry in given:
        yield from [entry] if isinstance(entry, str) else [str(name) for name in entry] if entry else []


def _check_protocols(names: Iterable[str]) -> None:
    loaded = sys.modules.get("oodscope.protocols.registry")
    known = loaded.PROTOCOLS.names() if loaded else [*catalog("protocols"), *plugins("protocols")]
    for name in names:
        if name not in known:
            raise UnknownNameError("protocol", name, known, "See: oodscope list protocols")


def _check_detectors(names: Iterable[str]) -> None:
    # who has registered a detector in code has imported the registry; for others the catalogue is enough
    loaded = sys.modules.get("oodscope.detectors.registry")
    known = loaded.DETECTORS.names() if loaded else [*catalog("detectors"), *plugins("detectors")]
    for part in (part.strip() for name in names for part in name.split("+")):
        if part.startswith(PREFIX):
            find_own(part, "class")
        elif part not in known:
            raise UnknownNameError("detector", part, known, "See: oodscope list detectors")
    if any(not name.strip() for name in names):
        raise OodscopeError("an empty name stands among the detectors")
