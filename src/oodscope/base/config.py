"""Strict configuration: an unknown key is an error that names the nearest key, a repeated one is refused."""

from collections.abc import Hashable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from oodscope.base.errors import OodscopeError, UsageError, did_you_mean


class StrictModel(BaseModel):
    """A configuration record: typed, frozen, and closed to keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Seed = Annotated[int, Field(ge=0, lt=2**63)]
"""Of random numbers: what numpy and torch both take."""

MOST_BYTES, DEEPEST, MOST_VALUES = 4 * 2**20, 32, 100_000
"""Of a YAML file: bytes, levels, and values once every alias is written out."""

_WORDING = {
    **dict.fromkeys(("tuple_type", "list_type", "set_type", "frozen_set_type"), "must be a list, such as [a, b]"),
    **dict.fromkeys(
        ("dict_type", "model_type", "mapping_type", "model_attributes_type"), "must be keys with values, such as {a: 1}"
    ),
    "string_type": "must be text",
    "missing": "is missing",
}
"""What pydantic says in words of Python, in words of files; by the type of its error."""

M = TypeVar("M", bound=BaseModel)


def parse(model: type[M], data: Any, where: str, problem_is: type[OodscopeError] = OodscopeError) -> M:
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
            raise problem_is(f"{where}: unknown key {path!r}.{place}") from error
        wording = _WORDING.get(problem["type"], problem["msg"].removeprefix("Value error, "))
        raise problem_is(f"{where}: {path or 'content'}: {wording}") from error


def parse_declared(model: type[M], data: Any, where: str) -> M:
    """``parse`` of what a user declares, in a file or on a command line: a problem is bad usage."""
    return parse(model, data, where, UsageError)


def read_yaml(path: Path) -> Any:
    """The content of a YAML file, or one line that says where it is broken."""
    try:
        if not path.is_file() and path.exists():
            raise UsageError(f"{path}: not a file")
        if path.stat().st_size > MOST_BYTES:
            raise UsageError(f"{path}: {path.stat().st_size:,} bytes; at most {MOST_BYTES:,} are read")
        return yaml_text(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError as error:
        raise OodscopeError(f"{path}: no such file") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not valid YAML: {error}") from error
    except OSError as error:
        raise OodscopeError(f"{path}: cannot be read ({error.strerror or error})") from error


def yaml_text(text: str, where: str) -> Any:
    """What a YAML text says, or one line that begins with ``where``."""
    try:
        _check_depth(text)
        return yaml.load(text, _UniqueKeys)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        raise UsageError(f"{where}: not valid YAML{line}: {getattr(error, 'problem', error)}") from error
    except ValueError as error:  # a date or a number that is none
        raise UsageError(f"{where}: not valid YAML: {error}") from error
    except (AttributeError, LookupError, TypeError) as error:  # what PyYAML stumbles over in a tag's value: !!bool x
        raise UsageError(f"{where}: not valid YAML: a tag does not fit its value ({error})") from error


class _UniqueKeys(yaml.SafeLoader):
    """PyYAML's safe loader without its silences: a key that stands twice would win over the first."""

    def get_single_data(self) -> Any:
        node = self.get_single_node()
        if node is None:
            return None
        _check_size(node, {})
        return self.construct_document(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: dict[str, Any] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None,
                    None,
                    f"key {key.value!r} stands there twice; the first is in line {seen[key.value]}",
                    key.start_mark,
                )
            if isinstance(key, yaml.ScalarNode):
                seen[key.value] = key.start_mark.line + 1
        return super().construct_mapping(node, deep)


def _check_depth(text: str) -> None:
    """Refuse deep nesting from the events, before anything recurs over it."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise yaml.MarkedYAMLError(problem=f"nested more than {DEEPEST} levels deep", problem_mark=event.start_mark)


def _check_size(node: yaml.Node, known: dict[int, int | None]) -> int:
    """How many values a node stands for with every alias written out; a few lines can stand for billions."""
    if id(node) in known:
        count = known[id(node)]
        if count is None:
            raise yaml.MarkedYAMLError(problem="an alias refers to what holds it", problem_mark=node.start_mark)
        return count
    known[id(node)] = None
    count = 1
    if isinstance(node, yaml.CollectionNode):
        parts = node.value if isinstance(node, yaml.SequenceNode) else [part for pair in node.value for part in pair]
        count += sum(_check_size(part, known) for part in parts)
    if count > MOST_VALUES:
        problem = f"stands for more than {MOST_VALUES:,} values"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
    known[id(node)] = count
    return count


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
