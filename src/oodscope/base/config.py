"""Strict configuration: an unknown key is an error that names the nearest key."""

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from oodscope.base.errors import OodscopeError, did_you_mean


class StrictModel(BaseModel):
    """A configuration record: typed, frozen, and closed to keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


M = TypeVar("M", bound=BaseModel)


def parse(model: type[M], data: Any, where: str) -> M:
    """Validate ``data`` as a ``model``; the first problem becomes one line that begins with ``where``."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        # a misspelt key also leaves a required one missing; the misspelling is what helps
        problem = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
        path = ".".join(str(step) for step in problem["loc"])
        if problem["type"] == "extra_forbidden":
            key = str(problem["loc"][-1])
            known = _known_keys(model)
            place = f" It belongs under {known[key]!r}" if known.get(key) else did_you_mean(key, known)
            raise OodscopeError(f"{where}: unknown key {path!r}.{place}") from error
        raise OodscopeError(f"{where}: {path or 'content'}: {problem['msg']}") from error


def read_yaml(path: Path) -> Any:
    """The content of a YAML file, or one line that says where it is broken."""
    try:
        return yaml_text(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError as error:
        raise OodscopeError(f"{path}: no such file") from error
    except UnicodeDecodeError as error:
        raise OodscopeError(f"{path}: not valid YAML: {error}") from error


def yaml_text(text: str, where: str) -> Any:
    """What a YAML text says, or one line that begins with ``where``."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        raise OodscopeError(f"{where}: not valid YAML{line}: {getattr(error, 'problem', error)}") from error


def _known_keys(model: type[BaseModel]) -> dict[str, str]:
    """Every key of ``model`` and of the records inside it, with the key that it stands under; empty at the top."""
    seen: set[type[BaseModel]] = set()
    names: dict[str, str] = {}
    pending: list[tuple[Any, str]] = [(model, "")]
    while pending:
        current, under = pending.pop(0)
        if isinstance(current, type) and issubclass(current, BaseModel):
            if current in seen:
                continue
            seen.add(current)
            for name, field in current.model_fields.items():
                names.setdefault(name, under)
                pending.append((field.annotation, name))
        else:
            pending.extend((each, under) for each in getattr(current, "__args__", ()))
    return names
