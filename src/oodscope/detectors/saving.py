"""Detectors on disk: one safetensors file with tensors, parameters and plain values; never a pickle."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from oodscope.base.errors import DetectorError
from oodscope.base.files import atomic_path
from oodscope.detectors.base import Detector, parameters_json
from oodscope.detectors.registry import create_detector

FORMAT = 1


def save_detector(detector: Detector, path: Path) -> None:
    """Write ``detector`` whole or not at all."""
    packed, tensors = pack(detector)
    record = {"format": FORMAT, **packed}
    with atomic_path(path) as temporary:
        save_file(tensors, temporary, metadata={"oodscope": json.dumps(record)})


def load_detector(path: Path | str) -> Detector:
    """Read what ``Detector.save`` wrote, fitted as it was."""
    try:
        with safe_open(path, framework="pt") as content:
            record = json.loads((content.metadata() or {}).get("oodscope", "null"))
            tensors = {key: content.get_tensor(key) for key in content.keys()}  # noqa: SIM118  # not a dict
    except (OSError, SafetensorError, ValueError) as error:
        raise DetectorError(f"{path}: not a saved detector ({error})") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise DetectorError(f"{path}: not a detector saved by this version of oodscope")
    return unpack(record, tensors)


def pack(detector: Detector) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What makes a detector what it is: a JSON record, and the tensors it has fitted."""
    state = detector._state()
    tensors = {key: value.contiguous().cpu() for key, value in state.items() if isinstance(value, Tensor)}
    values = {key: value for key, value in state.items() if not isinstance(value, Tensor)}
    return {"detector": detector.name, "params": parameters_json(detector), "values": values}, tensors


def unpack(record: dict[str, Any], tensors: dict[str, Tensor]) -> Detector:
    """The detector that ``pack`` took apart."""
    detector = restored(record["detector"], record["params"])
    for key, value in {**tensors, **record["values"]}.items():
        if not (key.endswith("_") and not key.startswith("_") and key.isidentifier()):
            raise DetectorError(f"{detector.name}: {key!r} is not the name of something fitted")
        setattr(detector, key, value)
    return detector


def restored(name: str, params: Mapping[str, Any]) -> Detector:
    """A detector of the registry from its recorded parameters, in which others may be nested."""
    plain = {
        key: restored(value["detector"], value["params"]) if _is_nested(value) else value
        for key, value in params.items()
    }
    return create_detector(name, **plain)


def _is_nested(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"detector", "params"}
