"""Recipes by name, and chains of them as a configuration declares them."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer
from pydantic_core import PydanticCustomError

from oodscope.base.config import parse_declared
from oodscope.base.errors import OodscopeError, UsageError
from oodscope.base.registry import Registry
from oodscope.training.recipe import Recipe

RECIPES: Registry[Recipe] = Registry("recipe", Recipe)  # type: ignore[type-abstract]

PLAIN = "cross_entropy"
"""What a training that names no recipe is."""


def create_recipe(name: str, **settings: Any) -> Recipe:
    """A recipe by its registry name: ``create_recipe("outlier_exposure", weight=0.5)``.

    Settings are the fields of its class; an unknown one is an error that names the nearest.

    Examples
    --------
    >>> oods.create_recipe("outlier_exposure", weight=0.5).weight
    0.5
    """
    return parse_declared(RECIPES.get(name), settings, f"recipe {name!r}")


def read_recipe(declared: Any) -> Recipe:
    """A recipe as a configuration declares it: ``{recipe: outlier_exposure, weight: 0.5}``, or its name alone."""
    if isinstance(declared, Recipe):
        return declared
    if isinstance(declared, str):
        return create_recipe(declared)
    if not isinstance(declared, Mapping):
        raise UsageError(f"a recipe is a name or a mapping such as {{recipe: {PLAIN}, epochs: 100}}")
    settings = dict(declared)
    return create_recipe(str(settings.pop("recipe", PLAIN)), **settings)


def _read_stages(declared: Any) -> tuple[Recipe, ...]:
    entries = declared if isinstance(declared, list | tuple) else [declared]
    try:
        stages = tuple(read_recipe(entry) for entry in entries)
    except OodscopeError as error:
        raise PydanticCustomError("recipe", "{reason}", {"reason": str(error)}) from error
    if not stages:
        raise PydanticCustomError("recipe", "an empty list of recipes trains nothing")
    return stages


def _declared(stages: tuple[Recipe, ...]) -> list[dict[str, Any]]:
    return [{"recipe": stage.name or type(stage).__name__, **stage.model_dump(mode="json")} for stage in stages]


Stages = Annotated[tuple[Recipe, ...], BeforeValidator(_read_stages), PlainSerializer(_declared)]
"""A chain of recipes: each stage goes on from the network of the one before. One recipe is a chain of one."""
